//! What bounds every query: how many run, how long, with how much memory, and on which threads.
//!
//! In: a query to run. Out: its answer, or why it was refused. Knows nothing of what is asked.

pub(crate) mod admission;
pub(crate) mod error;
pub(crate) mod parallel;
pub(crate) mod reservation;
