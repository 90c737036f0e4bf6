//! What the shipping thread and its owner hand each other.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::batch::Batch;

/// What the shipper has done so far. Everything but the gauges is cumulative since [`super::Shipper::start`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShipStats {
    /// Samples of this instance that the server has acknowledged.
    pub acknowledged_samples: u64,
    /// Batches of this instance that the server has acknowledged.
    pub acknowledged_batches: u64,
    /// Samples of earlier instances, whose spool was left over, that the server has acknowledged.
    pub earlier_acknowledged_samples: u64,
    /// Batches of earlier instances that the server has acknowledged.
    pub earlier_acknowledged_batches: u64,
    /// Samples of this instance that were lost here, by cause.
    pub lost: BTreeMap<&'static str, u64>,
    /// Samples of earlier instances that were lost here, by cause.
    pub earlier_lost: BTreeMap<&'static str, u64>,
    /// Failed attempts to send.
    pub failed_attempts: u64,
    /// Bytes sent, compressed, without headers.
    pub sent_bytes: u64,
    /// Gauge: batches that wait in the spool.
    pub spooled_batches: u64,
    /// Gauge: the bytes of these batches.
    pub spooled_bytes: u64,
    /// Why the last attempt failed; `None` once one has succeeded.
    pub trouble: Option<String>,
}

/// A batch on its way to the encoder.
#[derive(Debug)]
pub(super) struct Submission {
    pub(super) batch: Batch,
    /// `ship_queue_full` when the batch was submitted: what is lost later is told by later batches.
    pub(super) queue_full_samples: u64,
}

/// What the shipping thread and its owner share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) stats: Mutex<ShipStats>,
    pub(super) queue_full_samples: AtomicU64,
    /// The report of a batch that found the queue full, as long as no later batch tells the same and more.
    pub(super) untold: Mutex<Option<Batch>>,
}

impl Shared {
    /// Nothing in here can be left half-changed by a panic, so that a poisoned lock is as good as any.
    pub(super) fn stats(&self) -> MutexGuard<'_, ShipStats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn untold(&self) -> MutexGuard<'_, Option<Batch>> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
