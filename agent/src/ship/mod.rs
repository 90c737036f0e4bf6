//! Batches in, OTLP requests out: encode (the only OTLP room of the agent), a bounded disk spool, send with retry.
//!
//! In: [`Batch`]es, one an interval, times in nanoseconds. Out: `POST {server}/v1development/profiles`, oldest first, each until it
//! is acknowledged, refused or dropped for room; what is dropped is counted in samples and travels with later batches.
//! Never: blocks the caller of [`Shipper::submit`], sends a batch that is not in the spool, or changes one that is.

mod batch;
mod encode;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod send;
mod spool;
mod worker;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

pub use batch::{Batch, Process, Report, Sample};

/// Who ships: constant over the life of the agent's process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Label `node`.
    pub node: String,
    /// Machine as OTLP names it, such as `amd64` or `arm64`.
    pub arch: String,
    /// Kernel release, as in `uname -r`.
    pub kernel_release: String,
    /// The kernel's boot id.
    pub boot_id: String,
    pub agent_version: String,
}

/// A bearer token that `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Where to ship to and what may be kept meanwhile.
#[derive(Debug, Clone)]
pub struct ShipConfig {
    /// Base URL of the server, such as `https://stakeout.example:7373`; a path prefix is kept.
    pub server: String,
    pub token: Option<Token>,
    /// PEM file with certificates to trust beside the system's.
    pub ca_file: Option<PathBuf>,
    /// The spool lives in `spool/` below it, refused batches in `quarantine/`.
    pub state_dir: PathBuf,
    /// Bytes of all spooled batches; beyond it the oldest are dropped.
    pub spool_limit_bytes: u64,
    /// One request, from connecting to the answer's last byte.
    pub request_timeout: Duration,
    pub retry: Retry,
    pub identity: Identity,
}

/// Waits between attempts: the first, doubled each time up to the longest, each shortened by up to half at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    pub first: Duration,
    pub longest: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(500),
            longest: Duration::from_secs(30),
        }
    }
}

/// What became of a submitted batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Submitted {
    Queued,
    /// The queue was full or the shipper has ended: its samples are counted as `ship_queue_full`.
    Dropped,
}

/// What the shipper has done so far. Everything but the gauges is cumulative since [`Shipper::start`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShipStats {
    /// Samples and batches of this instance that the server has acknowledged.
    pub acknowledged_samples: u64,
    pub acknowledged_batches: u64,
    /// The same of earlier instances, whose spool was left over.
    pub earlier_acknowledged_samples: u64,
    pub earlier_acknowledged_batches: u64,
    /// Samples of this instance that were lost here, by cause.
    pub lost: BTreeMap<&'static str, u64>,
    /// Samples of earlier instances that were lost here, by cause.
    pub earlier_lost: BTreeMap<&'static str, u64>,
    /// Failed attempts to send.
    pub failed_attempts: u64,
    /// Bytes sent, compressed, without headers.
    pub sent_bytes: u64,
    /// Gauge: batches and bytes that wait in the spool.
    pub spooled_batches: u64,
    pub spooled_bytes: u64,
    /// Why the last attempt failed; `None` once one has succeeded.
    pub trouble: Option<String>,
}

/// Why the shipper could not start.
#[derive(Debug, thiserror::Error)]
pub enum ShipError {
    #[error("server URL `{url}`: {reason}; give it as http://HOST:PORT or https://HOST:PORT")]
    Url { url: String, reason: String },
    #[error("certificate file {path}: {reason}; it must hold PEM certificates and be readable by the agent")]
    Ca { path: PathBuf, reason: String },
    #[error("token: {0}; a token is one line of visible ASCII characters")]
    Token(String),
    #[error("TLS: {0}")]
    Tls(String),
    #[error("state directory {path}: {source}; it must be writable by the agent (--state-dir names another)")]
    StateDir { path: PathBuf, source: std::io::Error },
    #[error("state directory {path} is in use by another agent; stop it or give this one a --state-dir of its own")]
    Busy { path: PathBuf },
    #[error("the shipping thread could not start: {0}")]
    Thread(std::io::Error),
}

/// Causes of loss that this room counts, as they stand in [`Report::lost`].
pub const CAUSE_QUEUE_FULL: &str = "ship_queue_full";
/// The spool was full: its oldest batches went.
pub const CAUSE_SPOOL_FULL: &str = "spool_dropped";
/// A spool file was damaged.
pub const CAUSE_SPOOL_DAMAGED: &str = "spool_damaged";
/// The server refused the batch for good.
pub const CAUSE_REFUSED: &str = "server_refused";

/// Batches that may wait for the encoder; it takes milliseconds for one, so that more than a few mean that the disk hangs.
const QUEUE_BATCHES: usize = 8;

/// A batch on its way to the encoder.
#[derive(Debug)]
struct Submission {
    batch: Batch,
    /// `ship_queue_full` when the batch was submitted: what is lost later is told by later batches.
    queue_full_samples: u64,
}

/// What the shipping thread and its owner share.
#[derive(Debug, Default)]
struct Shared {
    stats: Mutex<ShipStats>,
    queue_full_samples: AtomicU64,
    /// The report of a batch that found the queue full, as long as no later batch tells the same and more.
    untold: Mutex<Option<Batch>>,
}

impl Shared {
    /// Nothing in here can be left half-changed by a panic, so that a poisoned lock is as good as any.
    fn stats(&self) -> MutexGuard<'_, ShipStats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn untold(&self) -> MutexGuard<'_, Option<Batch>> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

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
    /// Opens the spool, takes over what earlier instances left, and starts the shipping thread. Does not wait for the server.
    pub fn start(config: ShipConfig) -> Result<Self, ShipError> {
        let instance = Uuid::new_v4();
        let shared = Arc::new(Shared::default());
        let (queue, submissions) = mpsc::channel(QUEUE_BATCHES);
        let (stop, stop_signal) = oneshot::channel();
        let (stopped_signal, stopped) = oneshot::channel();
        let worker = worker::Worker::open(&config, instance, Arc::clone(&shared))?;
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

    pub fn stats(&self) -> ShipStats {
        self.shared.stats().clone()
    }

    /// Spools what was submitted, tries to send until `deadline` has passed or nothing is left, then ends the thread. What could
    /// not be sent stays in the spool for the next start. Returns the last figures.
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
