//! Every selected sample to a collector.
//!
//! Files and row groups are left out by what is known of their hour, time, type, service and series. Of the rest the
//! columns are read as codes, row group by row group on as many threads as there are CPUs; what is left of the
//! conditions is decided once for each value of a row group, and conditions that all of its rows satisfy cost
//! nothing.

use crate::column::bounds::{Bounds, Statistics};
use crate::column::coded::{CodedColumn, Column, Form, Projection};
use crate::column::list::{Code, CodeArray, only, with_codes};
use crate::label::LabelTable;
use crate::query::ask::question::{Question, ValueRange};
use crate::query::ask::selector::Matcher;
use crate::query::ask::time::Window;
use crate::query::limits::error::QueryError;
use crate::query::limits::reservation::Reservation;
use crate::query::plan::days::Days;
use crate::query::plan::resolution::{TimeResolution, Times};
use crate::query::plan::scope::ResolvedSelector;
use crate::query::plan::sources::Sources;
use crate::store::format::read::groups::{Fetched, ReadError, RowGroupTask};
use crate::store::format::read::unzip::Unzip;
use crate::store::{Snapshot, Table};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinSet;

/// A column that is wanted as codes.
pub(crate) const fn codes(name: &'static str) -> Projection {
    let form = Form::Codes;
    Projection { name, form }
}

/// The time stamps.
pub(crate) const TIMES: Projection = Projection {
    name: "ts_ns",
    form: Form::Numbers,
};

/// What samples stand for, in nanoseconds: mostly the same for all of a row group.
pub(crate) const PERIODS: Projection = codes("value");

/// Takes selected samples in, in any order and in several threads, each with its own collector.
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

