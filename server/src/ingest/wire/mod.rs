//! OTLP's protobuf: the fields of messages, and which version's layout they have.
//!
//! In: the bytes of a request. Out: a message that borrows from them. Allocates no more than it counted before.

pub(crate) mod allocation;
pub(crate) mod attribute;
pub(crate) mod layout;
pub(crate) mod message;
pub(crate) mod protobuf;
pub(crate) mod tables;
