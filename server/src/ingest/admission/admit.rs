//! Takes a request in: how much at once, exactly once, and the answer when it is on the disk.

use crate::ingest::admission::config::IngestConfig;
use crate::ingest::admission::decode_queue::DecodeQueue;
use crate::ingest::admission::decompress::{Decompressor, Encoding, said_bytes};
use crate::ingest::admission::outcome::Outcome;
use crate::ingest::error::IngestError;
use crate::ingest::forms::json::json_to_otlp;
use crate::ingest::forms::pprof::{About, pprof_to_otlp};
use crate::ingest::rows::builder::IsKnown;
use crate::ingest::rows::convert::{Converted, Part, convert};
use crate::ingest::rows::senders::Senders;
use crate::ingest::rows::window::TimeWindow;
use crate::ingest::wire::message;
use crate::store::{Ack, BatchId, Owner, Sender, Store, StoreError, Ticket};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How far ahead of the server's clock a sample may be.
const MAX_FUTURE: Duration = Duration::from_secs(24 * 3600);

/// How long a request waits for room for its body, for its turn to be decoded, and for room for its rows.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Bodies are counted in pieces of this many bytes.
const PIECE_BYTES: usize = 1024;

/// What a body is, decompressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// OTLP's.
    Protobuf,
    /// OTLP's, as JSON.
    Json,
    /// pprof, and what its client says beside it.
    Pprof(About),
}

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct IngestCounters {
    /// Requests with profiles that were received.
    pub(crate) requests: AtomicU64,
    /// Bytes of these requests as they came.
    pub(crate) body_bytes: AtomicU64,
    /// Bytes of these requests after decompression.
    pub(crate) plain_bytes: AtomicU64,
    /// Samples that were left out, of requests that were taken in.
    pub(crate) samples_rejected: AtomicU64,
    /// Requests that were refused for good.
    pub(crate) requests_invalid: AtomicU64,
    /// Requests that were asked to come again.
    pub(crate) requests_busy: AtomicU64,
}

/// See the module.
#[derive(Debug)]
pub struct Ingest {
    store: Arc<Store>,
    config: IngestConfig,
    receiving: Arc<Semaphore>,
    decoding: Arc<DecodeQueue<Decompressor>>,
    /// Who sends, and what was refused.
    pub(crate) senders: Arc<Senders>,
    /// Whether the log has it that the clock may not be set yet.
    ahead_told: AtomicBool,
    /// What was taken in, and what was not.
    pub(crate) counters: IngestCounters,
}

impl Ingest {
    /// Takes in for a store, within these sizes.
    pub fn new(store: Arc<Store>, config: IngestConfig) -> Self {
        Self {
            store,
            config,
            receiving: Arc::new(Semaphore::new(config.max_receiving_bytes / PIECE_BYTES)),
            decoding: DecodeQueue::new(config.max_decoding),
            senders: Arc::default(),
            ahead_told: AtomicBool::new(false),
            counters: IngestCounters::default(),
        }
    }

    /// The sizes.
    pub fn config(&self) -> &IngestConfig {
        &self.config
    }

    /// A permit for a body of so many bytes, held as long as the body is. Waits for its turn, but not long: what is not
    /// received yet costs nothing here, and a body that is refused is sent twice.
    pub async fn reserve(&self, bytes: usize) -> Result<OwnedSemaphorePermit, IngestError> {
        if bytes > self.config.max_body_bytes {
            return Err(IngestError::TooLarge {
                what: "the body",
                limit_bytes: self.config.max_body_bytes,
            });
        }
        let pieces = u32::try_from(bytes.div_ceil(PIECE_BYTES).max(1)).unwrap_or(u32::MAX);
        let turn = self.receiving.clone().acquire_many_owned(pieces);
        match tokio::time::timeout(MAX_WAIT, turn).await {
            Ok(Ok(permit)) => Ok(permit),
            _ => {
                self.counters.requests_busy.fetch_add(1, Ordering::Relaxed);
                Err(IngestError::Busy)
            }
        }
    }

