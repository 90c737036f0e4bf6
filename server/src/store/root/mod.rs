//! The data root: the only room that knows a disk.
//!
//! In: paths below it, bytes. Out: objects that are whole and durable when a call returns, their bytes and their
//! names. Never knows what is in them.

pub(crate) mod backoff;
pub(crate) mod bucket;
#[cfg(test)]
mod bucket_tests;
pub(crate) mod contract;
#[cfg(test)]
mod contract_tests;
mod durable;
pub(crate) mod error;
#[cfg(test)]
pub(crate) mod in_memory;
pub(crate) mod local;
mod local_incoming;
pub(crate) mod local_reader;
pub(crate) mod open;
pub(crate) mod reader;
#[cfg(test)]
mod reader_tests;
pub(crate) mod traffic;
pub(crate) mod waiting;
mod whole_lists;
