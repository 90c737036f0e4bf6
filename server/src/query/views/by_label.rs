//! Selected samples by the values of any label.

use crate::hash::MixState;
use crate::label::{Label, LabelTable};
use crate::profile_type::WAITS;
use crate::query::ask::question::Question;
use crate::query::count::group_counts::{Group, GroupBy, GroupCounts, GroupStacks, Grouped, Quality, StackTimes};
use crate::query::count::scan::Accumulator;
use crate::query::limits::error::QueryError;
use crate::query::limits::reservation::Reservation;
use crate::query::plan::days::Days;
use crate::query::plan::scope::{ResolvedSelector, scope};
use crate::query::plan::shares::counting::{Counting, GroupsOf, label_name};
use crate::query::plan::small_tables::collect_rows;
use crate::query::plan::steps::Steps;
use crate::query::tree::stack_cache::{NO_TREE, StackCache};
use crate::query::views::engine::Engine;
use crate::query::views::facets::each_of::EachOf;
use crate::query::views::matching::{OnlyStacks, StackIds};
use crate::query::views::selected::count_selected;
use crate::query::views::selected::spread::count_spread;
use crate::store::Snapshot;
use arrow::array::{Array, AsArray};
use arrow::datatypes::Int64Type;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Which samples are counted, and what is wanted beside their counts.
#[derive(Clone, Default)]
pub(crate) struct Extra {
    /// Only samples of these stacks.
    pub(crate) only: Option<Arc<StackIds>>,
    /// How whole each group's stacks are.
    pub(crate) quality: bool,
}

/// The values of a label that are groups of their own.
pub(crate) type ToldApart = Arc<HashSet<Arc<str>>>;

/// What a chart of a label's busiest values, and a table of all, are made of.
pub(crate) struct Charted {
    /// Every value, in steps where those are not apart.
    pub(crate) whole: Grouped,
    /// The busiest values in steps, and how many others there are, where all of them in steps are more than fit.
    pub(crate) busiest: Option<(Grouped, usize)>,
}

/// Counts samples by the values of labels in steps, of which a chart shows the `limit` busiest. Where all values in
/// steps are more than fit, it reads the samples twice more: to find the busiest, then to tell those apart alone.
pub(crate) async fn charted(
    engine: &Engine,
    snapshot: &Snapshot,
    question: &Question,
    labels: &[Label],
    (steps, limit): (Steps, usize),
    extra: Extra,
) -> Result<Vec<Charted>, QueryError> {
    match by_labels(engine, snapshot, question, labels, steps, extra.clone()).await {
        Err(QueryError::TooManyGroups { .. }) if steps.count > 1 => {}
        counted => {
            let alone = |whole| Charted { whole, busiest: None };
            return Ok(counted?.into_iter().map(alone).collect());
        }
    }
    let once = Steps::one(question.window);
    let wholes = by_labels(engine, snapshot, question, labels, once, extra.clone()).await?;
    let told_apart: Vec<ToldApart> = wholes.iter().map(|whole| Arc::new(busiest(whole, limit))).collect();
    let extra = Extra {
        quality: false,
        ..extra
    };
    let apart = counted(engine, snapshot, question, labels, steps, extra, Some(&told_apart)).await?;
    let others = |whole: &Grouped| whole.groups.len().saturating_sub(limit);
    let of_label = |(whole, apart): (Grouped, Grouped)| Charted {
        busiest: Some((apart, others(&whole))),
        whole,
    };
    Ok(wholes.into_iter().zip(apart).map(of_label).collect())
}

/// The values with the most time.
fn busiest(whole: &Grouped, limit: usize) -> HashSet<Arc<str>> {
    let mut groups: Vec<&(Arc<str>, Group)> = whole.groups.iter().collect();
    groups.sort_by(|a, b| busier(a, b));
    groups.into_iter().take(limit).map(|(name, _)| name.clone()).collect()
}

/// The order of lines: by time, by samples, by name.
pub(crate) fn busier((a_name, a): &(Arc<str>, Group), (b_name, b): &(Arc<str>, Group)) -> Ordering {
    (b.value_ns, b.samples, a_name).cmp(&(a.value_ns, a.samples, b_name))
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
    let mut all = by_labels(engine, snapshot, question, &[label], steps, extra).await?;
    Ok(all.swap_remove(0))
}

/// The same by several labels, of rows that are read once: in the order of the labels.
pub(crate) async fn by_labels(
    engine: &Engine,
    snapshot: &Snapshot,
    question: &Question,
    labels: &[Label],
    steps: Steps,
    extra: Extra,
) -> Result<Vec<Grouped>, QueryError> {
    counted(engine, snapshot, question, labels, steps, extra, None).await
}

