//! Every selected sample to an accumulator.
//!
//! In: what is read, as the plan has it: row groups and the conditions on their rows. The columns are read as codes,
//! row group by row group on as many threads as there are CPUs; what is left of the conditions is decided once for
//! each value of a row group, and conditions that all of its rows satisfy cost nothing. Out: what was collected.

use crate::column::coded::{CodedColumn, Column, Form, Projection};
use crate::column::list::{CodeArray, only};
use crate::query::limits::error::QueryError;
use crate::query::limits::reservation::Reservation;
use crate::query::plan::columns::{PERIODS, codes};
use crate::query::plan::read_plan::{Needs, ReadPlan};
use crate::query::plan::resolution::{TimeResolution, Times};
use crate::query::plan::row_test::RowTest;
use crate::store::RangeReader;
use crate::store::format::read::groups::{ReadError, RowGroupTask};
use crate::store::format::read::unzip::Unzip;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinSet;

/// What memory is taken for.
const COUNTS: &str = "counts of the selected samples";

/// Takes selected samples in, in any order and in several threads, each with its own accumulator.
pub(crate) trait Accumulator: Send + 'static {
    /// Columns of `samples` that it reads.
    fn columns(&self) -> Vec<Projection>;

    /// How well it has to know times.
    fn when(&self) -> TimeResolution;

    /// Times of the window at which it has to tell samples apart, beside its steps.
    fn cuts(&self) -> Vec<i64> {
        Vec::new()
    }

    /// Whether it leaves out by itself what the question's times leave out: it looks at every time anyway.
    fn checks_times(&self) -> bool {
        false
    }

    /// Whether it takes the period that all rows of a row group have instead of a column of [`PERIODS`].
    fn takes_one_period(&self) -> bool {
        false
    }

    /// Takes selected rows: the columns in that order, all of the same length.
    fn add(&mut self, rows: &Rows) -> Result<(), QueryError>;

    /// Memory that what was collected takes, in bytes.
    fn bytes(&self) -> usize;

    /// Takes what another thread has collected.
    fn merge(&mut self, other: Self) -> Result<(), QueryError>;

    /// What has to be read for it.
    fn needs(&self) -> Needs {
        Needs {
            columns: self.columns(),
            when: self.when(),
            cuts: self.cuts(),
        }
    }
}

/// How many samples each row of a roll-up stands for.
#[derive(Debug)]
pub(crate) struct Counts {
    /// A code a row.
    pub(crate) codes: CodeArray,
    pub(crate) of_code: Vec<u32>,
}

impl Counts {
    fn new(CodedColumn { codes, values }: CodedColumn) -> Counts {
        let count = |code| u32::try_from(values.number(code).unwrap_or_default()).unwrap_or(u32::MAX);
        Counts {
            codes,
            of_code: (0..values.distinct()).map(count).collect(),
        }
    }

    pub(crate) fn of(&self, row: usize) -> u32 {
        self.of_code[self.codes.at(row) as usize]
    }
}

/// What the rows of a row group stand for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PeriodsOf<'a> {
    /// All the same.
    One(i64),
    Each(&'a CodedColumn),
}

/// Selected rows of one row group.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    columns: Vec<Arc<Column>>,
    /// Where the column of periods would be, and what all of it is.
    one_period: Option<(usize, i64)>,
    /// None: one sample each.
    counts: Option<Arc<Counts>>,
}

impl Rows {
    pub(crate) fn new(columns: Vec<Column>, counts: Option<Counts>) -> Rows {
        Rows {
            columns: columns.into_iter().map(Arc::new).collect(),
            one_period: None,
            counts: counts.map(Arc::new),
        }
    }

    fn column(&self, index: usize) -> Option<&Column> {
        match self.one_period {
            Some((at, _)) if index == at => None,
            Some((at, _)) if index > at => self.columns.get(index - 1).map(|column| &**column),
            _ => self.columns.get(index).map(|column| &**column),
        }
    }

    /// How many samples each row stands for; none: one each.
    pub(crate) fn counts(&self) -> Option<&Counts> {
        self.counts.as_deref()
    }

    /// The columns at these places, of rows of which each was asked for.
    pub(crate) fn at(&self, places: &[usize]) -> Rows {
        Rows {
            columns: places
                .iter()
                .filter_map(|place| self.columns.get(*place).cloned())
                .collect(),
            one_period: None,
            counts: self.counts.clone(),
        }
    }

