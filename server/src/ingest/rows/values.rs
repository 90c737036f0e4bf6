//! What the values of a profile are, and which rows they become.
//!
//! In: a profile's types, period and times, and a sample's values and time stamps. Out: a type and unit, and of each
//! sample one time and value or more. A sum over some time, which is what a sample without time stamps has, becomes
//! equal parts of whole units that lie evenly over that time: the same each time that it is sent, and together what
//! was sent.

use crate::ingest::error::IngestError;
use crate::ingest::rows::frames::Dictionary;
use crate::ingest::rows::window::TimeWindow;
use crate::ingest::wire::message::{Profile, Sample, ValueType};
use crate::profile_type::{self, COUNT, NANOSECONDS};

/// A sum becomes at most so many parts, of a second or more each.
const MOST_PARTS: u64 = 30;

const PART_NS: u64 = 1_000_000_000;

/// Parts of a request beyond one a sample: where there are more, the parts are longer.
const MOST_MORE_PARTS: u64 = 200_000;

/// What is longer is no profile's duration: 24 hours.
const LONGEST_NS: u64 = 24 * 3_600 * 1_000_000_000;

/// Values beyond this are not taken: a reader of JSON cannot tell them apart, and a few of them would be more than a
/// sum can hold.
pub(crate) const MOST_VALUE: i64 = 1 << 53;

/// The golden ratio's part behind the point, in parts of 2^64: its multiples lie evenly between whole numbers,
/// however many there are.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// What a profile's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unit<'a> {
    /// The profile type in queries.
    pub(crate) kind: &'a str,
    /// Of what is stored.
    pub(crate) unit: &'a str,
    /// What one occurrence without a value stands for.
    per_occurrence: i64,
    /// What a value is multiplied with.
    factor: i64,
    /// What cannot be divided, in what is stored: a tick of the sampling clock, where values are whole numbers of them.
    tick: i64,
    /// The profile's period in nanoseconds, 0 when it has none.
    pub(crate) period: i64,
    /// Values are ticks of a clock.
    is_ticks: bool,
}

impl<'a> Unit<'a> {
    /// The units of all profiles of one resource.
    pub(crate) fn of_all(profiles: &[Profile<'_>], dictionary: &Dictionary<'a>) -> Vec<Result<Self, IngestError>> {
        let of = |profile| Unit::of(profile, dictionary);
        let mut units: Vec<Result<Self, IngestError>> = profiles.iter().map(of).collect();
        if units.len() > MOST_COMPARED {
            return units;
        }
        // Some formats tell each sample twice, as a count of ticks and as their time. Only one of both is time.
        let key = |at: usize, unit: &Self| {
            let profile = &profiles[at];
            (unit.kind, profile.time_unix_nano, profile.duration_nano, unit.period)
        };
        let known: Vec<(usize, Self)> = (0..)
            .zip(&units)
            .filter_map(|(at, unit)| Some((at, *unit.as_ref().ok()?)))
            .collect();
        for (at, ticks) in known.iter().filter(|(_, unit)| unit.is_ticks) {
            let is_same = |(other, unit): &(usize, Self)| {
                !unit.is_ticks && unit.unit == NANOSECONDS && key(*other, unit) == key(*at, ticks)
            };
            if known.iter().any(is_same) {
                units[*at] = Ok(Unit::counted("samples", ticks.period));
            }
        }
        units
    }

    fn of(profile: &Profile<'_>, dictionary: &Dictionary<'a>) -> Result<Self, IngestError> {
        let names = |of: &Option<ValueType>| {
            let name = |index: i32| dictionary.string(index, "a profile's value type");
            of.as_ref().map_or(Ok(("", "")), |of| {
                Ok::<_, IngestError>((name(of.kind)?, name(of.unit)?))
            })
        };
        let (kind, unit) = names(&profile.sample_type)?;
        let (period_kind, period_unit) = names(&profile.period_type)?;
        let period = profile.period.max(0);
        let period_ns = profile_type::nanoseconds_of(period_unit).map(|ns| period.saturating_mul(ns));
        let time = profile_type::nanoseconds_of(unit);
        let is_count = time.is_none() && profile_type::unit_name(unit) == COUNT;
        // Counted ticks of a clock: each stands for one period of it. Objects, calls and whatever else is counted do
        // not.
        let are_ticks = is_count && (matches!(kind, "" | "samples" | "sample" | "ticks") || kind == period_kind);
        let unit = match (time, period_ns) {
            (None, Some(tick)) if are_ticks && tick > 0 && !period_kind.is_empty() => Self {
                kind: period_kind,
                unit: NANOSECONDS,
                per_occurrence: tick,
                factor: tick,
                tick,
                period: tick,
                is_ticks: true,
            },
            (Some(factor), period_ns) => {
                let period = period_ns.unwrap_or(0);
                Self {
                    // What the OpenTelemetry eBPF profiler calls time off the CPU.
                    kind: if kind == "events" { "off_cpu" } else { or_samples(kind) },
                    unit: NANOSECONDS,
                    per_occurrence: period.max(1),
                    factor,
                    tick: period.max(1),
                    period,
                    is_ticks: false,
                }
            }
            // Without a period that is a time nobody knows what a count stands for.
            (None, period_ns) if is_count && profile_type::is_of_time(kind) => {
                Unit::counted("samples", period_ns.unwrap_or(0))
            }
            (None, _) if profile_type::is_of_time(kind) => {
                let unit: String = unit.chars().take(80).collect();
                return Err(IngestError::Invalid(format!(
                    "the profile type {kind:?} in {unit:?}: {kind} is a time, in ns, us, ms, s or their long names"
                )));
            }
            (None, period_ns) => Self {
                unit: profile_type::unit_name(unit),
                ..Unit::counted(or_samples(kind), period_ns.unwrap_or(0))
            },
        };
        unit.checked()
    }

    /// What is only counted.
    fn counted(kind: &'a str, period: i64) -> Self {
        Self {
            kind,
            unit: COUNT,
            per_occurrence: 1,
            factor: 1,
            tick: 1,
            period,
            is_ticks: false,
        }
    }

    fn checked(self) -> Result<Self, IngestError> {
        for (what, text) in [("type", self.kind), ("unit", self.unit)] {
            if !profile_type::is_allowed(text) {
                let (text, allowed) = (text.chars().take(80).collect::<String>(), profile_type::ALLOWED);
                return Err(IngestError::Invalid(format!(
                    "the profile {what} {text:?}: {allowed} is one"
                )));
            }
        }
        Ok(self)
    }
}

/// More profiles of one resource are not compared with each other.
const MOST_COMPARED: usize = 256;

fn or_samples(kind: &str) -> &str {
    if kind.is_empty() { "samples" } else { kind }
}

/// Why a sample is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bad {
    Negative,
    Large,
    Future,
    Past,
}

