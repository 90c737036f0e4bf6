//! Selected samples to CPU time by a label's value, in steps of time; on request by the value's stacks too.
//!
//! Merging is associative and commutative, so that it does not matter which thread saw which sample.

mod sent;

use crate::column::coded::{CodedColumn, Projection};
use crate::column::runs::run_length;
use crate::hash::MixState;
use crate::query::ask::time::Window;
use crate::query::count::adders::{MOST_SUMS, period_of_code};
use crate::query::count::periods::Periods;
use crate::query::count::scan::{Accumulator, Counts, Rows};
use crate::query::limits::error::QueryError;
use crate::query::plan::columns::{TIMES, codes};
use crate::query::plan::resolution::{TimeResolution, Times};
use crate::query::plan::steps::{StepCursor, Steps};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// From so long a step on it does not matter when in it a wait began.
const LONG_STEP_NS: i64 = 60_000_000_000;

/// Where a sample's group is found.
#[derive(Debug, Clone)]
pub(crate) enum GroupBy {
    /// By an id in the rows, and the group of each id; ids without one are of the group with the empty name.
    Id(Arc<HashMap<i64, Arc<str>, MixState>>),
    /// By the text of the column itself.
    Text,
}

/// What is known of one group.
#[derive(Debug, Clone, Default)]
pub(crate) struct Group {
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
pub(crate) struct Quality {
    pub complete_ns: i64,
    pub cut_ns: i64,
    pub unnamed_ns: i64,
}

/// The columns of a row group.
struct Read<'r> {
    column: &'r CodedColumn,
    values: &'r CodedColumn,
    /// Where user mode is counted apart: the modes, and whether a code is user mode.
    modes: Option<(&'r CodedColumn, Vec<bool>)>,
    counts: Option<&'r Counts>,
    times: Option<Times<'r>>,
}

impl Read<'_> {
    /// How many samples some rows stand for, and of them those in user mode.
    fn samples(&self, rows: Range<usize>) -> [u64; 2] {
        let count = |row: usize| self.counts.map_or(1, |counts| u64::from(counts.of(row)));
        let all = match self.counts {
            None => rows.len() as u64,
            Some(counts) => rows.clone().map(|row| u64::from(counts.of(row))).sum(),
        };
        let user = self.modes.as_ref().map_or(0, |(modes, is_user)| {
            rows.map(|row| u64::from(is_user[modes.codes.at(row) as usize]) * count(row))
                .sum()
        });
        [all, user]
    }
}

/// What is known of the codes of a row group.
struct Tally {
    /// Group of each code that a row in a step has.
    groups: Vec<Option<u32>>,
    /// Samples of each code of the values, and what each stands for.
    samples: Vec<u64>,
    periods: Vec<i64>,
}

/// Samples by a label's value.
#[derive(Debug, Clone)]
pub(crate) struct GroupCounts {
    /// The column of `samples` that tells the group.
    column: &'static str,
    by: GroupBy,
    steps: Steps,
    /// A time of the window that does not count.
    except: Option<Window>,
    /// Whether it counts user mode apart.
    modes: bool,
    /// Whether a sample's time is that before its time stamp, wherever that is known to the sample.
    spread: bool,
    /// Most cells (groups times steps).
    limit: usize,
    /// The names that are groups of their own; without them, all are.
    told_apart: Option<Arc<HashSet<Arc<str>>>>,
    /// Dense index of every group that has a name.
    index: HashMap<Arc<str>, u32>,
    /// Index of the group of all names that are not told apart.
    others: Option<u32>,
    groups: Vec<Group>,
    periods: Periods,
}

impl GroupCounts {
    pub(crate) fn new(column: &'static str, by: GroupBy, steps: Steps, limit: usize) -> Self {
        GroupCounts {
            column,
            by,
            steps,
            except: None,
            modes: false,
            spread: false,
            limit,
            told_apart: None,
            index: HashMap::new(),
            others: None,
            groups: Vec::new(),
            periods: Periods::default(),
        }
    }

