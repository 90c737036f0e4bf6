//! What samples stand for, and in which unit they are counted.
//!
//! Counting is by value: a share is a part of the values, and the number of samples is only a second figure. Samples
//! of a clock each stand for its period, and where all have the same one, counts are their number. Where values
//! differ, what they have in common is the unit (an agent's rate changes to a part of it), so that every count is
//! whole and exact; values that have no period in common are counted in nanoseconds. What is no time is counted in
//! its own unit.

use crate::column::coded::CodedColumn;
use crate::query::ask::unit::Unit;
use crate::query::count::partial::wire::{Malformed, PartialReader, PartialWriter};
use std::collections::BTreeMap;

/// Distinct periods that are counted one by one. An agent has a handful; senders of plain values may have any number.
const MOST_SEEN: usize = 64;
/// What values have in common is a period where it is at least this: no clock samples more often than 10,000 times a
/// second.
const LEAST_PERIOD_NS: i64 = 100_000;
/// It is one too where values are not more of it than this on average: no agent divides its rate by more than 32.
const LARGEST_MEAN_WEIGHT: i64 = 64;
/// No answer counts further, so that no sum of its parts is more than 64 bits hold.
const MOST_COUNTED: u64 = 1 << 62;

/// The values of a selection's samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Periods {
    /// How many samples these are.
    pub samples: u64,
    /// The sum of all values, in nanoseconds of CPU time, or in the type's unit.
    pub value_ns: i64,
    /// Σ value², whole, so that it does not depend on the order in which values come.
    squares: u128,
    /// The greatest common divisor of all values; 0 where all are 0.
    common: i64,
    /// Samples by value, of the least [`MOST_SEEN`] values: which they are does not depend on the order either.
    pub seen: BTreeMap<i64, u64>,
}

impl Periods {
    /// Of a column of values; `counts`: how many samples each row stands for, where that is not one.
    pub(crate) fn of_codes(values: &CodedColumn, counts: Option<&[u32]>) -> Periods {
        let mut periods = Periods::default();
        let (words, mut at) = (values.codes.words(), 0);
        let mut rest = &words[..];
        while let Some(first) = rest.first() {
            let run = rest.iter().take_while(|code| *code == first).count();
            let samples = counts.map_or(run as u64, |counts| {
                counts[at..at + run].iter().map(|count| u64::from(*count)).sum()
            });
            periods.record(values.number(*first as usize).unwrap_or_default(), samples);
            (rest, at) = (&rest[run..], at + run);
        }
        periods
    }

    /// Of so many samples of each period.
    pub(crate) fn of(samples: impl IntoIterator<Item = (i64, u64)>) -> Periods {
        let mut periods = Periods::default();
        for (period_ns, samples) in samples.into_iter().filter(|(_, samples)| *samples > 0) {
            periods.record(period_ns, samples);
        }
        periods
    }

    fn record(&mut self, value: i64, samples: u64) {
        self.samples += samples;
        let of_all = value.saturating_mul(i64::try_from(samples).unwrap_or(i64::MAX));
        self.value_ns = self.value_ns.saturating_add(of_all);
        let square = u128::from(value.unsigned_abs()).pow(2);
        self.squares = self.squares.saturating_add(square.saturating_mul(u128::from(samples)));
        self.common = divisor(self.common, value);
        self.see(value, samples);
    }

    /// A value that is among the least of all is among the least of each part, with all its samples.
    fn see(&mut self, value: i64, samples: u64) {
        let seen = self.seen.entry(value).or_default();
        *seen = seen.saturating_add(samples);
        if self.seen.len() > MOST_SEEN {
            self.seen.pop_last();
        }
    }

    pub(crate) fn merge(&mut self, other: &Periods) {
        self.samples = self.samples.saturating_add(other.samples);
        self.value_ns = self.value_ns.saturating_add(other.value_ns);
        self.squares = self.squares.saturating_add(other.squares);
        self.common = divisor(self.common, other.common);
        for (period, samples) in &other.seen {
            self.see(*period, *samples);
        }
    }

    /// For another server.
    pub(crate) fn write(&self, to: &mut PartialWriter) {
        to.number(self.samples);
        to.signed(self.value_ns);
        to.wide(self.squares);
        to.signed(self.common);
        to.ids(self.seen.keys().copied());
        self.seen.values().for_each(|samples| to.number(*samples));
    }

