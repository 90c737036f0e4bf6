//! Selected samples to counts by stack, in steps of time.
//!
//! Merging is associative and commutative, so that it does not matter which thread saw which sample.

use super::error::QueryError;
use super::periods::Periods;
use super::scan::{Collector, Rows, TIMES, When, codes};
use super::time::Window;
use super::tree::MixState;
use crate::store::columns::{Codes, Wanted};
use std::collections::HashMap;

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

    /// How well times have to be known.
    pub(super) fn when(&self) -> When {
        if self.count == 1 { When::Window } else { When::Step }
    }

    /// These columns, and behind them the times where steps need them.
    pub(super) fn with_times(&self, mut columns: Vec<Wanted>) -> Vec<Wanted> {
        if self.count > 1 {
            columns.push(TIMES);
        }
        columns
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

/// Finds steps of times that mostly lie in the step of the one before, as those of one series do: without a division then.
#[derive(Debug)]
pub(super) struct StepCursor {
    steps: Steps,
    index: usize,
    /// Of the step at `index`: start (inclusive) and end (exclusive).
    bounds: (i64, i64),
}

impl StepCursor {
    pub(super) fn new(steps: Steps) -> StepCursor {
        StepCursor {
            steps,
            index: 0,
            bounds: steps.bounds(0),
        }
    }

    /// As [`Steps::index`].
    pub(super) fn index(&mut self, ts_ns: i64) -> usize {
        if ts_ns < self.bounds.0 || ts_ns >= self.bounds.1 {
            self.index = self.steps.index(ts_ns);
            self.bounds = self.steps.bounds(self.index);
        }
        self.index
    }
}

/// What a sample stands for, by its code, in nanoseconds.
pub(super) fn period_of_code(values: &Codes) -> impl Iterator<Item = i64> {
    (0..values.distinct()).map(|code| values.number(code).unwrap_or_default())
}

/// Samples by stack.
#[derive(Debug, Clone)]
pub(super) struct StackCounts {
    steps: Steps,
    limit: usize,
    slots: HashMap<i64, u32, MixState>,
    /// Stack of each slot.
    ids: Vec<i64>,
    /// Samples of each slot in each step.
    cells: Vec<u32>,
    /// CPU time of each cell in nanoseconds; empty as long as all samples have the same period.
    values: Vec<i64>,
    periods: Periods,
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
            values: Vec::new(),
            periods: Periods::default(),
        }
    }

    /// Takes rows that are all in the same step and of the same period.
    fn add_whole(&mut self, stacks: &Codes, counts: Option<&[u32]>) -> Result<(), QueryError> {
        let mut sums = vec![0_u32; stacks.distinct()];
        match counts {
            None => stacks.codes.iter().for_each(|code| sums[*code as usize] += 1),
            Some(counts) => {
                for (code, count) in stacks.codes.iter().zip(counts) {
                    sums[*code as usize] = sums[*code as usize].saturating_add(*count);
                }
            }
        }
        for (code, count) in sums.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            let slot = self.slot(stacks.number(code).unwrap_or_default())?;
            self.cells[slot] = self.cells[slot].saturating_add(count);
        }
        Ok(())
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
            if self.periods.differ() {
                self.values.resize(self.cells.len(), 0);
            }
        }
        Ok(slot as usize)
    }

    /// Takes more periods in. Where they begin to differ, the cells so far are given their times.
    fn add_periods(&mut self, more: &Periods) {
        let before = self.periods.only();
        self.periods.merge(more);
        if self.periods.differ() && self.values.is_empty() {
            let period = before.unwrap_or(0);
            self.values = self.cells.iter().map(|count| i64::from(*count) * period).collect();
        }
    }

    /// Counts in units of the shortest period, in the order of ids: the same samples give the same answer.
    pub(super) fn weighed(self) -> Weighed {
        let StackCounts {
            steps,
            ids,
            mut cells,
            periods,
            ..
        } = self;
        let mut order: Vec<(i64, u32)> = ids.into_iter().zip(0..).collect();
        order.sort_unstable();
        let (ids, slots): (Vec<i64>, Vec<u32>) = order.into_iter().unzip();
        if periods.differ() {
            let mut count = periods.rounding();
            let of_slot = |slot: &u32| *slot as usize * steps.count..(*slot as usize + 1) * steps.count;
            for cell in slots
                .iter()
                .flat_map(of_slot)
                .filter(|cell| cells[*cell] > 0)
                .collect::<Vec<_>>()
            {
                cells[cell] = u32::try_from(count(self.values[cell])).unwrap_or(u32::MAX);
            }
        }
        // Step by step in the order of ids: a difference reads one step of all stacks after another.
        let mut in_step: Vec<Vec<u32>> = vec![Vec::with_capacity(slots.len()); steps.count];
        let mut totals = Vec::with_capacity(slots.len());
        for slot in slots {
            let of_slot = &cells[slot as usize * steps.count..][..steps.count];
            for (step, count) in in_step.iter_mut().zip(of_slot) {
                step.push(*count);
            }
            totals.push(of_slot.iter().map(|count| u64::from(*count)).sum());
        }
        Weighed {
            samples: totals.iter().sum(),
            ids,
            totals,
            in_step,
            periods,
        }
    }
}

impl Collector for StackCounts {
    fn columns(&self) -> Vec<Wanted> {
        self.steps.with_times(vec![codes("stack_id"), codes("value")])
    }

    fn when(&self) -> When {
        self.steps.when()
    }

