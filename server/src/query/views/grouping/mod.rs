//! Rows of labels above the stacks of flamegraphs and differences.
//!
//! In: labels, a scan's rows. Out: counts of pairs of group and stack instead of stacks, and which pair each id means.
//! Makes no tree, and judges nothing.

mod counts;
mod keys;
mod pairs;

pub(crate) use counts::GroupedStacks;
pub(crate) use pairs::Grouping;
pub use pairs::MOST_ROWS;
