//! A selector and a window to the samples that they select.
//!
//! Conditions on labels of `series` and `processes` are answered there first and become sets of ids; the scan of `samples`
//! is then pruned by hour, time, type, service and series, and what is left of the conditions is applied to its rows.

use super::error::QueryError;
use super::selector::{Home, Label, Matcher, Selector};
use super::time::Window;
use super::tree::MixState;
use crate::store::Snapshot;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, RecordBatch};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlanProperties;
use datafusion::prelude::{DataFrame, Expr, SessionConfig, SessionContext, col, lit};
use futures::StreamExt;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use tokio::task::JoinSet;

/// Up to so many ids or names are pushed down into the scan, which can then leave out files and pages.
const MAX_LISTED: usize = 64;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Question {
    /// Type of profile, such as `cpu`.
    pub profile: String,
    pub selector: Selector,
    pub window: Window,
}

/// The days and hours that a window touches, as the partitions are named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Days {
    first_ns: i64,
    last_ns: i64,
}

impl Days {
    /// Of one window.
    pub(super) fn of(window: Window) -> Days {
        Days {
            first_ns: window.from_ns,
            last_ns: window.until_ns - 1,
        }
    }

    /// From the earlier to the later of two.
    #[must_use]
    pub(super) fn union(&self, other: &Days) -> Days {
        Days {
            first_ns: self.first_ns.min(other.first_ns),
            last_ns: self.last_ns.max(other.last_ns),
        }
    }

    /// With so much time before and after.
    #[must_use]
    pub(super) fn widened(&self, ns: i64) -> Days {
        Days {
            first_ns: self.first_ns.saturating_sub(ns).max(0),
            last_ns: self.last_ns.saturating_add(ns),
        }
    }

    /// The condition on the partition column of every table but `samples`.
    pub(super) fn filter(&self) -> Expr {
        between(
            "day",
            &partition(self.first_ns, "%Y-%m-%d"),
            &partition(self.last_ns, "%Y-%m-%d"),
        )
    }

    fn hours(&self) -> Expr {
        between(
            "hour",
            &partition(self.first_ns, "%Y-%m-%dT%H"),
            &partition(self.last_ns, "%Y-%m-%dT%H"),
        )
    }
}

fn partition(ns: i64, format: &str) -> String {
    chrono::DateTime::from_timestamp_nanos(ns).format(format).to_string()
}

fn between(column: &str, first: &str, last: &str) -> Expr {
    if first == last {
        return col(column).eq(lit(first));
    }
    col(column).gt_eq(lit(first)).and(col(column).lt_eq(lit(last)))
}

/// Errors of the engine, as the user is told them.
pub(super) fn engine_error(what: &'static str) -> impl Fn(DataFusionError) -> QueryError {
    move |error| match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => QueryError::too_large(
            "the query needs more memory than queries may have",
            "ask for a shorter window, a narrower selector, or fewer groups",
        ),
        _ => QueryError::internal(what, error),
    }
}

/// A session for our own plans: batches of a size that keeps a column in the CPU's cache.
pub(super) fn session(snapshot: &Snapshot) -> SessionContext {
    snapshot.session_with(SessionConfig::new().with_batch_size(16 * 1024))
}

/// Reads columns of a small table, batch by batch.
pub(super) async fn collect_rows(
    snapshot: &Snapshot,
    table: &'static str,
    filter: Expr,
    columns: &[&str],
    mut each: impl FnMut(&RecordBatch),
) -> Result<(), QueryError> {
    let read = async {
        let frame = session(snapshot).table(table).await?.filter(filter)?;
        frame.select_columns(columns)?.execute_stream().await
    };
    let mut stream: SendableRecordBatchStream = read.await.map_err(engine_error(table))?;
    while let Some(batch) = stream.next().await {
        each(&batch.map_err(engine_error(table))?);
    }
    Ok(())
}

/// A set of ids, or everything.
type Ids = Option<Arc<HashSet<i64, MixState>>>;

/// The selected series and processes.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    series: Ids,
    processes: Ids,
    services: Option<BTreeSet<String>>,
}

impl Scope {
    /// Nothing can be selected.
    pub(super) fn is_empty(&self) -> bool {
        [&self.series, &self.processes]
            .into_iter()
            .flatten()
            .any(|ids| ids.is_empty())
    }
}

