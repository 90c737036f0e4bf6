//! A batch in the spool, and in which order it goes.

use bytes::Bytes;
use uuid::Uuid;

/// Batches of one lane that are under way at a time: enough to catch up many times faster than batches come.
pub(in crate::ship) const IN_FLIGHT: usize = 8;

/// The server remembers which of the 64 numbers below the highest it has, and takes everything further down for a
/// repeat. So a batch goes out only while its number is less than this above that of the oldest one that is not
/// acknowledged.
pub(super) const NUMBER_SPAN: u64 = 48;

/// Batches of one lane go in order, a few at a time; the lanes are independent of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ship) enum Lane {
    /// This run's batches.
    Live,
    /// What earlier runs left, oldest run first.
    Earlier,
}

/// A batch to send.
#[derive(Debug, Clone)]
pub(in crate::ship) struct SpooledBatch {
    pub(in crate::ship) instance: Uuid,
    pub(in crate::ship) number: u64,
    pub(in crate::ship) samples: u64,
    pub(in crate::ship) body: Bytes,
}
