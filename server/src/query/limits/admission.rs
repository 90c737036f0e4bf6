//! What bounds every query: how many run, how long, and with how much.

use crate::query::limits::error::QueryError;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

/// Stack of a thread that answers questions. Of it only what is used is memory; a statement of the most parts that
/// are allowed needs a small part.
pub(crate) const STACK_BYTES: usize = 128 << 20;

/// Threads that wait for a disk, or render, for questions.
const MOST_BLOCKING: usize = 64;

/// Questions are answered on threads of their own: whatever they compute, those that take requests and commit go on.
/// One set for the process, which ends with it.
static THREADS: LazyLock<std::io::Result<Runtime>> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.max(2))
        .max_blocking_threads(MOST_BLOCKING)
        .thread_stack_size(STACK_BYTES)
        .thread_name("question")
        .enable_all()
        .build()
});

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

/// Runs queries within limits.
#[derive(Debug)]
pub struct Admission {
    /// Bounds of time, memory and size.
    pub limits: Limits,
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Limits {
    /// Of a process whose queries may take so much memory. What is kept from one to the next must leave room for the
    /// trees that are made of it.
    pub fn within(memory_bytes: usize) -> Limits {
        let limits = Limits::default();
        Limits {
            dictionary_bytes: limits.dictionary_bytes.min(memory_bytes / 3 * 2),
            ..limits
        }
    }
}

impl Admission {
    /// Within these limits; no query runs yet.
    pub fn new(limits: Limits) -> Admission {
        Admission {
            turns: Arc::new(Semaphore::new(limits.running)),
            waiting: AtomicUsize::new(0),
            limits,
        }
    }

    /// Runs a query when its turn comes, on a thread of its own kind. Dropping the returned future stops the query.
    ///
    /// # Errors
    /// The query's own, [`QueryError::Overloaded`] at once when too many wait, [`QueryError::Timeout`]; `internal`
    /// where it panics.
    pub async fn run<T: Send + 'static>(
        &self,
        query: impl Future<Output = Result<T, QueryError>> + Send + 'static,
    ) -> Result<T, QueryError> {
        let timed = async {
            let turn = self.turn().await?;
            let threads = THREADS
                .as_ref()
                .map_err(|error| QueryError::internal("start threads for questions", error))?;
            // Dropped, it stops what runs in it.
            let mut running = JoinSet::new();
            let whole = async move {
                let answer = query.await;
                // What is stopped may work on for a moment, and has its turn as long.
                drop(turn);
                answer
            };
            running.spawn_on(whole, threads.handle());
            match running.join_next().await {
                Some(Ok(answer)) => answer,
                Some(Err(error)) => Err(QueryError::internal("answer", error)),
                None => Err(QueryError::internal("answer", "it was not begun")),
            }
        };
        tokio::time::timeout(self.limits.timeout, timed)
            .await
            .unwrap_or(Err(QueryError::Timeout {
                seconds: self.limits.timeout.as_secs(),
            }))
    }

    async fn turn(&self) -> Result<OwnedSemaphorePermit, QueryError> {
        if let Ok(permit) = self.turns.clone().try_acquire_owned() {
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
            .clone()
            .acquire_owned()
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
        let admission = Admission::new(limits);
        let never = || std::future::pending::<Result<(), QueryError>>();
        let (first, second, third) =
            tokio::join!(admission.run(never()), admission.run(never()), admission.run(never()));
        assert!(matches!(first, Err(QueryError::Timeout { .. })));
        assert!(matches!(second, Err(QueryError::Timeout { .. })), "it waited its time");
        assert!(matches!(third, Err(QueryError::Overloaded { running: 1, waiting: 1 })));
        assert!(
            admission.run(async { Ok(7) }).await.is_ok_and(|v| v == 7),
            "all places are free again"
        );
    }

    #[tokio::test]
    async fn a_panic_ends_one_question_and_gives_its_turn_back() {
        let admission = Admission::new(Limits {
            running: 1,
            ..Limits::default()
        });
        for _ in 0..2 {
            let failed = admission.run::<()>(async { panic!("of a test") }).await;
            assert!(matches!(failed, Err(QueryError::Internal { .. })), "{failed:?}");
        }
        let name = admission
            .run(async { Ok(std::thread::current().name().map(str::to_owned)) })
            .await;
        assert_eq!(name.unwrap().as_deref(), Some("question"));
    }
}
