//! Code of which more is known than its file's descriptions say.
//!
//! In: a file. Out: rules for the few functions that are meant, which count before or behind those of other sources.

pub(super) mod greenlets;
pub(super) mod restorer;
