//! What the sampling thread hands to the threads that name.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use super::ahead::Ahead;
use super::naming::{Finished, Work};
use super::{AgentError, WAITING_INTERVALS};

/// The way to both.
pub(super) struct Intervals {
    pub(super) sender: mpsc::SyncSender<Work>,
    pub(super) waiting: Arc<AtomicUsize>,
    pub(super) ahead: mpsc::SyncSender<Ahead>,
}

impl Intervals {
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
        self.ahead.try_send(ahead).is_ok()
    }
}
