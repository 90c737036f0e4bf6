//! Sums of samples by stack and cell: the one place for slots, limits and periods, whatever adds the rows up.
//!
//! Merging is associative and commutative, so that it does not matter which thread saw which sample.

use crate::hash::MixState;
use crate::query::ask::unit::Unit;
use crate::query::count::matrix::Matrix;
use crate::query::count::partial::wire::{Malformed, PartialReader, PartialWriter};
use crate::query::count::periods::Periods;
use crate::query::count::weighted::{WeightedCounts, in_order};
use crate::query::limits::error::QueryError;
use crate::query::limits::parallel::both;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct StackSums {
    /// The cells of each window.
    ranges: Vec<Range<usize>>,
    /// What samples of each window stood for.
    periods: Vec<Periods>,
    limit: usize,
    slots: HashMap<i64, u32, MixState>,
    /// Stack of each slot.
    ids: Vec<i64>,
    /// What others have counted: stacks with their slots, of each of them apart. A stack may be among several.
    merged: Vec<Vec<(i64, u32)>>,
    /// How many stacks there were when each stood once.
    packed: usize,
    /// Samples of each slot in each cell.
    cells: Matrix<u32>,
    /// CPU time of each cell in nanoseconds; empty as long as all samples of each window have the same period.
    values: Matrix<i64>,
}

impl StackSums {
    /// Of windows with these cells. At most `limit` distinct stacks are taken.
    pub(crate) fn new(ranges: Vec<Range<usize>>, limit: usize) -> StackSums {
        let cells = ranges.last().map_or(0, |range| range.end);
        StackSums {
            periods: vec![Periods::default(); ranges.len()],
            ranges,
            limit,
            slots: HashMap::default(),
            ids: Vec::new(),
            merged: Vec::new(),
            packed: 0,
            cells: Matrix::new(cells),
            values: Matrix::new(cells),
        }
    }

    /// Cells of each stack.
    pub(crate) fn width(&self) -> usize {
        self.cells.steps
    }

    /// Whether so far all samples of each window had this period.
    pub(crate) fn has_only(&self, period_ns: i64) -> bool {
        let is_other = |periods: &Periods| periods.samples > 0 && periods.only() != Some(period_ns);
        !self.periods.iter().any(is_other)
    }

    /// Whether samples of a window stand for different times.
    fn differ(&self) -> bool {
        self.periods.iter().any(Periods::differ)
    }

    /// Adds a stack's samples of these cells to `samples` of each window; false where there are none.
    pub(crate) fn sum_windows(&self, counts: &[u32], samples: &mut [u64]) -> bool {
        let mut any = 0;
        for (range, samples) in self.ranges.iter().zip(samples) {
            let sum = counts[range.clone()].iter().map(|count| u64::from(*count)).sum::<u64>();
            *samples += sum;
            any |= sum;
        }
        any > 0
    }

    /// Zeros for [`StackSums::sum_windows`].
    pub(crate) fn no_samples(&self) -> Vec<u64> {
        vec![0; self.ranges.len()]
    }

    /// Takes in what samples of each window stand for. They are told before the first sample of a period that is new.
    pub(crate) fn add_period(&mut self, period_ns: i64, samples: Vec<u64>) {
        let more = samples.into_iter().map(|samples| Periods::of([(period_ns, samples)]));
        self.add_periods(&more.collect::<Vec<_>>());
    }

    /// The same of several periods: of each cell the samples of each.
    pub(crate) fn add_periods_of_cells(&mut self, periods: &[i64], samples: &[Vec<u64>]) {
        let of_cell = |samples: &Vec<u64>| Periods::of(periods.iter().copied().zip(samples.iter().copied()));
        let of_window = |range: &Range<usize>| {
            let mut all = Periods::default();
            samples[range.clone()]
                .iter()
                .for_each(|samples| all.merge(&of_cell(samples)));
            all
        };
        let more: Vec<Periods> = self.ranges.iter().map(of_window).collect();
        self.add_periods(&more);
    }

    /// Takes more periods in, of each window. Where they begin to differ, the cells so far are given their times.
    fn add_periods(&mut self, more: &[Periods]) {
        let differed = self.differ();
        let before: Vec<Option<i64>> = self.periods.iter().map(Periods::only).collect();
        for (periods, more) in self.periods.iter_mut().zip(more) {
            periods.merge(more);
        }
        if !self.differ() || differed {
            return;
        }
        let slots = self.cells.slots();
        self.values.grow(slots);
        for slot in 0..slots {
            let (values, cells) = (self.values.of_mut(slot), self.cells.of(slot));
            for (range, period_ns) in self.ranges.iter().zip(&before) {
                for cell in range.clone() {
                    values[cell] = period_ns.unwrap_or(0).saturating_mul(i64::from(cells[cell]));
                }
            }
        }
    }

