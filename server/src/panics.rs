//! Panics: each ends one request at most, and is counted and logged.

use std::sync::atomic::{AtomicU64, Ordering};

static SEEN: AtomicU64 = AtomicU64::new(0);

/// From here on each panic is counted, and is an error in the log, with its place.
pub fn watch() {
    std::panic::set_hook(Box::new(|panic| {
        SEEN.fetch_add(1, Ordering::Relaxed);
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let payload = panic.payload();
        let words = payload.downcast_ref::<&str>().copied();
        let words = words
            .or(payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("?");
        let words: String = words.chars().take(400).collect();
        tracing::error!(place, words, "a panic: what was asked for is not answered");
    }));
}

/// Since [`watch`].
pub fn seen() -> u64 {
    SEEN.load(Ordering::Relaxed)
}