    /// The first so many of the columns that were asked for, with other stacks in the place of the first one.
    pub(crate) fn with_stacks(&self, stacks: CodedColumn, asked: usize) -> Rows {
        let left_out = self.one_period.is_some_and(|(at, _)| at < asked);
        let others = self.columns.iter().take(asked - usize::from(left_out)).skip(1);
        Rows {
            columns: std::iter::once(Arc::new(Column::Codes(stacks)))
                .chain(others.cloned())
                .collect(),
            one_period: self.one_period,
            counts: self.counts.clone(),
        }
    }

    /// The rows that are kept.
    pub(crate) fn only(&self, keep: &[bool]) -> Rows {
        let count = keep.iter().filter(|keep| **keep).count();
        let kept = |column: &Column| match column {
            Column::Codes(CodedColumn { codes, values }) => Column::Codes(CodedColumn {
                codes: codes.only(keep, count),
                values: values.clone(),
            }),
            Column::Numbers(numbers) => Column::Numbers(only(numbers, keep, count)),
        };
        Rows {
            columns: self.columns.iter().map(|column| Arc::new(kept(column))).collect(),
            one_period: self.one_period,
            counts: self.counts.as_ref().map(|counts| {
                Arc::new(Counts {
                    codes: counts.codes.only(keep, count),
                    of_code: counts.of_code.clone(),
                })
            }),
        }
    }

    /// The column that was asked for as [`PERIODS`].
    pub(crate) fn periods(&self, index: usize) -> Result<PeriodsOf<'_>, QueryError> {
        if let Some((at, period_ns)) = self.one_period
            && at == index
        {
            return Ok(PeriodsOf::One(period_ns));
        }
        let periods = self.codes(index)?;
        let count = periods.codes.len();
        if count == 0 || periods.codes.first_run() < count {
            return Ok(PeriodsOf::Each(periods));
        }
        let first = periods.number(periods.codes.at(0) as usize);
        Ok(first.map_or(PeriodsOf::Each(periods), PeriodsOf::One))
    }

    /// A column that was asked for as codes.
    pub(crate) fn codes(&self, index: usize) -> Result<&CodedColumn, QueryError> {
        match self.column(index) {
            Some(Column::Codes(codes)) => Ok(codes),
            _ => Err(other_form(index)),
        }
    }

    /// How many there are, in a form that says it: of a row group without columns none.
    pub(crate) fn len(&self) -> usize {
        match self.columns.first().map(|column| &**column) {
            Some(Column::Codes(codes)) => codes.codes.len(),
            Some(Column::Numbers(numbers)) => numbers.len(),
            None => 0,
        }
    }

    /// The column that was asked for as [`TIMES`], of samples or of a roll-up.
    pub(crate) fn times(&self, index: usize) -> Result<Times<'_>, QueryError> {
        match self.column(index) {
            Some(Column::Numbers(times)) => Ok(Times::Exact(times)),
            Some(Column::Codes(codes)) => Ok(Times::Coded(codes)),
            None => Err(other_form(index)),
        }
    }

    /// A column that was asked for as numbers.
    pub(crate) fn numbers(&self, index: usize) -> Result<&[i64], QueryError> {
        match self.column(index) {
            Some(Column::Numbers(numbers)) => Ok(numbers),
            _ => Err(other_form(index)),
        }
    }
}

fn other_form(index: usize) -> QueryError {
    QueryError::internal(
        "read samples",
        format!("column {index} has another form than was asked for"),
    )
}

fn read_error(error: ReadError) -> QueryError {
    QueryError::internal("read samples", error)
}

