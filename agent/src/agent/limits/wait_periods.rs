//! What a sample of a thread that waits stands for: so much that there are not too many of them.

use crate::kernel::WaitCounters;

/// Longest period of a thread that runs now and then.
const MAX_PERIOD_NS: u64 = 5_000_000_000;
/// And of one that sleeps: each is told about once in so long on the machine with the most threads.
const MAX_SLEEPER_PERIOD_NS: u64 = 3_600_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// The periods of the clocks that threads' waits run by. They are powers of two times the configured one.
#[derive(Debug, Clone)]
pub(in crate::agent) struct WaitPeriods {
    configured_ns: u64,
    period_ns: u64,
    sleeper_period_ns: u64,
    /// Counters at the last call.
    before: WaitCounters,
    /// How often the period of threads that run was lengthened.
    pub(in crate::agent) lengthened: u64,
}

impl WaitPeriods {
    pub(in crate::agent) fn new(configured_ns: u64) -> Self {
        Self {
            configured_ns,
            period_ns: configured_ns,
            sleeper_period_ns: configured_ns,
            before: WaitCounters::default(),
            lengthened: 0,
        }
    }

    /// Of threads that run now and then, and of those that sleep.
    pub(in crate::agent) fn both_ns(&self) -> (u64, u64) {
        (self.period_ns, self.sleeper_period_ns)
    }

    /// After an interval of so many seconds with these counters, cumulative: `budget` is samples a second of
    /// threads that run, and as many again are for those that sleep, which are told at each of so many looks.
    pub(in crate::agent) fn after(&mut self, seconds: f64, budget: f64, looks: u64, now: WaitCounters) {
        let sleepers = now.sleepers.saturating_sub(self.before.sleepers) as f64;
        let told = now.sleepers_told.saturating_sub(self.before.sleepers_told);
        let taken = now.taken.saturating_sub(self.before.taken).saturating_sub(told) as f64 / seconds;
        self.before = now;
        if taken > budget && self.period_ns < MAX_PERIOD_NS {
            // As a wait gives one sample at most, however many periods it has, fewer may not be had at once.
            let over = (taken / budget).log2().ceil().clamp(1.0, 4.0) as u32;
            self.period_ns = (self.period_ns << over).min(MAX_PERIOD_NS.max(self.configured_ns));
            self.lengthened += 1;
        } else if taken < budget / 4.0 && self.period_ns > self.configured_ns {
            self.period_ns = (self.period_ns / 2).max(self.configured_ns);
        }
        // At a look a thread that sleeps gives one sample, whatever its period is. Each look counts it anew.
        let told_ns = sleepers / budget * SECOND_NS as f64;
        let wanted_ns = told_ns / looks.max(1) as f64;
        let mut period_ns = self.configured_ns;
        if told_ns > seconds * SECOND_NS as f64 {
            while (period_ns as f64) < wanted_ns && period_ns < MAX_SLEEPER_PERIOD_NS {
                period_ns = period_ns.saturating_mul(2);
            }
        }
        // A change draws the phases anew: not for a few threads more or less.
        if period_ns > self.sleeper_period_ns || period_ns < self.sleeper_period_ns / 2 {
            self.sleeper_period_ns = period_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn after(periods: &mut WaitPeriods, taken: u64, sleepers: u64) -> (u64, u64) {
        let now = WaitCounters {
            taken: periods.before.taken + taken,
            sleepers: periods.before.sleepers + sleepers,
            ..WaitCounters::default()
        };
        periods.after(5.0, 80.0, 1, now);
        let (period, sleeper) = periods.both_ns();
        (period / MS, sleeper / MS)
    }

    #[test]
    fn few_waits_keep_the_configured_period() {
        let mut periods = WaitPeriods::new(50 * MS);
        for _ in 0..10 {
            assert_eq!(after(&mut periods, 400, 400), (50, 50));
        }
        assert_eq!(periods.lengthened, 0);
    }

    #[test]
    fn many_waits_lengthen_it_until_they_fit_and_it_comes_back() {
        let mut periods = WaitPeriods::new(50 * MS);
        assert_eq!(after(&mut periods, 20_000, 0), (3200 / 4, 50), "by 16 at most");
        assert_eq!(after(&mut periods, 1250, 0), (3200, 50));
        assert_eq!(after(&mut periods, 300, 0), (3200, 50));
        assert_eq!(after(&mut periods, 90, 0), (1600, 50));
        assert_eq!(after(&mut periods, u64::from(u32::MAX), 0), (5000, 50));
        let back: Vec<u64> = (0..8).map(|_| after(&mut periods, 0, 0).0).collect();
        assert_eq!(back.last(), Some(&50));
    }

    #[test]
    fn many_that_sleep_are_told_in_turns() {
        let mut periods = WaitPeriods::new(50 * MS);
        let (_, period) = after(&mut periods, 0, 3000);
        // 3000 threads at 80 a second: each in 37.5 seconds or more, and less than twice that.
        assert!((37_500..75_000).contains(&period), "{period}");
        assert_eq!(after(&mut periods, 0, 2900).1, period, "no change for a few");
        assert_eq!(after(&mut periods, 0, 100).1, 50);
    }

    /// In turns there are several looks in an interval: the threads do not become more by that.
    #[test]
    fn how_often_they_are_looked_at_does_not_make_them_more() {
        let period_of = |sleepers: u64, looks: u64| {
            let mut periods = WaitPeriods::new(50 * MS);
            let now = WaitCounters {
                sleepers: sleepers * looks,
                ..WaitCounters::default()
            };
            periods.after(5.0, 80.0, looks, now);
            periods.both_ns().1 / MS
        };
        assert_eq!(period_of(3000, 10), period_of(3000, 1));
        // 300 threads at ten looks would be 600 samples a second: each is told once in 3.75 seconds or more.
        assert!((3_750..7_500).contains(&period_of(300, 10)), "{}", period_of(300, 10));
        assert_eq!((period_of(300, 1), period_of(30, 10)), (50, 50), "few enough as it is");
    }
}
