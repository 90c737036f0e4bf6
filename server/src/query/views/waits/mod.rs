//! What threads do with their time: running, waiting for a CPU, waiting for anything else.
//!
//! In: an engine, a snapshot, a question whose profile type does not matter, and a label. Out: seconds by the label's
//! values and by what the time went to, waits for a CPU by their length, and who ended waits, one by one and as a tree.
//! Judges nothing.

pub(crate) mod of_series;
mod other_waits;
pub(crate) mod run_queue;
pub(crate) mod thread_time;
pub(crate) mod wakers;
pub(crate) mod woken_by;
