//! A selector and a window to sets of ids: conditions on labels of `series` and `processes` are answered in these tables first.

use super::error::QueryError;
use super::selector::{Home, Label, Matcher, Selector};
use super::time::Window;
use super::tree::MixState;
use super::types::Unit;
use crate::store::Snapshot;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::prelude::{Expr, SessionConfig, SessionContext, col, lit};
use futures::StreamExt;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Question {
    /// Type of profile, such as `cpu`.
    pub profile: String,
    pub selector: Selector,
    pub window: Window,
    /// A time of the window whose samples do not count: the window is then the rest around it.
    pub except: Option<Window>,
    /// Of a type with values in several units the one that is asked for.
    pub unit: Option<Unit>,
}

impl Question {
    /// What is asked of a series: conditions on its labels, and the unit of its values.
    fn of_series(&self) -> Vec<Cow<'_, Matcher>> {
        let of_unit = self.unit.as_ref().and_then(Unit::matcher);
        let of_labels = self.selector.of(Home::Series).map(Cow::Borrowed);
        of_labels.chain(of_unit.map(Cow::Owned)).collect()
    }
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

    /// Whether a partition by day is one of them.
    pub(super) fn has(&self, day: &str) -> bool {
        let name = |ns| partition(ns, "%Y-%m-%d");
        (name(self.first_ns).as_str()..=name(self.last_ns).as_str()).contains(&day)
    }

    /// The first and the last hour, as the partitions of `samples` are named.
    pub(super) fn hours(&self) -> (String, String) {
        let name = |ns| partition(ns, "%Y-%m-%dT%H");
        (name(self.first_ns), name(self.last_ns))
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

/// A set of ids.
#[derive(Debug)]
pub(super) struct Ids {
    set: HashSet<i64, MixState>,
    sorted: Vec<i64>,
}

impl Ids {
    fn new(set: HashSet<i64, MixState>) -> Arc<Ids> {
        let mut sorted: Vec<i64> = set.iter().copied().collect();
        sorted.sort_unstable();
        Arc::new(Ids { set, sorted })
    }

    pub(super) fn contains(&self, id: i64) -> bool {
        self.set.contains(&id)
    }

    /// Whether any of them lies between two, inclusive.
    pub(super) fn any_within(&self, least: i64, most: i64) -> bool {
        let at = self.sorted.partition_point(|id| *id < least);
        self.sorted.get(at).is_some_and(|id| *id <= most)
    }
}

/// The selected series and processes; `None` stands for all.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    pub(super) series: Option<Arc<Ids>>,
    pub(super) processes: Option<Arc<Ids>>,
    /// Of the selected series.
    pub(super) services: Option<BTreeSet<String>>,
}

impl Scope {
    /// Nothing can be selected.
    pub(super) fn is_empty(&self) -> bool {
        [&self.series, &self.processes]
            .into_iter()
            .flatten()
            .any(|ids| ids.sorted.is_empty())
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
    let of_series = question.of_series();
    if !of_series.is_empty() {
        let labels: Vec<Label> = of_series.iter().map(|matcher| matcher.label()).collect();
        let mut columns = vec!["series_id", "service"];
        columns.extend(
            labels
                .iter()
                .map(|label| label.column())
                .filter(|name| *name != "service"),
        );
        columns = dedup(columns);
        let of_columns = of_series.iter().map(|m| (position(&columns, m.label().column()), &**m));
        let matchers: Vec<(usize, &Matcher)> = of_columns.collect();
        let mut ids: HashSet<i64, MixState> = HashSet::default();
        let mut services = BTreeSet::new();
        collect_rows(snapshot, "series", days.filter(), &columns, |batch| {
            let series = batch.column(0).as_primitive::<Int64Type>();
            for row in 0..batch.num_rows() {
                let text = |column: usize| batch.column(column).as_string::<i32>().value(row);
                let accepts = |matcher: &Matcher, text| matcher.accepts(&matcher.label().value_in(text));
                if matchers.iter().all(|(column, matcher)| accepts(matcher, text(*column))) {
                    ids.insert(series.value(row));
                    if !services.contains(text(1)) {
                        services.insert(text(1).to_owned());
                    }
                }
            }
        })
        .await?;
        scope.series = Some(Ids::new(ids));
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
        scope.processes = Some(Ids::new(ids));
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

pub(super) fn arrow_error(error: arrow::error::ArrowError) -> QueryError {
    QueryError::internal("read rows", error)
}
