//! Of more moments than are told one by one the newest, and how many of the older ones each step has.
//!
//! In: moments in any order. Out: a list and counts, which together are all of them. Holds at most twice as many as it
//! tells.

use crate::query::plan::steps::Steps;
use std::collections::BTreeMap;

const NS_PER_MS: i64 = 1_000_000;

/// When something of a kind was. Of one time they are in the order of their kinds, then of what they are about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment<T> {
    /// Unix milliseconds.
    pub time_ms: i64,
    /// Of which kind it is counted.
    pub kind: &'static str,
    /// What it is about.
    pub about: T,
}

/// Moments of one step that are counted, and not told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OlderMoments {
    /// The step's start in Unix milliseconds.
    pub from_ms: i64,
    /// The step's end in Unix milliseconds, which is not part of it.
    pub until_ms: i64,
    /// How many there are of each kind that is there.
    pub counts: BTreeMap<&'static str, u64>,
}

/// See the module.
#[derive(Debug)]
pub struct Newest<T> {
    most: usize,
    steps: Steps,
    list: Vec<Moment<T>>,
    /// By step and kind.
    older: BTreeMap<usize, BTreeMap<&'static str, u64>>,
}

impl<T: Ord> Newest<T> {
    /// So many are told, all others are counted by step.
    pub fn of(most: usize, steps: Steps) -> Newest<T> {
        Newest {
            most,
            steps,
            list: Vec::new(),
            older: BTreeMap::new(),
        }
    }

    /// Takes one more.
    pub fn add(&mut self, moment: Moment<T>) {
        self.list.push(moment);
        if self.list.len() > 2 * self.most {
            self.settle();
        }
    }

    /// Those that are told, and by step those that are not, both in the order of time.
    pub fn told(mut self) -> (Vec<Moment<T>>, Vec<OlderMoments>) {
        self.settle();
        let steps = self.steps;
        let of_step = |(step, counts)| {
            let (from_ns, until_ns) = steps.bounds(step);
            OlderMoments {
                from_ms: from_ns.div_euclid(NS_PER_MS),
                until_ms: until_ns.div_euclid(NS_PER_MS),
                counts,
            }
        };
        (self.list, self.older.into_iter().map(of_step).collect())
    }

    /// Counts the oldest of what is too much: as many newer ones are there, so that none of them would ever be told.
    fn settle(&mut self) {
        self.list.sort_unstable();
        let surplus = self.list.len().saturating_sub(self.most);
        let window = self.steps.window;
        for moment in self.list.drain(..surplus) {
            // A window may begin within a millisecond.
            let at_ns = moment.time_ms.saturating_mul(NS_PER_MS);
            let step = self.steps.index(at_ns.min(window.until_ns - 1).max(window.from_ns));
            let counts = self.older.entry(step).or_default();
            *counts.entry(moment.kind).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::ask::time::Window;

    const S: i64 = 1_000_000_000;

    fn steps(seconds: i64) -> Steps {
        let window = Window {
            from_ns: 100 * S,
            until_ns: 200 * S,
        };
        Steps::of(window, seconds * S)
    }

    fn moment(time_ms: i64, kind: &'static str) -> Moment<i64> {
        Moment {
            time_ms,
            kind,
            about: time_ms,
        }
    }

    #[test]
    fn what_is_not_told_is_counted_in_its_step_whatever_the_order() {
        // 1,000 moments, one each 100 ms, every tenth a version; 7 has no divisor in common with 1,000.
        let all: Vec<Moment<i64>> = (0..1_000)
            .map(|at| at * 7 % 1_000)
            .map(|at| moment(100_000 + at * 100, if at % 10 == 0 { "version" } else { "note" }))
            .collect();
        let mut newest = Newest::of(150, steps(10));
        for one in &all {
            newest.add(one.clone());
            assert!(newest.list.len() <= 300);
        }
        let (told, older) = newest.told();
        let times: Vec<i64> = told.iter().map(|one| one.time_ms).collect();
        let expected: Vec<i64> = (850..1_000).map(|at| 100_000 + at * 100).collect();
        assert_eq!(times, expected, "the newest, in the order of time");
        // Eight whole steps of 100, and the half of the ninth.
        assert_eq!(older.len(), 9);
        for (step, one) in older.iter().enumerate() {
            let from_ms = 100_000 + step as i64 * 10_000;
            assert_eq!((one.from_ms, one.until_ms), (from_ms, from_ms + 10_000));
            let whole = if step < 8 { 10 } else { 5 };
            assert_eq!(one.counts, [("note", 9 * whole), ("version", whole)].into(), "{step}");
        }
    }

    #[test]
    fn as_many_as_are_told_leave_none_to_count() {
        let mut newest = Newest::of(3, steps(10));
        for time_ms in [120_000, 110_000, 130_000] {
            newest.add(moment(time_ms, "note"));
        }
        let (told, older) = newest.told();
        assert_eq!(told.len(), 3);
        assert!(older.is_empty(), "{older:?}");
    }

    #[test]
    fn moments_at_the_edges_of_the_window_are_in_its_first_and_last_step() {
        let window = Window {
            from_ns: 100 * S + 1,
            until_ns: 200 * S,
        };
        let mut newest = Newest::of(1, Steps::of(window, 50 * S));
        // The first one is a fraction of a millisecond before the window, as its time is told.
        for time_ms in [100_000, 199_999, 199_999] {
            newest.add(moment(time_ms, "note"));
        }
        let (_, older) = newest.told();
        let counts: Vec<u64> = older.iter().map(|one| one.counts["note"]).collect();
        assert_eq!(counts, [1, 1]);
        assert_eq!((older[0].from_ms, older[1].until_ms), (100_000, 200_000));
    }
}
