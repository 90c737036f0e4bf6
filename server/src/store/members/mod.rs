//! The servers that write to one data root: who is alive, and who does the maintenance.
//!
//! In: small objects of the root, which each server replaces every few seconds. Out: how many there are, and whether
//! the lease is this one's. What has not changed for long is judged by a counter that nobody sets, never by a clock:
//! clocks of servers may be apart. Knows nothing of tables.

pub(crate) mod heartbeat;
pub(crate) mod lease;

use crate::store::members::heartbeat::Heartbeats;
use crate::store::members::lease::Lease;
use crate::store::root::contract::Root;
use crate::store::root::error::RootError;
use std::sync::Arc;

/// This server among the others.
#[derive(Debug)]
pub(crate) struct Members {
    pub(crate) heartbeats: Heartbeats,
    pub(crate) lease: Lease,
}

impl Members {
    /// Joins the others, and tells them where this one is reached, and where it counts for them.
    pub(crate) async fn join(root: &Arc<dyn Root>, addresses: [String; 2]) -> Result<Self, RootError> {
        let id = uuid::Uuid::new_v4().simple().to_string();
        let members = Self {
            heartbeats: Heartbeats::new(root.clone(), id.clone(), addresses),
            lease: Lease::new(root.clone(), id),
        };
        members.heartbeats.begin().await?;
        Ok(members)
    }

    /// Leaves them: another may have the lease at once.
    pub(crate) async fn leave(&self) {
        self.lease.release().await;
        self.heartbeats.end().await;
    }
}