/// Spreads sums over their durations.
#[derive(Debug, Default)]
pub(crate) struct Spreading {
    /// Parts so far, beyond one a sample.
    more: u64,
    /// Sums so far, of the profile that is read.
    sums: u64,
}

impl Spreading {
    /// A profile begins: it is spread in the same way whatever comes before it.
    pub(crate) fn begin(&mut self) {
        self.sums = 0;
    }

    /// Calls with each time and value of a sum from `from_ns` on.
    fn each_part(
        &mut self,
        (from_ns, length_ns): (i64, u64),
        value: i64,
        (tick, samples): (i64, usize),
        each: &mut impl FnMut(i64, i64) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let phase = self.sums.wrapping_mul(GOLDEN).wrapping_add(1 << 63);
        self.sums += 1;
        let tick = if tick > 0 && value % tick == 0 { tick } else { 1 };
        let ticks = (value / tick) as u64;
        let room = 1 + MOST_MORE_PARTS.saturating_sub(self.more) / (samples as u64).max(1);
        let parts = length_ns.div_ceil(PART_NS).min(MOST_PARTS).min(ticks).min(room).max(1);
        self.more += parts - 1;
        for part in 0..parts {
            // Whole ticks, of which a part has one more than another at most.
            let until = |part: u64| (u128::from(ticks) * u128::from(part) / u128::from(parts)) as i64;
            let own = (until(part + 1) - until(part)).saturating_mul(tick);
            let place = ((u128::from(part) << 64) | u128::from(phase)) / u128::from(parts);
            let offset_ns = ((place * u128::from(length_ns)) >> 64) as i64;
            each(from_ns.saturating_add(offset_ns), own)?;
        }
        Ok(())
    }
}

/// Whether a sample's values are a sum over the profile's duration. Without any time it is not known when that was.
pub(crate) fn is_sum(sample: &Sample<'_>, profile: &Profile<'_>) -> bool {
    sample.times.as_slice().is_empty()
        && profile.time_unix_nano > 0
        && (1..=LONGEST_NS).contains(&profile.duration_nano)
}