/// Answers the conditions on series and processes.
pub(super) async fn scope(snapshot: &Snapshot, question: &Question) -> Result<Scope, QueryError> {
    let days = Days::of(question.window);
    let mut scope = Scope {
        series: None,
        processes: None,
        services: None,
    };
    if question.selector.has(Home::Series) {
        let labels: Vec<Label> = question.selector.of(Home::Series).map(Matcher::label).collect();
        let mut columns = vec!["series_id", "service"];
        columns.extend(
            labels
                .iter()
                .map(|label| label.name())
                .filter(|name| *name != "service"),
        );
        columns = dedup(columns);
        let matchers: Vec<(usize, &Matcher)> = question
            .selector
            .of(Home::Series)
            .map(|m| (position(&columns, m.label().name()), m))
            .collect();
        let mut ids: HashSet<i64, MixState> = HashSet::default();
        let mut services = BTreeSet::new();
        collect_rows(snapshot, "series", days.filter(), &columns, |batch| {
            let series = batch.column(0).as_primitive::<Int64Type>();
            for row in 0..batch.num_rows() {
                let text = |column: usize| batch.column(column).as_string::<i32>().value(row);
                if matchers.iter().all(|(column, matcher)| matcher.accepts(text(*column))) {
                    ids.insert(series.value(row));
                    if !services.contains(text(1)) {
                        services.insert(text(1).to_owned());
                    }
                }
            }
        })
        .await?;
        scope.series = Some(Arc::new(ids));
        scope.services = Some(services);
    }
    if question.selector.has(Home::Processes) {
        let matchers: Vec<&Matcher> = question.selector.of(Home::Processes).collect();
        let mut ids: HashSet<i64, MixState> = HashSet::default();
        collect_rows(snapshot, "processes", days.filter(), &["process_id", "tgid"], |batch| {
            let tgids = batch.column(1).as_primitive::<Int64Type>();
            for (row, id) in batch.column(0).as_primitive::<Int64Type>().values().iter().enumerate() {
                let tgid = if tgids.is_null(row) {
                    String::new()
                } else {
                    tgids.value(row).to_string()
                };
                if matchers.iter().all(|matcher| matcher.accepts(&tgid)) {
                    ids.insert(*id);
                }
            }
        })
        .await?;
        scope.processes = Some(Arc::new(ids));
    }
    Ok(scope)
}

fn dedup(mut columns: Vec<&'static str>) -> Vec<&'static str> {
    let mut seen = HashSet::new();
    columns.retain(|column| seen.insert(*column));
    columns
}

fn position(columns: &[&str], name: &str) -> usize {
    columns.iter().position(|column| *column == name).unwrap_or(0)
}

/// Takes selected samples in, in any order and in several threads, each with its own collector.
pub(super) trait Collector: Send + 'static {
    /// Columns of `samples` that it reads, in the order in which `add` gets them.
    const COLUMNS: &'static [&'static str];

    /// Takes selected rows.
    fn add(&mut self, rows: &RecordBatch) -> Result<(), QueryError>;

    /// Takes what another thread has collected.
    fn merge(&mut self, other: Self) -> Result<(), QueryError>;
}

/// Hands every selected sample to a collector.
pub(super) async fn scan<C: Collector>(
    snapshot: &Snapshot,
    question: &Question,
    scope: &Scope,
    new: impl Fn() -> C,
) -> Result<C, QueryError> {
    let mut whole = new();
    if scope.is_empty() {
        return Ok(whole);
    }
    let rest = Arc::new(RowTest::new(question, scope, C::COLUMNS));
    let context = session(snapshot);
    let plan = async {
        let samples: DataFrame = context.table("samples").await?;
        samples
            .filter(pushed_down(question, scope))?
            .select_columns(&rest.columns)?
            .create_physical_plan()
            .await
    };
    let plan = plan.await.map_err(engine_error("plan a scan of samples"))?;
    let mut tasks = JoinSet::new();
    for partition in 0..plan.output_partitioning().partition_count() {
        let stream = plan
            .execute(partition, context.task_ctx())
            .map_err(engine_error("scan samples"))?;
        tasks.spawn(collect(stream, new(), rest.clone()));
    }
    while let Some(part) = tasks.join_next().await {
        whole.merge(part.map_err(|error| QueryError::internal("scan samples", error))??)?;
    }
    Ok(whole)
}

async fn collect<C: Collector>(
    mut stream: SendableRecordBatchStream,
    mut collector: C,
    rest: Arc<RowTest>,
) -> Result<C, QueryError> {
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(engine_error("scan samples"))?;
        collector.add(&rest.select(batch)?)?;
        // A long scan of what is in memory already must not keep others from the thread.
        tokio::task::consume_budget().await;
    }
    Ok(collector)
}

fn pushed_down(question: &Question, scope: &Scope) -> Expr {
    let Window { from_ns, until_ns } = question.window;
    let mut filter = Days::of(question.window)
        .hours()
        .and(col("ts_ns").gt_eq(lit(from_ns)))
        .and(col("ts_ns").lt(lit(until_ns)))
        .and(col("type").eq(lit(question.profile.as_str())));
    if let Some(services) = scope.services.as_ref().filter(|services| services.len() <= MAX_LISTED) {
        filter = filter.and(col("service").in_list(services.iter().map(|s| lit(s.as_str())).collect(), false));
    }
    if let Some(series) = listable(&scope.series) {
        filter = filter.and(col("series_id").in_list(series, false));
    }
    if let Some(processes) = listable(&scope.processes) {
        filter = filter.and(col("process_id").in_list(processes, false));
    }
    filter
}

