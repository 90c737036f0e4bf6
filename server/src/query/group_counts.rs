//! Selected samples to CPU time by a label's value, in steps of time; on request by the value's stacks too.
//!
//! Merging is associative and commutative, so that it does not matter which thread saw which sample.

use super::counts::Steps;
use super::error::QueryError;
use super::periods::Periods;
use super::select::{Collector, coded};
use super::tree::MixState;
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use std::collections::HashMap;
use std::sync::Arc;

/// Where a sample's group is found.
#[derive(Debug, Clone)]
pub(super) enum GroupBy {
    /// By an id in the rows, and the group of each id; ids without one are of the group with the empty name.
    Id(Arc<HashMap<i64, Arc<str>, MixState>>),
    /// By the text of the column itself.
    Text,
}

/// What is known of one group.
#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    pub samples: u64,
    pub value_ns: i64,
    /// Of it in user mode.
    pub user_ns: i64,
    /// CPU time in each step, in nanoseconds.
    pub steps_ns: Vec<i64>,
    /// Of it how much has stacks of which quality; not known where there were too many stacks.
    pub quality: Option<Quality>,
}

/// CPU time by the quality of its stacks, in nanoseconds. A stack may be both cut and unnamed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Quality {
    pub complete_ns: i64,
    pub cut_ns: i64,
    pub unnamed_ns: i64,
}

/// Samples by a label's value. `C` is the column that tells the group.
#[derive(Debug, Clone)]
pub(super) struct GroupCounts<C> {
    by: GroupBy,
    steps: Steps,
    /// Most cells (groups times steps).
    limit: usize,
    /// Dense index of every group.
    index: HashMap<Arc<str>, u32>,
    /// Group of ids that were met, for [`GroupBy::Id`].
    of_id: HashMap<i64, u32, MixState>,
    groups: Vec<Group>,
    periods: Periods,
    column: std::marker::PhantomData<fn() -> C>,
}

/// The column of `samples` that tells the group.
pub(super) trait GroupColumn: Send + 'static {
    const COLUMNS: &'static [&'static str];
    const WITH_STACKS: &'static [&'static str];
}

macro_rules! group_columns {
    ($($name:ident $column:literal),*) => { $(
        #[doc = concat!("Groups by `", $column, "`.")]
        #[derive(Debug, Clone)]
        pub(super) struct $name;
        impl GroupColumn for $name {
            const COLUMNS: &'static [&'static str] = &[$column, "value", "ts_ns", "mode"];
            const WITH_STACKS: &'static [&'static str] = &[$column, "value", "ts_ns", "mode", "stack_id"];
        }
    )* };
}
group_columns!(BySeries "series_id", ByProcess "process_id", ByThread "thread", ByTid "tid", ByCpu "cpu", ByMode "mode");

impl<C> GroupCounts<C> {
    pub(super) fn new(by: GroupBy, steps: Steps, limit: usize) -> Self {
        GroupCounts {
            by,
            steps,
            limit,
            index: HashMap::new(),
            of_id: HashMap::default(),
            groups: Vec::new(),
            periods: Periods::default(),
            column: std::marker::PhantomData,
        }
    }

    /// Every group with its name, in the order of their indices.
    pub(super) fn grouped(self) -> Grouped {
        let mut names: Vec<(Arc<str>, u32)> = self.index.into_iter().collect();
        names.sort_unstable_by_key(|(_, index)| *index);
        Grouped {
            groups: names.into_iter().map(|(name, _)| name).zip(self.groups).collect(),
            periods: self.periods,
        }
    }

    fn group(&mut self, name: &str) -> Result<u32, QueryError> {
        if let Some(index) = self.index.get(name) {
            return Ok(*index);
        }
        if (self.groups.len() + 1) * self.steps.count > self.limit {
            return Err(QueryError::too_large(
                format!(
                    "the selection has more than {} groups of {} steps each",
                    self.groups.len(),
                    self.steps.count
                ),
                "ask for another `by`, a longer `step`, or a narrower selector",
            ));
        }
        let index = self.groups.len() as u32;
        self.index.insert(name.into(), index);
        self.groups.push(Group {
            steps_ns: vec![0; self.steps.count],
            ..Group::default()
        });
        Ok(index)
    }

    /// The group of each row.
    fn groups_of(&mut self, rows: &RecordBatch) -> Result<Vec<u32>, QueryError> {
        let column = rows.column(0);
        match self.by.clone() {
            GroupBy::Text => {
                let (mut codes, names) = coded(column)?;
                // A name is a group once a row has it: dictionaries may hold more.
                let mut groups: Vec<Option<u32>> = vec![None; names.len()];
                for code in &mut codes {
                    let known = groups[*code as usize];
                    let group = match known {
                        Some(group) => group,
                        None => self.group(&names[*code as usize])?,
                    };
                    groups[*code as usize] = Some(group);
                    *code = group;
                }
                Ok(codes)
            }
            GroupBy::Id(names) => {
                let ids = column.as_primitive::<Int64Type>().values();
                let mut groups = Vec::with_capacity(ids.len());
                for id in ids {
                    let group = match self.of_id.get(id) {
                        Some(group) => *group,
                        None => {
                            let group = self.group(names.get(id).map_or("", |name| name))?;
                            self.of_id.insert(*id, group);
                            group
                        }
                    };
                    groups.push(group);
                }
                Ok(groups)
            }
        }
    }