    /// Adds to all cells of a stack samples of one period.
    pub(crate) fn add_cells(&mut self, id: i64, counts: &[u32], period_ns: i64) -> Result<(), QueryError> {
        let known = self.ids.len();
        let slot = self.slot(id)?;
        let cells = self.cells.of_mut(slot);
        if slot == known {
            // Written without a look at what was there: the kernel would make a page for that first.
            cells.copy_from_slice(counts);
        } else {
            for (cell, count) in cells.iter_mut().zip(counts) {
                *cell = cell.saturating_add(*count);
            }
        }
        if self.differ() {
            for (sum, count) in self.values.of_mut(slot).iter_mut().zip(counts) {
                *sum = sum.saturating_add(period_ns.saturating_mul(i64::from(*count)));
            }
        }
        Ok(())
    }

    /// Adds samples of one period to one cell of a slot.
    pub(crate) fn add_cell(&mut self, slot: usize, cell: usize, count: u32, period_ns: i64) {
        let sum = &mut self.cells.of_mut(slot)[cell];
        *sum = sum.saturating_add(count);
        if self.differ() {
            let sum = &mut self.values.of_mut(slot)[cell];
            *sum = sum.saturating_add(period_ns.saturating_mul(i64::from(count)));
        }
    }

    /// The slot of a stack.
    pub(crate) fn slot(&mut self, id: i64) -> Result<usize, QueryError> {
        let next = self.ids.len() as u32;
        let slot = *self.slots.entry(id).or_insert(next);
        if slot == next {
            if self.ids.len() == self.limit {
                return Err(too_many(self.limit));
            }
            self.ids.push(id);
            self.cells.grow(self.ids.len());
            if self.differ() {
                self.values.grow(self.ids.len());
            }
        }
        Ok(slot as usize)
    }

    /// Counts of the only window.
    pub(crate) fn weighed(mut self, unit: &Unit) -> WeightedCounts {
        let ordered = self.ordered();
        let cells = Arc::new(std::mem::replace(&mut self.cells, Matrix::new(0)));
        self.weighed_part((0, unit), ordered, &cells)
    }

    /// Counts of both sides.
    pub(crate) fn weighed_sides(mut self, units: [&Unit; 2]) -> [WeightedCounts; 2] {
        let ordered = self.ordered();
        let cells = Arc::new(std::mem::replace(&mut self.cells, Matrix::new(0)));
        both(|side| self.weighed_part((side, units[side]), ordered.clone(), &cells))
    }

    fn weighed_part(
        &self,
        (part, unit): (usize, &Unit),
        ordered: (Arc<Vec<i64>>, Arc<Vec<u32>>),
        cells: &Arc<Matrix<u32>>,
    ) -> WeightedCounts {
        let of_part = (self.periods[part].clone(), unit);
        WeightedCounts::new(self.ranges[part].clone(), of_part, ordered, cells, &self.values)
    }

    /// Ids in their order, so that the same samples give the same answer, and the slot of each, which has all that
    /// was counted of it.
    fn ordered(&mut self) -> (Arc<Vec<i64>>, Arc<Vec<u32>>) {
        let mut all = std::mem::take(&mut self.merged);
        all.push(std::mem::take(&mut self.ids).into_iter().zip(0..).collect());
        let mut ids = Vec::with_capacity(all.iter().map(Vec::len).sum());
        let mut slots: Vec<u32> = Vec::with_capacity(ids.capacity());
        for (id, slot) in in_order(&all) {
            match slots.last() {
                Some(first) if ids.last() == Some(&id) => self.move_cells(slot as usize, *first as usize),
                _ => {
                    ids.push(id);
                    slots.push(slot);
                }
            }
        }
        (Arc::new(ids), Arc::new(slots))
    }

    /// Counts what one slot has in another.
    fn move_cells(&mut self, from: usize, to: usize) {
        let more = self.cells.take(from);
        for (sum, more) in self.cells.of_mut(to).iter_mut().zip(more) {
            *sum = sum.saturating_add(more);
        }
        if self.differ() {
            let more = self.values.take(from);
            for (sum, more) in self.values.of_mut(to).iter_mut().zip(more) {
                *sum = sum.saturating_add(more);
            }
        }
    }

