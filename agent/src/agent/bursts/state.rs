//! What runs, and what may be asked for.

use std::sync::Arc;

use super::conditions::Conditions;
use crate::kernel::{format_cpu_list, parse_cpu_list};
use crate::ship::{BurstDesk, BurstOrder, BurstReport, BurstState};

/// The longest burst.
const MAX_SECONDS: u32 = 60;
/// The rate is never divided by more.
const MAX_DIVISOR: u32 = 32;
/// Bytes of a list of CPUs in a report.
const MAX_CPU_LIST_BYTES: usize = 1024;

/// A burst that runs.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) order: BurstOrder,
    pub(super) cpus: Vec<u32>,
    pub(super) conditions: Conditions,
    /// By `CLOCK_MONOTONIC`.
    pub(super) until_ns: u64,
    /// By the wall clock, milliseconds.
    pub(super) from_ms: u64,
    pub(super) until_ms: u64,
    /// What is done less well, in words.
    pub(super) remark: String,
    /// Samples of bursts, and CPU time of the agent, when it began.
    pub(super) taken: u64,
    pub(super) used_seconds: f64,
    /// When its processes are looked for again.
    pub(super) members_ns: u64,
}

/// See the module.
#[derive(Debug)]
pub(in crate::agent) struct Bursting {
    pub(super) desk: Option<Arc<BurstDesk>>,
    pub(super) limit_hz: u32,
    pub(super) running: Option<Running>,
    /// One ran since the interval began.
    pub(super) has_run: bool,
    /// What a burst's rate is divided by, so that `--cpu-limit` is kept; and how often that was raised.
    pub(super) divisor: u32,
    pub(in crate::agent) lowered: u64,
    /// Processes that a burst was to be at, and was not for want of room: the most at a time.
    pub(in crate::agent) members_left_out: u64,
}

impl Bursting {
    pub(in crate::agent) fn new(desk: Option<Arc<BurstDesk>>, limit_hz: u32) -> Self {
        Self {
            desk,
            limit_hz,
            running: None,
            has_run: false,
            divisor: 1,
            lowered: 0,
            members_left_out: 0,
        }
    }

    pub(in crate::agent) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// When the one that runs is over.
    pub(in crate::agent) fn until_ns(&self) -> Option<u64> {
        self.running.as_ref().map(|running| running.until_ns)
    }

    /// Whether one ran since the last call.
    pub(in crate::agent) fn take_has_run(&mut self) -> bool {
        std::mem::replace(&mut self.has_run, self.running.is_some())
    }

    /// The CPUs of an order, or why it is refused.
    pub(super) fn check(&self, order: &BurstOrder, usual_hz: u32, online: &[u32]) -> Result<Vec<u32>, String> {
        let BurstOrder {
            frequency_hz, seconds, ..
        } = *order;
        if self.limit_hz == 0 {
            return Err("the agent was started with --burst-limit 0".into());
        }
        if frequency_hz > self.limit_hz {
            let limit = self.limit_hz;
            return Err(format!(
                "{frequency_hz} Hz is above the agent's limit of {limit} Hz (--burst-limit)"
            ));
        }
        if frequency_hz <= usual_hz {
            return Err(format!("the agent samples at {usual_hz} Hz without that: ask for more"));
        }
        if !(1..=MAX_SECONDS).contains(&seconds) {
            return Err(format!(
                "{seconds} s is no length of a burst: it has 1 to {MAX_SECONDS} s"
            ));
        }
        if order.cpus.trim().is_empty() {
            return Ok(online.to_vec());
        }
        let Some(mut cpus) = parse_cpu_list(&order.cpus).filter(|cpus| !cpus.is_empty()) else {
            return Err(format!("`{}` is no list of CPUs such as 0,2-3", order.cpus));
        };
        cpus.sort_unstable();
        cpus.dedup();
        match cpus.iter().find(|cpu| !online.contains(cpu)) {
            Some(cpu) => {
                let online = list(online);
                Err(format!("CPU {cpu} is not online there; online are {online}"))
            }
            None => Ok(cpus),
        }
    }

    /// The rate of a burst that is asked for at `asked_hz`, within what the CPU limit leaves; 0 where that is no more
    /// than the usual one.
    pub(super) fn rate_hz(&self, asked_hz: u32, usual_hz: u32) -> u32 {
        let rate_hz = asked_hz / self.divisor;
        if rate_hz > usual_hz { rate_hz } else { 0 }
    }

    /// After an interval in which a burst took more CPU time than there is. False where it can be no less.
    pub(super) fn lower(&mut self) -> bool {
        if self.divisor >= MAX_DIVISOR {
            return false;
        }
        self.divisor *= 2;
        self.lowered += 1;
        true
    }

    pub(super) fn report(&self, report: BurstReport) {
        if let Some(desk) = &self.desk {
            desk.report(report);
        }
    }

    /// Of one that never began.
    pub(super) fn refuse(&self, order: BurstOrder, reason: String) {
        tracing::info!(id = order.id, reason, "a burst is refused");
        self.report(BurstReport {
            id: order.id,
            state: BurstState::Refused,
            from_ms: 0,
            until_ms: 0,
            cpus: order.cpus,
            frequency_hz: order.frequency_hz,
            samples: 0,
            cpu_seconds: 0.0,
            reason,
        });
    }
}

pub(super) fn list(cpus: &[u32]) -> String {
    format_cpu_list(cpus.iter().copied(), MAX_CPU_LIST_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(cpus: &str, frequency_hz: u32, seconds: u32) -> BurstOrder {
        BurstOrder {
            id: "a".into(),
            cpus: cpus.into(),
            service: String::new(),
            process: String::new(),
            conditions: Vec::new(),
            frequency_hz,
            seconds,
        }
    }

    #[test]
    fn what_the_agent_does_not_do_is_refused_in_words() {
        let bursting = Bursting::new(None, 999);
        let check = |cpus, hz, seconds| bursting.check(&order(cpus, hz, seconds), 20, &[0, 1, 2, 5]);
        assert_eq!(check("", 999, 60), Ok(vec![0, 1, 2, 5]));
        assert_eq!(check("2,0-1,2", 21, 1), Ok(vec![0, 1, 2]));
        for (cpus, hz, seconds, why) in [
            ("3", 999, 1, "CPU 3 is not online there; online are 0-2,5"),
            ("x", 999, 1, "no list of CPUs"),
            ("", 1000, 1, "above the agent's limit of 999 Hz"),
            ("", 20, 1, "samples at 20 Hz without that"),
            ("", 999, 0, "0 s is no length"),
            ("", 999, 61, "1 to 60 s"),
        ] {
            let refused = check(cpus, hz, seconds).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        let none = Bursting::new(None, 0).check(&order("", 999, 1), 20, &[0]);
        assert!(none.unwrap_err().contains("--burst-limit 0"));
    }

    #[test]
    fn a_rate_is_lowered_to_a_bound_and_never_below_the_usual_one() {
        let mut bursting = Bursting::new(None, 999);
        assert_eq!(bursting.rate_hz(999, 20), 999);
        assert!(bursting.lower() && bursting.rate_hz(999, 20) == 499);
        while bursting.lower() {}
        assert_eq!((bursting.divisor, bursting.lowered), (32, 5));
        assert_eq!((bursting.rate_hz(999, 20), bursting.rate_hz(999, 99)), (31, 0));
    }
}
