//! Questions to answers: a selector, a window and a snapshot of the store in; trees, differences and series out.
//!
//! Times are nanoseconds since the Unix epoch, counts are samples, CPU time is in seconds. `diff`, `stats`, `tree`, `selector` and `time`
//! do no I/O. Nothing here knows HTTP, and nothing writes.

pub mod diff;
pub mod error;
pub mod selector;
pub mod stats;
pub mod time;
pub mod tree;

pub use error::QueryError;
