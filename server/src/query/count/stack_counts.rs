//! Selected samples to counts by stack, in steps of time.
//!
//! Merging is associative and commutative, so that it does not matter which thread saw which sample.

use crate::column::coded::{Codes, Wanted};
use crate::column::list::{Code, List, with_codes};
use crate::column::runs::run_length;
use crate::hash::MixState;
use crate::query::ask::time::Window;
use crate::query::ask::unit::Unit;
use crate::query::count::matrix::Cells;
use crate::query::count::periods::Periods;
use crate::query::count::scan::{Collector, PERIODS, PeriodsOf, Rows, TIMES, codes};
use crate::query::count::weighted::{Weighed, in_order};
use crate::query::limits::error::QueryError;
use crate::query::limits::parallel::both;
use crate::query::plan::resolution::{Times, When};
use crate::query::plan::steps::{StepCursor, Steps};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// What a sample stands for, by its code, in nanoseconds.
pub(crate) fn period_of_code(values: &Codes) -> impl Iterator<Item = i64> {
    (0..values.distinct()).map(|code| values.number(code).unwrap_or_default())
}

/// Sums by code and step of a row group are made of at most so many cells, or of four times as many as it has rows.
pub(crate) const MOST_SUMS: usize = 1 << 18;

/// Rows that are looked at to see whether they stand by their stacks.
const LOOKED_AT: usize = 8 * 1024;

/// Whether rows stand by their stacks, of which there may be so many: whether there are hardly more runs than stacks.
fn stand_together<S: Code>(stacks: &[S], distinct: usize) -> bool {
    let first = &stacks[..stacks.len().min(LOOKED_AT)];
    let runs = 1 + first.windows(2).filter(|pair| pair[0] != pair[1]).count();
    runs * stacks.len() <= 2 * distinct * first.len()
}

/// Sums up rows whose codes of times and counts are of one byte each, as nearly all of roll-ups are: tables for all
/// bytes need no look at where they end.
struct OfBytes {
    /// By the code of a time, and what a code of counts stands for.
    cells: [u8; 256],
    counts: [u32; 256],
    /// Neighbours often have the same cell, and the CPU would wait for the sum before: each other row has sums of its
    /// own. Zeros between two stacks.
    sums: [[u32; 256]; 2],
}

impl OfBytes {
    /// Nothing where there are more cells.
    fn new(cells: &[usize], of_code: &[u32]) -> Option<OfBytes> {
        let mut tables = OfBytes {
            cells: [0; 256],
            counts: [0; 256],
            sums: [[0; 256]; 2],
        };
        for (to, cell) in tables.cells.iter_mut().zip(cells) {
            *to = u8::try_from(*cell).ok()?;
        }
        for (to, count) in tables.counts.iter_mut().zip(of_code) {
            *to = *count;
        }
        Some(tables)
    }

    /// Puts the sums of rows in their cells.
    fn sum_up(&mut self, times: &[u8], counts: &[u8], to: &mut [u32]) {
        let OfBytes {
            cells,
            counts: of_code,
            sums: [even, odd],
        } = self;
        let add = |sums: &mut [u32; 256], time: u8, count: u8| {
            let sum = &mut sums[usize::from(cells[usize::from(time)])];
            *sum = sum.saturating_add(of_code[usize::from(count)]);
        };
        let ((times, last_time), (counts, last_count)) = (times.as_chunks::<2>(), counts.as_chunks::<2>());
        for (times, counts) in times.iter().zip(counts) {
            add(even, times[0], counts[0]);
            add(odd, times[1], counts[1]);
        }
        for (time, count) in last_time.iter().zip(last_count) {
            add(even, *time, *count);
        }
        for ((to, even), odd) in to.iter_mut().zip(even).zip(odd) {
            *to = std::mem::take(even).saturating_add(std::mem::take(odd));
        }
    }
}

/// A window of samples that are counted, with what was found of them.
#[derive(Debug, Clone)]
struct Part {
    steps: Steps,
    /// A time of the window that does not count.
    except: Option<Window>,
    /// Where its steps begin among those of all parts.
    first: usize,
    periods: Periods,
}

