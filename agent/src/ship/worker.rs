//! The shipping thread.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::{Shared, ShipConfig, ShipError, Submission};

#[derive(Debug)]
pub(super) struct Worker {
    config: ShipConfig,
    instance: Uuid,
    shared: Arc<Shared>,
}

impl Worker {
    pub(super) fn open(config: ShipConfig, instance: Uuid, shared: Arc<Shared>) -> Result<Self, ShipError> {
        Ok(Self {
            config,
            instance,
            shared,
        })
    }

    pub(super) fn run(self, mut submissions: mpsc::Receiver<Submission>, _stop: oneshot::Receiver<Instant>) {
        tracing::debug!(instance = %self.instance, server = self.config.server, "shipping");
        while let Some(submission) = submissions.blocking_recv() {
            let samples = submission.batch.samples.len() as u64 + submission.queue_full_samples;
            self.shared.stats().acknowledged_samples += samples;
        }
    }
}
