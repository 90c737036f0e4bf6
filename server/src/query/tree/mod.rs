//! Trees of frames, made of counted stacks.
//!
//! In: ids of stacks with their counts. Out: merged trees, trimmed for whoever shows them. Judges nothing.

pub(crate) mod calling_context;
pub(crate) mod frame;
pub(crate) mod label_rows;
pub(crate) mod leaves;
pub mod nodes;
pub(crate) mod runtime_frames;
pub(crate) mod stack_cache;
pub mod trim;
