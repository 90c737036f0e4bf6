//! Frames of languages that a runtime makes code for, or interprets: asked of the process itself while it runs.
//!
//! In: a process's memory, and what the walk of a stack has met there. Out: what the kernel side walks such code by,
//! and the names of its frames as the language's own stack traces have them. Nothing is written to a process, loaded
//! into it or stopped for it. What it says is not trusted: every pointer is checked, every list and text has a limit.

pub mod cpython;
#[cfg(any(test, fuzzing))]
mod image;
pub mod jvm;
mod memory;
mod parts;
pub mod php;
pub(crate) mod reading;
pub mod ruby;
pub mod v8;

pub use memory::{PagedMemory, ProcessMemory};
pub use reading::{ReadMemory, Unreadable};
