//! Coded columns: a code a row, with the value of each code. Files hold columns in this form, and counting indexes
//! arrays by it.
//!
//! In: numbers, texts, codes. Out: columns, runs of equal codes, bounds. Pure: it knows no file and no question.

pub(crate) mod bounds;
pub(crate) mod coded;
pub(crate) mod list;
pub(crate) mod malformed;
pub(crate) mod runs;