    fn add(&mut self, rows: &Rows) -> Result<(), QueryError> {
        let (stacks, values) = (rows.codes(0)?, rows.codes(1)?);
        self.add_periods(&Periods::of_codes(values, rows.counts()));
        if self.steps.count == 1 && !self.periods.differ() {
            return self.add_whole(stacks, rows.counts());
        }
        let times = if self.steps.count > 1 { rows.numbers(2)? } else { &[] };
        let periods: Vec<i64> = period_of_code(values).collect();
        let mut slots = vec![None; stacks.distinct()];
        let mut at = StepCursor::new(self.steps);
        for (row, code) in stacks.codes.iter().enumerate() {
            let slot = match slots[*code as usize] {
                Some(slot) => slot,
                None => self.slot(stacks.number(*code as usize).unwrap_or_default())?,
            };
            slots[*code as usize] = Some(slot);
            let cell = slot * self.steps.count + times.get(row).map_or(0, |ts_ns| at.index(*ts_ns));
            let count = rows.counts().map_or(1, |counts| counts[row]);
            self.cells[cell] = self.cells[cell].saturating_add(count);
            if let Some(sum) = self.values.get_mut(cell) {
                *sum = sum.saturating_add(periods[values.codes[row] as usize].saturating_mul(i64::from(count)));
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.slots.capacity() * (size_of::<(i64, u32)>() + 1)
            + self.ids.capacity() * size_of::<i64>()
            + self.cells.capacity() * size_of::<u32>()
            + self.values.capacity() * size_of::<i64>()
    }

    fn merge(&mut self, mut other: Self) -> Result<(), QueryError> {
        if self.ids.is_empty() {
            *self = other;
            return Ok(());
        }
        let theirs = other.periods.clone();
        other.add_periods(&self.periods);
        self.add_periods(&theirs);
        let steps = self.steps.count;
        for (from, id) in other.ids.iter().enumerate() {
            let to = self.slot(*id)?;
            for step in 0..steps {
                let (to, from) = (to * steps + step, from * steps + step);
                self.cells[to] = self.cells[to].saturating_add(other.cells[from]);
                if self.periods.differ() {
                    self.values[to] = self.values[to].saturating_add(other.values[from]);
                }
            }
        }
        Ok(())
    }
}

/// Counts by stack in the unit of [`Periods::unit_ns`].
#[derive(Debug, Clone)]
pub(super) struct Weighed {
    /// Sorted.
    pub ids: Vec<i64>,
    /// Counts of each stack.
    pub totals: Vec<u64>,
    /// Of each step the counts of each stack.
    pub in_step: Vec<Vec<u32>>,
    /// All counts: as many as there are samples where all have the same period.
    pub samples: u64,
    pub periods: Periods,
}

impl Weighed {
    /// CPU time that one count stands for, in nanoseconds.
    pub(super) fn period_ns(&self) -> f64 {
        if self.samples == 0 {
            0.0
        } else {
            self.periods.value_ns as f64 / self.samples as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::columns::Column;
    use std::collections::BTreeMap;

    const WINDOW: Window = Window {
        from_ns: 0,
        until_ns: 1_000_000_000,
    };

    /// Stacks with their times. Samples of the second half have the second period.
    fn rows(stacks: &[(i64, i64)], periods: [i64; 2]) -> Rows {
        let values = stacks
            .iter()
            .map(|(_, ts)| Some(periods[usize::from(*ts >= 500_000_000)]));
        let columns = vec![
            Column::Codes(Codes::of_numbers(stacks.iter().map(|(id, _)| Some(*id)))),
            Column::Codes(Codes::of_numbers(values)),
            Column::Numbers(stacks.iter().map(|(_, ts)| *ts).collect()),
        ];
        Rows::new(columns, None)
    }

    fn counted(parts: &[Vec<(i64, i64)>], periods: [i64; 2]) -> StackCounts {
        let mut counts = StackCounts::new(Steps::parts(WINDOW, 4), 1_000);
        for part in parts {
            counts.add(&rows(part, periods)).unwrap();
        }
        counts
    }

    fn content(counts: &StackCounts) -> (BTreeMap<i64, Vec<u64>>, Periods) {
        let counts = counts.clone().weighed();
        let cells = counts
            .ids
            .iter()
            .enumerate()
            .map(|(slot, id)| (*id, (0..4).map(|s| u64::from(counts.in_step[s][slot])).collect()));
        (cells.collect(), counts.periods)
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
        for turn in 0..50 {
            let periods = if turn % 2 == 0 { [50, 50] } else { [10, 40] };
            let parts: Vec<Vec<(i64, i64)>> = (0..3)
                .map(|_| {
                    (0..next(40))
                        .map(|_| (next(7) as i64 - 3, next(1_000_000_000) as i64))
                        .collect()
                })
                .collect();
            let whole = counted(&parts, periods);
            let [a, b, c] = [0, 1, 2].map(|i| counted(&parts[i..=i], periods));
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
    fn samples_of_different_periods_count_by_the_time_that_they_stand_for() {
        let samples = vec![(1, 0), (1, 1), (2, 2), (1, 600_000_000), (3, 700_000_000)];
        let counts = counted(&[samples], [10, 40]).weighed();
        let of = |id| counts.totals[counts.ids.iter().position(|other| *other == id).unwrap()];
        assert_eq!((of(1), of(2), of(3), counts.samples), (2 + 4, 1, 4, 11));
        assert_eq!((counts.period_ns(), counts.periods.samples), (10.0, 5));
    }

    #[test]
    fn more_stacks_than_allowed_is_an_error_and_not_an_answer() {
        let mut counts = StackCounts::new(Steps::one(WINDOW), 2);
        counts.add(&rows(&[(1, 0), (2, 0), (1, 5)], [50; 2])).unwrap();
        let error = counts.add(&rows(&[(3, 0)], [50; 2])).unwrap_err();
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
