//! What bounds every query: how many run, how long, and with how much. One engine serves the whole process.

use super::dictionary::Dictionary;
use super::error::QueryError;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Bounds of queries.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Longest run of one query, waiting included.
    pub timeout: Duration,
    /// Queries that run at the same time.
    pub running: usize,
    /// Queries that may wait for their turn.
    pub waiting: usize,
    /// Distinct stacks of one side of a query.
    pub stacks: usize,
    /// Cells (groups times steps) of a grouping.
    pub cells: usize,
    /// Memory for stacks and frames that are kept from one query to the next, in bytes.
    pub dictionary_bytes: usize,
    /// Rows of an SQL answer.
    pub sql_rows: usize,
    /// Text of an SQL answer, in bytes.
    pub sql_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Limits {
            timeout: Duration::from_secs(30),
            running: cores.max(2),
            waiting: 64,
            stacks: 1_000_000,
            cells: 8_000_000,
            dictionary_bytes: 256 << 20,
            sql_rows: 10_000,
            sql_bytes: 64 << 20,
        }
    }
}

/// Runs queries within limits, and keeps the dictionary entries that they share.
#[derive(Debug)]
pub struct Engine {
    pub limits: Limits,
    pub(super) dictionary: Dictionary,
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Default for Engine {
    fn default() -> Self {
        Engine::new(Limits::default())
    }
}

impl Limits {
    /// Of an engine whose queries may take so much memory. What is kept from one to the next must leave room for the trees that are
    /// made of it.
    pub fn within(memory_bytes: usize) -> Limits {
        let limits = Limits::default();
        Limits {
            dictionary_bytes: limits.dictionary_bytes.min(memory_bytes / 3 * 2),
            ..limits
        }
    }
}

impl Engine {
    pub fn new(limits: Limits) -> Engine {
        Engine {
            dictionary: Dictionary::new(limits.dictionary_bytes),
            turns: Arc::new(Semaphore::new(limits.running)),
            waiting: AtomicUsize::new(0),
            limits,
        }
    }

    /// Runs a query when its turn comes. Dropping the returned future stops the query.
    ///
    /// # Errors
    /// The query's own, [`QueryError::Overloaded`] at once when too many wait, [`QueryError::Timeout`].
    pub async fn run<T>(&self, query: impl Future<Output = Result<T, QueryError>>) -> Result<T, QueryError> {
        let timed = async {
            let _turn = self.turn().await?;
            query.await
        };
        tokio::time::timeout(self.limits.timeout, timed)
            .await
            .unwrap_or(Err(QueryError::Timeout {
                seconds: self.limits.timeout.as_secs(),
            }))
    }

    async fn turn(&self) -> Result<tokio::sync::SemaphorePermit<'_>, QueryError> {
        if let Ok(permit) = self.turns.try_acquire() {
            return Ok(permit);
        }
        let queue = Queue::enter(&self.waiting);
        if queue.length > self.limits.waiting {
            return Err(QueryError::Overloaded {
                running: self.limits.running,
                waiting: self.limits.waiting,
            });
        }
        self.turns
            .acquire()
            .await
            .map_err(|error| QueryError::internal("wait for a turn", error))
    }
}

/// A place in the queue, given up however the wait ends.
struct Queue<'a> {
    waiting: &'a AtomicUsize,
    length: usize,
}

impl<'a> Queue<'a> {
    fn enter(waiting: &'a AtomicUsize) -> Self {
        Queue {
            waiting,
            length: waiting.fetch_add(1, Ordering::Relaxed) + 1,
        }
    }
}

impl Drop for Queue<'_> {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn too_many_waiting_queries_are_refused_and_slow_ones_stopped() {
        let limits = Limits {
            timeout: Duration::from_millis(200),
            running: 1,
            waiting: 1,
            ..Limits::default()
        };
        let engine = Engine::new(limits);
        let never = || std::future::pending::<Result<(), QueryError>>();
        let (first, second, third) = tokio::join!(engine.run(never()), engine.run(never()), engine.run(never()));
        assert!(matches!(first, Err(QueryError::Timeout { .. })));
        assert!(matches!(second, Err(QueryError::Timeout { .. })), "it waited its time");
        assert!(matches!(third, Err(QueryError::Overloaded { running: 1, waiting: 1 })));
        assert!(
            engine.run(async { Ok(7) }).await.is_ok_and(|v| v == 7),
            "all places are free again"
        );
    }
}
