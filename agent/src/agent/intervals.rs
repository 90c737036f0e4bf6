//! What the sampling thread hands to the threads that name.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use super::ahead::Ahead;
use super::locate::LocatedStack;
use super::naming::{Finished, Work};
use super::{AgentError, WAITING_INTERVALS};

/// How far the naming thread is behind, for the sampling thread.
#[derive(Debug, Default)]
pub(super) struct Behind {
    /// Intervals that it has not taken yet.
    pub(super) waiting: AtomicUsize,
    /// Those, and the one that it names now.
    pub(super) unnamed: AtomicUsize,
}

/// The way to both.
pub(super) struct Intervals {
    sender: mpsc::SyncSender<Work>,
    ahead: mpsc::SyncSender<Ahead>,
    behind: Arc<Behind>,
    /// Of the intervals that were handed over and may have no names yet.
    stacks: VecDeque<Vec<Arc<LocatedStack>>>,
}

impl Intervals {
    pub(super) fn new(sender: mpsc::SyncSender<Work>, ahead: mpsc::SyncSender<Ahead>, behind: Arc<Behind>) -> Self {
        Self {
            sender,
            ahead,
            behind,
            stacks: VecDeque::new(),
        }
    }

    /// True where one more does not make the sender wait. There is only one sender.
    pub(super) fn has_room(&self) -> bool {
        self.behind.waiting.load(Ordering::Acquire) < WAITING_INTERVALS
    }

    pub(super) fn send(&mut self, finished: Finished) -> Result<(), AgentError> {
        self.forget_named();
        self.stacks.push_back(finished.interval.stacks.clone());
        self.behind.waiting.fetch_add(1, Ordering::Release);
        self.behind.unnamed.fetch_add(1, Ordering::Release);
        let work = Work::Interval(Box::new(finished));
        self.sender.send(work).map_err(|_| AgentError::Ended("naming"))
    }

    /// Stacks of intervals that were handed over and have no names yet.
    pub(super) fn unnamed(&mut self) -> impl Iterator<Item = &Arc<LocatedStack>> {
        self.forget_named();
        self.stacks.iter().flatten()
    }

    /// Intervals are named in their order.
    fn forget_named(&mut self) {
        let unnamed = self.behind.unnamed.load(Ordering::Acquire);
        self.stacks.drain(..self.stacks.len().saturating_sub(unnamed));
    }

    /// False where too much waits: what is given up then is not named before.
    pub(super) fn send_ahead(&self, ahead: Ahead) -> bool {
        self.ahead.try_send(ahead).is_ok()
    }
}
