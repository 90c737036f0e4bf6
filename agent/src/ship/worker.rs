//! The shipping thread: takes submissions, encodes and spools them at once, and sends from the spool in two lanes.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};
use uuid::Uuid;

use super::config::{Identity, Retry, ShipConfig, ShipError};
use super::encode::{self, Packer};
use super::losses::CAUSE_QUEUE_FULL;
use super::send::{Outcome, Sender};
use super::shared::{Shared, Submission};
use super::spool::{Head, IN_FLIGHT, Lane, Spool, SpooledBatch};

/// How an attempt ended; `None` when there was none.
type Joined = Option<Result<(SpooledBatch, Outcome), JoinError>>;

/// Trouble that lasts is said again this often.
const REMIND_AFTER: Duration = Duration::from_secs(600);

/// Everything that the thread owns.
#[derive(Debug)]
pub(super) struct Worker {
    instance: Uuid,
    identity: Identity,
    retry: Retry,
    sender: Sender,
    spool: Spool,
    packer: Packer,
    shared: Arc<Shared>,
}

impl Worker {
    pub(super) fn open(config: &ShipConfig, instance: Uuid, shared: Arc<Shared>) -> Result<Self, ShipError> {
        let sender = Sender::new(config)?;
        let spool = Spool::open(&config.state_dir, config.spool_limit_bytes, instance)?;
        Ok(Self {
            instance,
            identity: config.identity.clone(),
            retry: config.retry,
            sender,
            spool,
            packer: Packer::new().map_err(ShipError::Thread)?,
            shared,
        })
    }

    /// Returns when all submitters are gone and nothing is left to send, or `stop`'s deadline has passed.
    pub(super) async fn run(self, mut submissions: mpsc::Receiver<Submission>, stop: oneshot::Receiver<Instant>) {
        let Self {
            instance,
            identity,
            retry,
            sender,
            spool,
            packer,
            shared,
        } = self;
        let state = Rc::new(State {
            spool: RefCell::new(spool),
            sender: Arc::new(sender),
            retry,
            shared,
            more: Notify::new(),
            hurry: Notify::new(),
            finished: Cell::new(false),
            trouble: RefCell::new(None),
        });
        state.publish();
        let mut lanes = std::pin::pin!(async { tokio::join!(state.lane(Lane::Earlier), state.lane(Lane::Live)) });
        let mut intake = Intake {
            instance,
            identity,
            packer,
            room_bytes: 0,
        };
        loop {
            tokio::select! {
                biased;
                submission = submissions.recv() => match submission {
                    Some(submission) => intake.take(&state, submission),
                    None => break,
                },
                _ = &mut lanes => break,
            }
        }
        intake.finish(&state);
        // Without a deadline the owner has gone without asking for anything to be sent.
        let deadline = stop.await.unwrap_or_else(|_| Instant::now());
        let left = tokio::time::timeout_at(deadline.into(), &mut lanes).await.is_err();
        let (batches, bytes) = state.spool.borrow().usage();
        if left && batches > 0 {
            tracing::warn!(
                batches,
                bytes,
                "ended with batches in the spool; the next start sends them"
            );
        }
        state.publish();
        state.spool.borrow_mut().close();
    }
}

/// From submission to spool.
struct Intake {
    instance: Uuid,
    identity: Identity,
    packer: Packer,
    /// Room to make before a batch is encoded, so that it tells of what had to go for it.
    room_bytes: u64,
}

impl Intake {
    fn take(&mut self, state: &State, submission: Submission) {
        let Submission {
            batch,
            queue_full_samples,
        } = submission;
        let mut spool = state.spool.borrow_mut();
        spool.make_room(self.room_bytes);
        let number = spool.next_number();
        let mut lost = batch.report.lost.clone();
        for (cause, samples) in spool.lost() {
            *lost.entry(cause).or_default() += samples;
        }
        if queue_full_samples > 0 {
            *lost.entry(CAUSE_QUEUE_FULL).or_default() += queue_full_samples;
        }
        let request = encode::request(&self.identity, self.instance, number, &batch, &lost);
        let report = encode::report(&self.identity, self.instance, number, &batch, &lost);
        let body = match self.packer.pack(&request) {
            Ok(body) => Bytes::from(body),
            Err(error) => {
                // zstd fails for want of memory only.
                tracing::error!(%error, batch = number, "a batch could not be compressed");
                spool.lose(batch.samples.len() as u64, report);
                return;
            }
        };
        // Batches differ in size; a quarter more fits nearly all.
        self.room_bytes = body.len() as u64 * 5 / 4 + 1024;
        spool.push(batch.samples.len() as u64, &body, report);
        drop(spool);
        state.publish();
        state.more.notify_one();
    }

