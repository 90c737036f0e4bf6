//! When the mappings of which process are read again: soon after it mapped something, and not more often than that is
//! worth.
//!
//! A process that starts maps its libraries one after the other, within milliseconds; one that compiles at run time
//! maps for as long as it lives. After the first few, each look doubles the time to the next one at the same process,
//! until it has been quiet for a while.

use std::collections::{BTreeSet, HashMap};

/// Programs opened at their exec, per second; beyond it they are opened at their first sample.
const EXECS_PER_SECOND: u64 = 100;
/// Looks at new mappings, per second; beyond it they wait for the next one.
const LOOKS_PER_SECOND: u64 = 200;
const SECOND_NS: u64 = 1_000_000_000;
/// Between two looks at one process, at first and at most.
const LEAST_SPACING_NS: u64 = 5_000_000;
const MOST_SPACING_NS: u64 = SECOND_NS;
/// Of that time, how long a stack may have to wait for a look.
const HURRY_PART: u64 = 4;
/// Looks at one process before the time between them grows: a program of 20 ms may load another library at its end.
const LOOKS_AT_LEAST_SPACING: u32 = 4;
/// A look that comes later than this is counted.
const PUT_OFF_NS: u64 = 100_000_000;
/// Processes that are kept in mind at a time.
const MAX_PROCESSES: usize = 1024;

/// Counts what happens in each second.
#[derive(Debug, Default)]
struct PerSecond {
    begun_ns: u64,
    count: u64,
}

impl PerSecond {
    /// False where there were `limit` in this second.
    fn has_room(&mut self, limit: u64, now_ns: u64) -> bool {
        if now_ns.saturating_sub(self.begun_ns) >= SECOND_NS {
            *self = Self {
                begun_ns: now_ns,
                count: 0,
            };
        }
        self.count < limit
    }
}

/// How one process is looked at.
#[derive(Debug)]
struct RescanBackoff {
    looked_ns: u64,
    /// Looks since it was last quiet.
    looks: u32,
    /// When it last mapped something, and when that is looked at.
    waits: Option<(u64, u64)>,
}

impl RescanBackoff {
    fn spacing_ns(&self) -> u64 {
        let doublings = self.looks.saturating_sub(LOOKS_AT_LEAST_SPACING).min(16);
        (LEAST_SPACING_NS << doublings).min(MOST_SPACING_NS)
    }
}

/// The looks that are due, by process id: who has it then is the table's to know.
#[derive(Debug, Default)]
pub(super) struct RescanSchedule {
    backoffs: HashMap<u32, RescanBackoff>,
    /// By the time when they are due.
    waiting: BTreeSet<(u64, u32)>,
    execs: PerSecond,
    looks: PerSecond,
    skipped: u64,
    put_off: u64,
}

impl RescanSchedule {
    /// True where a new program may be opened at once.
    pub(super) fn admit_exec(&mut self, now_ns: u64) -> bool {
        let admitted = self.execs.has_room(EXECS_PER_SECOND, now_ns);
        self.execs.count += u64::from(admitted);
        self.skipped += u64::from(!admitted);
        admitted
    }

    /// The process mapped something at `mapped_ns` and is to be looked at from `earliest_ns` on.
    pub(super) fn want(&mut self, tgid: u32, mapped_ns: u64, earliest_ns: u64) {
        if !self.backoffs.contains_key(&tgid) && self.backoffs.len() >= MAX_PROCESSES {
            self.skipped += 1;
            return;
        }
        let backoff = self.backoffs.entry(tgid).or_insert(RescanBackoff {
            looked_ns: 0,
            looks: 0,
            waits: None,
        });
        if let Some((mapped, _)) = &mut backoff.waits {
            *mapped = mapped_ns.max(*mapped);
            return;
        }
        if earliest_ns.saturating_sub(backoff.looked_ns) >= MOST_SPACING_NS {
            backoff.looks = 0;
        }
        let due_ns = match backoff.looks {
            0 => earliest_ns,
            _ => earliest_ns.max(backoff.looked_ns + backoff.spacing_ns()),
        };
        self.put_off += u64::from(due_ns - earliest_ns > PUT_OFF_NS);
        backoff.waits = Some((mapped_ns, due_ns));
        self.waiting.insert((due_ns, tgid));
    }

