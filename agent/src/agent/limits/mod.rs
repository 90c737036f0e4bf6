//! What the agent does without where it would take more than it may.
//!
//! In: at the end of each interval, memory and CPU time that were used, and how often threads waited. Out: a level
//! of degradation, a divisor of the rate, periods of the clocks of waits. Pure.

mod memory_governor;
mod rate_controller;
mod wait_periods;
mod wait_turns;

pub(super) use memory_governor::MemoryGovernor;
pub(super) use rate_controller::RateController;
pub(super) use wait_periods::WaitPeriods;
pub(super) use wait_turns::WaitTurns;
