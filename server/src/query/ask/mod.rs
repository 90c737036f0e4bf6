//! What is asked for: a selector, a window and a unit, from text.
//!
//! In: text of a request. Out: a [`question::Question`], or an error that says what is allowed. No I/O.

pub(crate) mod question;
pub mod selector;
pub mod time;
pub(crate) mod unit;
