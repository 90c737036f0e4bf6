//! What the sampling thread hands to the threads that name.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use super::ahead::Ahead;
use super::work::{Finished, Work};
use crate::agent::locate::LocatedStack;
use crate::agent::threads::AgentError;

/// Intervals that may wait for their names.
pub(in crate::agent) const WAITING_INTERVALS: usize = 2;

/// How far the naming thread is behind, for the sampling thread.
#[derive(Debug, Default)]
pub(in crate::agent) struct Behind {
    /// Intervals that it has not taken yet.
    pub(in crate::agent) waiting: AtomicUsize,
    /// Those, and the one that it names now.
    pub(in crate::agent) unnamed: AtomicUsize,
}

/// The way to both.
pub(in crate::agent) struct Intervals {
    sender: mpsc::SyncSender<Work>,
    ahead: mpsc::SyncSender<Ahead>,
    behind: Arc<Behind>,
    /// Of the intervals that were handed over and may have no names yet.
    stacks: VecDeque<Vec<Arc<LocatedStack>>>,
}

impl Intervals {
    pub(in crate::agent) fn new(
        sender: mpsc::SyncSender<Work>,
        ahead: mpsc::SyncSender<Ahead>,
        behind: Arc<Behind>,
    ) -> Self {
        Self {
            sender,
            ahead,
            behind,
            stacks: VecDeque::new(),
        }
    }

    /// True where one more does not make the sender wait. There is only one sender.
    pub(in crate::agent) fn has_room(&self) -> bool {
        self.behind.waiting.load(Ordering::Acquire) < WAITING_INTERVALS
    }

    pub(in crate::agent) fn send(&mut self, finished: Finished) -> Result<(), AgentError> {
        self.forget_named();
        self.stacks.push_back(finished.interval.stacks.clone());
        self.behind.waiting.fetch_add(1, Ordering::Release);
        self.behind.unnamed.fetch_add(1, Ordering::Release);
        let work = Work::Interval(Box::new(finished));
        self.sender.send(work).map_err(|_| AgentError::Ended("naming"))
    }

    /// Stacks of intervals that were handed over and have no names yet.
    pub(in crate::agent) fn unnamed(&mut self) -> impl Iterator<Item = &Arc<LocatedStack>> {
        self.forget_named();
        self.stacks.iter().flatten()
    }

    /// Intervals are named in their order.
    fn forget_named(&mut self) {
        let unnamed = self.behind.unnamed.load(Ordering::Acquire);
        self.stacks.drain(..self.stacks.len().saturating_sub(unnamed));
    }

    /// False where too much waits: what is given up then is not named before.
    pub(in crate::agent) fn send_ahead(&self, ahead: Ahead) -> bool {
        self.ahead.try_send(ahead).is_ok()
    }
}
