//! Selected samples to CPU time by a label's value, in steps of time; on request by the value's stacks too.
//!
//! Merging is associative and commutative, so that it does not matter which thread saw which sample.

use super::counts::{StepCursor, Steps, period_of_code};
use super::error::QueryError;
use super::periods::Periods;
use super::scan::{Collector, Rows, When, codes};
use super::tree::MixState;
use crate::store::columns::{Codes, Wanted};
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

/// Neighbouring samples of one group and step.
#[derive(Debug, Default)]
struct Run {
    code: u32,
    step: usize,
    samples: u64,
    value_ns: i64,
    user_ns: i64,
}

/// Samples by a label's value.
#[derive(Debug, Clone)]
pub(super) struct GroupCounts {
    /// The column of `samples` that tells the group.
    column: &'static str,
    by: GroupBy,
    steps: Steps,
    /// Most cells (groups times steps).
    limit: usize,
    /// Dense index of every group.
    index: HashMap<Arc<str>, u32>,
    groups: Vec<Group>,
    periods: Periods,
}

impl GroupCounts {
    pub(super) fn new(column: &'static str, by: GroupBy, steps: Steps, limit: usize) -> Self {
        GroupCounts {
            column,
            by,
            steps,
            limit,
            index: HashMap::new(),
            groups: Vec::new(),
            periods: Periods::default(),
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

    /// The group of a code; a name is a group once a row has it, since dictionaries may hold more.
    fn group_of(&mut self, column: &Codes, code: usize) -> Result<u32, QueryError> {
        match self.by.clone() {
            GroupBy::Text => self.group(&column.text(code)),
            GroupBy::Id(names) => {
                let name = column.number(code).and_then(|id| names.get(&id));
                self.group(name.map_or("", |name| name))
            }
        }
    }

    /// Takes rows; returns the group of each code that a row has.
    fn count(&mut self, rows: &Rows) -> Result<Vec<Option<u32>>, QueryError> {
        let (column, values, modes) = (rows.codes(0)?, rows.codes(1)?, rows.codes(2)?);
        let times = if self.steps.count > 1 { rows.numbers(3)? } else { &[] };
        self.periods.merge(&Periods::of_codes(values, rows.counts()));
        let is_user: Vec<bool> = (0..modes.distinct()).map(|code| modes.text(code) == "user").collect();
        let periods: Vec<i64> = period_of_code(values).collect();
        let mut groups: Vec<Option<u32>> = vec![None; column.distinct()];
        let mut at = StepCursor::new(self.steps);
        // What neighbours have in common is added up before it goes to its group.
        let mut run = Run::default();
        for (row, code) in column.codes.iter().enumerate() {
            let step = times.get(row).map_or(0, |ts_ns| at.index(*ts_ns));
            if run.samples == 0 || run.code != *code || run.step != step {
                self.finish(&run, &groups);
                if groups[*code as usize].is_none() {
                    groups[*code as usize] = Some(self.group_of(column, *code as usize)?);
                }
                run = Run {
                    code: *code,
                    step,
                    ..Run::default()
                };
            }
            let count = rows.counts().map_or(1, |counts| counts[row]);
            let value_ns = periods[values.codes[row] as usize].saturating_mul(i64::from(count));
            run.samples += u64::from(count);
            run.value_ns = run.value_ns.saturating_add(value_ns);
            if is_user[modes.codes[row] as usize] {
                run.user_ns = run.user_ns.saturating_add(value_ns);
            }
        }
        self.finish(&run, &groups);
        Ok(groups)
    }

    fn finish(&mut self, run: &Run, groups: &[Option<u32>]) {
        let group = groups.get(run.code as usize).copied().flatten();
        let Some(group) = group.and_then(|group| self.groups.get_mut(group as usize)) else {
            return;
        };
        group.samples += run.samples;
        group.value_ns = group.value_ns.saturating_add(run.value_ns);
        group.user_ns = group.user_ns.saturating_add(run.user_ns);
        group.steps_ns[run.step] = group.steps_ns[run.step].saturating_add(run.value_ns);
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

impl Collector for GroupCounts {
    fn columns(&self) -> Vec<Wanted> {
        self.steps
            .with_times(vec![codes(self.column), codes("value"), codes("mode")])
    }

    fn when(&self) -> When {
        self.steps.when()
    }

    fn add(&mut self, rows: &Rows) -> Result<(), QueryError> {
        self.count(rows).map(drop)
    }

    fn bytes(&self) -> usize {
        self.groups.capacity() * (size_of::<Group>() + self.steps.count * size_of::<i64>())
            + self.index.capacity() * (size_of::<(Arc<str>, u32)>() + 1)
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
pub(super) struct GroupStacks {
    counts: GroupCounts,
    /// Nothing once there were more than `limit`.
    stacks: Option<StackTimes>,
    limit: usize,
}

impl GroupStacks {
    /// Of at most `limit` pairs of group and stack.
    pub(super) fn new(counts: GroupCounts, limit: usize) -> Self {
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

impl Collector for GroupStacks {
    fn columns(&self) -> Vec<Wanted> {
        let mut columns = self.counts.columns();
        columns.push(codes("stack_id"));
        columns
    }

    fn when(&self) -> When {
        self.counts.when()
    }

    fn add(&mut self, rows: &Rows) -> Result<(), QueryError> {
        let groups = self.counts.count(rows)?;
        if self.stacks.is_none() {
            return Ok(());
        }
        let (column, values, stacks) = (rows.codes(0)?, rows.codes(1)?, rows.codes(self.counts.columns().len())?);
        let periods: Vec<i64> = period_of_code(values).collect();
        // By codes first: they are dense, and a pair is then hashed once a row group.
        let mut sums: HashMap<u64, i64, MixState> = HashMap::default();
        for (row, code) in column.codes.iter().enumerate() {
            let pair = u64::from(*code) << 32 | u64::from(stacks.codes[row]);
            let count = rows.counts().map_or(1, |counts| counts[row]);
            let sum = sums.entry(pair).or_default();
            *sum = sum.saturating_add(periods[values.codes[row] as usize].saturating_mul(i64::from(count)));
        }
        let named = |(pair, ns): (u64, i64)| {
            let group = groups[(pair >> 32) as usize].unwrap_or_default();
            let id = stacks.number(pair as u32 as usize).unwrap_or_default();
            ((group, id), ns)
        };
        self.add_stacks(sums.into_iter().map(named));
        Ok(())
    }

    fn bytes(&self) -> usize {
        let stacks = self.stacks.as_ref().map_or(0, HashMap::capacity);
        self.counts.bytes() + stacks * (size_of::<((u32, i64), i64)>() + 1)
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
