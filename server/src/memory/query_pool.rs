//! The memory of queries: one account for the query engine and for what is counted and kept beside it.
//!
//! While nothing is taken in, what ingest would need is lent to queries: the busier part has what is there, and both
//! together stay within the server's limit.

use crate::lock::lock_mutex;
use datafusion::common::{DataFusionError, Result, resources_datafusion_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Ingest has its memory for itself from a request until so much later: several rounds of agents, which send every 5 s.
const QUIET: Duration = Duration::from_secs(30);

/// See the module.
#[derive(Debug)]
pub(crate) struct QueryPool {
    /// Always.
    bytes: usize,
    /// While nothing is taken in.
    quiet_bytes: usize,
    used: AtomicUsize,
    start: Instant,
    /// Milliseconds from the start until which nothing is lent.
    busy_until_ms: AtomicU64,
}

impl QueryPool {
    pub(crate) fn new(bytes: usize, quiet_bytes: usize) -> Self {
        Self {
            bytes,
            quiet_bytes: quiet_bytes.max(bytes),
            used: AtomicUsize::new(0),
            start: Instant::now(),
            busy_until_ms: AtomicU64::new(0),
        }
    }

    /// Something is taken in.
    pub(crate) fn ingest_comes(&self) {
        let until = self.now_ms() + QUIET.as_millis() as u64;
        self.busy_until_ms.fetch_max(until, Ordering::Relaxed);
    }

    fn now_ms(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }

    fn limit(&self) -> usize {
        if self.now_ms() < self.busy_until_ms.load(Ordering::Relaxed) {
            self.bytes
        } else {
            self.quiet_bytes
        }
    }
}

impl std::fmt::Display for QueryPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "QueryPool(limit: {}, used: {})", self.limit(), self.reserved())
    }
}

impl MemoryPool for QueryPool {
    fn name(&self) -> &str {
        "queries"
    }

    fn grow(&self, _reservation: &MemoryReservation, additional: usize) {
        self.used.fetch_add(additional, Ordering::Relaxed);
    }

    fn shrink(&self, _reservation: &MemoryReservation, shrink: usize) {
        self.used.fetch_sub(shrink, Ordering::Relaxed);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let limit = self.limit();
        let grown = |used: usize| used.checked_add(additional).filter(|sum| *sum <= limit);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown);
        taken.map(drop).map_err(|used| -> DataFusionError {
            let name = reservation.consumer().name();
            resources_datafusion_err!(
                "{additional} bytes more for {name}: {used} of the {limit} bytes that queries may take are in use"
            )
        })
    }

    fn reserved(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit())
    }
}

/// What a session asked for in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// What the bytes were for.
    pub(crate) what: String,
    /// What the session had, and what it asked for beside that.
    pub(crate) needed_bytes: usize,
}

/// The pool as one session of the query engine has it. It keeps in mind what was refused: the engine's error tells
/// neither how much the session had itself nor, so, whether others left it too little.
#[derive(Debug)]
pub(crate) struct SessionPool {
    pool: Arc<dyn MemoryPool>,
    used: AtomicUsize,
    refused: Mutex<Option<Refusal>>,
}

impl SessionPool {
    pub(crate) fn of(pool: Arc<dyn MemoryPool>) -> Self {
        Self {
            pool,
            used: AtomicUsize::new(0),
            refused: Mutex::new(None),
        }
    }

    /// What was refused last.
    pub(crate) fn refused(&self) -> Option<Refusal> {
        lock_mutex(&self.refused).clone()
    }
}

impl std::fmt::Display for SessionPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, of which this session used {:?}", self.pool, self.used)
    }
}

impl MemoryPool for SessionPool {
    fn name(&self) -> &str {
        "session"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.pool.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.pool.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.used.fetch_add(additional, Ordering::Relaxed);
        self.pool.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.used.fetch_sub(shrink, Ordering::Relaxed);
        self.pool.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let taken = self.pool.try_grow(reservation, additional);
        match taken {
            Ok(()) => _ = self.used.fetch_add(additional, Ordering::Relaxed),
            Err(_) => {
                *lock_mutex(&self.refused) = Some(Refusal {
                    what: reservation.consumer().name().to_owned(),
                    needed_bytes: self.used.load(Ordering::Relaxed).saturating_add(additional),
                });
            }
        }
        taken
    }

    fn reserved(&self) -> usize {
        self.pool.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.pool.memory_limit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_knows_what_it_had_when_it_was_refused() {
        let all: Arc<dyn MemoryPool> = Arc::new(QueryPool::new(100, 100));
        let session = Arc::new(SessionPool::of(Arc::clone(&all)));
        let other = MemoryConsumer::new("another query").register(&all);
        other.try_grow(60).unwrap();
        let general: Arc<dyn MemoryPool> = session.clone();
        let (first, second) = ("rows", "keys");
        let [first, second] = [first, second].map(|name| MemoryConsumer::new(name).register(&general));
        first.try_grow(30).unwrap();
        assert_eq!(session.refused(), None);
        second.try_grow(20).unwrap_err();
        let refusal = Refusal {
            what: "keys".to_owned(),
            needed_bytes: 50,
        };
        assert_eq!(session.refused(), Some(refusal));
        first.shrink(10);
        second.try_grow(20).unwrap();
        assert_eq!((session.reserved(), all.reserved()), (100, 100));
        drop((first, second, other));
        assert_eq!((all.reserved(), session.used.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn what_ingest_does_not_need_is_lent() {
        let pool = Arc::new(QueryPool::new(100, 300));
        let general: Arc<dyn MemoryPool> = pool.clone();
        let first = MemoryConsumer::new("first").register(&general);
        first.try_grow(250).unwrap();
        pool.ingest_comes();
        let second = MemoryConsumer::new("second").register(&general);
        let error = second.try_grow(1).unwrap_err().to_string();
        assert!(error.contains("250 of the 100 bytes"), "{error}");
        first.shrink(200);
        second.try_grow(50).unwrap();
        assert_eq!(pool.reserved(), 100);
        drop((first, second));
        assert_eq!(pool.reserved(), 0);
    }
}
