//! Bodies of requests: what is read of one, how long it may take, and what is done with the rest.
//!
//! In: a request's body as it comes. Out: its bytes, or an error that says what is allowed. Knows no route.

pub(super) mod asked;
pub(super) mod unread;
