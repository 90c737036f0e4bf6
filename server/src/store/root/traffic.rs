//! What was asked of a store that is not on this machine, and what of it is kept in memory.

use crate::durations::Durations;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Get,
    Head,
    List,
    Put,
    /// A part of an upload, or its begin or end.
    Upload,
    Copy,
    Delete,
    /// Credentials, of the provider's service.
    Other,
}

/// What came of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ok,
    /// There is no such object.
    Missing,
    /// A condition does not hold: something is there, or has changed.
    Condition,
    /// The store asks for fewer requests.
    Throttled,
    /// By credentials.
    Denied,
    /// Any other answer that is no success.
    Error,
    /// No answer.
    Broken,
}

const OPERATIONS: [(Operation, &str); 8] = [
    (Operation::Get, "get"),
    (Operation::Head, "head"),
    (Operation::List, "list"),
    (Operation::Put, "put"),
    (Operation::Upload, "upload"),
    (Operation::Copy, "copy"),
    (Operation::Delete, "delete"),
    (Operation::Other, "other"),
];

const OUTCOMES: [(Outcome, &str); 7] = [
    (Outcome::Ok, "ok"),
    (Outcome::Missing, "missing"),
    (Outcome::Condition, "condition"),
    (Outcome::Throttled, "throttled"),
    (Outcome::Denied, "denied"),
    (Outcome::Error, "error"),
    (Outcome::Broken, "broken"),
];

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    requests: [[AtomicU64; OUTCOMES.len()]; OPERATIONS.len()],
    /// Bytes of bodies.
    pub(crate) sent_bytes: AtomicU64,
    pub(crate) received_bytes: AtomicU64,
    /// Until an answer began.
    seconds: [Durations; OPERATIONS.len()],
    /// Pages that were read from memory, those that were fetched, and the bytes of those that are kept.
    pub(crate) page_hits: AtomicU64,
    pub(crate) page_misses: AtomicU64,
    pub(crate) page_bytes: AtomicU64,
    /// Lists whose answer broke off, each time that they were asked again.
    pub(crate) resumed_lists: AtomicU64,
}

impl Traffic {
    /// Operation, outcome and number of the requests, of those kinds that there were.
    pub(crate) fn requests(&self) -> Vec<(&'static str, &'static str, u64)> {
        let mut rows = Vec::new();
        for ((_, operation), counts) in OPERATIONS.iter().zip(&self.requests) {
            for ((_, outcome), count) in OUTCOMES.iter().zip(counts) {
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    rows.push((*operation, *outcome, count));
                }
            }
        }
        rows
    }

    /// Time until answers began, by operation.
    pub(crate) fn seconds(&self) -> Vec<(&'static str, &Durations)> {
        let names = OPERATIONS.iter().map(|(_, name)| *name);
        names.zip(&self.seconds).collect()
    }

    /// A request ended, or its answer began.
    pub(crate) fn add(&self, operation: Operation, outcome: Outcome, took: Duration) {
        self.requests[operation as usize][outcome as usize].fetch_add(1, Ordering::Relaxed);
        self.seconds[operation as usize].add(took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kinds_that_there_were_are_told() {
        let traffic = Traffic::default();
        for (operation, outcome) in [
            (Operation::Put, Outcome::Condition),
            (Operation::Get, Outcome::Ok),
            (Operation::Get, Outcome::Ok),
            (Operation::Get, Outcome::Throttled),
        ] {
            traffic.add(operation, outcome, Duration::from_millis(3));
        }
        assert_eq!(
            traffic.requests(),
            [("get", "ok", 2), ("get", "throttled", 1), ("put", "condition", 1)]
        );
        let named = |(place, (operation, _)): (usize, &(Operation, &str))| *operation as usize == place;
        assert!(OPERATIONS.iter().enumerate().all(named), "each counts in its own place");
        assert!(
            OUTCOMES
                .iter()
                .enumerate()
                .all(|(place, (outcome, _))| *outcome as usize == place)
        );
    }
}