    /// As [`Ingest::ingest_form`], of a request in protobuf.
    pub async fn ingest(
        &self,
        body: Bytes,
        encoding: Encoding,
        id: Option<BatchId>,
        body_permit: OwnedSemaphorePermit,
        sender: Sender,
    ) -> Result<Outcome, IngestError> {
        self.ingest_form(body, encoding, Form::Protobuf, id, body_permit, sender)
            .await
    }

    /// Takes a request in and returns when its rows are committed and synced. `id`: its identity by headers.
    /// `body_permit`: what [`Ingest::reserve`] gave for the body; given back as soon as it is decoded. `sender`: whose
    /// token it came with.
    pub async fn ingest_form(
        &self,
        body: Bytes,
        encoding: Encoding,
        form: Form,
        id: Option<BatchId>,
        body_permit: OwnedSemaphorePermit,
        sender: Sender,
    ) -> Result<Outcome, IngestError> {
        self.counters.requests.fetch_add(1, Ordering::Relaxed);
        self.counters.body_bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
        let admitted = self
            .admit(body, encoding, form, id, body_permit, sender)
            .await
            .inspect_err(|error| {
                let counter = match error {
                    IngestError::Busy | IngestError::Ahead { .. } | IngestError::Store(_) => {
                        &self.counters.requests_busy
                    }
                    _ => &self.counters.requests_invalid,
                };
                counter.fetch_add(1, Ordering::Relaxed);
                if matches!(error, IngestError::Ahead { .. }) && !self.ahead_told.swap(true, Ordering::Relaxed) {
                    let wait_seconds = self.config.clock_wait.as_secs();
                    tracing::warn!(
                        wait_seconds,
                        "asked to come again until then, if no clock is set: {error}"
                    );
                }
            })?;
        let mut outcome = admitted.outcome;
        let appended = admitted.parts.into_iter().map(|(ticket, samples, id)| async move {
            let ack = self.store.acknowledge(ticket).await?;
            Ok::<_, IngestError>((ack, samples, id))
        });
        for result in futures::future::join_all(appended).await {
            match result? {
                (Ack::Stored, samples, _) => outcome.samples += samples,
                (Ack::Duplicate, ..) => outcome.duplicates += 1,
                (Ack::Conflict, samples, id) => outcome.leave_out(samples, id),
            }
        }
        // Not before: what is refused comes again.
        for (node, samples) in admitted.senders {
            self.senders.took(&node, samples, admitted.now_ns);
        }
        self.counters
            .samples_rejected
            .fetch_add(outcome.rejected_samples, Ordering::Relaxed);
        Ok(outcome)
    }

    async fn admit(
        &self,
        body: Bytes,
        encoding: Encoding,
        form: Form,
        id: Option<BatchId>,
        body_permit: OwnedSemaphorePermit,
        sender: Sender,
    ) -> Result<Admitted, IngestError> {
        let (store, runtime) = (Arc::clone(&self.store), Handle::current());
        let is_small = said_bytes(&body, encoding).is_some_and(|bytes| bytes <= QUICK_BYTES);
        let is_quick = is_small && form == Form::Protobuf && store.has_room();
        let arrived = Arrived {
            body,
            encoding,
            form,
            id,
            body_permit,
            sender,
            config: self.config,
            store: Arc::clone(&store),
            senders: Arc::clone(&self.senders),
        };
        let work = move |at_hand: &mut Decompressor| arrived.admit(at_hand);
        let done = if is_quick { self.decoding.here(work) } else { Err(work) };
        let (admitted, plain_bytes) = match done {
            Ok(done) => done?,
            Err(work) => {
                let work = move |at_hand: &mut Decompressor| {
                    // Where there is none after that, the store says so itself.
                    let _ = runtime.block_on(async { tokio::time::timeout(MAX_WAIT, store.wait_for_room()).await });
                    work(at_hand)
                };
                self.decoding.take(MAX_WAIT, work).await?
            }
        };
        self.counters
            .plain_bytes
            .fetch_add(plain_bytes as u64, Ordering::Relaxed);
        Ok(admitted)
    }
}

/// A body of at most so many bytes, decompressed, is decoded where it arrived. An agent's usual ones have a fifth and
/// take less than half a millisecond: another thread need not be woken for it.
const QUICK_BYTES: u64 = 1 << 20;

