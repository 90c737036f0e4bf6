//! What was counted, in the order of stacks. Pure.

use crate::query::ask::unit::Unit;
use crate::query::count::matrix::Matrix;
use crate::query::count::periods::{Counted, Periods};
use crate::query::limits::parallel::each_part;
use std::ops::Range;
use std::sync::Arc;

/// Counts of each slot in each step.
#[derive(Debug, Clone)]
pub(crate) enum InSteps {
    /// Of samples that all stand for the same, these steps of all that were counted.
    Samples(Arc<Matrix<u32>>, Range<usize>),
    Values(Matrix<u64>),
}

impl InSteps {
    fn slots(&self) -> usize {
        match self {
            InSteps::Samples(cells, _) => cells.slots(),
            InSteps::Values(cells) => cells.slots(),
        }
    }

    fn steps(&self) -> usize {
        match self {
            InSteps::Samples(_, steps) => steps.len(),
            InSteps::Values(cells) => cells.steps,
        }
    }

    /// Counts of all steps of each slot, as they lie in memory: in the order of ids they would come one by one.
    fn totals(&self) -> Vec<u64> {
        match self {
            InSteps::Samples(cells, steps) => {
                let total = |counts: &[u32]| counts[steps.clone()].iter().map(|count| u64::from(*count)).sum();
                cells.iter().map(total).collect()
            }
            InSteps::Values(cells) => cells.iter().map(|counts| counts.iter().sum()).collect(),
        }
    }
}

/// Counts by stack, as [`Counted`] says.
#[derive(Debug, Clone)]
pub(crate) struct WeightedCounts {
    /// Sorted, or as they were put; of two sides the same.
    pub ids: Arc<Vec<i64>>,
    /// Counts of each stack.
    pub totals: Vec<u64>,
    /// The slot of each stack: in the order in which they were met, since neighbours have much in common.
    pub slots: Arc<Vec<u32>>,
    /// Counts of each slot, of this side in its steps.
    pub in_steps: InSteps,
    /// All counts: as many as there are samples where all have the same period.
    pub samples: u64,
    pub counted: Counted,
    pub periods: Periods,
}

impl WeightedCounts {
    /// Of these steps of all cells. `ids` in their order, and the slot of each; `values` where they differ.
    pub(crate) fn new(
        steps: Range<usize>,
        (periods, unit): (Periods, &Unit),
        (ids, slots): (Arc<Vec<i64>>, Arc<Vec<u32>>),
        cells: &Arc<Matrix<u32>>,
        values: &Matrix<i64>,
    ) -> WeightedCounts {
        let counted = Counted::of(&periods, unit);
        let in_steps = if counted.is_number() {
            InSteps::Samples(cells.clone(), steps)
        } else {
            let mut weighed = Matrix::new(steps.len());
            weighed.grow(cells.slots());
            let mut count = counted.counting();
            let only = periods.only();
            for slot in slots.iter().map(|slot| *slot as usize) {
                let samples = &cells.of(slot)[steps.clone()];
                for (step, to) in weighed.of_mut(slot).iter_mut().enumerate() {
                    let value = match only {
                        Some(only) => only.saturating_mul(i64::from(samples[step])),
                        None => values.of(slot)[steps.start + step],
                    };
                    *to = count(value);
                }
            }
            InSteps::Values(weighed)
        };
        let of_slots = in_steps.totals();
        let totals: Vec<u64> = slots.iter().map(|slot| of_slots[*slot as usize]).collect();
        WeightedCounts {
            samples: totals.iter().sum(),
            totals,
            ids,
            slots,
            in_steps,
            counted,
            periods,
        }
    }

    /// Puts stacks in another order.
    pub(crate) fn reorder(&mut self, order: &[u32]) {
        let at = |place: &u32| *place as usize;
        self.totals = order.iter().map(|place| self.totals[at(place)]).collect();
        self.ids = Arc::new(order.iter().map(|place| self.ids[at(place)]).collect());
        self.slots = Arc::new(order.iter().map(|place| self.slots[at(place)]).collect());
    }

    /// How many slots there are: those of stacks, and some more.
    pub(crate) fn slot_count(&self) -> usize {
        self.in_steps.slots()
    }

    /// How many steps.
    pub(crate) fn step_count(&self) -> usize {
        self.in_steps.steps()
    }
}

/// Stacks with their slots in the order of ids.
pub(crate) fn in_order(lists: &[Vec<(i64, u32)>]) -> Vec<(i64, u32)> {
    let count = lists.iter().map(Vec::len).sum();
    let sorted = each_part(count, |part| {
        // Ids are hashes: as many lie in one part of all numbers as in another.
        let about = |id: i64| ((id.wrapping_sub(i64::MIN) as u64 as u128 * count as u128) >> u64::BITS) as usize;
        let mut own: Vec<(i64, u32)> = Vec::with_capacity(part.len() + count / 16);
        own.extend(lists.iter().flatten().filter(|(id, _)| part.contains(&about(*id))));
        own.sort_unstable();
        own
    });
    sorted.concat()
}
