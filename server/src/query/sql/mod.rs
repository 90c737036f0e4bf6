//! SQL that reads: bounded before it is parsed, planned and run by DataFusion.
//!
//! In: a statement and a snapshot. Out: rows, or an error that says what is allowed. Never writes.

pub(crate) mod bounds;
pub(crate) mod run;
pub(crate) mod shape;
pub(crate) mod tables;
