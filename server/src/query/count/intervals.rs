//! What agents covered, in as few intervals as say the same: batches of one agent that abut are one, as far as no
//! answer tells them apart.
//!
//! In: the account of each batch, which comes every few seconds from every agent, in any order. Out: mostly one
//! interval an agent and step. A week of a hundred nodes are twelve million batches, for which there would not be
//! memory.

use crate::query::ask::time::Window;
use crate::query::count::ticks::TickTime;
use crate::query::limits::error::QueryError;
use crate::query::limits::reservation::Reservation;
use crate::query::plan::steps::Steps;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Gaps shorter than this are none: intervals of one agent abut only to its clock's grain.
pub(crate) const LEAST_GAP_NS: i64 = 1_000_000;

/// So many intervals are looked at as they come; before there are more, those that abut are joined.
const MOST_APART: usize = 64 * 1024;

/// Lost samples by cause.
pub(crate) type Lost = Arc<BTreeMap<String, i64>>;

/// What one agent covered without a gap.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Interval {
    pub node: Arc<str>,
    pub instance: Arc<str>,
    /// Of its first and last batch; it has all between them.
    pub numbers: (i64, i64),
    pub from_ns: i64,
    pub until_ns: i64,
    pub cpus: i64,
    /// `None` when the agent did not count.
    pub ticks: Option<TickTime>,
    /// How long of it waits were observed; `None` where the agent does not say.
    pub waits_ns: Option<i64>,
    /// What its first and its last batch tell: cumulative over the instance, the batch included.
    pub lost: (Lost, Lost),
}

/// See the module.
pub(crate) struct Intervals {
    steps: Steps,
    except: Option<Window>,
    list: Vec<Interval>,
    /// How many there may be before they are joined again.
    most: usize,
    held: Reservation,
    /// The first error: nothing is added after it.
    failed: Option<QueryError>,
}

impl Intervals {
    pub(crate) fn new(steps: Steps, except: Option<Window>, held: Reservation) -> Self {
        Self {
            steps,
            except,
            list: Vec::new(),
            most: MOST_APART,
            held,
            failed: None,
        }
    }

    /// Adds a batch's. Where that fails, [`Intervals::finish`] says so.
    pub(crate) fn add(&mut self, interval: Interval) {
        if self.failed.is_some() {
            return;
        }
        // In a file an agent's batches follow each other.
        if let Some(last) = self.list.last_mut()
            && join(last, &interval, self.steps, self.except)
        {
            return;
        }
        self.list.push(interval);
        if self.list.len() >= self.most {
            self.join_all();
            self.most = MOST_APART.max(2 * self.list.len());
            self.failed = self.held.resize(self.most * size_of::<Interval>()).err();
        }
    }

    fn join_all(&mut self) {
        self.list
            .sort_by(|a, b| (&a.instance, a.numbers).cmp(&(&b.instance, b.numbers)));
        let (steps, except) = (self.steps, self.except);
        self.list.dedup_by(|next, last| join(last, next, steps, except));
    }

    /// All of them.
    ///
    /// # Errors
    /// Where there was no memory for them.
    pub(crate) fn finish(mut self) -> Result<Vec<Interval>, QueryError> {
        self.join_all();
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(self.list),
        }
    }
}

/// Makes the second part of the first, if nothing is lost by that; false if not.
fn join(first: &mut Interval, second: &Interval, steps: Steps, except: Option<Window>) -> bool {
    if first.instance != second.instance {
        return false;
    }
    if (first.numbers.0..=first.numbers.1).contains(&second.numbers.0) && second.numbers.1 <= first.numbers.1 {
        return true;
    }
    let abuts = first.numbers.1.checked_add(1) == Some(second.numbers.0)
        && (second.from_ns.saturating_sub(first.until_ns)).saturating_abs() < LEAST_GAP_NS;
    let alike = first.node == second.node
        && first.cpus == second.cpus
        && first.ticks.is_some() == second.ticks.is_some()
        && first.waits_ns.is_some() == second.waits_ns.is_some();
    let place = |interval: &Interval| place(interval, steps, except);
    if !abuts || !alike || place(first).is_none() || place(first) != place(second) {
        return false;
    }
    first.ticks = first.ticks.zip(second.ticks).map(|(a, b)| a.plus(b));
    first.waits_ns = first.waits_ns.zip(second.waits_ns).map(|(a, b)| a.saturating_add(b));
    first.numbers.1 = second.numbers.1;
    first.until_ns = second.until_ns;
    first.lost.1 = second.lost.1.clone();
    true
}