    /// What another server wrote.
    pub(crate) fn read(from: &mut PartialReader<'_>) -> Result<Periods, Malformed> {
        let (samples, value_ns) = (from.number()?, from.signed()?);
        let (squares, common) = (from.wide()?, from.signed()?);
        let mut seen = BTreeMap::new();
        for value in from.ids(MOST_SEEN, "values of samples")? {
            seen.insert(value, from.number()?);
        }
        Ok(Periods {
            samples,
            value_ns,
            squares,
            common,
            seen,
        })
    }

    /// Whether samples stand for different times.
    pub(crate) fn differ(&self) -> bool {
        self.seen.len() > 1
    }

    /// What every sample stands for; nothing without samples, or where they differ.
    pub(crate) fn only(&self) -> Option<i64> {
        self.seen.keys().next().copied().filter(|_| !self.differ())
    }
}

/// The greatest common divisor of two numbers that are not negative; 0 is a multiple of all.
fn divisor(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.max(0), b.max(0));
    while a != 0 && a != 1 {
        (a, b) = (b % a, a);
    }
    if a == 1 { 1 } else { b }
}

/// What the counts of an answer are.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// What one count stands for: nanoseconds, or, of what is no time, its unit.
    pub one: i64,
    /// Of the type's values.
    pub unit: Unit,
    /// Counts are samples, or as many as one that says several times as much would be.
    are_samples: bool,
    /// Each sample counts one.
    is_number: bool,
    /// Variance of a count in units of a Poisson's, at least 1: a sum of Poisson counts n of weights w has the mean Σ
    /// n w and the variance Σ n w².
    pub(crate) spread: f64,
}

impl Counted {
    /// How samples of these values are counted.
    pub(crate) fn of(periods: &Periods, unit: &Unit) -> Counted {
        let is_time = unit.is_time();
        let mean = periods.value_ns / i64::try_from(periods.samples.max(1)).unwrap_or(i64::MAX);
        let common = periods.common;
        let is_period = common >= LEAST_PERIOD_NS || mean <= common.saturating_mul(LARGEST_MEAN_WEIGHT);
        let (one, are_samples) = match periods.only() {
            _ if !is_time => (1, false),
            Some(only) => (only, true),
            None if is_period => (common, true),
            None => (1, false),
        };
        let mean = periods.value_ns as f64 * one as f64;
        Counted {
            one,
            unit: unit.clone(),
            are_samples,
            is_number: is_time && !periods.differ(),
            spread: if mean > 0.0 {
                (periods.squares as f64 / mean).max(1.0)
            } else {
                1.0
            },
        }
    }

    /// Each sample counts one, whatever it stands for: all stand for the same.
    pub(crate) fn is_number(&self) -> bool {
        self.is_number
    }

    /// Turns values into counts, one after the other: exactly, until there is more than can be counted.
    pub(crate) fn counting(&self) -> impl FnMut(i64) -> u64 + use<> {
        let (one, mut left) = (self.one.max(1) as u64, MOST_COUNTED);
        move |value| {
            let count = (value.max(0) as u64 / one).min(left);
            left -= count;
            count
        }
    }

    /// What counts are called.
    pub fn name(&self) -> &str {
        if self.are_samples { "samples" } else { self.unit.name() }
    }

    /// Whether it is time.
    pub fn is_time(&self) -> bool {
        self.unit.is_time()
    }

    /// Nanoseconds that one count stands for; 0 of what is no time.
    pub fn period_ns(&self) -> i64 {
        if self.is_time() { self.one } else { 0 }
    }

    /// What one count stands for, in seconds, or in the unit of what is no time.
    pub fn amount_of_one(&self) -> f64 {
        if self.is_time() {
            self.one as f64 / 1e9
        } else {
            self.one as f64
        }
    }

    /// Seconds of so many counts, or what is no time in its unit.
    pub fn amount(&self, count: u64) -> f64 {
        count as f64 * self.amount_of_one()
    }