    /// When the process mapped something that is still to be looked at.
    pub(super) fn wanted(&self, tgid: u32) -> Option<u64> {
        self.backoffs.get(&tgid)?.waits.map(|(mapped_ns, _)| mapped_ns)
    }

    /// True where a look that is put off may be made since a stack waits for it: that makes more of them.
    pub(super) fn may_hurry(&mut self, tgid: u32, now_ns: u64) -> bool {
        let waiting = self.backoffs.get(&tgid).filter(|backoff| backoff.waits.is_some());
        let may = |backoff: &RescanBackoff| now_ns >= backoff.looked_ns + backoff.spacing_ns() / HURRY_PART;
        waiting.is_some_and(may) && self.looks.has_room(LOOKS_PER_SECOND, now_ns)
    }

    /// When the next look is due.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.waiting.first().map(|(due_ns, _)| *due_ns)
    }

    /// A process that is to be looked at now, and when it last mapped something.
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<(u32, u64)> {
        while let Some((due_ns, tgid)) = self.waiting.first().copied().filter(|(due_ns, _)| *due_ns <= now_ns) {
            self.waiting.remove(&(due_ns, tgid));
            let Some(backoff) = self.backoffs.get_mut(&tgid) else {
                continue;
            };
            let Some((mapped_ns, _)) = backoff.waits.take() else {
                continue;
            };
            if self.looks.has_room(LOOKS_PER_SECOND, now_ns) {
                return Some((tgid, mapped_ns));
            }
            let due_ns = self.looks.begun_ns + SECOND_NS;
            backoff.waits = Some((mapped_ns, due_ns));
            self.waiting.insert((due_ns, tgid));
            self.put_off += 1;
        }
        None
    }

    /// What was due was read: the next look at the process may have to wait.
    pub(super) fn looked(&mut self, tgid: u32, now_ns: u64) {
        self.looks.count += 1;
        if let Some(backoff) = self.backoffs.get_mut(&tgid) {
            backoff.looked_ns = now_ns;
            backoff.looks = backoff.looks.saturating_add(1);
        }
    }

    /// What was due need not be read: it costs the process nothing.
    pub(super) fn passed_over(&mut self, tgid: u32) {
        if self.backoffs.get(&tgid).is_some_and(|backoff| backoff.looks == 0) {
            self.backoffs.remove(&tgid);
        }
    }

    /// Forgets processes that map nothing any more.
    pub(super) fn forget_quiet(&mut self, now_ns: u64) {
        let quiet = |backoff: &RescanBackoff| {
            backoff.waits.is_none() && now_ns.saturating_sub(backoff.looked_ns) >= MOST_SPACING_NS
        };
        self.backoffs.retain(|_, backoff| !quiet(backoff));
    }

    /// Programs and mappings that were too many to be looked at early.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Looks that were made later than at once.
    pub(super) fn put_off(&self) -> u64 {
        self.put_off
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    /// Somewhere in the life of a machine.
    const BEGIN: u64 = 1_000 * SECOND_NS;

    /// The times, in milliseconds, at which process 7 is looked at that maps at those.
    fn looks_at(schedule: &mut RescanSchedule, maps: impl Iterator<Item = u64>) -> Vec<u64> {
        let maps: BTreeSet<u64> = maps.collect();
        let last = maps.last().copied().unwrap_or(0);
        let mut seen = Vec::new();
        for at in 0..=last + 2_000 {
            let now = BEGIN + at * MS;
            if maps.contains(&at) {
                schedule.want(7, now, now);
            }
            while let Some((tgid, _)) = schedule.take_due(now) {
                schedule.looked(tgid, now);
                seen.push(at);
            }
        }
        seen
    }

    #[test]
    fn one_mapping_is_looked_at_at_once_and_a_hundred_a_few_times_and_after_the_last() {
        assert_eq!(looks_at(&mut RescanSchedule::default(), [3].into_iter()), [3]);
        let mut schedule = RescanSchedule::default();
        let seen = looks_at(&mut schedule, 0..100);
        assert_eq!(seen, [0, 5, 10, 15, 20, 30, 50, 90, 170]);
        assert_eq!((schedule.put_off(), schedule.skipped()), (0, 0));
    }

    #[test]
    fn who_maps_all_the_time_is_looked_at_once_a_second_and_at_once_again_after_a_pause() {
        let mut schedule = RescanSchedule::default();
        let seen = looks_at(&mut schedule, (0..60_000).chain([70_000]));
        assert!((60..75).contains(&seen.len()), "{seen:?}");
        assert_eq!(seen.last(), Some(&70_000));
        assert!(schedule.put_off() >= 60);
    }

    #[test]
    fn a_stack_that_waits_has_its_look_after_a_quarter_of_the_time() {
        let mut schedule = RescanSchedule::default();
        looks_at(&mut schedule, 0..1_000);
        let now = BEGIN + 3_000 * MS;
        assert!(!schedule.may_hurry(7, now), "it mapped nothing since");
        schedule.want(7, now, now);
        schedule.take_due(now);
        (0..8).for_each(|_| schedule.looked(7, now));
        // 80 ms after that look, and 20 for a stack.
        assert!(!schedule.may_hurry(7, now + 20 * MS), "no look is put off");
        schedule.want(7, now + MS, now + MS);
        assert_eq!(schedule.next_ns(), Some(now + 80 * MS));
        let may = [19, 20, 79].map(|later| schedule.may_hurry(7, now + later * MS));
        assert_eq!(may, [false, true, true]);
    }

    #[test]
    fn all_processes_together_are_looked_at_so_often_a_second() {
        let mut schedule = RescanSchedule::default();
        for tgid in 0..1000 {
            schedule.want(tgid, BEGIN, BEGIN);
        }
        let taken = |schedule: &mut RescanSchedule, now| {
            let mut count = 0;
            while let Some((tgid, _)) = schedule.take_due(now) {
                schedule.looked(tgid, now);
                count += 1;
            }
            count
        };
        assert_eq!(taken(&mut schedule, BEGIN), LOOKS_PER_SECOND);
        assert_eq!(schedule.next_ns(), Some(BEGIN + SECOND_NS), "nobody is woken in vain");
        assert_eq!(schedule.put_off(), 1000 - LOOKS_PER_SECOND);
        assert_eq!(taken(&mut schedule, BEGIN + SECOND_NS), LOOKS_PER_SECOND);
    }

    #[test]
    fn what_is_kept_in_mind_is_bounded_and_forgotten() {
        let mut schedule = RescanSchedule::default();
        for tgid in 0..5000 {
            schedule.want(tgid, BEGIN, BEGIN);
        }
        assert_eq!(schedule.skipped(), 5000 - MAX_PROCESSES as u64);
        // Some are looked at, others need not be.
        for second in 0..10 {
            let now = BEGIN + second * SECOND_NS;
            while let Some((tgid, _)) = schedule.take_due(now) {
                if tgid % 2 == 0 {
                    schedule.looked(tgid, now);
                } else {
                    schedule.passed_over(tgid);
                }
            }
        }
        assert_eq!(schedule.backoffs.len(), MAX_PROCESSES / 2);
        schedule.forget_quiet(BEGIN + 10 * SECOND_NS);
        assert!(schedule.backoffs.is_empty() && schedule.waiting.is_empty() && schedule.next_ns().is_none());
        let admitted = (0..1000).filter(|_| schedule.admit_exec(BEGIN)).count() as u64;
        assert_eq!(admitted, EXECS_PER_SECOND);
    }

    #[test]
    fn the_newest_mapping_is_kept() {
        let mut schedule = RescanSchedule::default();
        schedule.want(7, BEGIN, BEGIN);
        schedule.want(7, BEGIN + 5, BEGIN + 5);
        assert_eq!((schedule.wanted(7), schedule.wanted(8)), (Some(BEGIN + 5), None));
        assert_eq!(schedule.take_due(BEGIN + 5), Some((7, BEGIN + 5)));
        assert_eq!((schedule.take_due(BEGIN + 5), schedule.wanted(7)), (None, None));
    }
}
