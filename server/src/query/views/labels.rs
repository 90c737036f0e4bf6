//! What can be asked for.

use crate::label::{Label, LabelTable, attribute};
use crate::query::ask::question::Question;
use crate::query::limits::error::QueryError;
use crate::query::plan::days::Days;
use crate::query::plan::small_tables::collect_rows;
use crate::query::plan::steps::Steps;
use crate::query::views::by_label::{Extra, by_label};
use crate::query::views::engine::Engine;
use crate::query::views::words::rank::{Rank, Word};
use crate::store::Snapshot;
use arrow::array::AsArray;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

/// Most values that are listed.
pub const MAX_VALUES: usize = 10_000;

/// Most attributes whose names are listed.
const MAX_NAMES: usize = 300;

/// The values that a label has in the selected samples: sorted, or where a word was looked for the best first.
#[derive(Debug)]
pub struct Values {
    /// Numbers before all others.
    pub values: Vec<String>,
    /// How many there are.
    pub count: usize,
    /// No value was cut off.
    pub complete: bool,
}

/// Lists a label's values, with `word` those that have it, the best first, and of either the first `limit`. Labels of
/// series are answered from the series of the window's days, without reading samples.
pub async fn label_values(
    engine: &Engine,
    snapshot: &Snapshot,
    question: &Question,
    label: Label,
    (word, limit): (Option<&str>, usize),
) -> Result<Values, QueryError> {
    let only_series = question
        .selector
        .matchers()
        .iter()
        .all(|m| m.label().home() == LabelTable::Series);
    let mut values: Vec<String> = if label.home() == LabelTable::Series && only_series {
        of_series(snapshot, question, label).await?.into_iter().collect()
    } else {
        let grouped = by_label(
            engine,
            snapshot,
            question,
            label,
            Steps::one(question.window),
            Extra::default(),
        )
        .await?;
        let names = grouped.groups.into_iter().map(|(name, _)| name.to_string());
        names.collect()
    };
    values.retain(|value| !value.is_empty());
    // Numbers in the order of numbers, before all others.
    values.sort_by_cached_key(|value| (value.parse().unwrap_or(i64::MAX), value.clone()));
    if let Some(word) = word.and_then(Word::new) {
        let ranked = values.into_iter().filter_map(|value| Some((word.rank(&value)?, value)));
        let mut ranked: Vec<(Rank, String)> = ranked.collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        values = ranked.into_iter().map(|(_, value)| value).collect();
    }
    let count = values.len();
    values.truncate(limit);
    Ok(Values {
        complete: values.len() == count,
        values,
        count,
    })
}

/// The names of all labels: the fixed ones, and attributes that series of the window's days have, with their short
/// names.
pub async fn label_names(snapshot: &Snapshot, question: &Question) -> Result<Vec<String>, QueryError> {
    let (mut looked_at, mut attributes) = (HashSet::new(), BTreeSet::new());
    let days = Days::of(question.window).filter();
    collect_rows(snapshot, "series", days, &["labels"], |batch| {
        for labels in batch.column(0).as_string::<i32>().iter().flatten() {
            // Many series have the same, or nearly so.
            if attributes.len() < MAX_NAMES && looked_at.len() < MAX_VALUES && !looked_at.contains(labels) {
                looked_at.insert(labels.to_owned());
                attributes.extend(attribute::all_in(labels).into_keys().map(Cow::into_owned));
            }
        }
    })
    .await?;
    let fixed = Label::ALL.iter().map(|label| label.name().to_owned());
    let others = attributes
        .iter()
        .take(MAX_NAMES)
        .flat_map(|name| attribute::label_names(name));
    let mut named = HashSet::new();
    let mut names: Vec<String> = fixed.chain(others).collect();
    // Several attributes may have one short name.
    names.retain(|name| named.insert(name.clone()));
    Ok(names)
}

async fn of_series(snapshot: &Snapshot, question: &Question, label: Label) -> Result<BTreeSet<String>, QueryError> {
    let matchers = question.selector.matchers();
    let mut columns = vec![label.column()];
    columns.extend(matchers.iter().map(|matcher| matcher.label().column()));
    columns.sort_unstable();
    columns.dedup();
    let position = |label: Label| columns.iter().position(|column| *column == label.column()).unwrap_or(0);
    let mut values = BTreeSet::new();
    collect_rows(
        snapshot,
        "series",
        Days::of(question.window).filter(),
        &columns,
        |batch| {
            for row in 0..batch.num_rows() {
                let text = |label: Label| label.value_in(batch.column(position(label)).as_string::<i32>().value(row));
                if matchers.iter().all(|matcher| matcher.accepts(&text(matcher.label())))
                    && !values.contains(&*text(label))
                {
                    values.insert(text(label).into_owned());
                }
            }
        },
    )
    .await?;
    Ok(values)
}
