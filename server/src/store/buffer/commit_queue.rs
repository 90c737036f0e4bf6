//! What has been accepted and waits for its commit.

use crate::store::buffer::arriving::Pending;
use crate::store::buffer::quota::{QuotaLedger, Taken};
use crate::store::buffer::seen_ids::{NewIds, SeenIds};
use crate::store::buffer::sender_window::SenderWindow;
use crate::store::table::error::StoreError;
use crate::store::table::schema::Table;
use std::collections::HashMap;
use tokio::sync::watch;

type Outcome = Option<Result<(), StoreError>>;

pub(crate) type Waiter = watch::Receiver<Outcome>;

/// What one commit takes.
#[derive(Debug)]
pub(crate) struct CommitGroup {
    pub(crate) rows: [Vec<Pending>; Table::COUNT],
    pub(crate) batches: Vec<(String, i64)>,
    pub(crate) new_ids: Vec<NewIds>,
    /// What its batches took of quotas; of one that has a number with that.
    pub(crate) taken: Vec<(Option<(String, i64)>, Taken)>,
    pub(crate) bytes: u64,
    pub(crate) samples: usize,
    /// Accepted requests, those without rows included.
    pub(crate) requests: usize,
    pub(crate) done: watch::Sender<Outcome>,
}

impl CommitGroup {
    pub(crate) fn new() -> Self {
        Self {
            rows: Default::default(),
            batches: Vec::new(),
            new_ids: Vec::new(),
            taken: Vec::new(),
            bytes: 0,
            samples: 0,
            requests: 0,
            done: watch::Sender::new(None),
        }
    }
}

/// What has been accepted and is not committed.
#[derive(Debug)]
pub(crate) struct CommitQueue {
    pub(crate) group: CommitGroup,
    pub(crate) sender_window: SenderWindow<Waiter>,
    pub(crate) known: SeenIds,
    /// Which samples are whose, of batches that wait for their commit; only where several servers write.
    pub(crate) samples_of: HashMap<(String, i64), Vec<u64>>,
    pub(crate) quotas: QuotaLedger,
    /// Of the gathering group and of the one that is being written.
    pub(crate) bytes: u64,
    pub(crate) stopping: bool,
}

impl CommitQueue {
    pub(crate) fn new(sender_window: SenderWindow<Waiter>, quotas: QuotaLedger) -> Self {
        Self {
            group: CommitGroup::new(),
            sender_window,
            known: SeenIds::default(),
            samples_of: HashMap::new(),
            quotas,
            bytes: 0,
            stopping: false,
        }
    }

    pub(crate) fn pending_bytes(&self) -> u64 {
        self.bytes
    }

    /// What tells the end of the gathering group; none when it is empty.
    pub(crate) fn waiter(&self) -> Option<Waiter> {
        (self.group.requests > 0).then(|| self.group.done.subscribe())
    }

    pub(crate) fn stop(&mut self) {
        self.stopping = true;
    }

    pub(crate) fn sender_window_mut(&mut self) -> &mut SenderWindow<Waiter> {
        &mut self.sender_window
    }

    pub(crate) fn known_mut(&mut self) -> &mut SeenIds {
        &mut self.known
    }
}

/// Waits until a group's end is known.
pub(crate) async fn outcome(mut waiter: Waiter) -> Result<(), StoreError> {
    match waiter.wait_for(Option::is_some).await {
        Ok(outcome) => outcome.clone().unwrap_or(Err(StoreError::Stopping)),
        // The group was dropped without an end: the store is gone.
        Err(_) => Err(StoreError::Stopping),
    }
}
