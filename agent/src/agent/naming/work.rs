//! What the naming thread is given.

use crate::agent::clock::Span;
use crate::agent::gather::Interval;
use crate::ship::{Report, RunQueues};
use crate::symbolize::DegradationLevel;

/// An interval that has ended, with the account of it.
#[derive(Debug)]
pub(in crate::agent) struct Finished {
    pub(in crate::agent) interval: Interval,
    pub(in crate::agent) degradation: DegradationLevel,
    pub(in crate::agent) span: Span,
    pub(in crate::agent) frequency_hz: u32,
    pub(in crate::agent) period_ns: u64,
    pub(in crate::agent) report: Report,
    pub(in crate::agent) run_queues: RunQueues,
    /// What samples of waits are to be multiplied by.
    pub(in crate::agent) wait_factor: f64,
    /// The kernel's stacks may have the agent's own hook.
    pub(in crate::agent) is_around_schedule: bool,
}

/// An interval, or word of something else.
#[derive(Debug)]
pub(in crate::agent) enum Work {
    Interval(Box<Finished>),
    /// Files were given up: what is held beside them is to be closed, too.
    GivenUp,
}
