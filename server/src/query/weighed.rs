//! What was counted, in the order of stacks and in units of the shortest period. Pure.

use super::cells::Cells;
use super::parallel::each_part;
use super::periods::Periods;
use std::ops::Range;
use std::sync::Arc;

/// Counts by stack in the unit of [`Periods::unit_ns`].
#[derive(Debug, Clone)]
pub(super) struct Weighed {
    /// Sorted; of two sides the same.
    pub ids: Arc<Vec<i64>>,
    /// Counts of each stack.
    pub totals: Vec<u64>,
    /// The slot of each stack: in the order in which they were met, since neighbours have much in common.
    pub slots: Arc<Vec<u32>>,
    /// Counts of each slot, of this side in these steps.
    cells: Arc<Cells<u32>>,
    steps: Range<usize>,
    /// All counts: as many as there are samples where all have the same period.
    pub samples: u64,
    pub periods: Periods,
}

impl Weighed {
    /// Of these steps of all cells. `ids` in their order, and the slot of each; `values` in nanoseconds, where periods differ.
    pub(super) fn new(
        steps: Range<usize>,
        periods: Periods,
        (ids, slots): (Arc<Vec<i64>>, Arc<Vec<u32>>),
        cells: &Arc<Cells<u32>>,
        values: &Cells<i64>,
    ) -> Weighed {
        let (mut cells, mut steps) = (cells.clone(), steps);
        if periods.differ() {
            let mut weighed = Cells::new(steps.len());
            weighed.grow(cells.slots());
            let mut count = periods.rounding();
            for slot in slots.iter().map(|slot| *slot as usize) {
                let values = &values.of(slot)[steps.clone()];
                let samples = &cells.of(slot)[steps.clone()];
                for ((to, samples), value_ns) in weighed.of_mut(slot).iter_mut().zip(samples).zip(values) {
                    if *samples > 0 {
                        *to = u32::try_from(count(*value_ns)).unwrap_or(u32::MAX);
                    }
                }
            }
            steps = 0..steps.len();
            cells = Arc::new(weighed);
        }
        // As they lie in memory: in the order of ids they would come one by one.
        let total = |counts: &[u32]| -> u64 { counts[steps.clone()].iter().map(|count| u64::from(*count)).sum() };
        let of_slots: Vec<u64> = cells.iter().map(total).collect();
        let totals: Vec<u64> = slots.iter().map(|slot| of_slots[*slot as usize]).collect();
        Weighed {
            samples: totals.iter().sum(),
            totals,
            ids,
            slots,
            cells,
            steps,
            periods,
        }
    }

    /// How many slots there are: those of stacks, and some more.
    pub(super) fn slot_count(&self) -> usize {
        self.cells.slots()
    }

    /// How many steps.
    pub(super) fn step_count(&self) -> usize {
        self.steps.len()
    }

    /// Counts in each step, slot by slot.
    pub(super) fn of_slots(&self) -> impl Iterator<Item = &[u32]> {
        self.cells.iter().map(|counts| &counts[self.steps.clone()])
    }

    /// CPU time that one count stands for, in nanoseconds.
    pub(super) fn period_ns(&self) -> f64 {
        if self.samples == 0 {
            0.0
        } else {
            self.periods.value_ns as f64 / self.samples as f64
        }
    }
}

/// Stacks with their slots in the order of ids.
pub(super) fn in_order(lists: &[Vec<(i64, u32)>]) -> Vec<(i64, u32)> {
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