    /// A time of the window does not count.
    #[must_use]
    pub(crate) fn without(mut self, except: Option<Window>) -> Self {
        self.except = except;
        self
    }

    /// Counts user mode apart.
    #[must_use]
    pub(crate) fn with_modes(mut self) -> Self {
        self.modes = true;
        self
    }

    /// A sample's time goes to the steps in which it passed, and not to that of its time stamp alone: of waits, that
    /// are as long as steps are. Long steps don't need it.
    #[must_use]
    pub(crate) fn spreading(mut self, is_of_waits: bool) -> Self {
        self.spread = is_of_waits && self.steps.count > 1 && self.steps.step_ns < LONG_STEP_NS;
        self
    }

    /// Makes groups of these names alone, and one of all others.
    #[must_use]
    pub(crate) fn telling_apart(mut self, names: Option<Arc<HashSet<Arc<str>>>>) -> Self {
        self.told_apart = names;
        self
    }

    /// Every group with its name, in the order of their indices, and the one of the other names.
    pub(crate) fn grouped(mut self) -> Grouped {
        let names = self.names();
        let (mut groups, mut others) = (Vec::with_capacity(names.len()), None);
        for (name, group) in names.into_iter().zip(self.groups.drain(..)) {
            match name {
                Some(name) => groups.push((name, group)),
                None => others = Some(group),
            }
        }
        Grouped {
            groups,
            others,
            periods: self.periods,
        }
    }

    /// The name of each group; that of the others has none.
    fn names(&mut self) -> Vec<Option<Arc<str>>> {
        let mut names = vec![None; self.groups.len()];
        for (name, index) in self.index.drain() {
            names[index as usize] = Some(name);
        }
        names
    }

    fn group(&mut self, name: &str) -> Result<u32, QueryError> {
        if let Some(index) = self.index.get(name) {
            return Ok(*index);
        }
        if self.told_apart.as_ref().is_some_and(|names| !names.contains(name)) {
            return self.other();
        }
        let index = self.new_group()?;
        self.index.insert(name.into(), index);
        Ok(index)
    }

    /// The group of the names that are not told apart.
    fn other(&mut self) -> Result<u32, QueryError> {
        if let Some(index) = self.others {
            return Ok(index);
        }
        let index = self.new_group()?;
        self.others = Some(index);
        Ok(index)
    }

    fn new_group(&mut self) -> Result<u32, QueryError> {
        if (self.groups.len() + 1) * self.steps.count > self.limit {
            return Err(QueryError::TooManyGroups {
                groups: self.groups.len(),
                steps: self.steps.count,
            });
        }
        self.groups.push(Group {
            steps_ns: vec![0; self.steps.count],
            ..Group::default()
        });
        Ok(self.groups.len() as u32 - 1)
    }

    /// The group of a code; a name is a group once a row has it, since dictionaries may hold more.
    fn group_of(&mut self, column: &CodedColumn, code: usize) -> Result<u32, QueryError> {
        match self.by.clone() {
            GroupBy::Text => self.group(&column.text(code)),
            GroupBy::Id(names) => {
                let name = column.number(code).and_then(|id| names.get(&id));
                self.group(name.map_or("", |name| name))
            }
        }
    }

    /// Takes rows; returns the group of each code that a row in a step has.
    fn count(&mut self, rows: &Rows) -> Result<Vec<Option<u32>>, QueryError> {
        let modes = self.modes.then(|| rows.codes(2)).transpose()?;
        let is_user = |modes: &CodedColumn| (0..modes.distinct()).map(|code| modes.text(code) == "user").collect();
        let read = Read {
            column: rows.codes(0)?,
            values: rows.codes(1)?,
            modes: modes.map(|modes| (modes, is_user(modes))),
            counts: rows.counts(),
            times: self.times(rows)?,
        };
        let mut tally = Tally {
            groups: vec![None; read.column.distinct()],
            samples: vec![0; read.values.distinct()],
            periods: period_of_code(read.values).collect(),
        };
        let cells = read.column.distinct() * read.values.distinct() * (self.steps.count + 1);
        match read.times {
            Some(Times::Exact(times)) if self.spread => self.count_spread(&read, times, &mut tally)?,
            Some(Times::Coded(times)) if cells <= MOST_SUMS.max(4 * rows.len()) => {
                self.count_by_codes(&read, times, &mut tally)?;
            }
            _ => self.count_runs(&read, &mut tally)?,
        }
        let samples = tally.periods.into_iter().zip(tally.samples);
        self.periods.merge(&Periods::of(samples));
        Ok(tally.groups)
    }

