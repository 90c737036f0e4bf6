//! The handle of the shipping thread.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::batch::Batch;
use super::config::{ShipConfig, ShipError};
use super::losses::CAUSE_QUEUE_FULL;
use super::shared::{Shared, ShipStats, Submission};
use super::worker::Worker;

/// What became of a submitted batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Submitted {
    /// It waits for the encoder.
    Queued,
    /// The queue was full or the shipper has ended: its samples are counted as `ship_queue_full`.
    Dropped,
}

/// Batches that may wait for the encoder; it takes milliseconds for one, so that more than a few mean that the disk
/// hangs.
const QUEUE_BATCHES: usize = 8;

/// The handle of a running shipper: one thread that encodes, spools and sends.
#[derive(Debug)]
pub struct Shipper {
    instance: Uuid,
    queue: mpsc::Sender<Submission>,
    stop: oneshot::Sender<Instant>,
    stopped: oneshot::Receiver<()>,
    thread: std::thread::JoinHandle<()>,
    shared: Arc<Shared>,
}

impl Shipper {
    /// Opens the spool, takes over what earlier instances left, and starts the shipping thread. Does not wait for the
    /// server.
    pub fn start(config: ShipConfig) -> Result<Self, ShipError> {
        let instance = Uuid::new_v4();
        let shared = Arc::new(Shared::default());
        let (queue, submissions) = mpsc::channel(QUEUE_BATCHES);
        let (stop, stop_signal) = oneshot::channel();
        let (stopped_signal, stopped) = oneshot::channel();
        let worker = Worker::open(&config, instance, Arc::clone(&shared))?;
        // A runtime of its own: sending goes on whatever the caller's does, and disk writes block nobody else.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(ShipError::Thread)?;
        let thread = std::thread::Builder::new()
            .name("stakeout-ship".into())
            .spawn(move || {
                runtime.block_on(worker.run(submissions, stop_signal));
                // A look-up of the server's name that hangs must not hold up the end.
                runtime.shutdown_background();
                // The receiver is gone when nobody waits for the end.
                let _ = stopped_signal.send(());
            })
            .map_err(ShipError::Thread)?;
        Ok(Self {
            instance,
            queue,
            stop,
            stopped,
            thread,
            shared,
        })
    }

    /// The id under which this run's batches are stored.
    pub fn instance(&self) -> Uuid {
        self.instance
    }

    /// Hands a batch over; never waits. `report.lost` holds the caller's causes only: the shipper adds its own.
    pub fn submit(&self, batch: Batch) -> Submitted {
        let samples = batch.samples.len() as u64;
        let queue_full_samples = self.shared.queue_full_samples.load(Ordering::Acquire);
        match self.queue.try_send(Submission {
            batch,
            queue_full_samples,
        }) {
            Ok(()) => {
                *self.shared.untold() = None;
                Submitted::Queued
            }
            Err(TrySendError::Full(Submission { batch, .. }) | TrySendError::Closed(Submission { batch, .. })) => {
                self.shared.queue_full_samples.fetch_add(samples, Ordering::AcqRel);
                *self.shared.stats().lost.entry(CAUSE_QUEUE_FULL).or_default() += samples;
                *self.shared.untold() = Some(batch.without_samples());
                Submitted::Dropped
            }
        }
    }

    /// What was done so far, and what waits now.
    pub fn stats(&self) -> ShipStats {
        self.shared.stats().clone()
    }

    /// Spools what was submitted, tries to send until `deadline` has passed or nothing is left, then ends the thread.
    /// What could not be sent stays in the spool for the next start. Returns the last figures.
    pub async fn shutdown(self, deadline: Duration) -> ShipStats {
        let Self {
            queue,
            stop,
            stopped,
            thread,
            shared,
            ..
        } = self;
        drop(queue);
        // An error means that the thread has ended already: then there is nothing to stop.
        let _ = stop.send(Instant::now() + deadline);
        let _ = stopped.await;
        if thread.join().is_err() {
            tracing::error!("the shipping thread ended in a panic; what it had not spooled is lost");
        }
        shared.stats().clone()
    }
}