    fn count(&mut self, rows: &RecordBatch, groups: &[u32]) -> Result<(), QueryError> {
        let values = rows.column(1).as_primitive::<Int64Type>().values();
        let times = rows.column(2).as_primitive::<Int64Type>().values();
        let (modes, names) = coded(rows.column(3))?;
        let is_user: Vec<bool> = names.iter().map(|name| name == "user").collect();
        self.periods.add(values);
        for (row, group) in groups.iter().enumerate() {
            let step = self.steps.index(times[row]);
            let group = &mut self.groups[*group as usize];
            group.samples += 1;
            group.value_ns = group.value_ns.saturating_add(values[row]);
            if is_user[modes[row] as usize] {
                group.user_ns = group.user_ns.saturating_add(values[row]);
            }
            group.steps_ns[step] = group.steps_ns[step].saturating_add(values[row]);
        }
        Ok(())
    }

    /// Takes another's counts; returns the index here of each group there.
    fn take(&mut self, other: Self) -> Result<Vec<u32>, QueryError> {
        let Grouped { groups, periods } = other.grouped();
        self.periods.merge(&periods);
        let mut places = Vec::with_capacity(groups.len());
        for (name, part) in groups {
            let index = self.group(&name)?;
            places.push(index);
            let group = &mut self.groups[index as usize];
            group.samples += part.samples;
            group.value_ns = group.value_ns.saturating_add(part.value_ns);
            group.user_ns = group.user_ns.saturating_add(part.user_ns);
            for (sum, ns) in group.steps_ns.iter_mut().zip(&part.steps_ns) {
                *sum = sum.saturating_add(*ns);
            }
        }
        Ok(places)
    }
}

impl<C: GroupColumn> Collector for GroupCounts<C> {
    const COLUMNS: &'static [&'static str] = C::COLUMNS;

    fn add(&mut self, rows: &RecordBatch) -> Result<(), QueryError> {
        let groups = self.groups_of(rows)?;
        self.count(rows, &groups)
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        self.take(other).map(drop)
    }
}

/// All groups with their names.
#[derive(Debug, Clone, Default)]
pub(super) struct Grouped {
    pub groups: Vec<(Arc<str>, Group)>,
    pub periods: Periods,
}

/// Nanoseconds by group and stack.
pub(super) type StackTimes = HashMap<(u32, i64), i64, MixState>;

/// As [`GroupCounts`], and the CPU time of each group's stacks.
#[derive(Debug, Clone)]
pub(super) struct GroupStacks<C> {
    counts: GroupCounts<C>,
    /// Nothing once there were more than `limit`.
    stacks: Option<StackTimes>,
    limit: usize,
}

impl<C: GroupColumn> GroupStacks<C> {
    /// Of at most `limit` pairs of group and stack.
    pub(super) fn new(counts: GroupCounts<C>, limit: usize) -> Self {
        GroupStacks {
            counts,
            stacks: Some(HashMap::default()),
            limit,
        }
    }

    /// The groups, and what each stack of each takes, by index of the group; none where there were too many.
    pub(super) fn grouped(self) -> (Grouped, Option<StackTimes>) {
        (self.counts.grouped(), self.stacks)
    }

    fn add_stacks(&mut self, more: impl Iterator<Item = ((u32, i64), i64)>) {
        let Some(stacks) = &mut self.stacks else { return };
        for (key, ns) in more {
            let sum = stacks.entry(key).or_default();
            *sum = sum.saturating_add(ns);
            if stacks.len() > self.limit {
                self.stacks = None;
                return;
            }
        }
    }
}

impl<C: GroupColumn> Collector for GroupStacks<C> {
    const COLUMNS: &'static [&'static str] = C::WITH_STACKS;

    fn add(&mut self, rows: &RecordBatch) -> Result<(), QueryError> {
        let groups = self.counts.groups_of(rows)?;
        self.counts.count(rows, &groups)?;
        let values = rows.column(1).as_primitive::<Int64Type>().values();
        let ids = rows.column(4).as_primitive::<Int64Type>().values();
        self.add_stacks(groups.into_iter().zip(ids.iter().copied()).zip(values.iter().copied()));
        Ok(())
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        let places = self.counts.take(other.counts)?;
        match other.stacks {
            Some(stacks) => {
                let here = |((group, id), ns): ((u32, i64), i64)| ((places[group as usize], id), ns);
                self.add_stacks(stacks.into_iter().map(here));
            }
            None => self.stacks = None,
        }
        Ok(())
    }
}