    /// Neighbours of one thread mostly have the same step: what they have in common is added up before it goes to its
    /// group.
    fn count_runs(&mut self, read: &Read<'_>, tally: &mut Tally) -> Result<(), QueryError> {
        let (column, values) = (read.column.codes.words(), read.values.codes.words());
        let mut cursor = StepCursor::new(self.steps, self.except);
        let steps = match read.times {
            Some(Times::Coded(times)) => cursor.of_codes(times),
            _ => Vec::new(),
        };
        let mut at = 0;
        while at < column.len() {
            let (code, value) = (column[at], values[at]);
            let same = run_length(&column[at..], |other| other == code);
            let end = at + run_length(&values[at..at + same], |other| other == value);
            while at < end {
                let (count, step) = match read.times {
                    None => (end - at, 0),
                    Some(Times::Exact(times)) => cursor.run(&times[at..end]),
                    Some(Times::Coded(times)) => (1, steps[times.codes.at(at) as usize]),
                };
                if step < self.steps.count {
                    let [samples, user] = read.samples(at..at + count);
                    self.take(read, tally, (code, value), step, [samples, user])?;
                }
                at += count;
            }
        }
        Ok(())
    }

    /// Each sample ends in its step, and reaches back as far as its value says.
    fn count_spread(&mut self, read: &Read<'_>, times: &[i64], tally: &mut Tally) -> Result<(), QueryError> {
        let mut cursor = StepCursor::new(self.steps, self.except);
        for (row, ts_ns) in times.iter().enumerate() {
            let mut step = cursor.index(*ts_ns);
            if step >= self.steps.count {
                continue;
            }
            let codes = (read.column.codes.at(row), read.values.codes.at(row));
            let [samples, user] = read.samples(row..row + 1);
            self.take(read, tally, codes, step, [samples, user])?;
            let (Some(group), period) = (tally.groups[codes.0 as usize], tally.periods[codes.1 as usize]) else {
                continue;
            };
            let steps_ns = &mut self.groups[group as usize].steps_ns;
            let time = |ns: i64| ns.saturating_mul(samples as i64);
            steps_ns[step] = steps_ns[step].saturating_sub(time(period));
            let (begin, mut end) = (ts_ns.saturating_sub(period), *ts_ns);
            loop {
                let from = self.steps.bounds(step).0;
                steps_ns[step] = steps_ns[step].saturating_add(time(end - begin.max(from)));
                if begin >= from || step == 0 {
                    break;
                }
                (step, end) = (step - 1, from);
            }
        }
        Ok(())
    }

    /// Roll-ups have few times, which are codes too: an index into an array for each row.
    fn count_by_codes(&mut self, read: &Read<'_>, times: &CodedColumn, tally: &mut Tally) -> Result<(), QueryError> {
        let steps = StepCursor::new(self.steps, self.except).of_codes(times);
        let (values, width) = (read.values.distinct(), self.steps.count + 1);
        let mut sums = vec![[0_u64; 2]; read.column.distinct() * values * width];
        for row in 0..read.column.codes.len() {
            let pair = read.column.codes.at(row) as usize * values + read.values.codes.at(row) as usize;
            let sum = &mut sums[pair * width + steps[times.codes.at(row) as usize]];
            let [samples, user] = read.samples(row..row + 1);
            sum[0] += samples;
            sum[1] += user;
        }
        for (pair, of_pair) in sums.chunks_exact(width).enumerate() {
            let codes = ((pair / values) as u32, (pair % values) as u32);
            for (step, sum) in of_pair[..self.steps.count].iter().enumerate() {
                if sum[0] > 0 {
                    self.take(read, tally, codes, step, *sum)?;
                }
            }
        }
        Ok(())
    }

