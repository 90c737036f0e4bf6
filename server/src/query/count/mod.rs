//! Counting: every selected sample once, to stacks, groups, steps and observed time.
//!
//! In: a question, its scope and the rows of samples. Out: counts by stack, group and step. Knows no frame.

pub(crate) mod adders;
pub(crate) mod cell_plan;
pub(crate) mod group_counts;
pub(crate) mod intervals;
pub(crate) mod matrix;
pub(crate) mod observed_time;
pub(crate) mod partial;
pub(crate) mod periods;
pub(crate) mod scan;
pub(crate) mod senders;
pub(crate) mod stack_counts;
pub(crate) mod stack_sums;
pub(crate) mod ticks;
pub(crate) mod weighted;
