//! Where the answer is: which series, days, files and roll-ups a question needs, and how finely they tell time.
//!
//! In: a question and a snapshot. Out: sets of ids, steps, and the row groups to be read with the conditions on their
//! rows, or shares of them for other servers. Reads small tables only, never samples.

pub(crate) mod columns;
pub(crate) mod days;
pub(crate) mod read_plan;
pub(crate) mod resolution;
pub(crate) mod row_test;
pub(crate) mod scope;
pub(crate) mod shares;
pub(crate) mod small_tables;
pub(crate) mod sources;
pub(crate) mod steps;