    fn finish(&mut self, state: &State) {
        if let Some(report) = state.shared.untold().take() {
            let queue_full_samples = state.shared.queue_full_samples.load(Ordering::Acquire);
            self.take(
                state,
                Submission {
                    batch: report,
                    queue_full_samples,
                },
            );
        }
        state.spool.borrow_mut().finish();
        state.finished.set(true);
        state.more.notify_one();
        state.hurry.notify_waiters();
    }
}

/// What intake and lanes share on the one thread. No borrow of the spool is held across an await.
struct State {
    spool: RefCell<Spool>,
    sender: Arc<Sender>,
    retry: Retry,
    shared: Arc<Shared>,
    /// The live lane may have something to do.
    more: Notify,
    /// The end has come: who waits before the next attempt need not.
    hurry: Notify,
    finished: Cell<bool>,
    trouble: RefCell<Option<Trouble>>,
}

/// Since when the server has not taken batches, and what was said about it.
struct Trouble {
    since: Instant,
    said: Instant,
    reason: String,
}

impl State {
    /// Sends the lane's batches, several at a time while the server takes them, one at a time after a failure.
    async fn lane(&self, lane: Lane) {
        let (mut failures, mut hurried) = (0, false);
        let mut in_flight = JoinSet::new();
        let mut at_a_time = 1;
        loop {
            let rest = self.fill(lane, &mut in_flight, at_a_time);
            let answer = if in_flight.is_empty() {
                match rest {
                    Head::Unreadable(error) => {
                        let wait = self.failed(format!("the spool cannot be read: {error}"), None, false, failures);
                        failures = self.pause(wait, failures, &mut hurried).await;
                    }
                    _ if lane == Lane::Earlier || self.finished.get() => return,
                    _ => self.more.notified().await,
                }
                continue;
            } else {
                tokio::select! {
                    answer = in_flight.join_next() => answer,
                    () = self.more.notified(), if lane == Lane::Live && in_flight.len() < at_a_time => continue,
                }
            };
            let Some(wait) = self.settle(lane, answer, failures) else {
                (failures, at_a_time) = (0, IN_FLIGHT);
                continue;
            };
            // What else is under way is awaited first, so that the next attempt is the only one.
            let mut wait = wait;
            while let Some(answer) = in_flight.join_next().await {
                wait = self
                    .settle(lane, Some(answer), failures)
                    .map_or(wait, |other| other.max(wait));
            }
            at_a_time = 1;
            failures = self.pause(wait, failures, &mut hurried).await;
        }
    }

    /// Starts attempts until `at_a_time` are under way. Returns why it stopped, if it was not that.
    fn fill(&self, lane: Lane, in_flight: &mut JoinSet<(SpooledBatch, Outcome)>, at_a_time: usize) -> Head {
        while in_flight.len() < at_a_time {
            match self.spool.borrow_mut().next(lane) {
                Head::Batch(spooled) => {
                    let sender = Arc::clone(&self.sender);
                    in_flight.spawn(async move {
                        let outcome = sender.send(&spooled).await;
                        (spooled, outcome)
                    });
                }
                rest => return rest,
            }
        }
        Head::Empty
    }

    /// Brings an attempt's end to the books. Returns how long to wait if it has failed.
    fn settle(&self, lane: Lane, answer: Joined, failures: u32) -> Option<Duration> {
        let (spooled, outcome) = match answer {
            Some(Ok(answer)) => answer,
            // Tasks neither panic nor are cancelled while the lane lives; should one, its batch waits for the next
            // start.
            Some(Err(error)) => {
                return Some(self.failed(format!("an attempt broke off: {error}"), None, false, failures));
            }
            None => return None,
        };
        match outcome {
            Outcome::Acknowledged { refused, message } => {
                let refused = refused.min(spooled.samples);
                if refused > 0 {
                    tracing::error!(
                        batch = spooled.number,
                        samples = refused,
                        why = message,
                        "the server left samples out"
                    );
                }
                self.spool.borrow_mut().acknowledge(lane, spooled.number, refused);
                self.acknowledged(lane, spooled.samples - refused, spooled.body.len() as u64);
                None
            }
            Outcome::Refused { why, message } => {
                self.spool.borrow_mut().refuse(lane, spooled.number, &why, &message);
                self.recovered();
                self.publish();
                None
            }
            Outcome::Failed {
                reason,
                after,
                needs_person,
            } => {
                self.spool.borrow_mut().send_again(lane, spooled.number);
                Some(self.failed(reason, after, needs_person, failures))
            }
        }
    }

    /// Waits after a failed attempt; the end cuts it short, once. Returns how many have failed in a row, from when
    /// waits are to grow.
    async fn pause(&self, wait: Duration, failures: u32, hurried: &mut bool) -> u32 {
        let end = async {
            if !self.finished.get() {
                self.hurry.notified().await;
            }
        };
        tokio::select! {
            biased;
            () = end, if !*hurried => {
                *hurried = true;
                0
            }
            () = tokio::time::sleep(wait) => failures + 1,
        }
    }