/// Hands every selected sample to a collector. The account holds what that takes.
pub(crate) async fn scan<C: Accumulator>(
    snapshot: &Snapshot,
    question: &Question,
    scope: &ResolvedSelector,
    new: impl Fn() -> C,
) -> Result<(C, Reservation), QueryError> {
    let mut whole = new();
    let held = Reservation::new(snapshot, "counts of the selected samples");
    if scope.is_empty() {
        return Ok((whole, held));
    }
    let test = Arc::new(RowTest::new(question, scope));
    let used = test.uses(&whole.columns());
    let sources = Sources::plan(snapshot, question, &used, whole.when(), whole.cuts()).await?;
    let mut units = Vec::new();
    for table in [Table::Samples].into_iter().chain(Table::ROLLUPS) {
        let may = |known: Statistics<'_>| sources.may(table, known) && test.may(known);
        units.extend(snapshot.units(table, may).await.map_err(read_error)?);
    }
    let threads = std::thread::available_parallelism()
        .map_or(2, usize::from)
        .min(units.len());
    let queue = Arc::new(Queue::new(units, threads));
    let _ending = Ending(queue.clone());
    let mut tasks = JoinSet::new();
    for thread in 0..threads {
        let (snapshot, queue, test, collector) = (snapshot.clone(), queue.clone(), test.clone(), new());
        // Counting must not keep others from the threads that serve requests; and a thread that hands each unit to
        // another one waits each time until that one has a CPU: half as long as counting takes.
        tasks.spawn_blocking(move || collect(&snapshot, &queue, thread, collector, &test));
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
    snapshot: &Snapshot,
    queue: &Queue,
    thread: usize,
    mut collector: C,
    test: &RowTest,
) -> Result<(C, Reservation), QueryError> {
    let held = Reservation::new(snapshot, "counts of the selected samples");
    let all_wanted = collector.columns();
    let mut unzip = Unzip::new().map_err(|damage| QueryError::internal("read samples", damage))?;
    while let Some(unit) = queue.next(thread) {
        let mut wanted = all_wanted.clone();
        let one_period = one_period(unit, &wanted).filter(|_| collector.takes_one_period());
        if let Some((at, _)) = one_period {
            wanted.remove(at);
        }
        let (conditions, mut columns) = test.left(unit, &wanted, collector.checks_times());
        if unit.is_rollup() {
            columns.push(codes("count"));
        }
        held.resize(collector.bytes() + unit.rows() * columns.iter().map(row_bytes).sum::<usize>())?;
        let fetched = unit
            .clone()
            .fetch(snapshot.reader.as_ref(), &columns)
            .map_err(read_error)?;
        let mut rows = test.select(&fetched, (&columns, wanted.len()), &conditions, &mut unzip)?;
        rows.one_period = one_period;
        collector.add(&rows)?;
    }
    held.resize(collector.bytes())?;
    Ok((collector, held))
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

/// The conditions on a sample.
#[derive(Debug)]
struct RowTest {
    window: Window,
    except: Option<Window>,
    hours: (String, String),
    profile: String,
    values: ValueRange,
    scope: ResolvedSelector,
    matchers: Vec<Matcher>,
}

/// A condition that is decided row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Time,
    Type,
    Value,
    Series,
    Processes,
    /// By index.
    Matcher(usize),
}

impl RowTest {
    fn new(question: &Question, scope: &ResolvedSelector) -> RowTest {
        RowTest {
            window: question.window,
            except: question.except,
            hours: Days::of(question.window).hours(),
            profile: question.profile.clone(),
            values: question.values,
            scope: scope.clone(),
            matchers: question.selector.of(LabelTable::Samples).cloned().collect(),
        }
    }

    /// All columns that are looked at, these included.
    fn uses(&self, wanted: &[Projection]) -> Vec<&'static str> {
        let ids = [("series_id", &self.scope.series), ("process_id", &self.scope.processes)];
        let ids = ids.into_iter().filter(|(_, ids)| ids.is_some()).map(|(name, _)| name);
        let matchers = self.matchers.iter().map(|matcher| matcher.label().column());
        let value = (!self.values.is_all()).then_some(PERIODS.name);
        wanted
            .iter()
            .map(|column| column.name)
            .chain(ids)
            .chain(value)
            .chain(matchers)
            .collect()
    }

    /// Whether rows of which so much is known may be selected.
    fn may(&self, known: Statistics<'_>) -> bool {
        let numbers = |name: &str, test: &dyn Fn(i64, i64) -> bool| match known(name) {
            Some(Bounds::Numbers(least, most)) => test(least, most),
            _ => true,
        };
        let texts = |name: &str, test: &dyn Fn(&str, &str) -> bool| match known(name) {
            Some(Bounds::Texts(least, most)) => test(&least, &most),
            _ => true,
        };
        let Window { from_ns, until_ns } = self.window;
        let (first, last) = (self.hours.0.as_str(), self.hours.1.as_str());
        let profile = self.profile.as_str();
        texts("hour", &|least, most| least <= last && first <= most)
            && numbers("ts_ns", &|least, most| least < until_ns && from_ns <= most)
            && texts("type", &|least, most| least <= profile && profile <= most)
            && numbers(PERIODS.name, &|least, most| self.values.meets(least, most))
            && self.scope.services.as_ref().is_none_or(|services| {
                texts("service", &|least, most| {
                    let mut from =
                        services.range::<str, _>((std::ops::Bound::Included(least), std::ops::Bound::Unbounded));
                    from.next().is_some_and(|service| service.as_str() <= most)
                })
            })
            && [("series_id", &self.scope.series), ("process_id", &self.scope.processes)]
                .into_iter()
                .all(|(name, ids)| {
                    ids.as_ref()
                        .is_none_or(|ids| numbers(name, &|least, most| ids.any_within(least, most)))
                })
    }

    /// The conditions that not all rows of a unit are known to satisfy, and the columns to be read: those that are
    /// wanted, then those of the conditions.
    fn left(
        &self,
        unit: &RowGroupTask,
        wanted: &[Projection],
        times_are_checked: bool,
    ) -> (Vec<Condition>, Vec<Projection>) {
        let mut conditions = Vec::new();
        let inside = |least, most| {
            let is_cut = |except: &Window| least < except.until_ns && except.from_ns <= most;
            self.window.from_ns <= least && most < self.window.until_ns && !self.except.as_ref().is_some_and(is_cut)
        };
        let all_inside = matches!(unit.known("ts_ns"), Some(Bounds::Numbers(least, most)) if inside(least, most));
        if !all_inside && !times_are_checked {
            conditions.push(Condition::Time);
        }
        let is_profile = |text: &String| *text == self.profile;
        if !matches!(unit.known("type"), Some(Bounds::Texts(least, most)) if is_profile(&least) && is_profile(&most)) {
            conditions.push(Condition::Type);
        }
        let all_counted = |least, most| self.values.holds(least, most);
        let is_known =
            || matches!(unit.known(PERIODS.name), Some(Bounds::Numbers(least, most)) if all_counted(least, most));
        if !self.values.is_all() && !is_known() {
            conditions.push(Condition::Value);
        }
        let ids = [
            (Condition::Series, "series_id", &self.scope.series),
            (Condition::Processes, "process_id", &self.scope.processes),
        ];
        for (condition, name, ids) in ids {
            let Some(ids) = ids else { continue };
            if !unit.only(name).is_some_and(|id| ids.contains(id)) {
                conditions.push(condition);
            }
        }
        conditions.extend((0..self.matchers.len()).map(Condition::Matcher));
        // The times of a roll-up are few.
        let of_unit = |column: Projection| match column {
            TIMES if unit.is_rollup() => codes(TIMES.name),
            column => column,
        };
        let mut columns: Vec<Projection> = wanted.iter().copied().map(of_unit).collect();
        for condition in &conditions {
            let column = of_unit(self.column(*condition));
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
        (conditions, columns)
    }

    fn column(&self, condition: Condition) -> Projection {
        match condition {
            Condition::Time => TIMES,
            Condition::Type => codes("type"),
            Condition::Value => PERIODS,
            Condition::Series => codes("series_id"),
            Condition::Processes => codes("process_id"),
            Condition::Matcher(index) => codes(self.matchers[index].label().column()),
        }
    }

    /// Reads the columns, and leaves the first `count` of them and the rows that satisfy all conditions.
    fn select(
        &self,
        fetched: &Fetched,
        (columns, count): (&[Projection], usize),
        conditions: &[Condition],
        unzip: &mut Unzip,
    ) -> Result<Rows, QueryError> {
        let mut read = fetched.read(columns, unzip).map_err(read_error)?;
        let mut counts = None;
        if fetched.unit.is_rollup()
            && let Some(Column::Codes(column)) = read.pop()
        {
            counts = Some(Counts::new(column));
        }
        if conditions.is_empty() {
            return Ok(Rows::new(read, counts));
        }
        let mut keep = vec![true; fetched.unit.rows()];
        let range = |window: Window| window.from_ns..window.until_ns;
        let (window, except) = (range(self.window), self.except.map_or(0..0, range));
        for condition in conditions {
            let name = self.column(*condition).name;
            let column = columns
                .iter()
                .position(|column| column.name == name)
                .map(|at| &read[at]);
            match column {
                Some(Column::Numbers(times)) => {
                    for (keep, ts_ns) in keep.iter_mut().zip(times) {
                        *keep &= window.contains(ts_ns) && !except.contains(ts_ns);
                    }
                }
                Some(Column::Codes(codes)) => {
                    let accepted: Vec<bool> = (0..codes.distinct())
                        .map(|code| self.accepts(*condition, codes, code))
                        .collect();
                    with_codes!(&codes.codes, codes => for (keep, code) in keep.iter_mut().zip(codes) {
                        *keep &= accepted[code.index()];
                    });
                }
                None => return Err(other_form(columns.len())),
            }
        }
        read.truncate(count);
        let rows = Rows::new(read, counts);
        Ok(if keep.iter().all(|keep| *keep) {
            rows
        } else {
            rows.only(&keep)
        })
    }

    fn accepts(&self, condition: Condition, codes: &CodedColumn, code: usize) -> bool {
        let among = |ids: &Option<_>| {
            let ids: Option<&Arc<crate::query::plan::scope::Ids>> = ids.as_ref();
            ids.is_none_or(|ids| codes.number(code).is_some_and(|id| ids.contains(id)))
        };
        match condition {
            Condition::Time => codes.number(code).is_some_and(|ts_ns| {
                let inside = |window: &Window| (window.from_ns..window.until_ns).contains(&ts_ns);
                inside(&self.window) && !self.except.as_ref().is_some_and(inside)
            }),
            Condition::Type => codes.text(code) == self.profile,
            Condition::Value => codes.number(code).is_some_and(|value| self.values.contains(value)),
            Condition::Series => among(&self.scope.series),
            Condition::Processes => among(&self.scope.processes),
            Condition::Matcher(index) => self.matchers[index].accepts(&codes.text(code)),
        }
    }
}