    /// The unit of an amount by the second.
    pub fn rate_name(&self) -> String {
        if self.is_time() {
            "cores".to_owned()
        } else {
            format!("{} per second", self.unit.name())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn periods(values: &[i64]) -> Periods {
        Periods::of_codes(&CodedColumn::of_numbers(values.iter().copied().map(Some)), None)
    }

    fn time(values: &[i64]) -> Counted {
        Counted::of(&periods(values), &Unit::time())
    }

    #[test]
    fn one_period_counts_samples() {
        assert_eq!(
            (periods(&[50; 7]).only(), periods(&[50; 7]).differ()),
            (Some(50), false)
        );
        let counted = time(&[50; 7]);
        assert_eq!((counted.one, counted.spread, counted.is_number()), (50, 1.0, true));
        assert_eq!((time(&[]).one, time(&[]).amount(7)), (0, 0.0));
        // A period of 0: samples, and no time.
        assert_eq!((time(&[0, 0]).name(), time(&[0, 0]).amount(2)), ("samples", 0.0));
    }

    #[test]
    fn what_is_known_of_values_does_not_depend_on_their_order() {
        // More values than are counted one by one, whose squares no float adds up in any order alike.
        let values: Vec<i64> = (0..5_000_i64).map(|at| 10_101_011 + at % 89 * 333_333).collect();
        let whole = periods(&values);
        assert_eq!(whole.seen.len(), MOST_SEEN);
        let backwards: Vec<i64> = values.iter().rev().copied().collect();
        assert_eq!(periods(&backwards), whole);
        for parts in [2, 7, 64] {
            let mut merged = Periods::default();
            let of_part = |part: usize| values.iter().skip(part).step_by(parts).copied().collect::<Vec<i64>>();
            (0..parts).rev().for_each(|part| merged.merge(&periods(&of_part(part))));
            assert_eq!(merged, whole, "{parts} parts");
        }
    }

    #[test]
    fn two_periods_count_in_what_they_have_in_common_and_spread_more() {
        let mut both = periods(&[10, 10, 10, 40]);
        let counted = Counted::of(&both, &Unit::time());
        assert_eq!(
            (counted.one, counted.name(), both.samples, both.value_ns),
            (10, "samples", 4, 70)
        );
        assert_eq!(counted.spread, (3.0 + 16.0) / 7.0);
        assert_eq!(both.seen, BTreeMap::from([(10, 3), (40, 1)]));
        both.merge(&periods(&[40]));
        assert_eq!(both, periods(&[10, 10, 10, 40, 40]));
        // Seven ticks and ten of 10 ms.
        assert_eq!(time(&[70_000_000, 100_000_000]).one, 10_000_000);
    }

    #[test]
    fn counts_are_exact_whatever_the_values() {
        // 99 Hz and 24 Hz; values that are no periods; one in a thousand; zeros among others.
        for values in [
            &[10_101_010, 41_666_666, 41_666_666][..],
            &[1, 1_000_003, 3_000_000],
            &[1_000_000, 1_000_000_000],
            &[0, 0, 7_000_001],
        ] {
            let counted = time(values);
            let mut count = counted.counting();
            for value in values {
                assert_eq!(count(*value) as i64 * counted.one, *value, "{values:?}");
            }
        }
        assert_eq!(
            (
                time(&[10_101_010, 41_666_666]).name(),
                time(&[10_101_010, 41_666_666]).one
            ),
            ("nanoseconds", 1)
        );
    }

    #[test]
    fn what_is_no_time_counts_in_its_unit() {
        let counted = Counted::of(&periods(&[4096, 4096]), &Unit::named("bytes"));
        assert_eq!(
            (counted.one, counted.name(), counted.period_ns(), counted.is_number()),
            (1, "bytes", 0, false)
        );
        assert_eq!(
            (counted.amount(8192), counted.rate_name()),
            (8192.0, "bytes per second".to_owned())
        );
        assert_eq!(counted.spread, 4096.0);
    }

    #[test]
    fn a_sum_ends_before_its_parts_add_up_to_more_than_there_is_room_for() {
        let mut count = time(&[1, i64::MAX, i64::MAX]).counting();
        let counts = [1, i64::MAX, i64::MAX].map(&mut count);
        assert_eq!(counts.iter().sum::<u64>(), MOST_COUNTED);
        assert_eq!(counts[2], 0);
    }

    #[test]
    fn divisors() {
        for (a, b, common) in [
            (0, 0, 0),
            (0, 7, 7),
            (12, 18, 6),
            (18, 12, 6),
            (1, 9, 1),
            (7, 10, 1),
            (50, 50, 50),
        ] {
            assert_eq!(divisor(a, b), common, "{a} {b}");
        }
    }
}
