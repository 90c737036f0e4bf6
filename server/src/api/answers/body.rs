//! Answers on their way to whoever asked. What is not taken is not kept for ever: other queries may need its memory.

use crate::render::Answer;
use axum::body::{Body, HttpBody};
use hyper::body::{Bytes, Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// The next piece of an answer must be taken within this time.
pub(crate) const PIECE_TIMEOUT: Duration = Duration::from_secs(60);

/// All of it must be taken within this time.
const WHOLE_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// An answer as a body. Dropping it gives its memory back.
struct Sent {
    left: Arc<Mutex<Left>>,
    watch: AbortHandle,
}

struct Left {
    answer: Answer,
    taken_at: Instant,
    /// Its client took too long.
    is_cut: bool,
}

/// Must be called within a runtime.
pub(crate) fn body(answer: Answer) -> Body {
    body_within(answer, PIECE_TIMEOUT, WHOLE_TIMEOUT)
}

fn body_within(answer: Answer, piece: Duration, whole: Duration) -> Body {
    let left = Arc::new(Mutex::new(Left {
        answer,
        taken_at: Instant::now(),
        is_cut: false,
    }));
    // A body whose client takes nothing is not asked for more: somebody else has to look.
    let watch = tokio::spawn(watch(left.clone(), piece, whole)).abort_handle();
    Body::new(Sent { left, watch })
}

fn lock(left: &Mutex<Left>) -> MutexGuard<'_, Left> {
    left.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn watch(left: Arc<Mutex<Left>>, piece: Duration, whole: Duration) {
    let last = Instant::now() + whole;
    loop {
        let until = (lock(&left).taken_at + piece).min(last);
        tokio::time::sleep_until(until).await;
        let mut left = lock(&left);
        if left.answer.bytes() == 0 {
            return;
        }
        let now = Instant::now();
        if now >= last || now >= left.taken_at + piece {
            tracing::info!(
                bytes = left.answer.bytes(),
                "a client did not take its answer: it is dropped"
            );
            left.answer = Answer::default();
            left.is_cut = true;
            return;
        }
    }
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let mut left = lock(&self.left);
        if left.is_cut {
            let error = io::Error::new(io::ErrorKind::TimedOut, "the answer was not taken in time");
            return Poll::Ready(Some(Err(error)));
        }
        left.taken_at = Instant::now();
        Poll::Ready(left.answer.take().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        let left = lock(&self.left);
        left.answer.bytes() == 0 && !left.is_cut
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(lock(&self.left).answer.bytes() as u64)
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.watch.abort();
        // The watch may hold the rest a moment longer.
        lock(&self.left).answer = Answer::default();
    }
}

/// A body that keeps something until it is sent, or is not wanted any more.
pub(crate) struct Held<K> {
    body: Body,
    _kept: K,
}

impl<K> Held<K> {
    pub(crate) fn new(body: Body, kept: K) -> Self {
        Self { body, _kept: kept }
    }
}

impl<K: Unpin> HttpBody for Held<K> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Reservation;
    use crate::render::{RenderError, Writer};
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};
    use http_body_util::BodyExt;
    use std::io::Write;

    const NEVER: Duration = Duration::from_secs(3_600);
    const SOON: Duration = Duration::from_millis(50);

    fn large(pool: &Arc<dyn MemoryPool>, piece: Duration, whole: Duration) -> Body {
        let mut to = Writer::new(Reservation::of_pool(pool.clone(), "answers"));
        to.write_all(&[7; 1_000_000]).unwrap();
        body_within(to.finish(Ok::<(), RenderError>(())).unwrap(), piece, whole)
    }

    #[tokio::test]
    async fn an_answer_is_on_the_account_until_it_is_sent_or_its_client_leaves() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 30));
        let sent = large(&pool, NEVER, NEVER);
        assert_eq!(
            (pool.reserved(), sent.size_hint().exact()),
            (1_000_000, Some(1_000_000))
        );
        assert_eq!(sent.collect().await.unwrap().to_bytes(), [7; 1_000_000][..]);
        assert_eq!(pool.reserved(), 0);
        let mut left = large(&pool, NEVER, NEVER);
        drop(left.frame().await.unwrap().unwrap());
        assert!(pool.reserved() > 900_000);
        drop(left);
        assert_eq!(pool.reserved(), 0);
    }

    #[tokio::test]
    async fn what_is_not_taken_is_not_kept_for_ever() {
        for (piece, whole) in [(SOON, NEVER), (NEVER, SOON)] {
            let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 30));
            let mut stuck = large(&pool, piece, whole);
            drop(stuck.frame().await.unwrap().unwrap());
            let deadline = Instant::now() + Duration::from_secs(60);
            while pool.reserved() > 0 {
                assert!(Instant::now() < deadline, "it is still kept");
                tokio::time::sleep(SOON).await;
            }
            assert!(stuck.frame().await.unwrap().is_err(), "it is not taken for complete");
        }
    }
}
