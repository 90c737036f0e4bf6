//! The way of a sample through the agent: kernel, process table, names, batch.
//!
//! In: a rate. Out: one [`crate::ship::Batch`] about every five seconds, handed to a sink. Four threads:
//! `stakeout-sample` drains the kernel side and finds out where each address comes from while the process still lives;
//! `stakeout-table` compiles the tables by which the kernel side walks user stacks; `stakeout-name` names and builds
//! the batch; `stakeout-ahead` names what is in files that are about to be given up. Between sampling and naming stand
//! at most two intervals; while both wait, the present one goes on. Every sample that the kernel side took is in a
//! batch or counted as lost, also at a clean stop.
//!
//! `sampling` is the first thread's loop, `gather` an interval, `locate` the way from addresses to code locations.
//! Closer looks on demand are in `bursts`. Stacks that wait for tables are in `deferred`, these tables in `tables`, the
//! threads that name in `naming`, and what is done less well near a limit in `limits`.

mod bursts;
mod clock;
mod config;
mod deferred;
mod gather;
mod limits;
mod locate;
mod naming;
mod news;
mod running;
mod runtimes;
mod sampling;
mod tables;
mod threads;
mod totals;
mod waiting;

pub use bursts::BURST_LABELS;
pub use config::AgentConfig;
pub use running::Agent;
pub use tables::UnwindStats;
pub use threads::AgentError;
pub use totals::{CAUSE_INTERVAL_FULL, CAUSE_MALFORMED, CAUSE_RING_FULL, CAUSE_UNACCOUNTED, Totals};
