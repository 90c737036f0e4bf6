//! Rows that have been accepted and wait for their commit, and what is known of their senders and ids.
//!
//! In: rows of accepted batches. Out: groups of rows to commit, and the same rows to queries. No I/O.

pub(crate) mod arriving;
pub(crate) mod batch;
pub(crate) mod coded_rows;
pub(crate) mod commit_queue;
pub(crate) mod id_map;
pub(crate) mod interner;
pub(crate) mod quota;
pub(crate) mod report;
pub(crate) mod seen_ids;
pub(crate) mod sender_window;
