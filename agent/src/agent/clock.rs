//! From the samples' clock to wall time.

use crate::sys;

/// One instant on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClockReading {
    /// `CLOCK_MONOTONIC`, the clock of the samples.
    pub(super) mono_ns: u64,
    pub(super) unix_ns: u64,
}

impl ClockReading {
    /// Both clocks as close together as a few tries get: on a busy machine the thread can lose its CPU between two
    /// readings, for longer than samples are apart.
    pub(super) fn now() -> Self {
        const CLOSE_NS: u64 = 2_000;
        let mut best: Option<(u64, Self)> = None;
        for _ in 0..8 {
            let before = sys::monotonic_ns();
            let unix_ns = sys::wall_ns();
            let apart = sys::monotonic_ns() - before;
            let reading = Self {
                mono_ns: before + apart / 2,
                unix_ns,
            };
            if best.is_none_or(|(known, _)| apart < known) {
                best = Some((apart, reading));
            }
            if apart <= CLOSE_NS {
                break;
            }
        }
        best.map_or(Self { mono_ns: 0, unix_ns: 0 }, |(_, reading)| reading)
    }
}

/// An interval on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    from: ClockReading,
    until: ClockReading,
}

impl Span {
    /// The interval from the end of the one before until now. It begins where that ended, and what the clock drifted is
    /// spread over it; but where somebody set the clock, the new time holds for the whole interval, and it does not
    /// abut.
    pub(super) fn between(before: ClockReading, now: ClockReading) -> Self {
        let mono_ns = now.mono_ns.saturating_sub(before.mono_ns).max(1);
        let begin = now.unix_ns.saturating_sub(mono_ns);
        let drift = begin.abs_diff(before.unix_ns);
        // The kernel lets a clock drift by 0.05 % at most, to meet the right time; more is a step.
        let abuts = drift <= mono_ns / 100 + 1_000_000;
        let from_unix_ns = if abuts {
            before.unix_ns.min(now.unix_ns.saturating_sub(1))
        } else {
            begin
        };
        Self {
            from: ClockReading {
                mono_ns: now.mono_ns - mono_ns,
                unix_ns: from_unix_ns,
            },
            until: now,
        }
    }

    pub(super) fn begin_mono_ns(&self) -> u64 {
        self.from.mono_ns
    }

    pub(super) fn begin_unix_ns(&self) -> u64 {
        self.from.unix_ns
    }

    pub(super) fn until_unix_ns(&self) -> u64 {
        self.until.unix_ns
    }

    /// Wall time of a sample; what is outside (a record begun before the interval and written in it) goes to its edge.
    pub(super) fn unix_ns(&self, mono_ns: u64) -> u64 {
        let (from, until) = (self.from, self.until);
        let since = u128::from(mono_ns.saturating_sub(from.mono_ns));
        let (wall, mono) = (until.unix_ns - from.unix_ns, until.mono_ns - from.mono_ns);
        let offset = since * u128::from(wall) / u128::from(mono);
        let offset = u64::try_from(offset).unwrap_or(u64::MAX);
        from.unix_ns.saturating_add(offset).min(until.unix_ns - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(mono_ns: u64, unix_ns: u64) -> ClockReading {
        ClockReading { mono_ns, unix_ns }
    }

    #[test]
    fn intervals_abut_and_distinct_samples_stay_distinct_while_the_clock_drifts() {
        for drift in [-400_000i64, -3, 0, 7, 400_000] {
            let before = at(10 * SECOND, 1_000 * SECOND);
            let now = at(15 * SECOND, (1_005 * SECOND).saturating_add_signed(drift));
            let span = Span::between(before, now);
            assert_eq!(
                (span.begin_unix_ns(), span.until_unix_ns()),
                (before.unix_ns, now.unix_ns)
            );
            let times: Vec<u64> = (0..100).map(|i| span.unix_ns(now.mono_ns - 1 - i * 2_000)).collect();
            assert!(times.windows(2).all(|pair| pair[0] > pair[1]), "{drift}: {times:?}");
            assert_eq!(span.unix_ns(before.mono_ns), before.unix_ns);
            assert!(times[0] < now.unix_ns);
        }
    }

    #[test]
    fn a_clock_that_is_set_changes_the_interval_and_not_its_length() {
        for step in [-3_600i64, -1, 1, 86_400] {
            let step_ns = step * SECOND as i64;
            let before = at(10 * SECOND, 100_000 * SECOND);
            let now = at(15 * SECOND, (100_005 * SECOND).saturating_add_signed(step_ns));
            let span = Span::between(before, now);
            assert_eq!(span.until_unix_ns() - span.begin_unix_ns(), 5 * SECOND);
            assert_eq!(span.unix_ns(12 * SECOND), now.unix_ns - 3 * SECOND);
        }
    }

    #[test]
    fn what_lies_outside_goes_to_the_edge_and_empty_intervals_do_no_harm() {
        let span = Span::between(at(10, 1_000), at(20, 1_010));
        assert_eq!(
            (span.unix_ns(3), span.unix_ns(20), span.unix_ns(u64::MAX)),
            (1_000, 1_009, 1_009)
        );
        let empty = Span::between(at(10, 1_000), at(10, 1_000));
        assert!(empty.begin_unix_ns() < empty.until_unix_ns());
        assert_eq!(empty.unix_ns(10), empty.begin_unix_ns());
    }

    #[test]
    fn both_clocks_are_read_together() {
        let (first, second) = (ClockReading::now(), ClockReading::now());
        assert!(first.mono_ns <= second.mono_ns);
        let offset = |reading: ClockReading| i128::from(reading.unix_ns) - i128::from(reading.mono_ns);
        assert!((offset(first) - offset(second)).abs() < 50_000_000);
    }
}
