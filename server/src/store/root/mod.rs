//! The data directory: the only room that knows a disk.
//!
//! In: paths below it, bytes. Out: files that are whole and durable when a call returns, and their bytes.

pub(crate) mod durable;
pub(crate) mod error;
#[cfg(test)]
pub(crate) mod in_memory;
pub(crate) mod local;
pub(crate) mod reader;
#[cfg(test)]
mod reader_tests;
