//! What an agent did over its life, and what it calls its losses.

use std::collections::BTreeMap;

use super::tables::UnwindStats;
use crate::kernel::{Counters, Unticked};
use crate::process::TableStats;
use crate::symbolize::NamerStats;

/// What a stopped agent did over its life.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// What unwinding tables cost and brought.
    pub unwinding: UnwindStats,
    /// How often the rate was lowered to keep the CPU limit.
    pub throttled: u64,
    /// The kernel side's own counters.
    pub kernel: Counters,
    /// Ticks that were due and did not come.
    pub unticked: Unticked,
    /// Samples that were handed over in batches.
    pub batched: u64,
    /// How many batches these are.
    pub batches: u64,
    /// By cause, as in [`crate::ship::Report::lost`].
    pub lost: BTreeMap<&'static str, u64>,
    /// What was found out about processes.
    pub table: TableStats,
    /// What was named, and what it took.
    pub names: NamerStats,
}

/// Samples that found the kernel's ring buffer full.
pub const CAUSE_RING_FULL: &str = "ring_full";
/// Records that the agent could not understand.
pub const CAUSE_MALFORMED: &str = "malformed_record";
/// Samples beyond what one interval may hold.
pub const CAUSE_INTERVAL_FULL: &str = "interval_full";
/// The kernel side counted more than arrived. Never seen; named so that it would be.
pub const CAUSE_UNACCOUNTED: &str = "unaccounted";