    /// Adds up what several have counted, once that may be more than half of what is there: so it takes no more than
    /// about twice the memory of what it is, however many have counted. Rows are added no more.
    pub(crate) fn pack(&mut self) {
        if self.merged.is_empty() || self.most_stacks() <= 2 * self.packed {
            return;
        }
        let (ids, slots) = self.ordered();
        // By slot: each moves to a place before it, behind those that have moved.
        let mut kept: Vec<(u32, i64)> = slots.iter().copied().zip(ids.iter().copied()).collect();
        kept.sort_unstable();
        let differ = self.differ();
        for (to, (from, _)) in kept.iter().enumerate() {
            self.cells.shift(*from as usize, to);
            if differ {
                self.values.shift(*from as usize, to);
            }
        }
        self.cells.truncate(kept.len());
        self.values.truncate(kept.len());
        self.packed = kept.len();
        self.slots = HashMap::default();
        self.ids = kept.into_iter().map(|(_, id)| id).collect();
    }

    /// Stacks, of which those that several have counted may count as often.
    fn most_stacks(&self) -> usize {
        self.ids.len() + self.merged.iter().map(Vec::len).sum::<usize>()
    }

    fn check_limit(&self) -> Result<(), QueryError> {
        if self.most_stacks() <= self.limit {
            return Ok(());
        }
        let merged = self.merged.iter().flatten().map(|(id, _)| *id);
        let distinct: HashSet<i64, MixState> = self.ids.iter().copied().chain(merged).collect();
        if distinct.len() <= self.limit {
            return Ok(());
        }
        Err(too_many(self.limit))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.slots.capacity() * (size_of::<(i64, u32)>() + 1)
            + self.ids.capacity() * size_of::<i64>()
            + self.merged.iter().map(Vec::capacity).sum::<usize>() * size_of::<(i64, u32)>()
            + self.cells.bytes()
            + self.values.bytes()
    }

    /// Counts stay where they are, so that nothing is looked up: rows are added to none of both any more.
    pub(crate) fn merge(&mut self, mut other: Self) -> Result<(), QueryError> {
        let (ours, theirs) = (self.periods.clone(), other.periods.clone());
        other.add_periods(&ours);
        self.add_periods(&theirs);
        if self.differ() {
            self.values.grow(self.cells.slots());
            other.values.grow(other.cells.slots());
            self.values.append(other.values);
        }
        let first = self.cells.append(other.cells) as u32;
        let of_other = other.ids.into_iter().zip(0..).collect();
        for mut list in other.merged.into_iter().chain([of_other]) {
            list.iter_mut().for_each(|(_, slot)| *slot += first);
            self.merged.push(list);
        }
        self.check_limit()
    }
}

impl StackSums {
    /// For another server: each stack once, in the order of ids, with its cells. `write_ids` writes what stands for the
    /// ids.
    pub(crate) fn write(
        mut self,
        to: &mut PartialWriter,
        write_ids: impl FnOnce(&[i64], &mut PartialWriter) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let (ids, slots) = self.ordered();
        self.periods.iter().for_each(|periods| periods.write(to));
        write_ids(&ids[..], to)?;
        for slot in slots.iter() {
            to.cells(self.cells.of(*slot as usize).iter().map(|count| u64::from(*count)));
        }
        if self.differ() {
            for slot in slots.iter() {
                to.cells(self.values.of(*slot as usize).iter().map(|value| *value as u64));
            }
        }
        Ok(())
    }

    /// Takes what another server wrote into sums that have nothing. `read_ids` is told how many there may be, and
    /// returns no two alike.
    pub(crate) fn read(
        &mut self,
        from: &mut PartialReader<'_>,
        read_ids: impl FnOnce(&mut PartialReader<'_>, usize) -> Result<Vec<i64>, Malformed>,
    ) -> Result<(), Malformed> {
        for periods in &mut self.periods {
            *periods = Periods::read(from)?;
        }
        let (ids, width) = (read_ids(from, self.limit)?, self.width());
        let of_values = if self.differ() { size_of::<i64>() } else { 0 };
        from.takes(ids.len() * (size_of::<i64>() + width * (size_of::<u32>() + of_values)))?;
        for slot in 0..ids.len() {
            self.cells.grow(slot + 1);
            let cells = self.cells.of_mut(slot);
            from.cells(width, |at, count| cells[at] = u32::try_from(count).unwrap_or(u32::MAX))?;
        }
        if self.differ() {
            for slot in 0..ids.len() {
                self.values.grow(slot + 1);
                let values = self.values.of_mut(slot);
                from.cells(width, |at, value| values[at] = value as i64)?;
            }
        }
        self.ids = ids;
        Ok(())
    }
}

fn too_many(limit: usize) -> QueryError {
    QueryError::too_large(
        format!("the selection has more than {limit} distinct stacks"),
        "ask for a shorter window or a narrower selector",
    )
}
