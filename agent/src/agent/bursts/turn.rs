//! What the sampling thread does so that a burst begins, ends, and is told.

use std::collections::BTreeSet;

use super::conditions::Conditions;
use super::state::{Running, list};
use crate::agent::clock::ClockReading;
use crate::agent::sampling::Sampling;
use crate::agent::threads::AgentError;
use crate::kernel::{self, Burst};
use crate::ship::{BurstOrder, BurstReport, BurstState};
use crate::sys;

const SECOND_NS: u64 = 1_000_000_000;
/// How often the processes of a burst are looked for: those that come meanwhile are sampled as ever until then.
const MEMBERS_NS: u64 = 250_000_000;

impl Sampling {
    /// Begins what was asked for, and ends what is over.
    pub(in crate::agent) fn turn_burst(&mut self, now: u64) -> Result<(), AgentError> {
        let Some(desk) = self.bursting.desk.clone() else {
            return Ok(());
        };
        if let Some(running) = &self.bursting.running {
            if let Some(reason) = desk.take_end(&running.order.id) {
                self.end_burst(BurstState::Cancelled, &reason)?;
            } else if now >= running.until_ns {
                self.end_burst(BurstState::Ended, "")?;
            } else if running.conditions.are_of_programs() && now >= running.members_ns {
                self.look_for_members(now)?;
            }
        }
        while !self.bursting.is_running()
            && let Some(order) = desk.take_order()
        {
            self.begin_burst(order)?;
        }
        Ok(())
    }

    fn begin_burst(&mut self, order: BurstOrder) -> Result<(), AgentError> {
        let usual_hz = self.config.frequency_hz;
        let checked = self.bursting.check(&order, usual_hz, &kernel::online_cpus()?);
        let (cpus, conditions) = match checked.and_then(|cpus| Ok((cpus, Conditions::of(&order)?))) {
            Ok(both) => both,
            Err(reason) => {
                self.bursting.refuse(order, reason);
                return Ok(());
            }
        };
        if self.bursting.rate_hz(order.frequency_hz, usual_hz) == 0 {
            let reason =
                "bursts took so much CPU time that --cpu-limit leaves none: wait a minute, or ask for a lower rate";
            self.bursting.refuse(order, reason.to_owned());
            return Ok(());
        }
        let counters = self.sensor.counters()?;
        let begun = ClockReading::now();
        let length_ns = u64::from(order.seconds) * SECOND_NS;
        self.bursting.running = Some(Running {
            cpus,
            conditions,
            until_ns: begun.mono_ns + length_ns,
            from_ms: begun.unix_ns / 1_000_000,
            until_ms: (begun.unix_ns + length_ns) / 1_000_000,
            remark: String::new(),
            taken: counters.burst_taken,
            used_seconds: used_seconds(counters.bpf_ns),
            members_ns: 0,
            order,
        });
        self.bursting.has_run = true;
        self.look_for_members(begun.mono_ns)?;
        self.start_timers()
    }

    /// Has the burst that runs told at the rate that it may have now.
    fn start_timers(&mut self) -> Result<(), AgentError> {
        let usual_hz = self.config.frequency_hz;
        let asked_hz = self
            .bursting
            .running
            .as_ref()
            .map_or(0, |running| running.order.frequency_hz);
        let rate_hz = self.bursting.rate_hz(asked_hz, usual_hz);
        let Some(running) = &mut self.bursting.running else {
            return Ok(());
        };
        if rate_hz == 0 {
            return self.end_burst(BurstState::Cancelled, "--cpu-limit leaves no CPU time for it");
        }
        if rate_hz < asked_hz {
            running.remark = format!("--cpu-limit leaves CPU time for {rate_hz} Hz");
        }
        let burst = Burst {
            cpus: &running.cpus,
            period_ns: kernel::period_ns(rate_hz),
            until_ns: running.until_ns,
            of_members: running.conditions.are_of_programs(),
            threads: &running.conditions.threads,
        };
        match self.sensor.begin_burst(&burst) {
            Ok(_) => {
                let id = running.order.id.as_str();
                tracing::info!(id, rate_hz, cpus = list(&running.cpus), "a burst runs");
                self.tell_burst(BurstState::Running, "")
            }
            Err(error) => {
                let reason = error.to_string();
                self.end_burst(BurstState::Cancelled, &reason)
            }
        }
    }

    /// The kernel side goes back to the usual rate, and the server is told what it took.
    fn end_burst(&mut self, state: BurstState, reason: &str) -> Result<(), AgentError> {
        self.sensor.end_burst()?;
        self.sensor.set_burst_members(&BTreeSet::new())?;
        if let Some(running) = &mut self.bursting.running {
            let now = ClockReading::now();
            // One that ran to its end has the end that it was to have.
            if state != BurstState::Ended {
                running.until_ms = now.unix_ns / 1_000_000;
            }
            tracing::info!(id = running.order.id, ?state, reason, "a burst is over");
        }
        self.tell_burst(state, reason)?;
        self.bursting.running = None;
        Ok(())
    }

    /// The agent stops: so does what runs.
    pub(in crate::agent) fn stop_burst(&mut self) -> Result<(), AgentError> {
        if self.bursting.is_running() {
            self.end_burst(BurstState::Cancelled, "the agent was stopped")?;
        }
        Ok(())
    }

    fn tell_burst(&self, state: BurstState, reason: &str) -> Result<(), AgentError> {
        let Some(running) = &self.bursting.running else {
            return Ok(());
        };
        let counters = self.sensor.counters()?;
        let (asked_hz, usual_hz) = (running.order.frequency_hz, self.config.frequency_hz);
        let reason = if reason.is_empty() { &running.remark } else { reason };
        self.bursting.report(BurstReport {
            id: running.order.id.clone(),
            state,
            from_ms: running.from_ms,
            until_ms: running.until_ms,
            cpus: list(&running.cpus),
            frequency_hz: self.bursting.rate_hz(asked_hz, usual_hz).max(usual_hz),
            samples: counters.burst_taken - running.taken,
            cpu_seconds: used_seconds(counters.bpf_ns) - running.used_seconds,
            reason: reason.to_owned(),
        });
        Ok(())
    }

    fn look_for_members(&mut self, now: u64) -> Result<(), AgentError> {
        let running = self.bursting.running.as_mut();
        let Some(running) = running.filter(|running| running.conditions.are_of_programs()) else {
            return Ok(());
        };
        running.members_ns = now + MEMBERS_NS;
        let members = self.table.running(|program| running.conditions.meets(program), now);
        let left_out = self.sensor.set_burst_members(&members)?;
        self.bursting.members_left_out = self.bursting.members_left_out.max(left_out);
        Ok(())
    }

    /// After an interval that took more CPU time than `--cpu-limit` allows, in which a burst ran: the burst has less,
    /// and all else keeps its rate. False where it has no less to go to.
    pub(in crate::agent) fn lower_burst(&mut self) -> Result<bool, AgentError> {
        if !self.bursting.lower() {
            return Ok(false);
        }
        tracing::warn!(
            divisor = self.bursting.divisor,
            "a burst took more CPU time than --cpu-limit allows: its rate is lowered"
        );
        self.start_timers()?;
        Ok(true)
    }

    /// After an interval that left room: bursts may have more again.
    pub(in crate::agent) fn raise_burst(&mut self) -> Result<(), AgentError> {
        if self.bursting.divisor > 1 {
            self.bursting.divisor /= 2;
            self.start_timers()?;
        }
        Ok(())
    }
}

fn used_seconds(bpf_ns: u64) -> f64 {
    (sys::process_cpu_ns() + bpf_ns) as f64 / 1e9
}
