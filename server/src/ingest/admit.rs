//! Takes a request in: how much at once, exactly once, and the answer when it is on the disk.

use super::IngestError;
use super::bytes::{Encoding, decode, decompress};
use super::convert::{Converted, TimeWindow, convert};
use crate::store::{Ack, BatchId, Store};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How far ahead of the server's clock a sample may be.
const MAX_FUTURE: Duration = Duration::from_secs(24 * 3600);

/// How long a request waits for its turn to be decoded.
const MAX_DECODE_WAIT: Duration = Duration::from_secs(10);

/// Bodies are counted in pieces of this many bytes.
const PIECE_BYTES: usize = 1024;

/// Sizes that ingest never goes beyond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IngestConfig {
    /// A body as it comes.
    pub max_body_bytes: usize,
    /// A body after decompression.
    pub max_plain_bytes: usize,
    /// A decoded message in memory.
    pub max_decoded_bytes: usize,
    /// All bodies that are being received.
    pub max_receiving_bytes: usize,
    /// Requests decoded at the same time.
    pub max_decoding: usize,
}

impl Default for IngestConfig {
    fn default() -> Self {
        Self {
            max_body_bytes: 32 << 20,
            max_plain_bytes: 64 << 20,
            max_decoded_bytes: 512 << 20,
            max_receiving_bytes: 256 << 20,
            max_decoding: std::thread::available_parallelism()
                .map_or(2, |cores| cores.get())
                .min(4),
        }
    }
}

/// Counters since the start.
#[derive(Debug, Default)]
pub struct IngestCounters {
    pub requests: AtomicU64,
    pub body_bytes: AtomicU64,
    pub plain_bytes: AtomicU64,
    pub samples_rejected: AtomicU64,
    pub requests_invalid: AtomicU64,
    pub requests_busy: AtomicU64,
}

/// What became of a request that was taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Samples that were stored now; those of duplicates are not.
    pub samples: i64,
    /// Batches that had been stored, or were pending, before.
    pub duplicates: usize,
    pub rejected_profiles: i64,
    /// Samples that were left out, in those profiles.
    pub rejected_samples: u64,
    /// Says what was left out and why; empty when nothing was.
    pub message: String,
}

impl Outcome {
    /// A batch whose number was stored with other samples.
    fn leave_out(&mut self, samples: i64, id: Option<BatchId>) {
        let (instance, number) = id.map_or_else(Default::default, |id| (id.instance, id.number));
        tracing::warn!(
            instance,
            number,
            samples,
            "left out: the same batch came before with other samples; a collector must not split batches"
        );
        self.rejected_profiles += 1;
        self.rejected_samples += u64::try_from(samples).unwrap_or_default();
        if !self.message.is_empty() {
            self.message.push_str("; ");
        }
        self.message.push_str(&format!(
            "{samples} samples are left out: batch {number} of instance {instance} came before with other samples; a collector \
             on the way must not split batches"
        ));
    }
}

/// See the module.
#[derive(Debug)]
pub struct Ingest {
    store: Arc<Store>,
    config: IngestConfig,
    receiving: Arc<Semaphore>,
    decoding: Arc<Semaphore>,
    pub counters: IngestCounters,
}

impl Ingest {
    pub fn new(store: Arc<Store>, config: IngestConfig) -> Self {
        Self {
            store,
            config,
            receiving: Arc::new(Semaphore::new(config.max_receiving_bytes / PIECE_BYTES)),
            decoding: Arc::new(Semaphore::new(config.max_decoding)),
            counters: IngestCounters::default(),
        }
    }

    /// The sizes.
    pub fn config(&self) -> &IngestConfig {
        &self.config
    }

    /// Room for a body of this many bytes, held as long as the body is. Does not wait: a sender can try again.
    pub fn reserve(&self, bytes: usize) -> Result<OwnedSemaphorePermit, IngestError> {
        if bytes > self.config.max_body_bytes {
            return Err(IngestError::TooLarge {
                what: "the body",
                limit_bytes: self.config.max_body_bytes,
            });
        }
        let pieces = u32::try_from(bytes.div_ceil(PIECE_BYTES).max(1)).unwrap_or(u32::MAX);
        self.receiving.clone().try_acquire_many_owned(pieces).map_err(|_| {
            self.counters.requests_busy.fetch_add(1, Ordering::Relaxed);
            IngestError::Busy
        })
    }

    /// Takes a request in and returns when its rows are committed and synced. `id`: its identity by headers. `room`: what
    /// [`Ingest::reserve`] gave for the body; it is given back as soon as the body is decoded.
    pub async fn ingest(
        &self,
        body: Bytes,
        encoding: Encoding,
        id: Option<BatchId>,
        room: OwnedSemaphorePermit,
    ) -> Result<Outcome, IngestError> {
        self.counters.requests.fetch_add(1, Ordering::Relaxed);
        self.counters.body_bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
        let converted = self.convert(body, encoding, id, room).await.inspect_err(|error| {
            let counter = match error {
                IngestError::Busy | IngestError::Store(_) => &self.counters.requests_busy,
                _ => &self.counters.requests_invalid,
            };
            counter.fetch_add(1, Ordering::Relaxed);
        })?;
        let mut outcome = Outcome {
            samples: 0,
            duplicates: 0,
            rejected_profiles: converted.rejected_profiles,
            rejected_samples: converted.rejected_samples,
            message: converted.message,
        };
        let appended = converted.parts.into_iter().map(|part| async move {
            let ack = self.store.append(part.rows, part.id.clone()).await?;
            Ok::<_, IngestError>((ack, part.samples, part.id))
        });
        for result in futures::future::join_all(appended).await {
            match result? {
                (Ack::Stored, samples, _) => outcome.samples += samples,
                (Ack::Duplicate, ..) => outcome.duplicates += 1,
                (Ack::Conflict, samples, id) => outcome.leave_out(samples, id),
            }
        }
        self.counters
            .samples_rejected
            .fetch_add(outcome.rejected_samples, Ordering::Relaxed);
        Ok(outcome)
    }

    async fn convert(
        &self,
        body: Bytes,
        encoding: Encoding,
        id: Option<BatchId>,
        room: OwnedSemaphorePermit,
    ) -> Result<Converted, IngestError> {
        let turn = tokio::time::timeout(MAX_DECODE_WAIT, self.decoding.clone().acquire_owned()).await;
        let Ok(Ok(turn)) = turn else {
            return Err(IngestError::Busy);
        };
        let config = self.config;
        let window = self.window();
        let task = tokio::task::spawn_blocking(move || {
            // Held by the work, not by the request: a sender that hangs up frees nothing that is still in use.
            let _turn = turn;
            let plain = decompress(&body, encoding, config.max_plain_bytes)?;
            drop((body, room));
            let request = decode(&plain, config.max_decoded_bytes)?;
            let length = plain.len();
            drop(plain);
            Ok::<_, IngestError>((convert(&request, id, window)?, length))
        });
        let (converted, plain_bytes) = match task.await {
            Ok(result) => result?,
            Err(error) => return Err(IngestError::Invalid(format!("decoding failed: {error}"))),
        };
        self.counters
            .plain_bytes
            .fetch_add(plain_bytes as u64, Ordering::Relaxed);
        Ok(converted)
    }

    fn window(&self) -> TimeWindow {
        let now_ns = chrono::Utc::now().timestamp_nanos_opt().unwrap_or(i64::MAX);
        let span = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
        TimeWindow {
            earliest_ns: now_ns.saturating_sub(span(self.store.retention_samples())).max(0),
            latest_ns: now_ns.saturating_add(span(MAX_FUTURE)),
            now_ns,
        }
    }
}