impl Part {
    fn cells(&self) -> Range<usize> {
        self.first..self.first + self.steps.count
    }
}

/// Samples by stack, of one window or of both sides of a difference.
#[derive(Debug, Clone)]
pub(crate) struct StackCounts {
    parts: Vec<Part>,
    /// It looks at times.
    timed: bool,
    limit: usize,
    slots: HashMap<i64, u32, MixState>,
    /// Stack of each slot.
    ids: Vec<i64>,
    /// What others have counted: stacks with their slots, of each of them apart. A stack may be among several.
    merged: Vec<Vec<(i64, u32)>>,
    /// Samples of each slot in each step.
    cells: Cells<u32>,
    /// CPU time of each cell in nanoseconds; empty as long as all samples of each part have the same period.
    values: Cells<i64>,
    /// Room for the sums of a row group.
    sums: Vec<u32>,
}

impl StackCounts {
    /// At most `limit` distinct stacks are taken. `except`: a time of the window that does not count.
    pub(crate) fn new(steps: Steps, except: Option<Window>, limit: usize) -> StackCounts {
        let timed = steps.count > 1;
        StackCounts::with_parts(vec![(steps, except)], timed, limit)
    }

    /// Of both sides of a difference: rows are read once.
    pub(crate) fn of_two(sides: [(Steps, Option<Window>); 2], limit: usize) -> StackCounts {
        StackCounts::with_parts(sides.into(), true, limit)
    }

    fn with_parts(windows: Vec<(Steps, Option<Window>)>, timed: bool, limit: usize) -> StackCounts {
        let mut all = 0;
        let mut parts = Vec::with_capacity(windows.len());
        for (steps, except) in windows {
            let (first, periods) = (all, Periods::default());
            all += steps.count;
            parts.push(Part {
                steps,
                except,
                first,
                periods,
            });
        }
        StackCounts {
            parts,
            timed,
            limit,
            slots: HashMap::default(),
            ids: Vec::new(),
            merged: Vec::new(),
            cells: Cells::new(all),
            values: Cells::new(all),
            sums: Vec::new(),
        }
    }

    /// Whether samples of a part stand for different times.
    fn differ(&self) -> bool {
        self.parts.iter().any(|part| part.periods.differ())
    }

    /// Calls with each row that counts and its cell among those of its stack; one that both sides count comes twice.
    fn each_cell(&self, rows: &Rows, mut each: impl FnMut(usize, usize)) -> Result<(), QueryError> {
        let times = self.timed.then(|| rows.times(2)).transpose()?;
        for part in &self.parts {
            let (first, outside) = (part.first, part.steps.count);
            StepCursor::new(part.steps, part.except).each(times, rows.len(), |row, step| {
                if step < outside {
                    each(row, first + step);
                }
            });
        }
        Ok(())
    }

    /// The cell of each of a roll-up's times, for those that do not count the one behind all; nothing where one
    /// counts on both sides.
    fn cell_of_codes(&self, times: &Codes) -> Option<Vec<usize>> {
        let outside = self.cells.steps;
        let mut cells = vec![outside; times.distinct()];
        for part in &self.parts {
            let steps = StepCursor::new(part.steps, part.except).of_codes(times);
            for (cell, step) in cells.iter_mut().zip(steps).filter(|(_, step)| *step < part.steps.count) {
                if std::mem::replace(cell, part.first + step) != outside {
                    return None;
                }
            }
        }
        Some(cells)
    }

    /// Of each stack's code the samples in each cell, and in one more behind them what is of none.
    fn sum_up(&self, rows: &Rows, sums: &mut Vec<u32>) -> Result<(), QueryError> {
        let (stacks, width) = (rows.codes(0)?, self.cells.steps + 1);
        sums.clear();
        sums.resize(stacks.distinct() * width, 0);
        with_codes!(&stacks.codes, stacks => match rows.counts() {
            None => self.each_cell(rows, |row, cell| {
                sums[stacks[row].index() * width + cell] += 1;
            }),
            Some(counts) => with_codes!(&counts.codes, codes => self.each_cell(rows, |row, cell| {
                let sum = &mut sums[stacks[row].index() * width + cell];
                *sum = sum.saturating_add(counts.of_code[codes[row].index()]);
            })),
        })
    }

