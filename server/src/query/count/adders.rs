//! Three ways to add the rows of a row group up by stack and cell; which one is a question of speed alone.
//!
//! In: rows, and which cell each counts in. Out: samples of each stack and cell, to [`StackSums`].

use crate::column::coded::CodedColumn;
use crate::column::list::{Code, CodeArray, with_codes};
use crate::column::runs::run_length;
use crate::query::count::cell_plan::CellPlan;
use crate::query::count::scan::{Counts, PeriodsOf, Rows};
use crate::query::count::stack_sums::StackSums;
use crate::query::limits::error::QueryError;
use crate::query::plan::resolution::Times;
use std::ops::Range;

/// Sums by code and step of a row group are made of at most so many cells, or of four times as many as it has rows.
pub(crate) const MOST_SUMS: usize = 1 << 18;

/// What a sample stands for, by its code, in nanoseconds.
pub(crate) fn period_of_code(values: &CodedColumn) -> impl Iterator<Item = i64> {
    (0..values.distinct()).map(|code| values.number(code).unwrap_or_default())
}

/// Adds all rows of a row group up.
pub(crate) trait Adder {
    /// Adds each row that counts to its stack's cell, with what its sample stands for.
    fn add(self, rows: &Rows, plan: &CellPlan, sums: &mut StackSums) -> Result<(), QueryError>;
}

/// Adds rows up in the way that is fastest for them. `code_sums`: kept from row group to row group.
pub(crate) fn add(
    rows: &Rows,
    plan: &CellPlan,
    sums: &mut StackSums,
    code_sums: &mut Vec<u32>,
) -> Result<(), QueryError> {
    let periods = rows.periods(1)?;
    let PeriodsOf::One(period_ns) = periods else {
        return ByRow { periods }.add(rows, plan, sums);
    };
    if let Some(by_run) = ByRun::of(rows, plan, sums, period_ns)? {
        return by_run.add(rows, plan, sums);
    }
    if rows.codes(0)?.distinct() * sums.width() <= MOST_SUMS.max(4 * rows.len()) {
        return ByCode { period_ns, code_sums }.add(rows, plan, sums);
    }
    ByRow { periods }.add(rows, plan, sums)
}

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

/// For a roll-up's rows, which stand by their stacks, all of the period that came so far: each stack's run of rows is
/// summed up by itself.
struct ByRun<'r> {
    period_ns: i64,
    counts: &'r Counts,
    /// Codes of times with the cell of each; none where the time does not matter.
    times: Option<(&'r CodedColumn, Vec<usize>)>,
}

impl<'r> ByRun<'r> {
    /// Nothing where the rows are not such ones.
    fn of(rows: &'r Rows, plan: &CellPlan, sums: &StackSums, period_ns: i64) -> Result<Option<ByRun<'r>>, QueryError> {
        let stacks = rows.codes(0)?;
        let Some(counts) = rows.counts().filter(|_| sums.has_only(period_ns)) else {
            return Ok(None);
        };
        let times = match plan.timed.then(|| rows.times(2)).transpose()? {
            None => None,
            Some(Times::Coded(times)) => match plan.cell_of_codes(times) {
                Some(cells) => Some((times, cells)),
                None => return Ok(None),
            },
            Some(Times::Exact(_)) => return Ok(None),
        };
        if !with_codes!(&stacks.codes, codes => stand_together(codes, stacks.distinct())) {
            return Ok(None);
        }
        Ok(Some(ByRun {
            period_ns,
            counts,
            times,
        }))
    }

    /// Sums up each run of rows with one stack by `sum_up`, which is given a sum for each cell and one more for what
    /// is of none.
    fn add_runs<S: Code>(
        &self,
        (stacks, codes): (&CodedColumn, &[S]),
        to: &mut StackSums,
        sum_up: &mut dyn FnMut(Range<usize>, &mut [u32]),
    ) -> Result<(), QueryError> {
        let width = to.width();
        let (mut sums, mut samples) = (vec![0; width + 1], to.no_samples());
        let mut at = 0;
        while let Some(code) = codes.get(at).copied() {
            let end = at + run_length(&codes[at..], |other| other == code);
            sums.fill(0);
            sum_up(at..end, &mut sums);
            at = end;
            if to.sum_windows(&sums, &mut samples) {
                let id = stacks.number(code.index()).unwrap_or_default();
                to.add_cells(id, &sums[..width], self.period_ns)?;
            }
        }
        to.add_period(self.period_ns, samples);
        Ok(())
    }
}

impl Adder for ByRun<'_> {
    fn add(self, rows: &Rows, _: &CellPlan, sums: &mut StackSums) -> Result<(), QueryError> {
        let (stacks, counts, times) = (rows.codes(0)?, self.counts, &self.times);
        let of_code = &counts.of_code[..];
        let mut tables = match (times, &counts.codes) {
            (Some((times, cells)), CodeArray::Bytes(counts)) => match &times.codes {
                CodeArray::Bytes(times) => OfBytes::new(cells, of_code).map(|tables| (tables, times, counts)),
                _ => None,
            },
            _ => None,
        };
        let mut sum_up = |run: Range<usize>, sums: &mut [u32]| match (&mut tables, times) {
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
        with_codes!(&stacks.codes, codes => self.add_runs((stacks, codes), sums, &mut sum_up))
    }
}

/// For rows of one period: sums by the code of the stack first, of which each stack is looked up once.
struct ByCode<'r> {
    period_ns: i64,
    code_sums: &'r mut Vec<u32>,
}

