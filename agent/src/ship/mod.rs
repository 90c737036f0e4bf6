//! Batches in, OTLP requests out: encode (the only OTLP room of the agent), a bounded disk spool, send with retry.
//!
//! In: [`Batch`]es, one an interval, times in nanoseconds. Out: `POST {server}/v1development/profiles`, oldest first,
//! each until it is acknowledged, refused or dropped for room; what is dropped is counted in samples and travels with
//! later batches. Never: blocks the caller of [`Shipper::submit`], sends a batch that is not in the spool, or changes
//! one that is.

mod answer;
mod batch;
mod bursts;
mod config;
mod encode;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod losses;
mod packing;
mod run_queues;
mod send;
mod shared;
mod shipper;
mod spool;
mod worker;

pub use batch::{Batch, Process, Report, RunQueue, RunQueues, Sample, Woken};
pub use bursts::{About, BurstCondition, BurstDesk, BurstOrder, BurstPolls, BurstReport, BurstState};
pub use config::{Identity, Retry, ShipConfig, ShipError, Token};
pub use losses::{CAUSE_QUEUE_FULL, CAUSE_REFUSED, CAUSE_SPOOL_DAMAGED, CAUSE_SPOOL_FULL};
pub(crate) use run_queues::fit_run_queues;
pub use shared::ShipStats;
pub use shipper::{Shipper, Submitted};