    /// Takes rows that stand by their stacks, as a roll-up's do, of the period that all had so far: each stack's rows
    /// are summed up by themselves, by `sum_up`, which is given a sum for each cell and one more for what is of none.
    fn add_runs<S: Code>(
        &mut self,
        (stacks, codes): (&Codes, &[S]),
        period_ns: i64,
        sum_up: &mut dyn FnMut(Range<usize>, &mut [u32]),
    ) -> Result<(), QueryError> {
        let width = self.cells.steps;
        let (mut sums, mut samples) = (vec![0; width + 1], vec![0_u64; self.parts.len()]);
        let mut at = 0;
        while let Some(code) = codes.get(at).copied() {
            let end = at + run_length(&codes[at..], |other| other == code);
            sums.fill(0);
            sum_up(at..end, &mut sums);
            at = end;
            let mut any = 0;
            for (part, samples) in self.parts.iter().zip(&mut samples) {
                let sum = sums[part.cells()].iter().map(|count| u64::from(*count)).sum::<u64>();
                *samples += sum;
                any |= sum;
            }
            if any > 0 {
                self.add_cells(stacks.number(code.index()).unwrap_or_default(), &sums[..width])?;
            }
        }
        let more = samples.into_iter().map(|samples| Periods::of([(period_ns, samples)]));
        self.add_periods(&more.collect::<Vec<_>>());
        Ok(())
    }

    /// Adds to the cells of a stack, and gives its slot.
    fn add_cells(&mut self, id: i64, counts: &[u32]) -> Result<usize, QueryError> {
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
        Ok(slot)
    }

    /// Takes a roll-up's rows if they stand by their stacks and are of the period that all had so far. False: they
    /// don't.
    fn add_by_stack(&mut self, rows: &Rows, period_ns: i64) -> Result<bool, QueryError> {
        let stacks = rows.codes(0)?;
        let is_new = |part: &Part| part.periods.samples > 0 && part.periods.only() != Some(period_ns);
        let Some(counts) = rows.counts().filter(|_| !self.parts.iter().any(is_new)) else {
            return Ok(false);
        };
        let times = match self.timed.then(|| rows.times(2)).transpose()? {
            None => None,
            Some(Times::Coded(times)) => match self.cell_of_codes(times) {
                Some(cells) => Some((times, cells)),
                None => return Ok(false),
            },
            Some(Times::Exact(_)) => return Ok(false),
        };
        if !with_codes!(&stacks.codes, codes => stand_together(codes, stacks.distinct())) {
            return Ok(false);
        }
        let of_code = &counts.of_code[..];
        let mut tables = match (&times, &counts.codes) {
            (Some((times, cells)), List::Bytes(counts)) => match &times.codes {
                List::Bytes(times) => OfBytes::new(cells, of_code).map(|tables| (tables, times, counts)),
                _ => None,
            },
            _ => None,
        };
        let mut sum_up = |run: Range<usize>, sums: &mut [u32]| match (&mut tables, &times) {
            (Some((tables, times, counts)), _) => tables.sum_up(&times[run.clone()], &counts[run], sums),
            (None, Some((times, cells))) => {
                for row in run {
                    let sum = &mut sums[cells[times.codes.at(row) as usize]];
                    *sum = sum.saturating_add(counts.of(row));
                }
            }
            (None, None) => {
                sums[0] = with_codes!(&counts.codes, codes => {
                    codes[run].iter().fold(0, |sum: u32, code| sum.saturating_add(of_code[code.index()]))
                });
            }
        };
        with_codes!(&stacks.codes, codes => self.add_runs((stacks, codes), period_ns, &mut sum_up))?;
        Ok(true)
    }