impl ByCode<'_> {
    /// Of each stack's code the samples in each cell, and in one more behind them what is of none.
    fn sum_up(&mut self, rows: &Rows, plan: &CellPlan, width: usize) -> Result<(), QueryError> {
        let (stacks, sums) = (rows.codes(0)?, &mut *self.code_sums);
        sums.clear();
        sums.resize(stacks.distinct() * width, 0);
        with_codes!(&stacks.codes, stacks => match rows.counts() {
            None => plan.each_cell(rows, |row, cell| {
                sums[stacks[row].index() * width + cell] += 1;
            }),
            Some(counts) => with_codes!(&counts.codes, codes => plan.each_cell(rows, |row, cell| {
                let sum = &mut sums[stacks[row].index() * width + cell];
                *sum = sum.saturating_add(counts.of_code[codes[row].index()]);
            })),
        })
    }
}

impl Adder for ByCode<'_> {
    fn add(mut self, rows: &Rows, plan: &CellPlan, sums: &mut StackSums) -> Result<(), QueryError> {
        let (stacks, width) = (rows.codes(0)?, sums.width() + 1);
        self.sum_up(rows, plan, width)?;
        let mut samples = sums.no_samples();
        let mut counted = Vec::with_capacity(stacks.distinct());
        for (code, counts) in self.code_sums.chunks_exact(width).enumerate() {
            if sums.sum_windows(counts, &mut samples) {
                counted.push(code);
            }
        }
        sums.add_period(self.period_ns, samples);
        for code in counted {
            let counts = &self.code_sums[code * width..][..width - 1];
            sums.add_cells(stacks.number(code).unwrap_or_default(), counts, self.period_ns)?;
        }
        Ok(())
    }
}

/// For rows of several periods, or of very many stacks: one by one.
struct ByRow<'r> {
    periods: PeriodsOf<'r>,
}

impl Adder for ByRow<'_> {
    fn add(self, rows: &Rows, plan: &CellPlan, sums: &mut StackSums) -> Result<(), QueryError> {
        let stacks = rows.codes(0)?;
        let count = |row: usize| rows.counts().map_or(1, |counts| counts.of(row));
        let (periods, codes): (Vec<i64>, _) = match self.periods {
            PeriodsOf::One(period_ns) => (vec![period_ns], None),
            PeriodsOf::Each(values) => (period_of_code(values).collect(), Some(&values.codes)),
        };
        let value = |row: usize| codes.map_or(0, |codes| codes.at(row) as usize);
        let mut samples = vec![vec![0_u64; periods.len()]; sums.width()];
        let mut cells = Vec::with_capacity(rows.len());
        plan.each_cell(rows, |row, cell| {
            samples[cell][value(row)] += u64::from(count(row));
            cells.push((row as u32, cell as u32));
        })?;
        sums.add_periods_of_cells(&periods, &samples);
        let mut slots = vec![None; stacks.distinct()];
        for (row, cell) in cells {
            let (row, cell) = (row as usize, cell as usize);
            let code = stacks.codes.at(row) as usize;
            let slot = match slots[code] {
                Some(slot) => slot,
                None => sums.slot(stacks.number(code).unwrap_or_default())?,
            };
            slots[code] = Some(slot);
            sums.add_cell(slot, cell, count(row), periods[value(row)]);
        }
        Ok(())
    }
}
