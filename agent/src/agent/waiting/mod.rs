//! Waits of threads: when they are observed, and what their samples stand for.
//!
//! In: counters of the kernel side, at the end of each interval. Out: periods of the threads' clocks, turns of
//! observation, and what the samples of an interval are to be multiplied by. Times are those of `CLOCK_MONOTONIC`,
//! in nanoseconds.

mod cpu_ticks;
mod run_queues;
mod state;
mod turn;

pub(super) use cpu_ticks::TicksOfCpus;
pub(super) use state::Waiting;
