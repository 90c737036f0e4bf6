//! What the sampling thread does so that waits are seen, and told in time, without costing too much.

use super::limits::{WaitPeriods, WaitTurns};
use super::sampling::Sampling;
use super::threads::AgentError;
use crate::kernel::{Counters, WaitCounters};

/// How waits are observed at present.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) periods: WaitPeriods,
    pub(super) turns: WaitTurns,
    /// Up to the last interval's end.
    before: WaitCounters,
}

impl Waiting {
    pub(super) fn new(period_ns: u64) -> Self {
        Self {
            periods: WaitPeriods::new(period_ns),
            turns: WaitTurns::default(),
            before: WaitCounters::default(),
        }
    }

    /// What was done less well, by name.
    pub(super) fn limits(&self, counters: &Counters) -> [(&'static str, u64); 5] {
        [
            ("wait_period_lengthened", self.periods.lengthened),
            ("wait_turns_lengthened", self.turns.lengthened),
            ("wait_stacks_moved", counters.waits.stacks_moved),
            ("wait_stacks_refused", counters.waits.stacks_refused),
            ("wait_threads_left_out", counters.waits.threads_left_out),
        ]
    }
}

impl Sampling {
    /// Begins the next turn of observation, where not all of the time is observed.
    pub(super) fn turn_waits(&mut self) -> Result<(), AgentError> {
        if self.waiting.turns.turns() > 1 {
            let is_observed = self.waiting.turns.begin(&mut self.random);
            self.sensor.observe_waits(is_observed)?;
        }
        Ok(())
    }

    /// Has threads told that sleep on, so that their time is in the interval in which it passed.
    pub(super) fn tell_sleepers(&mut self) -> Result<(), AgentError> {
        Ok(self.sensor.visit_sleepers(self.waiting.periods.both_ns())?)
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
            // The first turn begins at once: what is not observed has to be one of a round.
            self.sensor.set_wait_turns(turns)?;
            let is_observed = self.waiting.turns.begin(&mut self.random);
            self.sensor.observe_waits(is_observed)?;
        }
        Ok(())
    }

    /// Samples of waits that there may be: about twice as many as the timers give on busy CPUs, of threads that run now and
    /// then, and as many again of those that sleep.
    fn waits_per_second(&self) -> f64 {
        2.0 * f64::from(self.config.frequency_hz / self.divisor) * f64::from(self.cpus.max(1))
    }
}
