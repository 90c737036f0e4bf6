//! When a CPU's timer ticks. Pure: it knows times, and no timer.
//!
//! A timer of a fixed period beats with programs that work at a rate of their own: at exactly 20 Hz, of ten programs
//! that compute for 4 ms four times a second, four were never met. The kernel's timer has one period until it is told
//! another, from then on; that costs an interrupt of its CPU, too much for every tick. So the period is drawn anew
//! about once a second, at times that nothing else knows. By simulation that is as good as chance (the test below):
//! each stretch has another phase and another period.
//!
//! What a change loses of the period that had begun, and what a stretch has too much or too little, the next stretches
//! make up for: ticks are due for all the time that passed, less a bounded rest, however long it is.

use crate::random::Random;

/// How periods are drawn.
#[derive(Debug)]
pub(super) struct Jitter {
    /// A stretch's period differs from the mean by so much of it at most.
    spread: f64,
    /// And at least: programs that work at the agent's own mean rate, or a simple part of it, are the likeliest of all.
    least: f64,
    /// How long a stretch is at least and at most, in periods, but never shorter than these nanoseconds. It ends when
    /// somebody looks after that.
    stretch_periods: (f64, f64),
    stretch_ns: (f64, f64),
    /// Up to this part of a stretch's length may be owed, to either side, before only one of the two signs is drawn.
    owed: f64,
    /// The lowest bit of each period: by it the program tells whose tick it is.
    mark: u64,
}

/// Of the timers that always run.
pub(super) static USUAL: Jitter = Jitter {
    spread: 0.25,
    least: 0.03,
    stretch_periods: (5.0, 25.0),
    stretch_ns: (250_000_000.0, 1_250_000_000.0),
    owed: 0.025,
    mark: 0,
};

/// Of a burst's. It may last for a second, and what is owed at its end is an error of its times: so little is drawn,
/// and often, that this is some milliseconds.
pub(super) static BURST: Jitter = Jitter {
    spread: 0.04,
    least: 0.01,
    stretch_periods: (5.0, 25.0),
    stretch_ns: (50_000_000.0, 150_000_000.0),
    owed: 0.004,
    mark: 1,
};

/// A period that was drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Stretch {
    /// What a tick stands for.
    mean_ns: u64,
    pub(super) period_ns: u64,
    length_ns: u64,
}

/// One CPU's timer.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    jitter: &'static Jitter,
    stretch: Stretch,
    /// When the stretch began: its first tick is a period later.
    begun_ns: u64,
    /// Ticks due before the stretch.
    due: u64,
    /// Time before the stretch, less what the ticks due in it stand for.
    owed_ns: i64,
}

impl Schedule {
    /// Not running yet: for the first stretch.
    pub(super) fn new(jitter: &'static Jitter, now_ns: u64) -> Self {
        Self {
            jitter,
            stretch: Stretch {
                mean_ns: u64::MAX,
                period_ns: u64::MAX,
                length_ns: 0,
            },
            begun_ns: now_ns,
            due: 0,
            owed_ns: 0,
        }
    }

