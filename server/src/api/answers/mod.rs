//! Bodies of answers: compressed as the asker accepts it, tagged so that an asker can tell whether anything changed,
//! held to the memory of queries.
//!
//! In: what a handler answers. Out: what goes over the wire. Knows no route.

pub(crate) mod accepts;
pub(crate) mod body;
pub(crate) mod compress;
pub(crate) mod respond;
pub(crate) mod tags;
