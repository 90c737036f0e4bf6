//! What the agent does without where it would take more than it may.
//!
//! In: at the end of each interval, memory and CPU time that were used. Out: a level of degradation, a divisor of the
//! rate. Pure.

mod memory_governor;
mod rate_controller;

pub(super) use memory_governor::MemoryGovernor;
pub(super) use rate_controller::RateController;