    fn due_in_stretch(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.begun_ns) / self.stretch.period_ns
    }

    /// Ticks due since the first stretch began.
    pub(super) fn due(&self, now_ns: u64) -> u64 {
        self.due + self.due_in_stretch(now_ns)
    }

    /// Time that passed since the first stretch began, less what the ticks due in it stand for.
    fn owed_ns(&self, now_ns: u64) -> i64 {
        let ticks = self.due_in_stretch(now_ns);
        if self.stretch.mean_ns == u64::MAX {
            return self.owed_ns;
        }
        let passed = now_ns.saturating_sub(self.begun_ns) as i64;
        self.owed_ns + passed - (ticks as i64).saturating_mul(self.stretch.mean_ns as i64)
    }

    /// By how much the stretch has been longer than it was to be; none while it has not.
    pub(super) fn overdue_ns(&self, now_ns: u64) -> Option<u64> {
        now_ns.saturating_sub(self.begun_ns).checked_sub(self.stretch.length_ns)
    }

    /// Draws the next period, for ticks that stand for `mean_ns`.
    pub(super) fn draw(&self, mean_ns: u64, now_ns: u64, random: &mut Random) -> Stretch {
        let (mean, jitter) = (mean_ns as f64, self.jitter);
        let (shortest, longest) = (
            jitter.stretch_ns.0.max(jitter.stretch_periods.0 * mean),
            jitter.stretch_ns.1.max(jitter.stretch_periods.1 * mean),
        );
        let length = random.between(shortest, longest);
        let most_owed = jitter.owed * (shortest + longest);
        let owed = self.owed_ns(now_ns) as f64 / most_owed;
        let part = random.between(jitter.least, jitter.spread);
        // Where time is owed, ticks come faster.
        let part = if random.between(-1.0, 1.0) < owed { -part } else { part };
        Stretch {
            mean_ns,
            period_ns: (mean * (1.0 + part)) as u64 & !1 | jitter.mark,
            length_ns: length as u64,
        }
    }

    /// The timer was told at that time.
    pub(super) fn begin(&mut self, stretch: Stretch, now_ns: u64) {
        *self = Self {
            jitter: self.jitter,
            stretch,
            begun_ns: now_ns,
            due: self.due(now_ns),
            owed_ns: self.owed_ns(now_ns),
        };
    }

    /// The CPU was off until now, or not looked at: no tick was due.
    pub(super) fn resume(&mut self, stretch: Stretch, off_since_ns: u64, now_ns: u64) {
        self.begin(stretch, off_since_ns.min(now_ns));
        self.begun_ns = now_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const MS: u64 = 1_000_000;
    const POLLERS: u64 = 10;
    const WORK_NS: u64 = 4 * MS;

    /// Calls `tick` with the times of ticks until then, of one CPU whose stretches end at looks about half a second
    /// apart.
    fn run(
        schedule: &mut Schedule,
        mean_ns: u64,
        times: std::ops::Range<u64>,
        random: &mut Random,
        mut tick: impl FnMut(u64),
    ) {
        let mut now = times.start;
        while now < times.end {
            if schedule.overdue_ns(now).is_some() {
                let stretch = schedule.draw(mean_ns, now, random);
                schedule.begin(stretch, now);
            }
            let look = (now + random.about(S / 2, 0.4)).min(times.end);
            let period = schedule.stretch.period_ns;
            let mut at = schedule.begun_ns + (schedule.due_in_stretch(now) + 1) * period;
            while at <= look {
                tick(at);
                at += period;
            }
            now = look;
        }
    }

    /// Chi-squared, with ten degrees of freedom, of the ticks that meet each of ten programs in two minutes, which work
    /// for 4 ms at this rate, one after the other; and all ticks.
    fn against_pollers(rate: u64, ticks: impl FnOnce(&mut dyn FnMut(u64))) -> (f64, u64) {
        let (mut met, mut all) = ([0u64; POLLERS as usize], 0);
        let round = S / rate;
        ticks(&mut |at| {
            all += 1;
            let (poller, phase) = (at % round * POLLERS / round, at % round % (round / POLLERS));
            met[poller as usize] += u64::from(phase < WORK_NS);
        });
        let expected = all as f64 * (WORK_NS * rate) as f64 / S as f64;
        let distance = |count: &u64| (*count as f64 - expected).powi(2) / expected;
        (met.iter().map(distance).sum(), all)
    }

    #[test]
    fn no_poller_is_in_step_with_it_and_the_mean_is_exact() {
        for hz in [20, 99] {
            let mean_ns = S / hz;
            for rate in [1, 4, 5, 10, 20] {
                let (mut beyond, mut worst) = (0, 0.0f64);
                for seed in 0..200 {
                    let mut random = Random::seeded(seed * 1000 + hz + rate);
                    let begin = random.about(10 * S, 0.5);
                    let times = begin..begin + 120 * S;
                    let mut schedule = Schedule::new(&USUAL, begin);
                    let (chi_squared, all) = against_pollers(rate, |tick| {
                        run(&mut schedule, mean_ns, times, &mut random, tick);
                    });
                    // One honest sampler of a hundred has more.
                    beyond += u32::from(chi_squared > 23.21);
                    worst = worst.max((all as f64 * mean_ns as f64 / (120 * S) as f64 - 1.0).abs());
                }
                // Expected are 2; 9 or more has one honest sampler of four thousand.
                assert!(beyond <= 8, "{hz} Hz, pollers of {rate} Hz: {beyond} of 200");
                assert!(worst < 0.008, "{hz} Hz: off by {worst}");
            }
        }
    }

    #[test]
    fn a_fixed_period_is_in_step_with_them() {
        let ticks = |tick: &mut dyn FnMut(u64)| (0..2400).for_each(|i| tick(MS + i * (S / 20)));
        assert!(against_pollers(4, ticks).0 > 1000.0);
    }

    #[test]
    fn over_any_longer_time_ticks_stand_for_all_of_it_at_every_rate() {
        for hz in [1, 2, 5, 20, 99, 250, 1000] {
            let mut random = Random::seeded(hz);
            let (mut schedule, mut ticks, mean_ns) = (Schedule::new(&USUAL, 0), 0u64, S / hz);
            for hour in 0..4 {
                run(
                    &mut schedule,
                    mean_ns,
                    hour * 3600 * S..(hour + 1) * 3600 * S,
                    &mut random,
                    |_| ticks += 1,
                );
                let passed = (hour + 1) * 3600 * S;
                assert_eq!(ticks, schedule.due(passed));
                let rest = passed as i64 - (ticks * mean_ns) as i64;
                // The longest stretch is 25 periods, or 1.25 s, and a look; a quarter of it.
                let bound = (S as i64).max(12 * mean_ns as i64);
                assert!(rest.abs() < bound, "{hz} Hz, hour {hour}: {rest}");
            }
        }
    }

    #[test]
    fn periods_keep_within_the_spread_and_away_from_the_mean() {
        let mut random = Random::seeded(3);
        let mut schedule = Schedule::new(&USUAL, 0);
        let (mut faster, mut now) = (0, 0);
        for _ in 0..1000 {
            let stretch = schedule.draw(50 * MS, now, &mut random);
            let part = stretch.period_ns as f64 / (50 * MS) as f64 - 1.0;
            assert!((0.0299..=0.25).contains(&part.abs()), "{part}");
            faster += u32::from(part < 0.0);
            schedule.begin(stretch, now);
            now += S;
        }
        // A little more than half: each change loses half a period.
        assert!((500..700).contains(&faster), "{faster}");
    }

    #[test]
    fn a_change_of_rate_carries_over_what_is_owed() {
        let mut random = Random::seeded(5);
        let (mut schedule, mut stand_for, mut now) = (Schedule::new(&USUAL, 0), 0u64, 0);
        for turn in 0..100 {
            let mean_ns = if turn % 2 == 0 { S / 99 } else { S / 6 };
            let stretch = schedule.draw(mean_ns, now, &mut random);
            schedule.begin(stretch, now);
            let until = now + random.about(10 * S, 0.9);
            run(&mut schedule, mean_ns, now..until, &mut random, |_| {
                stand_for += mean_ns
            });
            now = until;
        }
        assert!(now.abs_diff(stand_for) < 2 * S, "{now} {stand_for}");
    }

    #[test]
    fn no_tick_is_due_while_a_cpu_is_off() {
        let mut random = Random::seeded(9);
        let mut schedule = Schedule::new(&USUAL, 0);
        let mut ticks = 0;
        run(&mut schedule, S / 20, 0..60 * S, &mut random, |_| ticks += 1);
        let stretch = schedule.draw(S / 20, 60 * S, &mut random);
        schedule.resume(stretch, 60 * S, 3600 * S);
        assert_eq!(schedule.due(3600 * S), ticks);
        run(&mut schedule, S / 20, 3600 * S..3660 * S, &mut random, |_| ticks += 1);
        assert!(u64::abs_diff(ticks, 2400) < 24, "{ticks}");
    }

    #[test]
    fn a_burst_of_a_second_has_the_ticks_of_a_second() {
        let (mean_ns, mut worst) = (S / 999, 0i64);
        for seed in 0..200 {
            let mut random = Random::seeded(seed);
            let (mut schedule, mut now, mut ticks) = (Schedule::new(&BURST, 0), 0, 0u64);
            // Looked at eight times a second.
            while now < S {
                if schedule.overdue_ns(now).is_some() {
                    let stretch = schedule.draw(mean_ns, now, &mut random);
                    assert_eq!(stretch.period_ns & 1, 1);
                    schedule.begin(stretch, now);
                }
                let look = (now + random.about(S / 8, 0.4)).min(S);
                ticks = schedule.due(look);
                now = look;
            }
            worst = worst.max((ticks as i64 * mean_ns as i64 - S as i64).abs());
        }
        assert!(worst < 12 * MS as i64, "off by {worst} ns");
    }
}
