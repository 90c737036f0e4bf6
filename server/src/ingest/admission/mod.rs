//! Which requests are taken in, and when: permits for bodies, the decode queue, decompression, what senders are told.
//!
//! In: the bytes of a request and its sender. Out: rows in the store, and the outcome. Never reads a message itself.

pub(crate) mod admit;
pub(crate) mod config;
pub(crate) mod decode_queue;
pub(crate) mod decompress;
pub(crate) mod outcome;