/// The same, with the values of each label that are groups of their own.
async fn counted(
    engine: &Engine,
    snapshot: &Snapshot,
    question: &Question,
    labels: &[Label],
    steps: Steps,
    extra: Extra,
    told_apart: Option<&[ToldApart]>,
) -> Result<Vec<Grouped>, QueryError> {
    let limits = engine.limits();
    let by = GroupsBy::new(snapshot, question, labels, (steps, limits.cells), told_apart).await?;
    let selected = scope(snapshot, question).await?;
    let counting = by.counting(labels, extra.quality.then_some(limits.stacks));
    if !extra.quality {
        let new = || by.alone();
        let (counted, _) = match extra.only {
            None => count_spread(&engine.spread, snapshot, question, &selected, counting, new).await?,
            only => scan_only(snapshot, question, &selected, only, new).await?,
        };
        return Ok(counted.each.into_iter().map(GroupCounts::grouped).collect());
    }
    let new = || by.with_stacks(limits.stacks);
    let (counted, _held) = match extra.only {
        None => count_spread(&engine.spread, snapshot, question, &selected, counting, new).await?,
        only => scan_only(snapshot, question, &selected, only, new).await?,
    };
    let days = Days::of(question.window);
    let mut all = Vec::with_capacity(labels.len());
    for of_label in counted.each {
        let (mut grouped, stacks) = of_label.grouped();
        if let Some(stacks) = stacks {
            judge(engine.dictionary(question), snapshot, &days, &mut grouped, &stacks).await?;
        }
        all.push(grouped);
    }
    Ok(all)
}

/// What counts by each of some labels, before it has counted.
pub(crate) struct GroupsBy {
    each: Vec<GroupCounts>,
    steps: Steps,
    cells: usize,
    told_apart: Option<Vec<ToldApart>>,
}

impl GroupsBy {
    /// At most so many cells of a label are counted. `told_apart`: of each label the values that are groups of their
    /// own.
    pub(crate) async fn new(
        snapshot: &Snapshot,
        question: &Question,
        labels: &[Label],
        (steps, cells): (Steps, usize),
        told_apart: Option<&[ToldApart]>,
    ) -> Result<GroupsBy, QueryError> {
        let days = Days::of(question.window);
        let mut each = Vec::with_capacity(labels.len());
        for (place, label) in labels.iter().enumerate() {
            let (column, by) = source(snapshot, &days, *label).await?;
            let counts = GroupCounts::new(column, by, steps, cells)
                .without(question.except)
                .spreading(WAITS.contains(&question.profile.as_str()))
                .telling_apart(told_apart.and_then(|names| names.get(place).cloned()));
            each.push(counts);
        }
        Ok(GroupsBy {
            each,
            steps,
            cells,
            told_apart: told_apart.map(<[ToldApart]>::to_vec),
        })
    }

    /// In words for another server.
    fn counting(&self, labels: &[Label], stacks: Option<usize>) -> Counting {
        let names = |names: &ToldApart| -> Vec<String> {
            let mut names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
            names.sort_unstable();
            names
        };
        Counting::Groups(GroupsOf {
            labels: labels.iter().map(|label| label_name(*label)).collect(),
            steps: self.steps,
            cells: self.cells,
            told_apart: self
                .told_apart
                .as_ref()
                .map(|of_labels| of_labels.iter().map(names).collect()),
            stacks,
        })
    }

    /// Counts alone.
    pub(crate) fn alone(&self) -> EachOf<GroupCounts> {
        EachOf::new(self.each.iter().cloned())
    }

    /// Counts with user mode, and the time of at most so many pairs of group and stack.
    pub(crate) fn with_stacks(&self, stacks: usize) -> EachOf<GroupStacks> {
        let each = self.each.iter().cloned();
        EachOf::new(each.map(|groups| GroupStacks::new(groups.with_modes(), stacks)))
    }
}

/// Scans for samples of some stacks alone, where there are such.
pub(crate) async fn scan_only<C: Accumulator>(
    snapshot: &Snapshot,
    question: &Question,
    selected: &ResolvedSelector,
    only: Option<Arc<StackIds>>,
    new: impl Fn() -> C,
) -> Result<(C, Reservation), QueryError> {
    let Some(stacks) = only else {
        return count_selected(snapshot, question, selected, new).await;
    };
    let new = || OnlyStacks {
        counts: new(),
        stacks: stacks.clone(),
    };
    let (only, held) = count_selected(snapshot, question, selected, new).await?;
    Ok((only.counts, held))
}

/// The column that tells a label's value, and how.
pub(crate) async fn source(
    snapshot: &Snapshot,
    days: &Days,
    label: Label,
) -> Result<(&'static str, GroupBy), QueryError> {
    let ids = async || Ok::<_, QueryError>(GroupBy::Id(Arc::new(values_by_id(snapshot, days, label).await?)));
    Ok(match label.home() {
        LabelTable::Samples => (label.column(), GroupBy::Text),
        LabelTable::Processes => ("process_id", ids().await?),
        LabelTable::Series => ("series_id", ids().await?),
    })
}

/// Looks at each stack once, however many samples have it.
async fn judge(
    dictionary: &StackCache,
    snapshot: &Snapshot,
    days: &Days,
    grouped: &mut Grouped,
    stacks: &StackTimes,
) -> Result<(), QueryError> {
    let mut index: HashMap<i64, usize, MixState> = HashMap::default();
    let mut ids = Vec::new();
    for (_, id) in stacks.keys() {
        index.entry(*id).or_insert_with(|| {
            ids.push(*id);
            ids.len() - 1
        });
    }
    let found = dictionary.leaves(snapshot, days, &ids, NO_TREE).await?;
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