    /// Takes rows of one period, by the codes of their stacks first.
    fn add_equal(&mut self, rows: &Rows, period_ns: i64) -> Result<(), QueryError> {
        let (stacks, width) = (rows.codes(0)?, self.cells.steps);
        let mut sums = std::mem::take(&mut self.sums);
        self.sum_up(rows, &mut sums)?;
        let mut samples = vec![0_u64; self.parts.len()];
        let mut counted = Vec::with_capacity(stacks.distinct());
        for (code, counts) in sums.chunks_exact(width + 1).enumerate() {
            let mut any = 0;
            for (part, samples) in self.parts.iter().zip(&mut samples) {
                let sum = counts[part.cells()].iter().map(|count| u64::from(*count)).sum::<u64>();
                *samples += sum;
                any |= sum;
            }
            if any > 0 {
                counted.push(code);
            }
        }
        let more = samples.into_iter().map(|samples| Periods::of([(period_ns, samples)]));
        self.add_periods(&more.collect::<Vec<_>>());
        for code in counted {
            let counts = &sums[code * (width + 1)..][..width];
            let slot = self.add_cells(stacks.number(code).unwrap_or_default(), counts)?;
            if self.differ() {
                for (sum, count) in self.values.of_mut(slot).iter_mut().zip(counts) {
                    *sum = sum.saturating_add(period_ns.saturating_mul(i64::from(*count)));
                }
            }
        }
        self.sums = sums;
        Ok(())
    }

    /// Takes rows of several periods, or of very many stacks, one by one.
    fn add_each(&mut self, rows: &Rows, values: PeriodsOf<'_>) -> Result<(), QueryError> {
        let stacks = rows.codes(0)?;
        let count = |row: usize| rows.counts().map_or(1, |counts| counts.of(row));
        let (periods, codes): (Vec<i64>, _) = match values {
            PeriodsOf::One(period_ns) => (vec![period_ns], None),
            PeriodsOf::Each(values) => (period_of_code(values).collect(), Some(&values.codes)),
        };
        let value = |row: usize| codes.map_or(0, |codes| codes.at(row) as usize);
        let mut samples = vec![vec![0_u64; periods.len()]; self.cells.steps];
        let mut cells = Vec::with_capacity(rows.len());
        self.each_cell(rows, |row, cell| {
            samples[cell][value(row)] += u64::from(count(row));
            cells.push((row as u32, cell as u32));
        })?;
        let of_part = |part: &Part| {
            let of_cell = |samples: &Vec<u64>| Periods::of(periods.iter().copied().zip(samples.iter().copied()));
            let mut all = Periods::default();
            samples[part.cells()]
                .iter()
                .for_each(|samples| all.merge(&of_cell(samples)));
            all
        };
        let more: Vec<Periods> = self.parts.iter().map(of_part).collect();
        self.add_periods(&more);
        let mut slots = vec![None; stacks.distinct()];
        for (row, cell) in cells {
            let (row, cell) = (row as usize, cell as usize);
            let code = stacks.codes.at(row) as usize;
            let slot = match slots[code] {
                Some(slot) => slot,
                None => self.slot(stacks.number(code).unwrap_or_default())?,
            };
            slots[code] = Some(slot);
            let sum = &mut self.cells.of_mut(slot)[cell];
            *sum = sum.saturating_add(count(row));
            if self.differ() {
                let sum = &mut self.values.of_mut(slot)[cell];
                let period_ns = periods[value(row)];
                *sum = sum.saturating_add(period_ns.saturating_mul(i64::from(count(row))));
            }
        }
        Ok(())
    }

