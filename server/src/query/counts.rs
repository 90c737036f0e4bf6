//! Collectors: selected samples to counts, by stack or by a label's value, each in steps of time.
//!
//! Merging is associative and commutative, so that it does not matter which thread saw which sample.

use super::error::QueryError;
use super::select::{Collector, coded};
use super::time::Window;
use super::tree::MixState;
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use std::collections::HashMap;
use std::sync::Arc;

/// A window cut into equal steps, the last of which may be shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    pub window: Window,
    /// Nanoseconds.
    pub step_ns: i64,
    pub count: usize,
}

impl Steps {
    /// So many parts of (nearly) the same length; fewer where a part would be shorter than a millisecond.
    pub fn parts(window: Window, count: usize) -> Steps {
        let step_ns = (window.length_ns() / count as i64 + 1).max(1_000_000);
        Steps::of(window, step_ns)
    }

    /// Steps of this length.
    pub fn of(window: Window, step_ns: i64) -> Steps {
        let count = (window.length_ns() as u64).div_ceil(step_ns as u64).max(1) as usize;
        Steps { window, step_ns, count }
    }

    /// The window as one step.
    pub fn one(window: Window) -> Steps {
        Steps {
            window,
            step_ns: window.length_ns(),
            count: 1,
        }
    }

    /// The step in which a time of the window lies.
    pub fn index(&self, ts_ns: i64) -> usize {
        (((ts_ns - self.window.from_ns) / self.step_ns) as usize).min(self.count - 1)
    }

    /// Start (inclusive) and end (exclusive) of a step.
    pub fn bounds(&self, index: usize) -> (i64, i64) {
        let from = self.window.from_ns + index as i64 * self.step_ns;
        (from, (from + self.step_ns).min(self.window.until_ns))
    }
}

/// Samples by stack.
#[derive(Debug, Clone)]
pub(super) struct StackCounts {
    steps: Steps,
    limit: usize,
    slots: HashMap<i64, u32, MixState>,
    /// Stack of each slot.
    pub ids: Vec<i64>,
    /// Samples of each slot in each step.
    cells: Vec<u32>,
    /// All samples.
    pub samples: u64,
    /// What all samples stand for, in nanoseconds of CPU time.
    pub value_ns: i64,
}

impl StackCounts {
    /// At most `limit` distinct stacks are taken.
    pub(super) fn new(steps: Steps, limit: usize) -> StackCounts {
        StackCounts {
            steps,
            limit,
            slots: HashMap::default(),
            ids: Vec::new(),
            cells: Vec::new(),
            samples: 0,
            value_ns: 0,
        }
    }

    /// Samples of a slot.
    pub(super) fn total(&self, slot: usize) -> u64 {
        self.cells[slot * self.steps.count..][..self.steps.count]
            .iter()
            .map(|c| u64::from(*c))
            .sum()
    }

    /// Samples of a slot in one step.
    pub(super) fn in_step(&self, slot: usize, step: usize) -> u64 {
        u64::from(self.cells[slot * self.steps.count + step])
    }

    fn slot(&mut self, id: i64) -> Result<usize, QueryError> {
        let next = self.ids.len() as u32;
        let slot = *self.slots.entry(id).or_insert(next);
        if slot == next {
            if self.ids.len() == self.limit {
                return Err(QueryError::too_large(
                    format!("the selection has more than {} distinct stacks", self.limit),
                    "ask for a shorter window or a narrower selector",
                ));
            }
            self.ids.push(id);
            self.cells.resize(self.cells.len() + self.steps.count, 0);
        }
        Ok(slot as usize)
    }
}

impl Collector for StackCounts {
    const COLUMNS: &'static [&'static str] = &["stack_id", "value", "ts_ns"];

    fn add(&mut self, rows: &RecordBatch) -> Result<(), QueryError> {
        let ids = rows.column(0).as_primitive::<Int64Type>().values();
        let times = rows.column(2).as_primitive::<Int64Type>().values();
        for (id, ts) in ids.iter().zip(times) {
            let slot = self.slot(*id)?;
            let step = if self.steps.count == 1 {
                0
            } else {
                self.steps.index(*ts)
            };
            let cell = &mut self.cells[slot * self.steps.count + step];
            *cell = cell.saturating_add(1);
        }
        self.samples += rows.num_rows() as u64;
        self.value_ns = self
            .value_ns
            .saturating_add(sum(rows.column(1).as_primitive::<Int64Type>().values()));
        Ok(())
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        if self.ids.is_empty() {
            *self = other;
            return Ok(());
        }
        let steps = self.steps.count;
        for (from, id) in other.ids.iter().enumerate() {
            let to = self.slot(*id)?;
            for step in 0..steps {
                let cell = &mut self.cells[to * steps + step];
                *cell = cell.saturating_add(other.cells[from * steps + step]);
            }
        }
        self.samples += other.samples;
        self.value_ns = self.value_ns.saturating_add(other.value_ns);
        Ok(())
    }
}

fn sum(values: &[i64]) -> i64 {
    values.iter().fold(0_i64, |sum, value| sum.saturating_add(*value))
}

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
    /// Samples in user mode.
    pub user: u64,
    /// Samples in each step.
    pub steps: Vec<u32>,
    /// CPU time in each step, in nanoseconds.
    pub steps_ns: Vec<i64>,
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
    pub groups: Vec<Group>,
    column: std::marker::PhantomData<fn() -> C>,
}

/// The column of `samples` that tells the group.
pub(super) trait GroupColumn: Send + 'static {
    const COLUMNS: &'static [&'static str];
}

