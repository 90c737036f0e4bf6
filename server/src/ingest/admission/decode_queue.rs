//! Work on requests, a few at a time, in the order in which they came.
//!
//! A thread that has done one takes the next one that waits, without going to sleep in between: where many wait,
//! nobody is woken but those who get an answer.

use crate::ingest::error::IngestError;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

type Work<C> = Box<dyn FnOnce(&mut C) + Send>;

/// `C`: what a thread has at hand for one after another, such as memory.
pub(crate) struct DecodeQueue<C> {
    most: usize,
    state: Mutex<State<C>>,
}

struct State<C> {
    waiting: VecDeque<(u64, Work<C>)>,
    next: u64,
    /// Threads at work, never more than `most`.
    working: usize,
    /// At hand for those that are not.
    spare: Vec<C>,
}

impl<C> std::fmt::Debug for DecodeQueue<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DecodeQueue")
            .field("most", &self.most)
            .finish_non_exhaustive()
    }
}

impl<C: Default + Send + 'static> DecodeQueue<C> {
    /// At most so many at a time.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most: most.max(1),
            state: Mutex::new(State {
                waiting: VecDeque::new(),
                next: 0,
                working: 0,
                spare: Vec::new(),
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does the work on a thread that may block, and returns what comes of it. [`IngestError::Busy`] where its turn
    /// does not come within this time. What a caller who hangs up waits for is not begun; what has begun goes on.
    pub(crate) async fn take<T: Send + 'static>(
        self: &Arc<Self>,
        patience: Duration,
        work: impl FnOnce(&mut C) -> Result<T, IngestError> + Send + 'static,
    ) -> Result<T, IngestError> {
        let (to, mut done) = oneshot::channel();
        let number = self.enter(Box::new(move |at_hand| {
            if !to.is_closed() {
                let _ = to.send(work(at_hand));
            }
        }));
        let result = match tokio::time::timeout(patience, &mut done).await {
            Ok(result) => result,
            Err(_) if self.leave(number) => return Err(IngestError::Busy),
            // It has begun.
            Err(_) => done.await,
        };
        result.unwrap_or_else(|_| Err(failed()))
    }

    /// Does the work on the caller's own thread where a turn is free and nobody waits for one, since that wakes
    /// nobody; gives it back else. It must be short, since it may be done on all threads of a runtime at once, and
    /// must not block.
    pub(crate) fn here<T, W>(self: &Arc<Self>, work: W) -> Result<Result<T, IngestError>, W>
    where
        W: FnOnce(&mut C) -> Result<T, IngestError>,
    {
        let mut at_hand = {
            let mut state = self.state();
            if state.working >= self.most || !state.waiting.is_empty() {
                return Err(work);
            }
            state.working += 1;
            state.spare.pop().unwrap_or_default()
        };
        let result = catch_unwind(AssertUnwindSafe(|| work(&mut at_hand))).unwrap_or_else(|_| {
            at_hand = C::default();
            Err(failed())
        });
        let mut state = self.state();
        state.spare.push(at_hand);
        if state.waiting.is_empty() {
            state.working -= 1;
        } else {
            // Who came meanwhile, and had no thread begun for it.
            let queue = Arc::clone(self);
            drop(state);
            tokio::task::spawn_blocking(move || queue.work());
        }
        Ok(result)
    }

    fn enter(self: &Arc<Self>, work: Work<C>) -> u64 {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state.waiting.push_back((number, work));
        if state.working < self.most {
            state.working += 1;
            let queue = Arc::clone(self);
            drop(state);
            tokio::task::spawn_blocking(move || queue.work());
        }
        number
    }

    /// Whether the work had not begun; then it will not.
    fn leave(&self, number: u64) -> bool {
        let mut state = self.state();
        let at = state.waiting.iter().position(|(other, _)| *other == number);
        at.is_some_and(|at| state.waiting.remove(at).is_some())
    }

    /// Works until nobody waits.
    fn work(&self) {
        let mut at_hand = self.state().spare.pop().unwrap_or_default();
        loop {
            let mut state = self.state();
            let Some((_, work)) = state.waiting.pop_front() else {
                state.working -= 1;
                state.spare.push(at_hand);
                return;
            };
            drop(state);
            // The hook has told of a panic; whoever waits for an answer learns it since there is none. What was at
            // hand may be half changed.
            if catch_unwind(AssertUnwindSafe(|| work(&mut at_hand))).is_err() {
                at_hand = C::default();
            }
        }
    }
}