/// A request that is to be decoded.
struct Arrived {
    body: Bytes,
    encoding: Encoding,
    form: Form,
    id: Option<BatchId>,
    body_permit: OwnedSemaphorePermit,
    sender: Sender,
    config: IngestConfig,
    store: Arc<Store>,
    senders: Arc<Senders>,
}

impl Arrived {
    /// Decodes it and admits its rows. Returns how long it is decompressed, too.
    fn admit(self, at_hand: &mut Decompressor) -> Result<(Admitted, usize), IngestError> {
        let Self {
            body,
            encoding,
            form,
            id,
            body_permit,
            sender,
            config,
            store,
            senders,
        } = self;
        let window = window(&store);
        let refused = |node: &str, error: &IngestError| {
            senders.refused(node, error.reason(), &error.to_string(), window.now_ns);
        };
        let plain = at_hand
            .decompress(&body, encoding, config.max_plain_bytes)
            .inspect_err(|error| refused("", error))?;
        drop((body, body_permit));
        let plain_bytes = plain.len();
        // What is not written as rows are read from is written anew.
        let made = match form {
            Form::Protobuf => None,
            Form::Json => Some(json_to_otlp(plain)),
            Form::Pprof(about) => Some(of_pprof(at_hand, &about, config)),
        };
        let made = made.transpose().inspect_err(|error| refused("", error))?;
        let plain = made.as_deref().unwrap_or_else(|| at_hand.last());
        // What counts for a quota is the same whatever form it came in.
        let otlp_bytes = plain.len();
        let request = message::read(plain, config.max_decoded_bytes).inspect_err(|error| refused("", error))?;
        let arrival = Arrival {
            request,
            id,
            sender,
            window,
            senders: &senders,
        };
        let (converted, epoch) = arrival
            .convert(&store)
            .inspect_err(|error| refused(arrival.request.node(), error))?;
        for sent in &converted.senders {
            sent.fault.iter().for_each(|fault| refused(&sent.node, fault));
        }
        if converted.is_ahead && store.clock().running() < config.clock_wait {
            let now = chrono::DateTime::from_timestamp_nanos(window.now_ns);
            return Err(IngestError::Ahead {
                now: now.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
            });
        }
        let nodes: BTreeSet<String> = converted.senders.iter().map(|sent| sent.node.clone()).collect();
        let admitted = arrival
            .admit(&store, converted, epoch, otlp_bytes)
            .inspect_err(|error| {
                // What is asked to come again for another reason is the server's affair, this is the sender's.
                let of_quota = matches!(error, IngestError::Store(StoreError::QuotaUsedUp { .. }));
                if of_quota || matches!(error, IngestError::Invalid(_)) {
                    nodes.iter().for_each(|node| refused(node, error));
                }
            });
        Ok((admitted?, plain_bytes))
    }
}

/// The profile that was decompressed last, which may be gzipped itself, as a request.
fn of_pprof(at_hand: &mut Decompressor, about: &About, config: IngestConfig) -> Result<Vec<u8>, IngestError> {
    const GZIP: [u8; 2] = [0x1f, 0x8b];
    if at_hand.last().starts_with(&GZIP) {
        let packed = at_hand.last().to_vec();
        at_hand.decompress(&packed, Encoding::Gzip, config.max_plain_bytes)?;
    }
    pprof_to_otlp(at_hand.last(), about, config.max_decoded_bytes)
}

fn window(store: &Store) -> TimeWindow {
    let clock = store.clock();
    let span = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    TimeWindow {
        earliest_ns: store.earliest_ns(clock.proven_ns()).max(0),
        latest_ns: clock.possible_ns().saturating_add(span(MAX_FUTURE)),
        now_ns: clock.wall_ns(),
    }
}

/// A request that was read.
struct Arrival<'a> {
    request: message::Request<'a>,
    /// By headers.
    id: Option<BatchId>,
    sender: Sender,
    window: TimeWindow,
    senders: &'a Senders,
}

