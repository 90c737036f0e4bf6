//! Frames that lack a part of their names which another time may bring, such as Python's modules.
//!
//! In: a place of a program, with its frames as far as they are known. Out: the same, until the rest is known, and when
//! to ask for it again. Not for ever: in the end the name stays as it is.

use std::sync::Arc;

use super::place::RuntimePlace;
use crate::frames::{Frames, ProgramKey};
use crate::hash::FastMap;

/// So many places have such frames at a time.
const MAX_PLACES: usize = 4096;
/// How often such a place is asked for, and how long after the first time; each time it is so much longer.
pub(super) const MAX_TRIES: u8 = 16;
pub(super) const TRY_AGAIN_NS: u64 = 200_000_000;

type Key = (ProgramKey, RuntimePlace);

/// What is known of a place for now.
#[derive(Debug)]
struct Late {
    frames: Frames,
    tries: u8,
    next_ns: u64,
}

/// Places with what is known of them for now.
#[derive(Debug, Default)]
pub(super) struct LateFrames(FastMap<Key, Late>);

impl LateFrames {
    /// A place was asked for, and this is all that is known of it. True where it is not to be asked for again.
    pub(super) fn add(&mut self, key: Key, frames: &Frames, now_ns: u64) -> bool {
        if self.0.len() >= MAX_PLACES && !self.0.contains_key(&key) {
            self.0.clear();
        }
        let late = self.0.entry(key).or_insert_with(|| Late {
            frames: Arc::clone(frames),
            tries: 0,
            next_ns: 0,
        });
        late.frames = Arc::clone(frames);
        late.tries = late.tries.saturating_add(1);
        late.next_ns = now_ns + TRY_AGAIN_NS * u64::from(late.tries);
        late.tries >= MAX_TRIES
    }

    /// The frames of a place that is not to be asked for yet.
    pub(super) fn until_asked(&self, key: &Key, now_ns: u64) -> Option<Frames> {
        let late = self.0.get(key).filter(|late| now_ns < late.next_ns)?;
        Some(Arc::clone(&late.frames))
    }

    /// The frames of a place that can't be asked for.
    pub(super) fn get(&self, key: &Key) -> Option<Frames> {
        self.0.get(key).map(|late| Arc::clone(&late.frames))
    }

    /// All of a place is known.
    pub(super) fn remove(&mut self, key: &Key) {
        self.0.remove(key);
    }
}