/// What whoever waits for an answer learns of a panic; the hook has told the log.
fn failed() -> IngestError {
    IngestError::Invalid("decoding failed; the server's log has the cause".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    const LONG: Duration = Duration::from_secs(60);

    /// Threads end a moment after their last answer.
    async fn at_rest<C: Default + Send + 'static>(queue: &Arc<DecodeQueue<C>>) {
        while queue.state().working > 0 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn as_many_work_as_may_and_each_has_its_own_at_hand() {
        let queue: Arc<DecodeQueue<usize>> = DecodeQueue::new(2);
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let all = (0..50).map(|number| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            queue.take(LONG, move |at_hand: &mut usize| {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                *at_hand += 1;
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(number)
            })
        });
        let all: Vec<usize> = futures::future::try_join_all(all).await.unwrap();
        assert_eq!(all, (0..50).collect::<Vec<_>>());
        assert!((1..=2).contains(&most.load(Ordering::SeqCst)));
        at_rest(&queue).await;
        let state = queue.state();
        assert!(state.spare.len() <= 2);
        assert_eq!(state.spare.iter().sum::<usize>(), 50);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn who_waits_too_long_or_hangs_up_is_passed_over() {
        let queue: Arc<DecodeQueue<()>> = DecodeQueue::new(1);
        // Its time is over when it has long begun; where no thread was there in that time, it is passed over, and
        // begins anew.
        let (go, first) = loop {
            let (go, wait) = mpsc::channel::<()>();
            let (begun, has_begun) = oneshot::channel();
            let queue = Arc::clone(&queue);
            let first = tokio::spawn(async move {
                let work = move |_: &mut ()| {
                    let _ = begun.send(());
                    wait.recv().map_err(|_| IngestError::Busy)
                };
                queue.take(Duration::from_millis(1), work).await
            });
            if has_begun.await.is_ok() {
                break (go, first);
            }
        };
        let late = queue.take(Duration::from_millis(1), |_| Ok(())).await;
        assert!(matches!(late, Err(IngestError::Busy)), "{late:?}");
        let was_done = Arc::new(AtomicUsize::new(0));
        let gone = tokio::spawn({
            let (queue, was_done) = (Arc::clone(&queue), Arc::clone(&was_done));
            async move {
                queue
                    .take(LONG, move |_| Ok(was_done.fetch_add(1, Ordering::SeqCst)))
                    .await
            }
        });
        while queue.state().waiting.is_empty() {
            tokio::task::yield_now().await;
        }
        gone.abort();
        assert!(gone.await.unwrap_err().is_cancelled());
        go.send(()).unwrap();
        first.await.unwrap().unwrap();
        assert_eq!(queue.take(LONG, |_| Ok(7)).await.unwrap(), 7);
        assert_eq!(was_done.load(Ordering::SeqCst), 0);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn work_is_done_here_only_where_a_turn_is_free() {
        let queue: Arc<DecodeQueue<usize>> = DecodeQueue::new(1);
        let late = queue.here(|at_hand| {
            *at_hand += 1;
            // Nor within itself. What comes meanwhile waits until this has ended, and is done then.
            assert!(queue.here(|_| Ok(())).is_err());
            let queue = Arc::clone(&queue);
            Ok(tokio::spawn(
                async move { queue.take(LONG, |at_hand| Ok(*at_hand)).await },
            ))
        });
        let Ok(Ok(late)) = late else {
            panic!("it was not done here")
        };
        assert_eq!(late.await.unwrap().unwrap(), 1);
        at_rest(&queue).await;
        let panicked = queue.here(|_| -> Result<(), _> { panic!("of a test") });
        assert!(matches!(panicked, Ok(Err(IngestError::Invalid(_)))));
        assert!(matches!(queue.here(|at_hand| Ok(*at_hand)), Ok(Ok(0))));
        let state = queue.state();
        assert_eq!((state.working, state.spare.len(), state.waiting.len()), (0, 1, 0));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_panic_is_an_error_of_one_request_only() {
        let queue: Arc<DecodeQueue<Vec<u8>>> = DecodeQueue::new(1);
        let failed = queue
            .take(LONG, |at_hand: &mut Vec<u8>| -> Result<(), IngestError> {
                at_hand.push(1);
                panic!("of a test")
            })
            .await;
        assert!(matches!(failed, Err(IngestError::Invalid(_))), "{failed:?}");
        assert_eq!(queue.take(LONG, |at_hand| Ok(at_hand.len())).await.unwrap(), 0);
    }
}