impl Arrival<'_> {
    /// The rows that the store lacks, and the epoch in which it lacks no others.
    fn convert(&self, store: &Store) -> Result<(Converted, u64), IngestError> {
        let epoch = store.known_epoch();
        let is_known = |table, day: &str, ids: &[i64]| store.known_rows(table, day, ids);
        let converted = convert(&self.request, self.id.clone(), self.window, &is_known, self.senders)?;
        Ok((converted, epoch))
    }

    /// Admits these rows, or all rows, where a commit failed meanwhile and took some with it that were left out.
    fn admit(
        self,
        store: &Store,
        converted: Converted,
        epoch: u64,
        otlp_bytes: usize,
    ) -> Result<Admitted, IngestError> {
        let mut admitted = Admitted::new(&converted, self.window.now_ns);
        admitted.otlp_bytes = otlp_bytes as u64;
        match admitted.admit(store, converted.parts, Some(epoch), &self.sender) {
            Err(IngestError::Store(StoreError::Forgotten)) => {
                let nothing_is_known: IsKnown<'_> = &|_, _, ids| vec![false; ids.len()];
                let all = convert(&self.request, self.id, self.window, nothing_is_known, self.senders)?;
                admitted.admit(store, all.parts, None, &self.sender)?;
            }
            result => result?,
        }
        Ok(admitted)
    }
}

/// A request whose batches are on their way to the disk.
struct Admitted {
    outcome: Outcome,
    /// Each batch with its samples.
    parts: Vec<(Ticket, i64, Option<BatchId>)>,
    /// Parts that were admitted or left out.
    done: usize,
    /// Nodes, with how many samples they have in these parts.
    senders: Vec<(String, u64)>,
    /// Of the whole request.
    otlp_bytes: u64,
    now_ns: i64,
}

impl Admitted {
    fn new(converted: &Converted, now_ns: i64) -> Self {
        let senders = converted.senders.iter();
        Self {
            parts: Vec::new(),
            done: 0,
            senders: senders.map(|sent| (sent.node.clone(), sent.samples)).collect(),
            otlp_bytes: 0,
            now_ns,
            outcome: Outcome {
                samples: 0,
                duplicates: 0,
                rejected_profiles: converted.rejected_profiles,
                rejected_samples: converted.rejected_samples,
                message: converted.message.clone(),
            },
        }
    }

    /// Admits the parts that are not yet, in their order. `relies_on`: as of [`crate::store::Rows`]. Of several a
    /// part that will never be taken is left out, so that the others' senders lose nothing by it.
    fn admit(
        &mut self,
        store: &Store,
        parts: Vec<Part>,
        relies_on: Option<u64>,
        sender: &Sender,
    ) -> Result<(), IngestError> {
        let (number, is_alone) = (parts.len(), parts.len() == 1);
        let samples: i64 = parts.iter().map(|part| part.samples).sum();
        for mut part in parts.into_iter().skip(self.done) {
            part.rows.relies_on = relies_on;
            part.rows.otlp_bytes = part_of(self.otlp_bytes, part.samples, samples, number);
            part.rows.sender = Sender {
                owner: Owner {
                    token: sender.owner.token,
                    ..part.rows.sender.owner
                },
                tokens: sender.tokens.clone(),
                quota: sender.quota.clone(),
            };
            match store.admit(part.rows, part.id.clone()) {
                Ok(ticket) => self.parts.push((ticket, part.samples, part.id)),
                Err(error) if error.is_for_good() && is_alone => return Err(IngestError::Invalid(error.to_string())),
                Err(error) if error.is_for_good() => self.outcome.refuse(part.samples, &error),
                Err(error) => return Err(error.into()),
            }
            self.done += 1;
        }
        Ok(())
    }
}

/// The bytes of a request that one of its batches has: as many as of its samples, and where none has any, as each.
fn part_of(bytes: u64, samples: i64, of_all: i64, batches: usize) -> u64 {
    let (part, whole): (u128, u128) = match of_all {
        0 => (1, batches.max(1) as u128),
        of_all => (samples.unsigned_abs().into(), of_all.unsigned_abs().into()),
    };
    u64::try_from(u128::from(bytes) * part / whole).unwrap_or(bytes)
}

#[cfg(test)]
#[path = "admit_tests.rs"]
mod tests;
