//! Messages to rows of every table.
//!
//! In: a request as it stands in its body. Out: parts of batches, rows with content-hash ids, what is refused and
//! why. No I/O.

pub(crate) mod attributes;
pub(crate) mod builder;
pub(crate) mod convert;
pub(crate) mod frames;
pub(crate) mod labels;
mod rejected;
pub(crate) mod resource;
mod samples;
pub(crate) mod senders;
pub(crate) mod text;
pub(crate) mod types;
pub(crate) mod values;
pub(crate) mod window;
