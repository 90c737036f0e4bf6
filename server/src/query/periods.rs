//! What samples stand for. Each stands for a period of CPU time, and the period changes with the agent's rate.
//!
//! Samples of different periods are not added up as they are: a sample of a slow rate says as much as several of a fast one. They
//! are counted in units of the shortest period instead, so that shares and differences are those of CPU time, and no sample counts
//! for less than one. Where all periods are the same, that is their number.

use crate::store::columns::Codes;
use std::collections::BTreeMap;

/// Distinct periods that are counted one by one. An agent has a handful; senders of plain values may have any number.
const MOST_SEEN: usize = 64;
/// The unit is the shortest period, unless samples stand for more than so many of it on average: values, not periods. It is
/// their mean then. No agent divides its rate by more than 32.
const LARGEST_MEAN_WEIGHT: f64 = 64.0;

/// The periods of a selection's samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Periods {
    pub samples: u64,
    /// What all samples stand for, in nanoseconds of CPU time.
    pub value_ns: i64,
    /// Σ value², in ns².
    squares: f64,
    /// The shortest above zero; 0 without any.
    least_ns: i64,
    /// Samples by period in nanoseconds, of the first [`MOST_SEEN`] periods.
    pub seen: BTreeMap<i64, u64>,
}

impl Periods {
    /// Of a column of values; `counts`: how many samples each row stands for, where that is not one.
    pub(super) fn of_codes(values: &Codes, counts: Option<&[u32]>) -> Periods {
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
    pub(super) fn of(samples: impl IntoIterator<Item = (i64, u64)>) -> Periods {
        let mut periods = Periods::default();
        for (period_ns, samples) in samples.into_iter().filter(|(_, samples)| *samples > 0) {
            periods.record(period_ns, samples);
        }
        periods
    }

    fn record(&mut self, value: i64, samples: u64) {
        self.samples += samples;
        self.value_ns = self.value_ns.saturating_add(value.saturating_mul(samples as i64));
        self.squares += (value as f64).powi(2) * samples as f64;
        if value > 0 && (self.least_ns == 0 || value < self.least_ns) {
            self.least_ns = value;
        }
        if self.seen.len() < MOST_SEEN || self.seen.contains_key(&value) {
            *self.seen.entry(value).or_default() += samples;
        }
    }

    pub(super) fn merge(&mut self, other: &Periods) {
        self.samples += other.samples;
        self.value_ns = self.value_ns.saturating_add(other.value_ns);
        self.squares += other.squares;
        if other.least_ns > 0 && (self.least_ns == 0 || other.least_ns < self.least_ns) {
            self.least_ns = other.least_ns;
        }
        for (period, samples) in &other.seen {
            if self.seen.len() < MOST_SEEN || self.seen.contains_key(period) {
                *self.seen.entry(*period).or_default() += samples;
            }
        }
    }

    /// Whether samples stand for different times.
    pub(super) fn differ(&self) -> bool {
        self.seen.len() > 1
    }

    /// What every sample stands for; nothing without samples, or where they differ.
    pub(super) fn only(&self) -> Option<i64> {
        self.seen.keys().next().copied().filter(|_| !self.differ())
    }

    /// What one count stands for, in nanoseconds.
    pub(super) fn unit_ns(&self) -> f64 {
        let (least, mean) = (self.least_ns as f64, self.value_ns as f64 / self.samples.max(1) as f64);
        if mean <= LARGEST_MEAN_WEIGHT * least {
            least
        } else {
            mean
        }
    }

    /// Variance of a count in units of a Poisson's, 1 where all periods are the same: a sum of Poisson counts n of weights w has
    /// the mean Σ n w and the variance Σ n w².
    pub(super) fn spread(&self) -> f64 {
        let mean = self.value_ns as f64 * self.unit_ns();
        if self.differ() && mean > 0.0 {
            (self.squares / mean).max(1.0)
        } else {
            1.0
        }
    }

    /// Turns CPU time into counts, one after the other: what rounding takes from one it gives to the next, and where there was a
    /// sample there is a count.
    pub(super) fn rounding(&self) -> impl FnMut(i64) -> u64 + use<> {
        let unit = self.unit_ns();
        let mut rest = 0.0;
        move |value_ns| {
            if unit <= 0.0 {
                return 1;
            }
            let exact = value_ns as f64 / unit + rest;
            let count = exact.round().max(1.0);
            rest = exact - count;
            count as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn periods(values: &[i64]) -> Periods {
        Periods::of_codes(&Codes::of_numbers(values.iter().copied().map(Some)), None)
    }

    #[test]
    fn one_period_counts_samples() {
        let periods = periods(&[50; 7]);
        assert_eq!((periods.only(), periods.differ()), (Some(50), false));
        assert_eq!((periods.unit_ns(), periods.spread()), (50.0, 1.0));
        assert_eq!(Periods::default().unit_ns(), 0.0);
    }

    #[test]
    fn two_periods_count_in_the_shorter_and_spread_more() {
        let mut both = periods(&[10, 10, 10, 40]);
        assert_eq!((both.unit_ns(), both.samples, both.value_ns), (10.0, 4, 70));
        assert_eq!(both.spread(), (3.0 + 16.0) / 7.0);
        assert_eq!(both.seen, BTreeMap::from([(10, 3), (40, 1)]));
        both.merge(&periods(&[40]));
        assert_eq!(both, periods(&[10, 10, 10, 40, 40]));
    }

    #[test]
    fn rounding_neither_adds_time_nor_hides_a_sample() {
        // 99 Hz and 24 Hz.
        let mut values = vec![10_101_010; 3];
        values.extend([41_666_666; 200]);
        let periods = periods(&values);
        let mut count = periods.rounding();
        let counts: Vec<u64> = values.iter().map(|value| count(*value)).collect();
        assert!(counts.iter().all(|count| *count >= 1));
        let sum = counts.iter().sum::<u64>() as f64 * periods.unit_ns();
        assert!((sum - periods.value_ns as f64).abs() <= periods.unit_ns(), "{sum}");
        // Values that are no periods are counted by their mean.
        let plain = self::periods(&[1, 1_000_000, 3_000_000]);
        assert_eq!(plain.unit_ns(), 4_000_001.0 / 3.0);
        let mut count = plain.rounding();
        assert_eq!(count(1), 1);
    }
}
