//! The store among others on the same data root: follows what they write, and tries again where they were first.
//!
//! In: entries of the tables' logs. Out: the view and the sender window as of these, in one step each, so that a row
//! stands in them once, whoever committed it.

pub(crate) mod follow;
pub(crate) mod gather;
pub(crate) mod orphans;
pub(crate) mod tries;
