//! What was counted, in the order of stacks and in units of the shortest period. Pure.

use super::cells::Cells;
use super::parallel::LEAST_ITEMS;
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
    /// Where each stack stands in a step: in the order in which they were met, since neighbours have much in common.
    pub slots: Arc<Vec<u32>>,
    /// Of each step the counts of each stack.
    pub in_step: Vec<Vec<u32>>,
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
        cells: &Cells<u32>,
        values: &Cells<i64>,
    ) -> Weighed {
        let mut in_step = cells.by_step(steps.clone(), cells.slots());
        if periods.differ() {
            let mut count = periods.rounding();
            for slot in slots.iter() {
                let of_slot = &values.of(*slot as usize)[steps.start..];
                for (step, value_ns) in in_step.iter_mut().zip(of_slot) {
                    let cell = &mut step[*slot as usize];
                    if *cell > 0 {
                        *cell = u32::try_from(count(*value_ns)).unwrap_or(u32::MAX);
                    }
                }
            }
        }
        let total = |slot: &u32| -> u64 {
            let slot = *slot as usize;
            if periods.differ() {
                return in_step.iter().map(|step| u64::from(step[slot])).sum();
            }
            // The same, of neighbours.
            let counts = &cells.of(slot)[steps.clone()];
            counts.iter().map(|count| u64::from(*count)).sum()
        };
        let totals: Vec<u64> = slots.iter().map(total).collect();
        Weighed {
            samples: totals.iter().sum(),
            totals,
            ids,
            slots,
            in_step,
            periods,
        }
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

/// Stacks with their slots in the order of ids: each large list is sorted on a thread of its own.
pub(super) fn in_order(mut lists: Vec<Vec<(i64, u32)>>) -> Vec<(i64, u32)> {
    std::thread::scope(|scope| {
        for list in &mut lists {
            if list.len() < LEAST_ITEMS {
                list.sort_unstable();
            } else {
                scope.spawn(|| list.sort_unstable());
            }
        }
    });
    let mut all = lists.concat();
    // Finds the sorted stretches, and only merges them.
    all.sort();
    all
}