macro_rules! group_columns {
    ($($name:ident $column:literal),*) => { $(
        #[doc = concat!("Groups by `", $column, "`.")]
        #[derive(Debug, Clone)]
        pub(super) struct $name;
        impl GroupColumn for $name {
            const COLUMNS: &'static [&'static str] = &[$column, "value", "ts_ns", "mode"];
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
            column: std::marker::PhantomData,
        }
    }

    /// Every group with its name, in no order.
    pub(super) fn named(self) -> impl Iterator<Item = (Arc<str>, Group)> {
        let mut names: Vec<(Arc<str>, u32)> = self.index.into_iter().collect();
        names.sort_unstable_by_key(|(_, index)| *index);
        names.into_iter().map(|(name, _)| name).zip(self.groups)
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
        let (steps, steps_ns) = (vec![0; self.steps.count], vec![0; self.steps.count]);
        self.groups.push(Group {
            steps,
            steps_ns,
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
}

impl<C: GroupColumn> Collector for GroupCounts<C> {
    const COLUMNS: &'static [&'static str] = C::COLUMNS;

    fn add(&mut self, rows: &RecordBatch) -> Result<(), QueryError> {
        let groups = self.groups_of(rows)?;
        let values = rows.column(1).as_primitive::<Int64Type>().values();
        let times = rows.column(2).as_primitive::<Int64Type>().values();
        let (modes, names) = coded(rows.column(3))?;
        let is_user: Vec<bool> = names.iter().map(|name| name == "user").collect();
        for (row, group) in groups.into_iter().enumerate() {
            let step = self.steps.index(times[row]);
            let group = &mut self.groups[group as usize];
            group.samples += 1;
            group.value_ns = group.value_ns.saturating_add(values[row]);
            group.user += u64::from(is_user[modes[row] as usize]);
            group.steps[step] = group.steps[step].saturating_add(1);
            group.steps_ns[step] = group.steps_ns[step].saturating_add(values[row]);
        }
        Ok(())
    }

    fn merge(&mut self, other: Self) -> Result<(), QueryError> {
        for (name, part) in other.named() {
            let index = self.group(&name)? as usize;
            let group = &mut self.groups[index];
            group.samples += part.samples;
            group.value_ns = group.value_ns.saturating_add(part.value_ns);
            group.user += part.user;
            for step in 0..group.steps.len() {
                group.steps[step] = group.steps[step].saturating_add(part.steps[step]);
                group.steps_ns[step] = group.steps_ns[step].saturating_add(part.steps_ns[step]);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Int64Array;
    use std::collections::BTreeMap;

    const WINDOW: Window = Window {
        from_ns: 0,
        until_ns: 1_000_000_000,
    };

    fn rows(stacks: &[(i64, i64)]) -> RecordBatch {
        let ids: Int64Array = stacks.iter().map(|(id, _)| *id).collect();
        let values: Int64Array = stacks.iter().map(|_| 50).collect();
        let times: Int64Array = stacks.iter().map(|(_, ts)| *ts).collect();
        RecordBatch::try_from_iter([
            ("stack_id", Arc::new(ids) as _),
            ("value", Arc::new(values) as _),
            ("ts_ns", Arc::new(times) as _),
        ])
        .unwrap()
    }

    fn counted(parts: &[Vec<(i64, i64)>]) -> StackCounts {
        let mut counts = StackCounts::new(Steps::parts(WINDOW, 4), 1_000);
        for part in parts {
            counts.add(&rows(part)).unwrap();
        }
        counts
    }

    fn content(counts: &StackCounts) -> (BTreeMap<i64, Vec<u64>>, u64, i64) {
        let cells = counts
            .ids
            .iter()
            .enumerate()
            .map(|(slot, id)| (*id, (0..4).map(|s| counts.in_step(slot, s)).collect()));
        (cells.collect(), counts.samples, counts.value_ns)
    }

    #[test]
    fn merging_is_associative_and_commutative_and_loses_nothing() {
        let mut state = 0x5eed_u64;
        let mut next = move |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..50 {
            let parts: Vec<Vec<(i64, i64)>> = (0..3)
                .map(|_| {
                    (0..next(40))
                        .map(|_| (next(7) as i64 - 3, next(1_000_000_000) as i64))
                        .collect()
                })
                .collect();
            let whole = counted(&parts);
            let [a, b, c] = [0, 1, 2].map(|i| counted(&parts[i..=i]));
            let merged = |x: &StackCounts, y: &StackCounts| {
                let mut x = x.clone();
                x.merge(y.clone()).unwrap();
                x
            };
            let left = merged(&merged(&a, &b), &c);
            let right = merged(&a, &merged(&b, &c));
            let turned = merged(&merged(&c, &a), &b);
            assert_eq!(content(&left), content(&whole));
            assert_eq!(content(&right), content(&whole));
            assert_eq!(content(&turned), content(&whole));
        }
    }

    #[test]
    fn more_stacks_than_allowed_is_an_error_and_not_an_answer() {
        let mut counts = StackCounts::new(Steps::one(WINDOW), 2);
        counts.add(&rows(&[(1, 0), (2, 0), (1, 5)])).unwrap();
        let error = counts.add(&rows(&[(3, 0)])).unwrap_err();
        assert!(error.to_string().contains("more than 2 distinct stacks"));
    }

    #[test]
    fn steps_cover_the_window_once() {
        for count in [1, 3, 7, 20] {
            let steps = Steps::parts(WINDOW, count);
            assert!(steps.count <= count);
            let mut at = WINDOW.from_ns;
            for index in 0..steps.count {
                let (from, until) = steps.bounds(index);
                assert_eq!(from, at);
                assert!(until > from);
                assert_eq!((steps.index(from), steps.index(until - 1)), (index, index));
                at = until;
            }
            assert_eq!(at, WINDOW.until_ns);
        }
    }
}
