//! What the sampling thread does so that waits are seen, and told in time, without costing too much.

use crate::agent::limits::WaitTurns;
use crate::agent::sampling::Sampling;
use crate::agent::threads::AgentError;
use crate::kernel::Counters;
use crate::sys::{monotonic_ns, thread_cpu_ns};

/// Time to observe before it is known what it costs, within an interval and at its end.
const KNOWN_WITHIN_NS: u64 = 400_000_000;
const KNOWN_NS: u64 = 50_000_000;
/// Turns are up to this part of their mean length longer or shorter: nothing is in step with them.
const TURN_JITTER: f64 = 0.4;

impl Sampling {
    /// Begins the next turn of observation where it is time, and not all of the time is observed. True where one has
    /// ended that was: who sleeps was told, and is to be drained.
    pub(in crate::agent) fn turn_waits(&mut self, now_ns: u64) -> Result<bool, AgentError> {
        if self.waiting.turn_until_ns().is_none_or(|until_ns| now_ns < until_ns) {
            return Ok(false);
        }
        let was_observed = self.waiting.observed.is_now();
        self.begin_turn()?;
        Ok(was_observed && !self.waiting.observed.is_now())
    }

    /// True where observation costs so much that the interval is to end at once: what comes after it is observed in
    /// more turns, and stands for more.
    pub(in crate::agent) fn waits_cost_too_much(&mut self) -> Result<bool, AgentError> {
        let observed_ns = self.waiting.observed.up_to_ns(monotonic_ns());
        // Where naming is behind, the interval cannot end.
        if observed_ns < KNOWN_WITHIN_NS || self.naming_is_behind {
            return Ok(false);
        }
        let bpf_ns = self.sensor.waits_bpf_ns()?.saturating_sub(self.waiting.before.bpf_ns);
        Ok(self.waiting.turns.are_too_few(self.share(bpf_ns, observed_ns)))
    }

    /// Of the machine's CPU time.
    fn share(&self, cpu_ns: u64, within_ns: u64) -> f64 {
        cpu_ns as f64 / within_ns.max(1) as f64 / f64::from(self.cpus.max(1))
    }

    fn begin_turn(&mut self) -> Result<(), AgentError> {
        let is_observed = self.waiting.turns.begin(&mut self.random);
        let has_ended = self.waiting.observed.is_now() && !is_observed;
        let cpu_ns = thread_cpu_ns();
        let now_ns = self.sensor.observe_waits(is_observed)?;
        if has_ended {
            self.sensor.fetch()?;
            self.waiting.looks += 1;
            self.waiting.look_ns = thread_cpu_ns().saturating_sub(cpu_ns);
        }
        self.waiting.observed.turn(is_observed, now_ns);
        let length_ns = WaitTurns::length_ns(self.waiting.look_ns);
        self.waiting.turn_until_ns = now_ns + self.random.about(length_ns, TURN_JITTER);
        Ok(())
    }

    /// Nothing is observed from now on. Who sleeps is told up to now, and looked at while it does.
    pub(in crate::agent) fn end_waits(&mut self) -> Result<(), AgentError> {
        let now_ns = self.sensor.observe_waits(false)?;
        self.waiting.observed.end(now_ns);
        self.sensor.fetch()?;
        Ok(())
    }

    /// Has threads told that sleep on, so that their time is in the interval in which it passed. Gives what the
    /// samples of waits are to be multiplied by, since not all of the interval was observed.
    pub(in crate::agent) fn tell_sleepers(&mut self) -> Result<f64, AgentError> {
        self.sensor.visit_sleepers(self.waiting.periods.both_ns())?;
        self.waiting.looks += u64::from(self.waiting.observed.is_now());
        Ok(self.waiting.observed.take_factor(monotonic_ns()))
    }

    /// How long of the interval that ends here waits were observed; none where they are not seen.
    pub(in crate::agent) fn take_observed_ns(&mut self, interval_ns: u64) -> Option<u64> {
        let sees_waits = self.sensor.sees_waits();
        sees_waits.then(|| self.waiting.observed.take_ns(interval_ns))
    }

    /// After an interval of so many seconds.
    pub(in crate::agent) fn keep_wait_limits(&mut self, seconds: f64, counters: &Counters) -> Result<(), AgentError> {
        let waits = counters.waits;
        let bpf_ns = waits.bpf_ns.saturating_sub(self.waiting.before.bpf_ns);
        let switches = waits.switches.saturating_sub(self.waiting.before.switches);
        self.waiting.before = waits;
        let budget = self.waits_per_second();
        let observed_ns = self.waiting.observed.last_ns();
        let is_known = observed_ns >= KNOWN_NS;
        if is_known {
            let looks = std::mem::take(&mut self.waiting.looks);
            self.waiting.periods.after(seconds, budget, looks, waits);
        }
        let share = self.share(bpf_ns, observed_ns);
        if is_known && self.waiting.turns.after(share) {
            let turns = self.waiting.turns.turns();
            tracing::info!(
                turns,
                switches_per_second = (switches as f64 / seconds) as u64,
                share_while_observed = format!("{share:.4}"),
                "waits are observed in one turn of so many"
            );
            self.begin_turn()?;
        }
        Ok(())
    }

    /// Samples of waits that there may be: about twice as many as the timers give on busy CPUs, of threads that run
    /// now and then, and as many again of those that sleep.
    fn waits_per_second(&self) -> f64 {
        2.0 * f64::from(self.config.frequency_hz / self.divisor) * f64::from(self.cpus.max(1))
    }
}
