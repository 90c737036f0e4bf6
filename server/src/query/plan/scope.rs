//! A selector and a window to sets of ids: conditions on labels of `series` and `processes` are answered in these
//! tables first.

use crate::hash::MixState;
use crate::label::{Label, LabelTable};
use crate::query::ask::question::Question;
use crate::query::ask::selector::Matcher;
use crate::query::limits::error::QueryError;
use crate::query::plan::days::Days;
use crate::query::plan::small_tables::collect_rows;
use crate::store::Snapshot;
use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// A set of ids.
#[derive(Debug)]
pub(crate) struct Ids {
    set: HashSet<i64, MixState>,
    sorted: Vec<i64>,
}

impl Ids {
    fn new(set: HashSet<i64, MixState>) -> Arc<Ids> {
        let mut sorted: Vec<i64> = set.iter().copied().collect();
        sorted.sort_unstable();
        Arc::new(Ids { set, sorted })
    }

    pub(crate) fn contains(&self, id: i64) -> bool {
        self.set.contains(&id)
    }

    /// Whether any of them lies between two, inclusive.
    pub(crate) fn any_within(&self, least: i64, most: i64) -> bool {
        let at = self.sorted.partition_point(|id| *id < least);
        self.sorted.get(at).is_some_and(|id| *id <= most)
    }
}

/// The selected series and processes; `None` stands for all.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedSelector {
    pub(crate) series: Option<Arc<Ids>>,
    pub(crate) processes: Option<Arc<Ids>>,
    /// Of the selected series.
    pub(crate) services: Option<BTreeSet<String>>,
}

impl ResolvedSelector {
    /// Nothing can be selected.
    pub(crate) fn is_empty(&self) -> bool {
        [&self.series, &self.processes]
            .into_iter()
            .flatten()
            .any(|ids| ids.sorted.is_empty())
    }
}

/// Answers the conditions on series and processes.
pub(crate) async fn scope(snapshot: &Snapshot, question: &Question) -> Result<ResolvedSelector, QueryError> {
    let days = Days::of(question.window);
    let mut scope = ResolvedSelector {
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
    if question.selector.has(LabelTable::Processes) {
        let matchers: Vec<&Matcher> = question.selector.of(LabelTable::Processes).collect();
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
