//! What can be asked for.

use super::engine::Engine;
use super::error::QueryError;
use super::group::{Extra, by_label};
use super::select::{Days, Question, collect_rows};
use super::selector::{Home, Label};
use super::steps::Steps;
use crate::store::Snapshot;
use arrow::array::AsArray;
use std::collections::BTreeSet;

/// Most values that are listed.
pub(super) const MAX_VALUES: usize = 10_000;

/// The values that a label has in the selected samples, sorted.
#[derive(Debug)]
pub struct Values {
    pub values: Vec<String>,
    /// No value was cut off.
    pub complete: bool,
}

/// Lists a label's values. Labels of series are answered from the series of the window's days, without reading samples.
pub async fn label_values(
    engine: &Engine,
    snapshot: &Snapshot,
    question: &Question,
    label: Label,
) -> Result<Values, QueryError> {
    let only_series = question
        .selector
        .matchers()
        .iter()
        .all(|m| m.label().home() == Home::Series);
    let mut values: Vec<String> = if label.home() == Home::Series && only_series {
        of_series(snapshot, question, label).await?.into_iter().collect()
    } else {
        let grouped = by_label(
            engine,
            snapshot,
            question,
            label,
            Steps::one(question.window),
            Extra::None,
        )
        .await?;
        let names = grouped.groups.into_iter().map(|(name, _)| name.to_string());
        names.collect()
    };
    values.retain(|value| !value.is_empty());
    // Numbers in the order of numbers, before all others.
    values.sort_by_cached_key(|value| (value.parse().unwrap_or(i64::MAX), value.clone()));
    let complete = values.len() <= MAX_VALUES;
    values.truncate(MAX_VALUES);
    Ok(Values { values, complete })
}

async fn of_series(snapshot: &Snapshot, question: &Question, label: Label) -> Result<BTreeSet<String>, QueryError> {
    let matchers = question.selector.matchers();
    let mut columns = vec![label.name()];
    columns.extend(matchers.iter().map(|matcher| matcher.label().name()));
    columns.sort_unstable();
    columns.dedup();
    let position = |label: Label| columns.iter().position(|column| *column == label.name()).unwrap_or(0);
    let mut values = BTreeSet::new();
    collect_rows(
        snapshot,
        "series",
        Days::of(question.window).filter(),
        &columns,
        |batch| {
            for row in 0..batch.num_rows() {
                let text = |label: Label| batch.column(position(label)).as_string::<i32>().value(row);
                if matchers.iter().all(|matcher| matcher.accepts(text(matcher.label())))
                    && !values.contains(text(label))
                {
                    values.insert(text(label).to_owned());
                }
            }
        },
    )
    .await?;
    Ok(values)
}