/// Calls with time and value of each row that a sample becomes, or with the reason for which it is left out: once a
/// sample or time stamp.
pub(crate) fn each_occurrence(
    (sample, profile): (&Sample<'_>, &Profile<'_>),
    unit: &Unit<'_>,
    window: TimeWindow,
    spreading: &mut Spreading,
    mut each: impl FnMut(Result<(i64, i64), Bad>) -> Result<(), IngestError>,
) -> Result<(), IngestError> {
    let time = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let scaled = |value: &i64| value.saturating_mul(unit.factor);
    let mut checked = |ts_ns: i64, value: i64| each(judged(ts_ns, value, window).map_or(Ok((ts_ns, value)), Err));
    match (sample.times.as_slice(), sample.values.as_slice()) {
        ([], values) => {
            let from_ns = match profile.time_unix_nano {
                0 => window.now_ns,
                ns => time(ns),
            };
            let value = match values {
                [] => unit.per_occurrence,
                values if values.iter().any(|value| *value < 0) => -1,
                values => values.iter().map(scaled).fold(0_i64, i64::saturating_add),
            };
            if !is_sum(sample, profile) {
                return checked(from_ns, value);
            }
            let length_ns = time(profile.duration_nano);
            if judged(from_ns, value, window).is_some() {
                return checked(from_ns, value);
            }
            let length_ns = window.nearest_ns(from_ns.saturating_add(length_ns)) - from_ns;
            let (whole, of) = ((from_ns, length_ns.max(1) as u64), (unit.tick, profile.samples));
            spreading.each_part(whole, value, of, &mut |ts_ns, value| checked(ts_ns, value))
        }
        (times, []) => times.iter().try_for_each(|ns| checked(time(*ns), unit.per_occurrence)),
        (times, values) if times.len() == values.len() => {
            let mut both = times.iter().zip(values);
            both.try_for_each(|(ns, value)| checked(time(*ns), scaled(value)))
        }
        (times, values) => Err(IngestError::Invalid(format!(
            "a sample has {} time stamps and {} values; give as many of both, or only one of them",
            times.len(),
            values.len()
        ))),
    }
}

fn judged(ts_ns: i64, value: i64, window: TimeWindow) -> Option<Bad> {
    if value < 0 {
        Some(Bad::Negative)
    } else if value > MOST_VALUE {
        Some(Bad::Large)
    } else if ts_ns > window.latest_ns {
        Some(Bad::Future)
    } else if ts_ns < window.earliest_ns {
        Some(Bad::Past)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn parts(spreading: &mut Spreading, length_ns: u64, value: i64, tick: i64) -> Vec<(i64, i64)> {
        let mut parts = Vec::new();
        let mut each = |ts_ns, value| {
            parts.push((ts_ns, value));
            Ok(())
        };
        spreading
            .each_part((1_000, length_ns), value, (tick, 1), &mut each)
            .unwrap();
        parts
    }

    #[test]
    fn a_sum_is_spread_evenly_in_whole_ticks_and_kept_whole() {
        for (length_ns, value, tick, count) in [
            (20 * S, 20_000_000_000, 1, 20),
            (20 * S, 1_000 * 10_000_000, 10_000_000, 20),
            (10 * S, 7 * 10_000_000, 10_000_000, 7),
            (3_600 * S, 1_000_003, 1, 30),
            (1, 5, 1, 1),
            (10 * S, 0, 1, 1),
            (S / 2, 700, 1, 1),
        ] {
            let parts = parts(&mut Spreading::default(), length_ns, value, tick);
            assert_eq!(parts.len(), count, "{length_ns} {value}");
            assert_eq!(parts.iter().map(|(_, value)| value).sum::<i64>(), value);
            let mean = value as f64 / count as f64;
            for (at, (ts_ns, own)) in parts.iter().enumerate() {
                assert!(
                    (*own as f64 - mean).abs() <= tick as f64 && own % tick == 0,
                    "{parts:?}"
                );
                // One in each of as many equal parts of the time.
                let place = (*ts_ns - 1_000) as f64 / length_ns as f64 * count as f64;
                assert!(place >= at as f64 && place < at as f64 + 1.0, "{place} {parts:?}");
            }
        }
    }

    #[test]
    fn many_small_sums_lie_all_over_the_duration_and_the_same_ones_each_time() {
        let mut spreading = Spreading::default();
        let mut tenths = [0; 10];
        let mut all = || {
            (0..1_000)
                .map(|_| parts(&mut spreading, 10 * S, 1, 1)[0].0 - 1_000)
                .collect()
        };
        let first: Vec<i64> = all();
        for offset in &first {
            tenths[(offset / S as i64) as usize] += 1;
        }
        assert!(tenths.iter().all(|count| (95..=105).contains(count)), "{tenths:?}");
        spreading.begin();
        let again: Vec<i64> = (0..1_000)
            .map(|_| parts(&mut spreading, 10 * S, 1, 1)[0].0 - 1_000)
            .collect();
        assert_eq!(first, again);
    }

    #[test]
    fn a_request_of_very_many_sums_is_not_made_many_times_as_large() {
        let mut spreading = Spreading::default();
        let mut rows = 0_u64;
        for _ in 0..100_000 {
            let mut each = |_, _| {
                rows += 1;
                Ok(())
            };
            let of = (1, 100_000);
            spreading.each_part((0, 60 * S), 1_000_000, of, &mut each).unwrap();
        }
        assert!((100_000..=100_000 + MOST_MORE_PARTS).contains(&rows), "{rows}");
    }
}
