//! What is remembered of who sends: when it last did, what it was refused and why.
//!
//! In: names of nodes, refusals. Out: lists for people. Everything is bounded, here and for each sender, and lasts as
//! long as the process does. No I/O but lines of the log.

use crate::ingest::rows::labels::{Seen, hour_of};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Senders that are remembered, each with what its labels had: a few bytes to some megabytes. Of more, the one that
/// has been silent for the longest is forgotten.
const MAX_SENDERS: usize = 4096;

/// Of a sender's name and of what it was told last, characters.
const MAX_TEXT: usize = 300;

/// Lines of the log about refusals: so many in so much time, and then how many more there were.
const LINES: u32 = 20;

const LINES_NS: i64 = 60_000_000_000;

/// How often a sender was refused something for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// How often since the server's start.
    pub(crate) count: u64,
    /// When the last time was, nanoseconds since the Unix epoch.
    pub(crate) last_ns: i64,
    /// What it was told the last time.
    pub(crate) message: String,
}

/// What is told of one sender.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sender {
    /// When it sent something last, nanoseconds since the Unix epoch.
    pub(crate) last_ns: i64,
    /// Since the server's start.
    pub(crate) samples: u64,
    /// By reason, such as `bad_profile`.
    pub(crate) refusals: BTreeMap<&'static str, Refusal>,
    /// How often which bound of its labels was reached.
    pub(crate) label_limits: BTreeMap<&'static str, u64>,
}

/// What is known of one sender.
#[derive(Debug, Default)]
pub(crate) struct KnownSender {
    told: Sender,
    pub(crate) seen: Seen,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Senders {
    known: Mutex<HashMap<String, Arc<Mutex<KnownSender>>>>,
    lines: Mutex<Lines>,
    /// The hour of the last one, and values of labels that are remembered of all.
    hour: AtomicI64,
    values: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Lines {
    since_ns: i64,
    written: u32,
    left_out: u64,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a panic left behind is counts, which are right or nearly so.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn cut(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(MAX_TEXT)
        .collect()
}

impl Senders {
    /// The sender of this name, which is its node's.
    pub(crate) fn of(&self, name: &str, now_ns: i64) -> Arc<Mutex<KnownSender>> {
        let name = cut(name);
        let mut known = lock(&self.known);
        if known.len() >= MAX_SENDERS && !known.contains_key(&name) {
            let oldest = known.iter().min_by_key(|(_, sender)| lock(sender).told.last_ns);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                known.remove(&oldest);
            }
        }
        // What was said in another hour no longer counts, whoever said it.
        let hour = hour_of(now_ns);
        if self.hour.swap(hour, Ordering::Relaxed) != hour {
            known.values().for_each(|sender| lock(sender).seen.turn_to(hour));
        }
        let new = || {
            Arc::new(Mutex::new(KnownSender {
                told: Sender::default(),
                seen: Seen::new(Arc::clone(&self.values)),
            }))
        };
        let sender = Arc::clone(known.entry(name).or_insert_with(new));
        lock(&sender).told.last_ns = now_ns;
        sender
    }

    /// Samples of a sender were taken in.
    pub(crate) fn took(&self, name: &str, samples: u64, now_ns: i64) {
        lock(&self.of(name, now_ns)).told.samples += samples;
    }

    /// A sender was refused something, all of a request or a part. `name`: empty where the request did not say.
    pub fn refused(&self, name: &str, reason: &'static str, message: &str, now_ns: i64) {
        {
            let sender = self.of(name, now_ns);
            let mut sender = lock(&sender);
            let refusal = sender.told.refusals.entry(reason).or_insert(Refusal {
                count: 0,
                last_ns: 0,
                message: String::new(),
            });
            refusal.count += 1;
            refusal.last_ns = now_ns;
            refusal.message = cut(message);
        }
        let mut lines = lock(&self.lines);
        if now_ns.saturating_sub(lines.since_ns) > LINES_NS || now_ns < lines.since_ns {
            if lines.left_out > 0 {
                tracing::warn!(
                    refusals = lines.left_out,
                    "more senders were refused profiles than the log tells"
                );
            }
            *lines = Lines {
                since_ns: now_ns,
                ..Lines::default()
            };
        }
        if lines.written < LINES {
            lines.written += 1;
            tracing::warn!(sender = cut(name), reason, message = cut(message), "profiles refused");
        } else {
            lines.left_out += 1;
        }
    }

    /// All, by name.
    pub(crate) fn list(&self) -> BTreeMap<String, Sender> {
        let known = lock(&self.known);
        let told = |sender: &KnownSender| Sender {
            label_limits: sender.seen.reached.clone(),
            ..sender.told.clone()
        };
        let each = known.iter().map(|(name, sender)| (name.clone(), told(&lock(sender))));
        each.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_by_sender_and_reason_and_senders_are_bounded() {
        let senders = Senders::default();
        for at in 0..3 {
            senders.refused("a", "bad_profile", &format!("stack {at}\nof 3"), at);
        }
        senders.refused("", "too_large", &"x".repeat(10_000), 5);
        let list = senders.list();
        assert_eq!(list["a"].refusals["bad_profile"].count, 3);
        assert_eq!(list["a"].refusals["bad_profile"].message, "stack 2 of 3");
        assert_eq!(list[""].refusals["too_large"].message.len(), MAX_TEXT);
        for at in 0..MAX_SENDERS as i64 {
            senders.took(&format!("node-{at}"), 1, 10 + at);
        }
        let list = senders.list();
        assert_eq!(list.len(), MAX_SENDERS);
        // The one that was silent for the longest.
        assert!(!list.contains_key("a") && list.contains_key("node-0"));
    }
}
