//! Shares of questions that were asked of other servers on the same data.
//!
//! In: a share as bytes, from a server of the same version. Out: partial counts as bytes, or why there are none; and
//! the node of a plan that does that. What is counted, and how, is the code that a question of this server's own runs.

mod count;
mod exec;
#[cfg(any(test, fuzzing))]
mod fuzz;

pub use count::{ShareCounter, ShareError};
pub use exec::{SHARE_NODE, ShareExec, partial_counts};
#[cfg(any(test, fuzzing))]
pub(crate) use fuzz::fuzz_partial;
