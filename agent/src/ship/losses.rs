//! Samples that are lost on their way to the server, by cause.

use std::collections::BTreeMap;

/// Samples by cause.
pub(super) type Losses = BTreeMap<&'static str, u64>;

/// Causes of loss that this room counts, as they stand in [`super::Report::lost`].
pub const CAUSE_QUEUE_FULL: &str = "ship_queue_full";
/// The spool was full: its oldest batches went.
pub const CAUSE_SPOOL_FULL: &str = "spool_dropped";
/// A spool file was damaged.
pub const CAUSE_SPOOL_DAMAGED: &str = "spool_damaged";
/// The server refused the batch for good.
pub const CAUSE_REFUSED: &str = "server_refused";
