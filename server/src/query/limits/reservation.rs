//! What a query takes of the memory that all queries share.

use crate::query::limits::error::QueryError;
use crate::store::Snapshot;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use std::sync::Arc;

/// Bytes that are taken, and given back when this is dropped.
pub struct Reservation {
    pool: Arc<dyn MemoryPool>,
    reservation: MemoryReservation,
}

impl Reservation {
    /// Of nothing yet. `what`: what the bytes are for.
    pub fn new(snapshot: &Snapshot, what: &'static str) -> Reservation {
        Self::of_pool(snapshot.memory_pool().clone(), what)
    }

    pub(crate) fn of_pool(pool: Arc<dyn MemoryPool>, what: &'static str) -> Reservation {
        let reservation = MemoryConsumer::new(what).register(&pool);
        Reservation { pool, reservation }
    }

    /// Takes or gives back, until it has so many bytes.
    ///
    /// # Errors
    /// Where there is no room: at once, since a query that waits for others holds what they wait for. What was taken
    /// stays.
    pub fn resize(&self, bytes: usize) -> Result<(), QueryError> {
        let held = self.reservation.size();
        if bytes <= held {
            self.reservation.resize(bytes);
            return Ok(());
        }
        self.reservation
            .try_grow(bytes - held)
            .map_err(|_| self.no_room(bytes - held))
    }

    /// What it has taken.
    pub(crate) fn bytes(&self) -> usize {
        self.reservation.size()
    }

    /// So many bytes of it, or all where it has fewer, on an account of their own.
    #[must_use]
    pub fn split(&self, bytes: usize) -> Reservation {
        Reservation {
            pool: self.pool.clone(),
            reservation: self.reservation.split(bytes.min(self.reservation.size())),
        }
    }

    fn no_room(&self, more: usize) -> QueryError {
        let what = self.reservation.consumer().name().to_owned();
        QueryError::no_memory(what, self.reservation.size() + more, self.pool.as_ref())
    }
}

impl std::fmt::Debug for Reservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reservation")
            .field("bytes", &self.reservation.size())
            .finish_non_exhaustive()
    }
}
