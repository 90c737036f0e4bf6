//! Selected samples to counts by stack, in steps of time.

use crate::column::coded::Projection;
use crate::query::ask::time::Window;
use crate::query::ask::unit::Unit;
use crate::query::count::adders;
use crate::query::count::cell_plan::{CellPlan, CountedWindow};
use crate::query::count::partial::Partial;
use crate::query::count::partial::wire::{Malformed, PartialReader, PartialWriter};
use crate::query::count::scan::{Accumulator, Rows};
use crate::query::count::stack_sums::StackSums;
use crate::query::count::weighted::WeightedCounts;
use crate::query::limits::error::QueryError;
use crate::query::plan::columns::{PERIODS, TIMES, codes};
use crate::query::plan::resolution::TimeResolution;
use crate::query::plan::steps::Steps;

/// Samples by stack, of one window or of both sides of a difference.
#[derive(Debug, Clone)]
pub(crate) struct StackCounts {
    plan: CellPlan,
    sums: StackSums,
    /// Room for the sums of a row group.
    code_sums: Vec<u32>,
}

impl StackCounts {
    /// At most `limit` distinct stacks are taken. `except`: a time of the window that does not count.
    pub(crate) fn new(steps: Steps, except: Option<Window>, limit: usize) -> StackCounts {
        let timed = steps.count > 1;
        StackCounts::of_windows(&[(steps, except)], timed, limit)
    }

    /// Of both sides of a difference: rows are read once.
    pub(crate) fn of_two(sides: [CountedWindow; 2], limit: usize) -> StackCounts {
        StackCounts::of_windows(&sides, true, limit)
    }

    /// Of one window, or of both sides of a difference.
    pub(crate) fn of(windows: &[CountedWindow], limit: usize) -> StackCounts {
        match windows {
            [(steps, except)] => StackCounts::new(*steps, *except, limit),
            [base, comparison] => StackCounts::of_two([*base, *comparison], limit),
            others => StackCounts::of_windows(others, true, limit),
        }
    }

    fn of_windows(windows: &[CountedWindow], timed: bool, limit: usize) -> StackCounts {
        let plan = CellPlan::new(windows, timed);
        StackCounts {
            sums: StackSums::new(plan.ranges(), limit),
            plan,
            code_sums: Vec::new(),
        }
    }

    /// Of each row whether it counts; none where all do.
    pub(crate) fn counted(&self, rows: &Rows) -> Result<Option<Vec<bool>>, QueryError> {
        if !self.plan.timed {
            return Ok(None);
        }
        let (mut keep, mut count) = (vec![false; rows.len()], 0);
        self.plan.each_cell(rows, |row, _| {
            count += usize::from(!keep[row]);
            keep[row] = true;
        })?;
        Ok((count < keep.len()).then_some(keep))
    }

    /// Counts of the only window.
    pub(crate) fn weighed(self, unit: &Unit) -> WeightedCounts {
        self.sums.weighed(unit)
    }

    /// Counts of both sides.
    pub(crate) fn weighed_sides(self, units: [&Unit; 2]) -> [WeightedCounts; 2] {
        self.sums.weighed_sides(units)
    }
}

impl Accumulator for StackCounts {
    fn columns(&self) -> Vec<Projection> {
        let mut columns = vec![codes("stack_id"), PERIODS];
        if self.plan.timed {
            columns.push(TIMES);
        }
        columns
    }

    fn when(&self) -> TimeResolution {
        self.plan.when()
    }

    fn cuts(&self) -> Vec<i64> {
        self.plan.cuts()
    }

    fn checks_times(&self) -> bool {
        self.plan.timed
    }

    fn takes_one_period(&self) -> bool {
        true
    }

    fn add(&mut self, rows: &Rows) -> Result<(), QueryError> {
        adders::add(rows, &self.plan, &mut self.sums, &mut self.code_sums)
    }

    fn bytes(&self) -> usize {
        self.sums.bytes() + self.code_sums.capacity() * size_of::<u32>()
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        self.sums.merge(other.sums)
    }
}

impl StackCounts {
    /// See [`StackSums::write`].
    pub(crate) fn write_with(
        self,
        to: &mut PartialWriter,
        write_ids: impl FnOnce(&[i64], &mut PartialWriter) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        self.sums.write(to, write_ids)
    }

    /// See [`StackSums::read`].
    pub(crate) fn read_with(
        &mut self,
        from: &mut PartialReader<'_>,
        read_ids: impl FnOnce(&mut PartialReader<'_>, usize) -> Result<Vec<i64>, Malformed>,
    ) -> Result<(), Malformed> {
        self.sums.read(from, read_ids)
    }
}

impl Partial for StackCounts {
    fn write(self, to: &mut PartialWriter) -> Result<(), QueryError> {
        self.write_with(to, |ids, to| {
            to.ids(ids.iter().copied());
            Ok(())
        })
    }

    fn read(&mut self, from: &mut PartialReader<'_>) -> Result<(), Malformed> {
        self.read_with(from, |from, most| from.ids(most, "stacks"))
    }

    fn pack(&mut self) {
        self.sums.pack();
    }
}

#[cfg(test)]
#[path = "stack_counts_tests.rs"]
mod tests;
