//! Selected samples by the values of any label.

use crate::hash::MixState;
use crate::label::{Label, LabelTable};
use crate::query::ask::question::Question;
use crate::query::count::group_counts::{GroupBy, GroupCounts, GroupStacks, Grouped, Quality, StackTimes};
use crate::query::count::scan::scan;
use crate::query::limits::error::QueryError;
use crate::query::plan::days::Days;
use crate::query::plan::scope::scope;
use crate::query::plan::small_tables::collect_rows;
use crate::query::plan::steps::Steps;
use crate::query::tree::stack_cache::NO_TREE;
use crate::query::views::engine::Engine;
use crate::query::views::matching::{OnlyStacks, StackIds};
use crate::store::Snapshot;
use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What is wanted beside the counts of all samples.
pub(crate) enum Extra {
    None,
    /// How whole each group's stacks are.
    Quality,
    /// Samples of these stacks alone.
    Only(Arc<StackIds>),
    /// The same, and how whole those stacks are.
    OnlyQuality(Arc<StackIds>),
}

/// Counts samples by the values of a label. Samples without a value are in the group with the empty name.
pub(crate) async fn by_label(
    engine: &Engine,
    snapshot: &Snapshot,
    question: &Question,
    label: Label,
    steps: Steps,
    extra: Extra,
) -> Result<Grouped, QueryError> {
    let ids = async || {
        Ok::<_, QueryError>(Arc::new(
            values_by_id(snapshot, &Days::of(question.window), label).await?,
        ))
    };
    let (column, by) = match label.home() {
        LabelTable::Samples => (label.column(), GroupBy::Text),
        LabelTable::Processes => ("process_id", GroupBy::Id(ids().await?)),
        LabelTable::Series => ("series_id", GroupBy::Id(ids().await?)),
    };
    let ask = Ask {
        engine,
        snapshot,
        question,
        steps,
        extra,
    };
    ask.counted(column, by).await
}

struct Ask<'a> {
    engine: &'a Engine,
    snapshot: &'a Snapshot,
    question: &'a Question,
    steps: Steps,
    extra: Extra,
}

impl Ask<'_> {
    async fn counted(&self, column: &'static str, by: GroupBy) -> Result<Grouped, QueryError> {
        let (snapshot, question) = (self.snapshot, self.question);
        let selected = scope(snapshot, question).await?;
        let limits = self.engine.limits();
        let new = || GroupCounts::new(column, by.clone(), self.steps, limits.cells).without(question.except);
        match &self.extra {
            Extra::None => return Ok(scan(snapshot, question, &selected, new).await?.0.grouped()),
            Extra::Only(stacks) => {
                let only = || OnlyStacks {
                    counts: new(),
                    stacks: stacks.clone(),
                };
                return Ok(scan(snapshot, question, &selected, only).await?.0.counts.grouped());
            }
            Extra::Quality | Extra::OnlyQuality(_) => {}
        }
        let new = || GroupStacks::new(new().with_modes(), limits.stacks);
        let (counts, _held) = match &self.extra {
            Extra::OnlyQuality(stacks) => {
                let only = || OnlyStacks {
                    counts: new(),
                    stacks: stacks.clone(),
                };
                let (only, held) = scan(snapshot, question, &selected, only).await?;
                (only.counts, held)
            }
            _ => scan(snapshot, question, &selected, new).await?,
        };
        let (mut grouped, stacks) = counts.grouped();
        if let Some(stacks) = stacks {
            self.judge(&mut grouped, &stacks).await?;
        }
        Ok(grouped)
    }

    /// Looks at each stack once, however many samples have it.
    async fn judge(&self, grouped: &mut Grouped, stacks: &StackTimes) -> Result<(), QueryError> {
        let mut index: HashMap<i64, usize, MixState> = HashMap::default();
        let mut ids = Vec::new();
        for (_, id) in stacks.keys() {
            index.entry(*id).or_insert_with(|| {
                ids.push(*id);
                ids.len() - 1
            });
        }
        let days = Days::of(self.question.window);
        let dictionary = &self.engine.dictionary;
        let found = dictionary.leaves(self.snapshot, &days, &ids, NO_TREE).await?;
        for (_, group) in &mut grouped.groups {
            group.quality = Some(Quality::default());
        }
        for ((group, id), ns) in stacks {
            let Some(quality) = &mut grouped.groups[*group as usize].1.quality else {
                continue;
            };
            let missing = found.leaves[index[id]].missing;
            let add = |so: bool, sum: &mut i64| *sum = sum.saturating_add(if so { *ns } else { 0 });
            add(missing.nothing(), &mut quality.complete_ns);
            add(missing.root, &mut quality.cut_ns);
            add(missing.name, &mut quality.unnamed_ns);
        }
        Ok(())
    }
}

/// A label's value of each series, or of each process.
pub(crate) async fn values_by_id(
    snapshot: &Snapshot,
    days: &Days,
    label: Label,
) -> Result<HashMap<i64, Arc<str>, MixState>, QueryError> {
    let (table, id) = match label.home() {
        LabelTable::Processes => ("processes", "process_id"),
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
    collect_rows(snapshot, table, days.filter(), &[id, label.column()], |batch| {
        let column = batch.column(1);
        for (row, id) in batch.column(0).as_primitive::<Int64Type>().values().iter().enumerate() {
            let value = match column.as_primitive_opt::<Int64Type>() {
                Some(numbers) if numbers.is_null(row) => shared(""),
                Some(numbers) => shared(&numbers.value(row).to_string()),
                None => shared(&label.value_in(column.as_string::<i32>().value(row))),
            };
            values.insert(*id, value);
        }
    })
    .await?;
    Ok(values)
}
