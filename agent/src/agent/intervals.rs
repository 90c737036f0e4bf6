//! What the sampling thread hands to the naming thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use super::naming::{Ahead, Finished, Work};
use super::{AgentError, WAITING_INTERVALS};

/// The way to the naming thread.
pub(super) struct Intervals {
    sender: mpsc::SyncSender<Work>,
    waiting: Arc<AtomicUsize>,
}

impl Intervals {
    pub(super) fn new(sender: mpsc::SyncSender<Work>, waiting: Arc<AtomicUsize>) -> Self {
        Self { sender, waiting }
    }

    /// True where one more does not make the sender wait. There is only one sender.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.load(Ordering::Acquire) < WAITING_INTERVALS
    }

    pub(super) fn send(&self, finished: Finished) -> Result<(), AgentError> {
        self.waiting.fetch_add(1, Ordering::Release);
        let work = Work::Interval(Box::new(finished));
        self.sender.send(work).map_err(|_| AgentError::Ended("naming"))
    }

    /// False where too much waits: what is given up then is not named before.
    pub(super) fn send_ahead(&self, ahead: Ahead) -> bool {
        self.sender.try_send(Work::Ahead(Box::new(ahead))).is_ok()
    }
}
