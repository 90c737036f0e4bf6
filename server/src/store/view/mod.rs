//! Consistent views of all tables, by our own reader and by SQL.
//!
//! In: lists of files and pending rows. Out: row groups, relations, agents. Never writes.

pub(crate) mod agents;
pub(crate) mod first_per_key;
pub(crate) mod relation;
pub(crate) mod row_groups;
pub(crate) mod snapshot;