/// The step that it lies in as a whole, and on which side of what is left out; none where it lies in several, or
/// around the window.
fn place(interval: &Interval, steps: Steps, except: Option<Window>) -> Option<(usize, u8)> {
    let (window, (from, until)) = (steps.window, (interval.from_ns, interval.until_ns));
    if from >= until || from < window.from_ns || until > window.until_ns {
        return None;
    }
    let side = match except {
        Some(except) if from >= except.until_ns => 2,
        Some(except) if from >= except.from_ns && until <= except.until_ns => 1,
        Some(except) if until > except.from_ns => return None,
        _ => 0,
    };
    let step = steps.index(from);
    (step == steps.index(until - 1)).then_some((step, side))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::count::observed_time::summarize;
    use datafusion::execution::memory_pool::{GreedyMemoryPool, UnboundedMemoryPool};

    const S: i64 = 1_000_000_000;

    /// What agents tell of two hours every five seconds: one is started anew, one gets CPUs, one is away for a while.
    fn told() -> Vec<Interval> {
        let mut told = Vec::new();
        for agent in 0..6 {
            let (mut run, mut first) = (0, 0);
            for batch in 0..1440 {
                if agent == 1 && batch % 500 == 499 {
                    (run, first) = (run + 1, batch);
                }
                if agent == 2 && (300..320).contains(&batch) {
                    continue;
                }
                let from_ns = batch * 5 * S + agent * 777;
                let number = batch - first + 1;
                let lost = Arc::new(BTreeMap::from([("ring_full".to_owned(), number * number)]));
                told.push(Interval {
                    node: format!("node-{agent}").into(),
                    instance: format!("{agent}-{run}").into(),
                    numbers: (number, number),
                    from_ns,
                    until_ns: from_ns + 5 * S,
                    cpus: if agent == 3 && batch > 700 { 8 } else { 2 },
                    ticks: (agent != 4).then_some(TickTime {
                        idle_ns: batch % 11 * 250_000_001,
                        missed_ns: batch % 7 * 250_000_001,
                    }),
                    waits_ns: (agent != 5).then_some(batch % 13 * 100_000_001),
                    lost: (lost.clone(), lost),
                });
            }
        }
        told
    }

    fn steps(length_s: i64) -> Steps {
        let window = Window {
            from_ns: 603 * S,
            until_ns: 6601 * S,
        };
        Steps::of(window, length_s * S)
    }

    /// What is left where they come in the order of a prime's multiples, which go through all places, and then a third
    /// of them again.
    fn joined(told: &[Interval], order: usize, steps: Steps, except: Option<Window>) -> Vec<Interval> {
        let held = Reservation::of_pool(Arc::new(UnboundedMemoryPool::default()), "test");
        let mut intervals = Intervals::new(steps, except, held);
        for at in (0..told.len()).chain(0..told.len() / 3) {
            intervals.add(told[at * order % told.len()].clone());
        }
        intervals.finish().unwrap()
    }

    #[test]
    fn few_intervals_say_what_all_batches_say_in_whatever_order_they_come() {
        let except = Some(Window {
            from_ns: 3000 * S,
            until_ns: 3301 * S,
        });
        let told = told();
        for (length_s, except) in [(6000, None), (6000, except), (300, except), (30, None)] {
            let steps = steps(length_s);
            let few = joined(&told, 1, steps, except);
            // Of each agent one in a step and one between two, what is around the window, three more where a time is
            // left out, and four where something changed.
            let window = steps.window;
            let is_around = |told: &&Interval| told.from_ns < window.from_ns || told.until_ns > window.until_ns;
            let most = told.iter().filter(is_around).count() + 6 * 2 * steps.count + 6 * 3 + 4;
            assert!(few.len() <= most, "{} of {} left, not {most}", few.len(), told.len());
            for order in [7, 3571, 5021, told.len() - 1] {
                assert_eq!(joined(&told, order, steps, except), few, "to the last digit");
            }
            let (found, expected) = (summarize(few, steps, except), summarize(told.clone(), steps, except));
            assert_eq!(found.lost, expected.lost);
            assert_eq!((found.nodes, &found.gaps), (6, &expected.gaps));
            assert!(expected.lost["ring_full"] > 0);
            let all = |exposure: &crate::query::count::observed_time::ObservedTime| {
                [
                    exposure.observed_s.clone(),
                    exposure.by_node_s.clone(),
                    exposure.cpu_s.clone(),
                    exposure.idle_s.clone(),
                    vec![exposure.missed_s, exposure.waits_s, exposure.waits_of_s],
                ]
            };
            for (found, expected) in all(&found).iter().zip(all(&expected)) {
                for (found, expected) in found.iter().zip(&expected) {
                    assert!(
                        (found - expected).abs() < 1e-6 * expected.max(1.0),
                        "{found} {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn where_there_is_no_memory_for_them_it_is_said() {
        let held = Reservation::of_pool(Arc::new(GreedyMemoryPool::new(1 << 20)), "accounts");
        let mut intervals = Intervals::new(steps(6000), None, held);
        let told = told();
        for at in 0..MOST_APART as i64 {
            // None abuts another.
            let numbers = (2 * at, 2 * at);
            intervals.add(Interval {
                numbers,
                ..told[0].clone()
            });
        }
        let error = intervals.finish().unwrap_err();
        assert!(matches!(error, QueryError::NoMemory { .. }), "{error}");
    }
}