    fn acknowledged(&self, lane: Lane, samples: u64, bytes: u64) {
        {
            let mut stats = self.shared.stats();
            let stats = &mut *stats;
            let (all_samples, all_batches) = match lane {
                Lane::Live => (&mut stats.acknowledged_samples, &mut stats.acknowledged_batches),
                Lane::Earlier => (
                    &mut stats.earlier_acknowledged_samples,
                    &mut stats.earlier_acknowledged_batches,
                ),
            };
            *all_samples += samples;
            *all_batches += 1;
            stats.sent_bytes += bytes;
        }
        self.recovered();
        self.publish();
    }

    fn recovered(&self) {
        let Some(trouble) = self.trouble.borrow_mut().take() else {
            return;
        };
        let mut spool = self.spool.borrow_mut();
        spool.set_durable(false);
        let (batches, bytes) = spool.usage();
        let seconds = trouble.since.elapsed().as_secs();
        tracing::info!(
            seconds,
            spooled_batches = batches,
            spooled_bytes = bytes,
            "the server takes batches again"
        );
        self.shared.stats().trouble = None;
    }

    /// Notes a failed attempt. Returns how long to wait for the next one.
    fn failed(&self, reason: String, after: Option<Duration>, needs_person: bool, failures: u32) -> Duration {
        {
            let mut stats = self.shared.stats();
            stats.failed_attempts += 1;
            stats.trouble = Some(reason.clone());
        }
        let mut spool = self.spool.borrow_mut();
        spool.set_durable(true);
        let (batches, _) = spool.usage();
        let now = Instant::now();
        let mut trouble = self.trouble.borrow_mut();
        let silent = trouble
            .as_ref()
            .is_some_and(|t| t.reason == reason && now - t.said < REMIND_AFTER);
        if !silent {
            if needs_person {
                tracing::error!(
                    spooled_batches = batches,
                    "{reason}; batches are spooled until this is mended"
                );
            } else {
                tracing::warn!(
                    spooled_batches = batches,
                    "{reason}; batches are spooled and sent later"
                );
            }
            let since = trouble.as_ref().map_or(now, |t| t.since);
            *trouble = Some(Trouble {
                since,
                said: now,
                reason,
            });
        }
        wait(self.retry, failures, after, random_share())
    }

    /// Copies the spool's figures to where the owner reads them.
    fn publish(&self) {
        let spool = self.spool.borrow();
        let mut stats = self.shared.stats();
        (stats.spooled_batches, stats.spooled_bytes) = spool.usage();
        let queue_full = self.shared.queue_full_samples.load(Ordering::Acquire);
        stats.lost.clone_from(spool.lost());
        if queue_full > 0 {
            stats.lost.insert(CAUSE_QUEUE_FULL, queue_full);
        }
        stats.earlier_lost = spool.earlier_lost();
    }
}

/// Between half and all of the doubled wait; what the server asks for is waited in full, with up to a quarter more.
fn wait(retry: Retry, failures: u32, after: Option<Duration>, share: f64) -> Duration {
    let doubled = retry
        .first
        .saturating_mul(2_u32.saturating_pow(failures))
        .min(retry.longest);
    let own = doubled.mul_f64(0.5 + share / 2.0);
    after.map_or(own, |after| after.mul_f64(1.0 + share / 4.0).max(own))
}

/// In [0, 1); so that a fleet does not come back in step. Not for secrets.
fn random_share() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 40;
    bits as f64 / (1_u64 << 24) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest() {
        let retry = Retry {
            first: Duration::from_millis(500),
            longest: Duration::from_secs(30),
        };
        assert_eq!(wait(retry, 0, None, 0.0), Duration::from_millis(250));
        assert_eq!(wait(retry, 1, None, 0.0), Duration::from_millis(500));
        assert_eq!(wait(retry, 3, None, 1.0), Duration::from_secs(4));
        assert_eq!(wait(retry, 40, None, 1.0), Duration::from_secs(30));
    }

    #[test]
    fn what_the_server_asks_for_is_a_minimum() {
        let retry = Retry::default();
        assert_eq!(
            wait(retry, 0, Some(Duration::from_secs(8)), 0.0),
            Duration::from_secs(8)
        );
        assert_eq!(
            wait(retry, 0, Some(Duration::from_secs(8)), 1.0),
            Duration::from_secs(10)
        );
        assert_eq!(
            wait(retry, 40, Some(Duration::from_secs(1)), 1.0),
            Duration::from_secs(30)
        );
    }

    #[test]
    fn shares_differ_and_stay_in_range() {
        let shares: Vec<f64> = (0..100).map(|_| random_share()).collect();
        assert!(shares.iter().all(|share| (0.0..1.0).contains(share)));
        assert!(shares.iter().any(|share| *share != shares[0]));
    }
}