    /// Takes so many samples, and of them so many in user mode, of a pair of codes of the column and of its values.
    fn take(
        &mut self,
        read: &Read<'_>,
        tally: &mut Tally,
        (code, value): (u32, u32),
        step: usize,
        [samples, user]: [u64; 2],
    ) -> Result<(), QueryError> {
        let index = match tally.groups[code as usize] {
            Some(index) => index,
            None => self.group_of(read.column, code as usize)?,
        };
        tally.groups[code as usize] = Some(index);
        tally.samples[value as usize] += samples;
        let time = |samples: u64| tally.periods[value as usize].saturating_mul(samples as i64);
        let group = &mut self.groups[index as usize];
        group.samples += samples;
        group.value_ns = group.value_ns.saturating_add(time(samples));
        group.user_ns = group.user_ns.saturating_add(time(user));
        group.steps_ns[step] = group.steps_ns[step].saturating_add(time(samples));
        Ok(())
    }

    fn times<'r>(&self, rows: &'r Rows) -> Result<Option<Times<'r>>, QueryError> {
        let index = 2 + usize::from(self.modes);
        (self.steps.count > 1).then(|| rows.times(index)).transpose()
    }

    /// Takes another's counts; returns the index here of each group there.
    fn merge_groups(&mut self, mut other: Self) -> Result<Vec<u32>, QueryError> {
        self.periods.merge(&other.periods);
        let names = other.names();
        let mut places = Vec::with_capacity(names.len());
        for (name, part) in names.into_iter().zip(other.groups) {
            let index = match name {
                Some(name) => self.group(&name)?,
                None => self.other()?,
            };
            places.push(index);
            let group = &mut self.groups[index as usize];
            group.samples = group.samples.saturating_add(part.samples);
            group.value_ns = group.value_ns.saturating_add(part.value_ns);
            group.user_ns = group.user_ns.saturating_add(part.user_ns);
            for (sum, ns) in group.steps_ns.iter_mut().zip(&part.steps_ns) {
                *sum = sum.saturating_add(*ns);
            }
        }
        Ok(places)
    }
}

impl Accumulator for GroupCounts {
    fn columns(&self) -> Vec<Projection> {
        let mut columns = vec![codes(self.column), codes("value")];
        columns.extend(self.modes.then(|| codes("mode")));
        columns.extend((self.steps.count > 1).then_some(TIMES));
        columns
    }

    fn when(&self) -> TimeResolution {
        match self.spread {
            // Roll-ups are what is left.
            true => TimeResolution::Step { grain_ns: 0 },
            false => self.steps.when(),
        }
    }

    fn checks_times(&self) -> bool {
        self.steps.count > 1
    }

    fn add(&mut self, rows: &Rows) -> Result<(), QueryError> {
        self.count(rows).map(drop)
    }

    fn bytes(&self) -> usize {
        self.groups.capacity() * (size_of::<Group>() + self.steps.count * size_of::<i64>())
            + self.index.capacity() * (size_of::<(Arc<str>, u32)>() + 1)
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        self.merge_groups(other).map(drop)
    }
}

/// Sums by pairs of codes of one row group: a pair is then hashed once. An array where it is no larger than what it
/// is made of.
enum Pairs {
    Dense { stacks: usize, sums: Vec<i64> },
    Sparse(HashMap<(u32, u32), i64, MixState>),
}

impl Pairs {
    fn new(groups: usize, stacks: usize, rows: usize) -> Pairs {
        if groups.saturating_mul(stacks) <= MOST_SUMS.max(2 * rows) {
            let sums = vec![0; groups * stacks];
            Pairs::Dense { stacks, sums }
        } else {
            Pairs::Sparse(HashMap::default())
        }
    }

