//! Bounded memory of names.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::config::NamerStats;
use crate::frames::{CodeLocation, Frame, Frames, SourceId};
use crate::hash::FastMap;

/// How long a generation of names lasts. A compiler that runs now and then meets other code locations each time:
/// without an end, what is remembered of such programs grows for as long as they come.
const GENERATION_NS: u64 = 120_000_000_000;

/// Code locations in made code whose names are remembered beyond their perf map.
const MADE_PLACES: usize = 16_384;

/// What namers on several threads know together.
#[derive(Debug, Clone)]
pub struct Names(Arc<Mutex<Remembered>>);

#[derive(Debug)]
pub(super) struct Remembered {
    pub(super) cache: PlaceCache,
    /// Of code that was made at run time, by perf maps that are given up. While a map is there it is asked: it grows,
    /// and what it says of an address changes.
    pub(super) made: PlaceCache,
    pub(super) interner: Interner,
    /// What the namer did that names ahead.
    pub(super) ahead: NamerStats,
}

impl Names {
    /// Remembers so many code locations.
    pub fn within(locations: usize) -> Self {
        Self(Arc::new(Mutex::new(Remembered {
            cache: PlaceCache::new(locations),
            made: PlaceCache::new(MADE_PLACES.min(locations)),
            interner: Interner::default(),
            ahead: NamerStats::default(),
        })))
    }

    /// To be let go before anything is read.
    pub(super) fn lock(&self) -> MutexGuard<'_, Remembered> {
        // Whoever panicked has put a name there, or has not.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names by code location, in two generations: when the younger is full, or has lasted long enough, it becomes the
/// older, and what was in the older and was not asked for since is forgotten.
#[derive(Debug)]
pub(super) struct PlaceCache {
    young: FastMap<CodeLocation, Frames>,
    old: FastMap<CodeLocation, Frames>,
    capacity: usize,
    began_ns: u64,
}

impl PlaceCache {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            young: FastMap::default(),
            old: FastMap::default(),
            capacity: capacity.max(2),
            began_ns: 0,
        }
    }

    /// Forgets what nobody asked for in the last generation, once this one has lasted long enough. True where it did.
    pub(super) fn age(&mut self, now_ns: u64) -> bool {
        let ends = now_ns.saturating_sub(self.began_ns) >= GENERATION_NS;
        if ends {
            self.began_ns = now_ns;
            self.old = std::mem::take(&mut self.young);
        }
        ends
    }

    pub(super) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    pub(super) fn get(&mut self, location: &CodeLocation) -> Option<Frames> {
        if let Some(frames) = self.young.get(location) {
            return Some(Arc::clone(frames));
        }
        let frames = self.old.remove(location)?;
        self.insert(*location, Arc::clone(&frames));
        Some(frames)
    }

    pub(super) fn insert(&mut self, location: CodeLocation, frames: Frames) {
        if self.young.len() >= self.capacity / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(location, frames);
    }

    /// Holds at most so many from now on; only what is beyond that is forgotten: names of files that were given up
    /// can't be read again.
    pub(super) fn resize(&mut self, capacity: usize) {
        self.capacity = capacity.max(2);
        for generation in [&mut self.young, &mut self.old] {
            let mut room = self.capacity / 2;
            generation.retain(|_, _| {
                let stays = room > 0;
                room -= usize::from(stays);
                stays
            });
            generation.shrink_to_fit();
        }
    }

    pub(super) fn forget_source(&mut self, source: SourceId) {
        self.young.retain(|location, _| location.source != source);
        self.old.retain(|location, _| location.source != source);
    }
}

/// Equal frames become one allocation, so that a batch can tell them apart by address, and memory holds each once.
#[derive(Debug, Default)]
pub(super) struct Interner {
    frames: HashSet<Arc<Frame>>,
}

impl Interner {
    pub(super) fn intern(&mut self, frames: Vec<Frame>) -> Frames {
        frames.into_iter().map(|frame| self.one(frame)).collect()
    }

    fn one(&mut self, frame: Frame) -> Arc<Frame> {
        if let Some(known) = self.frames.get(&frame) {
            return Arc::clone(known);
        }
        let frame = Arc::new(frame);
        self.frames.insert(Arc::clone(&frame));
        frame
    }

    /// The known frame, or one of its own.
    pub(super) fn lookup_only(&self, frame: Frame) -> Frames {
        let frame = self.frames.get(&frame).map_or_else(|| Arc::new(frame), Arc::clone);
        Arc::from(vec![frame])
    }

    /// Forgets frames that nothing refers to any more, once there are more than `limit`.
    pub(super) fn tidy(&mut self, limit: usize) {
        if self.frames.len() > limit {
            self.forget_unused();
        }
    }

    /// Forgets frames that nothing refers to any more.
    pub(super) fn forget_unused(&mut self) {
        self.frames.retain(|frame| Arc::strong_count(frame) > 1);
        self.frames.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(offset: u64) -> CodeLocation {
        CodeLocation {
            source: SourceId::VDSO,
            offset,
        }
    }

    #[test]
    fn the_cache_keeps_what_is_asked_for_and_stays_bounded() {
        let mut interner = Interner::default();
        let mut cache = PlaceCache::new(100);
        for offset in 0..10_000 {
            let mut frame = Frame::unknown();
            frame.line = offset as u32;
            cache.insert(location(offset), interner.intern(vec![frame]));
            assert!(cache.get(&location(0)).is_some(), "asked for all the time");
            assert!(cache.len() <= 102, "{}", cache.len());
            interner.tidy(200);
            assert!(interner.frames.len() <= 201);
        }
        assert!(cache.get(&location(5)).is_none());
        cache.forget_source(SourceId::VDSO);
        assert_eq!(cache.len(), 0);
    }

    #[test]
    fn a_smaller_cache_forgets_only_what_is_too_much() {
        let mut interner = Interner::default();
        let mut cache = PlaceCache::new(100);
        for offset in 0..40 {
            cache.insert(location(offset), interner.intern(vec![Frame::unknown()]));
        }
        cache.resize(200);
        assert_eq!(cache.len(), 40);
        cache.resize(50);
        assert_eq!(cache.len(), 25);
    }

    #[test]
    fn names_are_forgotten_that_nobody_asks_for_in_two_generations() {
        let mut interner = Interner::default();
        let mut cache = PlaceCache::new(100);
        assert!(cache.age(GENERATION_NS), "of a clock that began long ago");
        for offset in 0..2 {
            let mut frame = Frame::unknown();
            frame.line = offset as u32;
            cache.insert(location(offset), interner.intern(vec![frame]));
        }
        assert!(!cache.age(2 * GENERATION_NS - 1));
        assert!(cache.age(2 * GENERATION_NS) && cache.get(&location(0)).is_some());
        interner.forget_unused();
        assert_eq!((cache.len(), interner.frames.len()), (2, 2));
        assert!(cache.age(3 * GENERATION_NS));
        interner.forget_unused();
        assert_eq!((cache.len(), interner.frames.len()), (1, 1));
        assert!(cache.get(&location(0)).is_some() && cache.get(&location(1)).is_none());
    }

    #[test]
    fn equal_frames_are_one() {
        let mut interner = Interner::default();
        let first = interner.intern(vec![Frame::unknown()]);
        let second = interner.intern(vec![Frame::unknown()]);
        assert!(Arc::ptr_eq(&first[0], &second[0]));
    }
}