/// Hands every selected sample to an accumulator. The reservation holds what that takes.
pub(crate) async fn scan<C: Accumulator>(plan: ReadPlan, new: impl Fn() -> C) -> Result<(C, Reservation), QueryError> {
    let mut whole = new();
    let held = Reservation::of_pool(plan.pool.clone(), COUNTS);
    let threads = std::thread::available_parallelism()
        .map_or(2, usize::from)
        .min(plan.units.len());
    let queue = Arc::new(Queue::new(plan.units, threads));
    let _ending = Ending(queue.clone());
    let mut tasks = JoinSet::new();
    for thread in 0..threads {
        let (reader, test, queue, accumulator) = (plan.reader.clone(), plan.test.clone(), queue.clone(), new());
        let held = Reservation::of_pool(plan.pool.clone(), COUNTS);
        // Counting must not keep others from the threads that serve requests; and a thread that hands each unit to
        // another one waits each time until that one has a CPU: half as long as counting takes.
        tasks.spawn_blocking(move || collect(reader.as_ref(), (&queue, thread), accumulator, &test, held));
    }
    while let Some(part) = tasks.join_next().await {
        let (part, of_part) = part.map_err(|error| QueryError::internal("scan samples", error))??;
        whole.merge(part)?;
        drop(of_part);
        held.resize(whole.bytes())?;
    }
    Ok((whole, held))
}

/// What is left to be read: of each thread a stretch of the units, since neighbours have the same services and stacks.
#[derive(Debug)]
struct Queue {
    units: Vec<RowGroupTask>,
    left: Mutex<Vec<Range<usize>>>,
}

impl Queue {
    fn new(units: Vec<RowGroupTask>, threads: usize) -> Queue {
        let end = |thread: usize| units.len() * thread / threads.max(1);
        let left = (0..threads).map(|thread| end(thread)..end(thread + 1)).collect();
        Queue {
            units,
            left: Mutex::new(left),
        }
    }

    /// The next unit for a thread: of its own, else the last of the longest stretch that is left.
    fn next(&self, thread: usize) -> Option<&RowGroupTask> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let at = left[thread].next().or_else(|| {
            let longest = left.iter_mut().max_by_key(|range| range.len())?;
            longest.next_back()
        })?;
        self.units.get(at)
    }
}

/// Dropped with the query: units that have not begun by then do not begin.
struct Ending(Arc<Queue>);

impl Drop for Ending {
    fn drop(&mut self) {
        let mut left = self.0.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.iter_mut().for_each(|range| *range = 0..0);
    }
}

fn collect<C: Accumulator>(
    reader: &dyn RangeReader,
    (queue, thread): (&Queue, usize),
    mut accumulator: C,
    test: &RowTest,
    held: Reservation,
) -> Result<(C, Reservation), QueryError> {
    let all_wanted = accumulator.columns();
    let mut unzip = Unzip::new().map_err(|damage| QueryError::internal("read samples", damage))?;
    while let Some(unit) = queue.next(thread) {
        let mut wanted = all_wanted.clone();
        let one_period = one_period(unit, &wanted).filter(|_| accumulator.takes_one_period());
        if let Some((at, _)) = one_period {
            wanted.remove(at);
        }
        let (conditions, mut columns) = test.left(unit, &wanted, accumulator.checks_times());
        if unit.is_rollup() {
            columns.push(codes("count"));
        }
        held.resize(accumulator.bytes() + unit.rows() * columns.iter().map(row_bytes).sum::<usize>())?;
        let fetched = unit.clone().fetch(reader, &columns).map_err(read_error)?;
        let mut read = fetched.read(&columns, &mut unzip).map_err(read_error)?;
        let mut counts = None;
        if unit.is_rollup()
            && let Some(Column::Codes(column)) = read.pop()
        {
            counts = Some(Counts::new(column));
        }
        let kept = test.kept(&columns, &read, unit.rows(), &conditions);
        if !conditions.is_empty() {
            read.truncate(wanted.len());
        }
        let rows = Rows::new(read, counts);
        let mut rows = match kept {
            Some(keep) => rows.only(&keep),
            None => rows,
        };
        rows.one_period = one_period;
        accumulator.add(&rows)?;
    }
    held.resize(accumulator.bytes())?;
    Ok((accumulator, held))
}

/// Which of the columns is that of periods, and what all rows of a unit stand for.
fn one_period(unit: &RowGroupTask, wanted: &[Projection]) -> Option<(usize, i64)> {
    let at = wanted.iter().position(|column| *column == PERIODS)?;
    Some((at, unit.only(PERIODS.name)?))
}

/// Memory that a row takes in a column that was read, in bytes.
fn row_bytes(column: &Projection) -> usize {
    match column.form {
        Form::Codes => size_of::<u32>(),
        Form::Numbers => size_of::<i64>(),
    }
}
