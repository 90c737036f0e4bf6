//! Selected samples by the values of any label.

use super::counts::{
    ByCpu, ByMode, ByProcess, BySeries, ByThread, ByTid, Group, GroupBy, GroupColumn, GroupCounts, Steps,
};
use super::engine::Engine;
use super::error::QueryError;
use super::select::{Days, Question, Scope, collect_rows, scan, scope};
use super::selector::{Home, Label};
use super::tree::MixState;
use crate::store::Snapshot;
use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Counts samples by the values of a label. Samples without a value are in the group with the empty name.
pub(super) async fn by_label(
    engine: &Engine,
    snapshot: &Snapshot,
    question: &Question,
    label: Label,
    steps: Steps,
) -> Result<Vec<(Arc<str>, Group)>, QueryError> {
    let selected = scope(snapshot, question).await?;
    let limit = engine.limits.cells;
    let by = match label.home() {
        Home::Samples => GroupBy::Text,
        _ => GroupBy::Id(Arc::new(
            values_by_id(snapshot, &Days::of(question.window), label).await?,
        )),
    };
    match label {
        Label::Tgid => counted::<ByProcess>(snapshot, question, &selected, by, steps, limit).await,
        Label::Thread => counted::<ByThread>(snapshot, question, &selected, by, steps, limit).await,
        Label::Tid => counted::<ByTid>(snapshot, question, &selected, by, steps, limit).await,
        Label::Cpu => counted::<ByCpu>(snapshot, question, &selected, by, steps, limit).await,
        Label::Mode => counted::<ByMode>(snapshot, question, &selected, by, steps, limit).await,
        _ => counted::<BySeries>(snapshot, question, &selected, by, steps, limit).await,
    }
}

async fn counted<C: GroupColumn>(
    snapshot: &Snapshot,
    question: &Question,
    selected: &Scope,
    by: GroupBy,
    steps: Steps,
    limit: usize,
) -> Result<Vec<(Arc<str>, Group)>, QueryError> {
    let counts = scan(snapshot, question, selected, || {
        GroupCounts::<C>::new(by.clone(), steps, limit)
    })
    .await?;
    Ok(counts.named().collect())
}

/// A label's value of each series, or of each process.
async fn values_by_id(
    snapshot: &Snapshot,
    days: &Days,
    label: Label,
) -> Result<HashMap<i64, Arc<str>, MixState>, QueryError> {
    let (table, id) = match label.home() {
        Home::Processes => ("processes", "process_id"),
        _ => ("series", "series_id"),
    };
    let mut texts: HashSet<Arc<str>> = HashSet::new();
    let mut shared = move |text: &str| {
        if let Some(known) = texts.get(text) {
            return known.clone();
        }
        let new: Arc<str> = text.into();
        texts.insert(new.clone());
        new
    };
    let mut values = HashMap::default();
    collect_rows(snapshot, table, days.filter(), &[id, label.name()], |batch| {
        let column = batch.column(1);
        for (row, id) in batch.column(0).as_primitive::<Int64Type>().values().iter().enumerate() {
            let value = match column.as_primitive_opt::<Int64Type>() {
                Some(numbers) if numbers.is_null(row) => shared(""),
                Some(numbers) => shared(&numbers.value(row).to_string()),
                None => shared(column.as_string::<i32>().value(row)),
            };
            values.insert(*id, value);
        }
    })
    .await?;
    Ok(values)
}
