//! What changed by itself in a window: versions of services that came, agents that began.
//!
//! In: an engine, a snapshot and a question. Out: moments with labels. Judges nothing, and keeps nothing.

pub(crate) mod newest;

use crate::hash::MixState;
use crate::label::Label;
use crate::query::ask::question::Question;
use crate::query::count::group_counts::{Group, GroupBy, GroupCounts};
use crate::query::limits::error::QueryError;
use crate::query::plan::days::Days;
use crate::query::plan::scope::scope;
use crate::query::plan::small_tables::collect_rows;
use crate::query::plan::steps::Steps;
use crate::query::views::by_label::values_by_id;
use crate::query::views::engine::Engine;
use crate::query::views::selected::count_selected;
use crate::store::Snapshot;
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Unix nanoseconds.
    pub at_ns: i64,
    /// What the page writes at the mark.
    pub title: String,
    /// Of the samples that changed, by the labels' names.
    pub labels: BTreeMap<String, String>,
}

/// Stands between the values of one group; no label's value has it.
const BETWEEN: char = '\u{1f}';

/// Where in the window a version of a service's program first has samples, to the step: of each service and process
/// the version that was there first is no change. In no order, at most as many as the engine tells groups apart.
pub async fn version_changes(
    engine: &Engine,
    snapshot: &Snapshot,
    question: &Question,
    steps: Steps,
) -> Result<Vec<Change>, QueryError> {
    let Some(version) = Label::parse("version") else {
        return Ok(Vec::new());
    };
    let days = Days::of(question.window);
    let (services, processes, versions) = tokio::try_join!(
        values_by_id(snapshot, &days, Label::Service),
        values_by_id(snapshot, &days, Label::Process),
        values_by_id(snapshot, &days, version),
    )?;
    let mut names: HashMap<i64, Arc<str>, MixState> = HashMap::default();
    for (id, version) in versions.iter().filter(|(_, version)| !version.is_empty()) {
        let of = |values: &HashMap<i64, Arc<str>, MixState>| values.get(id).cloned().unwrap_or_default();
        let name = format!("{}{BETWEEN}{}{BETWEEN}{version}", of(&services), of(&processes));
        names.insert(*id, name.into());
    }
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let (by, limit) = (GroupBy::Id(Arc::new(names)), engine.limits().cells);
    let selected = scope(snapshot, question).await?;
    let new = || GroupCounts::new("series_id", by.clone(), steps, limit);
    let (counts, _held) = count_selected(snapshot, question, &selected, new).await?;
    Ok(changes_of(&counts.grouped().groups, steps))
}

/// The first step of each version, but for the earliest of its program.
fn changes_of(groups: &[(Arc<str>, Group)], steps: Steps) -> Vec<Change> {
    let mut first: BTreeMap<(&str, &str), Vec<(usize, &str)>> = BTreeMap::new();
    for (name, group) in groups {
        let mut parts = name.split(BETWEEN);
        let parts = (parts.next(), parts.next(), parts.next());
        let step = group.steps_ns.iter().position(|ns| *ns != 0);
        if let ((Some(service), Some(process), Some(version)), Some(step)) = (parts, step) {
            first.entry((service, process)).or_default().push((step, version));
        }
    }
    let mut changes = Vec::new();
    for ((service, process), versions) in first {
        let begun = versions.iter().map(|(step, _)| *step).min();
        for (step, version) in versions.into_iter().filter(|(step, _)| Some(*step) > begun) {
            let labels = [("service", service), ("process", process), ("version", version)];
            let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
            changes.push(Change {
                at_ns: steps.bounds(step).0,
                title: format!("{service}: version {version}"),
                labels: labels.into(),
            });
        }
    }
    changes
}

/// Tells where in the window an agent began: with the first batch of an instance. In no order, and without keeping any:
/// a fleet may start at once.
pub async fn agent_starts(
    snapshot: &Snapshot,
    question: &Question,
    mut tell: impl FnMut(Change) + Send,
) -> Result<(), QueryError> {
    let window = question.window;
    let columns = ["node", "instance", "number", "from_ns", "agent_version"];
    collect_rows(snapshot, "batches", Days::of(window).filter(), &columns, |batch| {
        let text = |column: usize| batch.column(column).as_string::<i32>();
        let numbers = |column: usize| batch.column(column).as_primitive::<Int64Type>();
        let (nodes, instances, versions) = (text(0), text(1), text(4));
        let (numbers, froms) = (numbers(2), numbers(3));
        for row in 0..batch.num_rows() {
            let at_ns = froms.value(row);
            if numbers.value(row) != 1 || !(window.from_ns..window.until_ns).contains(&at_ns) {
                continue;
            }
            let labels = [("node", nodes.value(row)), ("instance", instances.value(row))];
            let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
            tell(Change {
                at_ns,
                title: format!("{}: agent {} started", nodes.value(row), versions.value(row)),
                labels: labels.into(),
            });
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::ask::time::Window;

    #[test]
    fn the_first_version_of_a_program_is_no_change() {
        let window = Window {
            from_ns: 0,
            until_ns: 400_000_000_000,
        };
        let steps = Steps::of(window, 100_000_000_000);
        let group = |name: [&str; 3], steps_ns: [i64; 4]| {
            let group = Group {
                steps_ns: steps_ns.to_vec(),
                ..Group::default()
            };
            (Arc::from(name.join("\u{1f}")), group)
        };
        let groups = [
            group(["shop", "web", "14"], [5, 5, 0, 0]),
            group(["shop", "web", "15"], [0, 0, 5, 5]),
            // Another program of the service, which has one version.
            group(["shop", "cron", "3"], [0, 5, 0, 0]),
            // Two at once from the start.
            group(["db", "db", "a"], [1, 1, 1, 1]),
            group(["db", "db", "b"], [1, 0, 0, 0]),
            // Without samples in a step.
            group(["db", "db", "c"], [0, 0, 0, 0]),
        ];
        let changes = changes_of(&groups, steps);
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert_eq!(changes[0].at_ns, 200_000_000_000);
        assert_eq!(changes[0].title, "shop: version 15");
        assert_eq!(changes[0].labels["process"], "web");
    }
}