    fn add(&mut self, group: u32, stack: u32, ns: i64) {
        let sum = match self {
            Pairs::Dense { stacks, sums } => &mut sums[group as usize * *stacks + stack as usize],
            Pairs::Sparse(sums) => sums.entry((group, stack)).or_default(),
        };
        *sum = sum.saturating_add(ns);
    }

    /// Every pair that has a sum.
    fn into_sums(self) -> Box<dyn Iterator<Item = ((u32, u32), i64)>> {
        match self {
            Pairs::Dense { stacks, sums } => {
                let pair = move |index: usize| ((index / stacks) as u32, (index % stacks) as u32);
                let known = sums.into_iter().enumerate().filter(|(_, ns)| *ns != 0);
                Box::new(known.map(move |(index, ns)| (pair(index), ns)))
            }
            Pairs::Sparse(sums) => Box::new(sums.into_iter()),
        }
    }
}

/// All groups with their names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grouped {
    pub groups: Vec<(Arc<str>, Group)>,
    /// What the names have together that are not told apart.
    pub others: Option<Group>,
    pub periods: Periods,
}

/// Nanoseconds by group and stack.
pub(crate) type StackTimes = HashMap<(u32, i64), i64, MixState>;

/// As [`GroupCounts`], and the CPU time of each group's stacks.
#[derive(Debug, Clone)]
pub(crate) struct GroupStacks {
    counts: GroupCounts,
    /// Nothing once there were more than `limit`.
    stacks: Option<StackTimes>,
    limit: usize,
}

impl GroupStacks {
    /// Of at most `limit` pairs of group and stack.
    pub(crate) fn new(counts: GroupCounts, limit: usize) -> Self {
        GroupStacks {
            counts,
            stacks: Some(HashMap::default()),
            limit,
        }
    }

    /// The groups, and what each stack of each takes, by index of the group; none where there were too many.
    pub(crate) fn grouped(self) -> (Grouped, Option<StackTimes>) {
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

impl Accumulator for GroupStacks {
    fn columns(&self) -> Vec<Projection> {
        let mut columns = self.counts.columns();
        columns.push(codes("stack_id"));
        columns
    }

    fn when(&self) -> TimeResolution {
        self.counts.when()
    }

    fn checks_times(&self) -> bool {
        self.counts.checks_times()
    }

    fn add(&mut self, rows: &Rows) -> Result<(), QueryError> {
        let groups = self.counts.count(rows)?;
        if self.stacks.is_none() {
            return Ok(());
        }
        let (column, values, stacks) = (rows.codes(0)?, rows.codes(1)?, rows.codes(self.counts.columns().len())?);
        let periods: Vec<i64> = period_of_code(values).collect();
        let counts = &self.counts;
        let (times, outside) = (counts.times(rows)?, counts.steps.count);
        let mut cursor = StepCursor::new(counts.steps, counts.except);
        let mut sums = Pairs::new(column.distinct(), stacks.distinct(), rows.len());
        cursor.each(times, rows.len(), |row, step| {
            if step < outside {
                let count = rows.counts().map_or(1, |counts| counts.of(row));
                let ns = periods[values.codes.at(row) as usize].saturating_mul(i64::from(count));
                sums.add(column.codes.at(row), stacks.codes.at(row), ns);
            }
        });
        let named = |((group, stack), ns): ((u32, u32), i64)| {
            let group = groups[group as usize].unwrap_or_default();
            let id = stacks.number(stack as usize).unwrap_or_default();
            ((group, id), ns)
        };
        self.add_stacks(sums.into_sums().map(named));
        Ok(())
    }

    fn bytes(&self) -> usize {
        let stacks = self.stacks.as_ref().map_or(0, HashMap::capacity);
        self.counts.bytes() + stacks * (size_of::<((u32, i64), i64)>() + 1)
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        let places = self.counts.merge_groups(other.counts)?;
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
