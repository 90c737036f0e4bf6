//! Whether two sides differ: tests, their criteria, and the error that is controlled.
//!
//! In: counts of both sides. Out: verdicts. Pure: no I/O, no frames.

pub(crate) mod chains;
pub(crate) mod criteria;
pub mod judge;
pub(crate) mod packed_sums;
pub(crate) mod stats;
