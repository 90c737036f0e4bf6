//! What the ticks of an agent's timers tell of its CPUs' time.
//!
//! Each CPU has a timer that ticks once a period in the mean, whatever runs there. A tick that does not come tells
//! nothing of its time: the hypervisor had the CPU, interrupts were off for longer than a period, or the timer does not
//! work. That time is neither idle nor busy, and an answer says how much of it there was. Agents tell of it: they know
//! when ticks were due, and add to the idle ticks those that the kernel of a guest leaves out while a CPU is idle. Of
//! older agents, whose periods are all equal, it is what the ticks lack of their CPUs' time.

/// Shares of the CPUs' time. A timer's phase makes a tick more or less of an interval, so that a share may be a little
/// below 0 or above 1 until intervals are added up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ticks {
    /// Met an idle CPU.
    pub idle: f64,
    /// Did not come.
    pub missed: f64,
}

impl Ticks {
    /// Of so many ticks, `idle` among them, of timers with this period on so many CPUs for so long, and so many that
    /// did not come, where the agent tells; `None` where there is nothing to tell.
    #[must_use]
    pub fn new(ticks: i64, idle: i64, missed: Option<i64>, cpus: i64, time_ns: i64, period_ns: i64) -> Option<Self> {
        let ticks = ticks.max(0);
        let idle = idle.clamp(0, ticks);
        if let Some(missed) = missed {
            let of = ticks as f64 + missed.max(0) as f64;
            return (of > 0.0).then(|| Self {
                idle: idle as f64 / of,
                missed: missed.max(0) as f64 / of,
            });
        }
        let expected = cpus as f64 * time_ns.max(0) as f64 / period_ns as f64;
        // One more for each CPU is the timer's phase. Who tells of still more has other timers than it says.
        let of = if period_ns > 0 && ticks as f64 <= expected + cpus as f64 {
            expected
        } else {
            ticks as f64
        };
        (of > 0.0).then(|| Self {
            idle: idle as f64 / of,
            missed: 1.0 - ticks as f64 / of,
        })
    }

    /// The shares of a time of so many nanoseconds.
    #[must_use]
    pub(crate) fn of(self, time_ns: i64) -> TickTime {
        let part = |share: f64| (share * time_ns.max(0) as f64).round() as i64;
        TickTime {
            idle_ns: part(self.idle),
            missed_ns: part(self.missed),
        }
    }
}

/// What [`Ticks`] are of an interval's time, in nanoseconds of one CPU. They are whole, so that a sum of many is the
/// same in whatever order they are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TickTime {
    pub(crate) idle_ns: i64,
    pub(crate) missed_ns: i64,
}

impl TickTime {
    /// That of two intervals.
    #[must_use]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            idle_ns: self.idle_ns.saturating_add(other.idle_ns),
            missed_ns: self.missed_ns.saturating_add(other.missed_ns),
        }
    }

    /// The shares that it is of an interval of that length.
    #[must_use]
    pub(crate) fn shares(self, length_ns: i64) -> Ticks {
        let share = |part_ns: i64| part_ns as f64 / length_ns as f64;
        Ticks {
            idle: share(self.idle_ns),
            missed: share(self.missed_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn shares(ticks: i64, idle: i64, cpus: i64, seconds: i64) -> Option<(f64, f64)> {
        let rounded = |share: f64| (share * 1e9).round() / 1e9;
        Ticks::new(ticks, idle, None, cpus, seconds * S, S / 20)
            .map(|Ticks { idle, missed }| (rounded(idle), rounded(missed)))
    }

    #[test]
    fn ticks_that_did_not_come_are_neither_idle_nor_busy() {
        assert_eq!(shares(200, 50, 2, 5), Some((0.25, 0.0)));
        // One of two CPUs is busy, of the other no tick came.
        assert_eq!(shares(100, 0, 2, 5), Some((0.0, 0.5)));
        assert_eq!(shares(100, 100, 2, 5), Some((0.5, 0.5)));
        assert_eq!(shares(0, 0, 2, 5), Some((0.0, 1.0)));
        // The phase of two timers.
        assert_eq!(shares(202, 202, 2, 5), Some((1.01, -0.01)));
    }

    #[test]
    fn what_an_agent_tells_of_missed_ticks_holds_whatever_their_number() {
        let shares = |ticks, idle, missed| {
            let known = Ticks::new(ticks, idle, Some(missed), 2, 5 * S, S / 20);
            known.map(|Ticks { idle, missed }| (idle, missed))
        };
        // Periods are random: a few ticks more or less of an interval are none that were missed.
        assert_eq!(shares(180, 90, 0), Some((0.5, 0.0)));
        assert_eq!(shares(220, 220, 0), Some((1.0, 0.0)));
        // A CPU whose timer does not work, beside one that is idle.
        assert_eq!(shares(100, 100, 100), Some((0.5, 0.5)));
        assert_eq!(shares(0, 0, 200), Some((0.0, 1.0)));
        assert_eq!((shares(0, 0, 0), shares(-1, 3, -7)), (None, None));
        assert_eq!(shares(i64::MAX, 0, i64::MAX), Some((0.0, 0.5)));
    }

    #[test]
    fn a_tick_more_or_less_of_an_interval_is_gone_in_the_sum() {
        let time = |ticks, idle| Ticks::new(ticks, idle, None, 2, 5 * S, S / 20).unwrap().of(5 * S);
        let (more, less) = (time(201, 101), time(199, 99));
        assert_eq!((more.missed_ns, less.missed_ns), (-25_000_000, 25_000_000));
        let shares = Ticks { idle: 0.5, missed: 0.0 };
        assert_eq!(more.plus(less).shares(10 * S), shares);
    }

    #[test]
    fn times_add_up_to_the_same_in_any_order() {
        let times: Vec<TickTime> = (0..1000)
            .map(|i| {
                Ticks::new(180 + i % 37, i % 97, Some(i % 11), 2, 5 * S, S / 20)
                    .unwrap()
                    .of(5 * S + i)
            })
            .collect();
        let forwards = times.iter().copied().reduce(TickTime::plus).unwrap();
        let backwards = times.iter().rev().copied().reduce(TickTime::plus).unwrap();
        let halves = times
            .chunks(7)
            .map(|some| some.iter().copied().reduce(TickTime::plus).unwrap());
        assert_eq!(
            (forwards, forwards),
            (backwards, halves.reduce(TickTime::plus).unwrap())
        );
    }

    #[test]
    fn accounts_that_do_not_fit_together_are_taken_by_their_ticks() {
        assert_eq!(shares(800, 200, 2, 5), Some((0.25, 0.0)), "more CPUs than are told of");
        assert_eq!(shares(200, 300, 2, 5), Some((1.0, 0.0)));
        assert_eq!(shares(-200, -3, 2, 5), Some((0.0, 1.0)));
        assert_eq!(shares(0, 0, 0, 5), None);
        assert_eq!(shares(0, 0, 2, -5), None);
        for period_ns in [0, -S] {
            assert_eq!(Ticks::new(0, 0, None, 2, S, period_ns), None);
            let known = Ticks::new(40, 10, None, 2, S, period_ns);
            assert_eq!(
                known,
                Some(Ticks {
                    idle: 0.25,
                    missed: 0.0
                })
            );
        }
    }
}