    fn slot(&mut self, id: i64) -> Result<usize, QueryError> {
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

    /// Takes more periods in, of each part. Where they begin to differ, the cells so far are given their times.
    fn add_periods(&mut self, more: &[Periods]) {
        let differed = self.differ();
        let before: Vec<Option<i64>> = self.parts.iter().map(|part| part.periods.only()).collect();
        for (part, more) in self.parts.iter_mut().zip(more) {
            part.periods.merge(more);
        }
        if !self.differ() || differed {
            return;
        }
        let slots = self.cells.slots();
        self.values.grow(slots);
        for slot in 0..slots {
            let (values, cells) = (self.values.of_mut(slot), self.cells.of(slot));
            for (part, period_ns) in self.parts.iter().zip(&before) {
                for cell in part.cells() {
                    values[cell] = i64::from(cells[cell]) * period_ns.unwrap_or(0);
                }
            }
        }
    }

    /// Counts of the only part.
    pub(crate) fn weighed(mut self, unit: &Unit) -> Weighed {
        let ordered = self.ordered();
        let cells = Arc::new(std::mem::replace(&mut self.cells, Cells::new(0)));
        self.weighed_part((0, unit), ordered, &cells)
    }

    /// Counts of both sides.
    pub(crate) fn weighed_sides(mut self, units: [&Unit; 2]) -> [Weighed; 2] {
        let ordered = self.ordered();
        let cells = Arc::new(std::mem::replace(&mut self.cells, Cells::new(0)));
        both(|side| self.weighed_part((side, units[side]), ordered.clone(), &cells))
    }

    fn weighed_part(
        &self,
        (part, unit): (usize, &Unit),
        ordered: (Arc<Vec<i64>>, Arc<Vec<u32>>),
        cells: &Arc<Cells<u32>>,
    ) -> Weighed {
        let part = &self.parts[part];
        let of_part = (part.periods.clone(), unit);
        Weighed::new(part.cells(), of_part, ordered, cells, &self.values)
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
}

fn too_many(limit: usize) -> QueryError {
    QueryError::too_large(
        format!("the selection has more than {limit} distinct stacks"),
        "ask for a shorter window or a narrower selector",
    )
}

impl Collector for StackCounts {
    fn columns(&self) -> Vec<Wanted> {
        let mut columns = vec![codes("stack_id"), PERIODS];
        if self.timed {
            columns.push(TIMES);
        }
        columns
    }

    fn when(&self) -> When {
        if !self.timed {
            return When::Window;
        }
        let grain_ns = |part: &Part| match part.steps.when() {
            When::Window => i64::MAX,
            When::Step { grain_ns } => grain_ns,
            When::Exact => 0,
        };
        When::Step {
            grain_ns: self.parts.iter().map(grain_ns).min().unwrap_or(0),
        }
    }

    fn cuts(&self) -> Vec<i64> {
        let windows = self
            .parts
            .iter()
            .flat_map(|part| [Some(part.steps.window), part.except]);
        windows.flatten().flat_map(|w| [w.from_ns, w.until_ns]).collect()
    }

    fn checks_times(&self) -> bool {
        self.timed
    }

    fn takes_one_period(&self) -> bool {
        true
    }

    fn add(&mut self, rows: &Rows) -> Result<(), QueryError> {
        let sums = rows.codes(0)?.distinct() * self.cells.steps;
        match rows.periods(1)? {
            PeriodsOf::One(period_ns) if self.add_by_stack(rows, period_ns)? => Ok(()),
            PeriodsOf::One(period_ns) if sums <= MOST_SUMS.max(4 * rows.len()) => self.add_equal(rows, period_ns),
            periods => self.add_each(rows, periods),
        }
    }

    fn bytes(&self) -> usize {
        self.slots.capacity() * (size_of::<(i64, u32)>() + 1)
            + self.ids.capacity() * size_of::<i64>()
            + self.merged.iter().map(Vec::capacity).sum::<usize>() * size_of::<(i64, u32)>()
            + self.sums.capacity() * size_of::<u32>()
            + self.cells.bytes()
            + self.values.bytes()
    }

    /// Counts stay where they are, so that nothing is looked up: rows are added to none of both any more.
    fn merge(&mut self, mut other: Self) -> Result<(), QueryError> {
        let periods =
            |counts: &Self| -> Vec<Periods> { counts.parts.iter().map(|part| part.periods.clone()).collect() };
        let (ours, theirs) = (periods(self), periods(&other));
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

#[cfg(test)]
#[path = "stack_counts_tests.rs"]
mod tests;
