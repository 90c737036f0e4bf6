//! What the sampling thread does so that waits are seen, and told in time, without costing too much.

use super::limits::{WaitPeriods, WaitTurns};
use super::sampling::Sampling;
use super::threads::AgentError;
use crate::kernel::{Counters, WaitCounters};
use crate::sys::monotonic_ns;

/// How waits are observed at present.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) periods: WaitPeriods,
    pub(super) turns: WaitTurns,
    /// Up to the last interval's end.
    before: WaitCounters,
    observed: Observed,
}

/// How much of the time waits were observed.
#[derive(Debug)]
struct Observed {
    /// Since when there was no share.
    from_ns: u64,
    observed_ns: u64,
    /// Since when they are observed, and that is not in the sum yet.
    since_ns: Option<u64>,
}

impl Observed {
    fn add(&mut self, now_ns: u64) {
        self.observed_ns += self.since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
        self.since_ns = self.since_ns.map(|_| now_ns);
    }

    fn turn(&mut self, is_observed: bool, now_ns: u64) {
        self.add(now_ns);
        self.since_ns = is_observed.then_some(now_ns);
    }

    /// What the time up to now is of what was observed of it. Where that is nothing, the next call's has this time, too.
    fn take_factor(&mut self, now_ns: u64) -> f64 {
        self.add(now_ns);
        if self.observed_ns == 0 {
            return 1.0;
        }
        let factor = now_ns.saturating_sub(self.from_ns) as f64 / self.observed_ns as f64;
        (self.from_ns, self.observed_ns) = (now_ns, 0);
        factor.max(1.0)
    }
}

impl Waiting {
    pub(super) fn new(period_ns: u64, now_ns: u64) -> Self {
        Self {
            periods: WaitPeriods::new(period_ns),
            turns: WaitTurns::default(),
            before: WaitCounters::default(),
            observed: Observed {
                from_ns: now_ns,
                observed_ns: 0,
                since_ns: Some(now_ns),
            },
        }
    }

    /// What was done less well, by name.
    pub(super) fn limits(&self, counters: &Counters) -> [(&'static str, u64); 6] {
        [
            ("wait_period_lengthened", self.periods.lengthened),
            ("wait_turns_lengthened", self.turns.lengthened),
            ("wait_stacks_moved", counters.waits.stacks_moved),
            ("wait_stacks_refused", counters.waits.stacks_refused),
            ("wait_threads_left_out", counters.waits.threads_left_out),
            ("run_queues_left_out", counters.waits.queues_left_out),
        ]
    }
}

impl Sampling {
    /// Begins the next turn of observation, where not all of the time is observed.
    pub(super) fn turn_waits(&mut self) -> Result<(), AgentError> {
        if self.waiting.turns.turns() > 1 {
            self.begin_turn()?;
        }
        Ok(())
    }

    fn begin_turn(&mut self) -> Result<(), AgentError> {
        let is_observed = self.waiting.turns.begin(&mut self.random);
        let now_ns = self.sensor.observe_waits(is_observed)?;
        self.waiting.observed.turn(is_observed, now_ns);
        Ok(())
    }

    /// Has threads told that sleep on, so that their time is in the interval in which it passed. Gives what the samples of
    /// waits are to be multiplied by, since not all of the interval was observed.
    pub(super) fn tell_sleepers(&mut self) -> Result<f64, AgentError> {
        self.sensor.visit_sleepers(self.waiting.periods.both_ns())?;
        Ok(self.waiting.observed.take_factor(monotonic_ns()))
    }

    /// After an interval of so many seconds.
    pub(super) fn keep_wait_limits(&mut self, seconds: f64, counters: &Counters) -> Result<(), AgentError> {
        let waits = counters.waits;
        let cpu_seconds = waits.bpf_ns.saturating_sub(self.waiting.before.bpf_ns) as f64 / 1e9;
        let switches = waits.switches.saturating_sub(self.waiting.before.switches);
        self.waiting.before = waits;
        let budget = self.waits_per_second();
        self.waiting.periods.after(seconds, budget, waits);
        let share = cpu_seconds / seconds / f64::from(self.cpus.max(1));
        if self.waiting.turns.after(share) {
            let turns = self.waiting.turns.turns();
            tracing::info!(
                turns,
                switches_per_second = (switches as f64 / seconds) as u64,
                used_share = format!("{share:.4}"),
                "waits are observed in one turn of so many"
            );
            self.begin_turn()?;
        }
        Ok(())
    }

    /// Samples of waits that there may be: about twice as many as the timers give on busy CPUs, of threads that run now and
    /// then, and as many again of those that sleep.
    fn waits_per_second(&self) -> f64 {
        2.0 * f64::from(self.config.frequency_hz / self.divisor) * f64::from(self.cpus.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_observed_stands_for_all_of_the_time() {
        let mut observed = Observed {
            from_ns: 100,
            observed_ns: 0,
            since_ns: Some(100),
        };
        assert_eq!(observed.take_factor(200), 1.0);
        observed.turn(false, 250);
        assert_eq!(observed.take_factor(400), 4.0, "50 of 200");
        assert_eq!(observed.take_factor(500), 1.0, "nothing, of which nothing is told");
        observed.turn(true, 550);
        assert_eq!(
            observed.take_factor(600),
            4.0,
            "50, for 200 since the last that was told"
        );
        assert_eq!(observed.take_factor(700), 1.0);
    }
}
