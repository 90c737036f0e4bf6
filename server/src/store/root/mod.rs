//! The data directory: the only room that knows a disk.
//!
//! In: paths below it, bytes. Out: files that are whole and durable when a call returns.

pub(crate) mod local;