/// The ids as literals, where they are few.
fn listable(ids: &Ids) -> Option<Vec<Expr>> {
    let ids = ids.as_ref().filter(|ids| ids.len() <= MAX_LISTED)?;
    let mut sorted: Vec<i64> = ids.iter().copied().collect();
    sorted.sort_unstable();
    Some(sorted.into_iter().map(lit).collect())
}

/// The conditions that are left to the rows themselves.
#[derive(Debug)]
struct RowTest {
    /// Columns that are read, each once.
    columns: Vec<&'static str>,
    /// Where the collector's columns stand among them.
    wanted: Vec<usize>,
    /// Where each set of ids applies.
    ids: Vec<(usize, Arc<HashSet<i64, MixState>>)>,
    matchers: Vec<(usize, Matcher)>,
}

impl RowTest {
    fn new(question: &Question, scope: &Scope, wanted: &[&'static str]) -> RowTest {
        let mut columns: Vec<&'static str> = Vec::new();
        let mut place = |name: &'static str| {
            columns.iter().position(|column| *column == name).unwrap_or_else(|| {
                columns.push(name);
                columns.len() - 1
            })
        };
        let wanted = wanted.iter().map(|name| place(name)).collect();
        let mut ids = Vec::new();
        for (name, set) in [("series_id", &scope.series), ("process_id", &scope.processes)] {
            if let Some(set) = set.as_ref().filter(|set| set.len() > MAX_LISTED) {
                ids.push((place(name), set.clone()));
            }
        }
        let matchers = question
            .selector
            .of(Home::Samples)
            .map(|m| (place(m.label().name()), m.clone()))
            .collect();
        RowTest {
            columns,
            wanted,
            ids,
            matchers,
        }
    }

    /// The rows that pass, with the collector's columns only.
    fn select(&self, batch: RecordBatch) -> Result<RecordBatch, QueryError> {
        let mut mask: Option<BooleanArray> = None;
        let mut also = |next: BooleanArray| -> Result<(), QueryError> {
            mask = Some(match mask.take() {
                Some(before) => arrow::compute::and(&before, &next).map_err(arrow_error)?,
                None => next,
            });
            Ok(())
        };
        for (column, ids) in &self.ids {
            let values = batch.column(*column).as_primitive::<Int64Type>();
            also(values.values().iter().map(|id| Some(ids.contains(id))).collect())?;
        }
        for (column, matcher) in &self.matchers {
            also(matching(batch.column(*column), matcher)?)?;
        }
        let rows = batch.project(&self.wanted).map_err(arrow_error)?;
        match mask {
            Some(mask) => arrow::compute::filter_record_batch(&rows, &mask).map_err(arrow_error),
            None => Ok(rows),
        }
    }
}

pub(super) fn arrow_error(error: arrow::error::ArrowError) -> QueryError {
    QueryError::internal("read rows", error)
}

fn matching(column: &ArrayRef, matcher: &Matcher) -> Result<BooleanArray, QueryError> {
    let (codes, texts) = coded(column)?;
    let accepted: Vec<bool> = texts.iter().map(|text| matcher.accepts(text)).collect();
    Ok(codes.into_iter().map(|code| Some(accepted[code as usize])).collect())
}

/// A label's column as a code a row, and the text of each code; an absent value is the empty text.
pub(super) fn coded(column: &ArrayRef) -> Result<(Vec<u32>, Vec<String>), QueryError> {
    if let Some(numbers) = column.as_primitive_opt::<Int64Type>() {
        return Ok(coded_numbers(numbers.iter()));
    }
    if let Some(numbers) = column.as_primitive_opt::<Int32Type>() {
        return Ok(coded_numbers(numbers.iter().map(|n| n.map(i64::from))));
    }
    let texts = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let column = arrow::compute::cast(column, &texts).map_err(arrow_error)?;
    let dictionary: &DictionaryArray<Int32Type> = column.as_dictionary();
    let values = dictionary.values().as_string::<i32>();
    let mut names: Vec<String> = values
        .iter()
        .map(|value| value.unwrap_or_default().to_owned())
        .collect();
    names.push(String::new());
    let absent = names.len() as u32 - 1;
    let codes = dictionary
        .keys()
        .iter()
        .map(|key| key.map_or(absent, |key| key as u32))
        .collect();
    Ok((codes, names))
}

fn coded_numbers(numbers: impl Iterator<Item = Option<i64>>) -> (Vec<u32>, Vec<String>) {
    let mut index: HashMap<Option<i64>, u32> = HashMap::new();
    let mut names = Vec::new();
    let codes = numbers
        .map(|number| {
            *index.entry(number).or_insert_with(|| {
                names.push(number.map(|n| n.to_string()).unwrap_or_default());
                names.len() as u32 - 1
            })
        })
        .collect();
    (codes, names)
}
