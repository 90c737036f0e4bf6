//! Connections: who is a stranger, and how many may be there.
//!
//! A connection is a stranger's until a request on it was let in by a token (or needed none). Strangers together, and
//! those of one address, have a share of the room; beyond it the one that came first gives way. So whoever can show a
//! token always finds a place, whatever crowd is there.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Strangers have one of so many parts of all connections, and those of one address one of so many.
pub(super) const STRANGERS_PART: usize = 2;
pub(super) const ADDRESS_PART: usize = 8;

/// A connection on which nothing is asked or answered ends after this time.
pub(super) const IDLE_SECONDS: u64 = 120;
pub(super) const STRANGER_IDLE_SECONDS: u64 = 20;

/// How often that is looked at.
const LOOK: Duration = Duration::from_secs(2);

/// Strangers that had to give way, since the start.
static GAVE_WAY: AtomicU64 = AtomicU64::new(0);

/// Connections of strangers that ended for others, since the start.
pub(in crate::api) fn gave_way() -> u64 {
    GAVE_WAY.load(Ordering::Relaxed)
}

/// A connection's other end.
#[derive(Debug)]
pub(in crate::api) struct Visitor {
    pub(super) address: IpAddr,
    is_known: AtomicBool,
    /// Requests whose answers are not sent.
    running: AtomicUsize,
    last: Mutex<Instant>,
    gives_way: Notify,
}

impl Visitor {
    fn new(address: IpAddr) -> Self {
        Self {
            address,
            is_known: AtomicBool::new(false),
            running: AtomicUsize::new(0),
            last: Mutex::new(Instant::now()),
            gives_way: Notify::new(),
        }
    }

    /// Where it comes from.
    pub(in crate::api) fn address(&self) -> IpAddr {
        self.address
    }

    /// It has shown that it may.
    pub(in crate::api) fn let_in(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }

    fn is_stranger(&self) -> bool {
        !self.is_known.load(Ordering::Relaxed)
    }

    fn touch(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// A request, until what is returned is dropped.
    pub(in crate::api) fn request(self: &Arc<Self>) -> Running {
        self.running.fetch_add(1, Ordering::Relaxed);
        Running(self.clone())
    }

    /// Returns when the connection is to end: others need its place, or nothing was asked for long.
    pub(in crate::api) async fn ends(&self) {
        let seconds = |stranger| if stranger { STRANGER_IDLE_SECONDS } else { IDLE_SECONDS };
        tokio::select! {
            () = self.idles(LOOK, |stranger| Duration::from_secs(seconds(stranger))) => {}
            () = self.gives_way.notified() => {}
        }
    }

    async fn idles(&self, look: Duration, limit: impl Fn(bool) -> Duration) {
        loop {
            tokio::time::sleep(look).await;
            let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
            if self.running.load(Ordering::Relaxed) == 0 && last.elapsed() >= limit(self.is_stranger()) {
                return;
            }
        }
    }
}

/// See [`Visitor::request`].
#[derive(Debug)]
pub(in crate::api) struct Running(Arc<Visitor>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.touch();
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All connections.
#[derive(Debug)]
pub(in crate::api) struct Crowd {
    strangers: usize,
    of_address: usize,
    /// Those that came as strangers, in their order; some have gone, or are none any more.
    came: Mutex<VecDeque<Arc<Visitor>>>,
}

impl Crowd {
    /// Of so many connections at the same time.
    pub(in crate::api) fn new(most: usize) -> Self {
        Self {
            strangers: (most / STRANGERS_PART).max(1),
            of_address: (most / ADDRESS_PART).max(1),
            came: Mutex::default(),
        }
    }

    /// Somebody comes. Where that is a stranger too many, another gives way.
    pub(in crate::api) fn enter(&self, address: IpAddr) -> Arc<Visitor> {
        let visitor = Arc::new(Visitor::new(address.to_canonical()));
        let mut came = self.came.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody else has those that have gone.
        came.retain(|other| Arc::strong_count(other) > 1 && other.is_stranger());
        let of_address = |other: &Arc<Visitor>| other.address == visitor.address;
        let gives_way = if came.iter().filter(|other| of_address(other)).count() >= self.of_address {
            came.iter().position(of_address)
        } else {
            (came.len() >= self.strangers).then_some(0)
        };
        if let Some(other) = gives_way.and_then(|at| came.remove(at)) {
            other.gives_way.notify_one();
            GAVE_WAY.fetch_add(1, Ordering::Relaxed);
        }
        came.push_back(visitor.clone());
        visitor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn must_go(visitor: &Visitor) -> bool {
        visitor.gives_way.notified().now_or_never().is_some()
    }

    #[test]
    fn the_first_strangers_give_way_and_who_was_let_in_does_not() {
        let crowd = Crowd::new(16);
        let address = |last: u8| IpAddr::from([192, 0, 2, last]);
        // Two of one address, eight in all.
        let first = crowd.enter(address(1));
        first.let_in();
        let strangers: Vec<_> = (0..4).map(|_| crowd.enter(address(1))).collect();
        let gone: Vec<bool> = strangers.iter().map(|visitor| must_go(visitor)).collect();
        assert_eq!(gone, [true, true, false, false]);
        let others: Vec<_> = (2..9).map(|last| crowd.enter(address(last))).collect();
        assert!(must_go(&strangers[2]) && !must_go(&strangers[3]));
        // Who has gone by itself makes room.
        drop(others);
        let others: Vec<_> = (2..9).map(|last| crowd.enter(address(last))).collect();
        assert!(!must_go(&first) && !must_go(&strangers[3]) && others.iter().all(|visitor| !must_go(visitor)));
    }

    #[tokio::test]
    async fn what_is_idle_ends_and_what_is_asked_is_waited_for() {
        let visitor = Arc::new(Visitor::new(IpAddr::from([192, 0, 2, 1])));
        let short = |stranger| {
            if stranger {
                Duration::ZERO
            } else {
                Duration::from_secs(3_600)
            }
        };
        let running = visitor.request();
        let idles = visitor.idles(Duration::from_millis(1), short);
        tokio::pin!(idles);
        let waits = tokio::time::timeout(Duration::from_millis(50), &mut idles).await;
        assert!(waits.is_err(), "it is being answered");
        drop(running);
        idles.await;
        visitor.let_in();
        let known = visitor.idles(Duration::from_millis(1), short);
        let waits = tokio::time::timeout(Duration::from_millis(50), known).await;
        assert!(waits.is_err(), "it is no stranger's");
    }
}
