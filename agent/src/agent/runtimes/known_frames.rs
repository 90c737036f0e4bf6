//! Frames of places that were asked for, within a number and within memory.
//!
//! In: a place of a program, with its frames. Out: the same frames while there is room. Equal frames are one
//! allocation. In two generations: what was not asked for while the younger one filled up goes.

use std::sync::Arc;

use super::place::RuntimePlace;
use crate::frames::{Frame, Frames, ProgramKey};
use crate::hash::FastMap;

/// Places that are remembered, in each of two generations.
const MAX_PLACES: usize = 32_768;
/// Memory for all of it where nobody says otherwise.
const DEFAULT_BYTES: u64 = 8 << 20;
/// What a place takes beside its frames, and a frame beside its texts: entries of maps that are not full, counts, and
/// what the allocator adds.
const PLACE_BYTES: u64 = 160;
const FRAME_BYTES: u64 = size_of::<Frame>() as u64 + 64;

type Key = (ProgramKey, RuntimePlace);

/// Places with their frames.
#[derive(Debug)]
pub(super) struct KnownFrames {
    young: FastMap<Key, Frames>,
    old: FastMap<Key, Frames>,
    /// Each distinct frame once, as long as anybody has it.
    interned: FastMap<Arc<Frame>, ()>,
    limit_bytes: u64,
    /// Of the interned frames; and of what came since the younger generation began.
    frame_bytes: u64,
    young_bytes: u64,
    /// From so much on a new generation begins.
    turn_at_bytes: u64,
    /// Places that went for want of memory.
    forgotten: u64,
}

impl Default for KnownFrames {
    fn default() -> Self {
        Self::within(DEFAULT_BYTES)
    }
}

impl KnownFrames {
    pub(super) fn within(limit_bytes: u64) -> Self {
        Self {
            young: FastMap::default(),
            old: FastMap::default(),
            interned: FastMap::default(),
            limit_bytes,
            frame_bytes: 0,
            young_bytes: 0,
            turn_at_bytes: limit_bytes,
            forgotten: 0,
        }
    }

    /// Memory that is taken, as far as it can be told.
    pub(super) fn bytes(&self) -> u64 {
        self.frame_bytes + (self.young.len() + self.old.len()) as u64 * PLACE_BYTES
    }

    /// Places that went for want of memory.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    pub(super) fn recall(&mut self, key: Key) -> Option<Frames> {
        if let Some(frames) = self.young.get(&key) {
            return Some(Arc::clone(frames));
        }
        let frames = self.old.remove(&key)?;
        self.remember(key, Arc::clone(&frames));
        Some(frames)
    }

    pub(super) fn remember(&mut self, key: Key, frames: Frames) {
        let is_heavy = self.young_bytes >= self.limit_bytes / 2 || self.bytes() >= self.turn_at_bytes;
        if is_heavy || self.young.len() >= MAX_PLACES {
            if is_heavy {
                self.age();
            } else {
                self.turn();
            }
        }
        self.young_bytes += PLACE_BYTES;
        self.young.insert(key, frames);
    }

    /// Begins a new generation where memory is short: what nobody asked for in the last one goes.
    pub(super) fn age(&mut self) {
        self.forgotten += self.old.len() as u64;
        self.turn();
    }

    fn turn(&mut self) {
        self.old = std::mem::take(&mut self.young);
        self.young_bytes = 0;
        let frame_bytes = &mut self.frame_bytes;
        self.interned.retain(|frame, ()| {
            let is_needed = Arc::strong_count(frame) > 1;
            *frame_bytes -= if is_needed { 0 } else { bytes_of(frame) };
            is_needed
        });
        // Stacks that are about to be sent hold frames, too: another generation would not help at once.
        self.turn_at_bytes = self.limit_bytes.max(self.bytes() + self.limit_bytes / 8);
    }

    pub(super) fn intern(&mut self, frame: Frame) -> Arc<Frame> {
        if let Some((known, ())) = self.interned.get_key_value(&frame) {
            return Arc::clone(known);
        }
        let frame = Arc::new(frame);
        let bytes = bytes_of(&frame);
        self.frame_bytes += bytes;
        self.young_bytes += bytes;
        self.interned.insert(Arc::clone(&frame), ());
        frame
    }
}

/// Memory of a frame. A text that it has twice, as a module and as a file, is there once.
fn bytes_of(frame: &Frame) -> u64 {
    const COUNTS_BYTES: usize = 16;
    let text = |text: &Arc<str>| text.len() + COUNTS_BYTES;
    let file = frame.file.as_ref().filter(|file| !Arc::ptr_eq(file, &frame.module));
    let texts = [frame.function.as_ref(), file, Some(&frame.module)];
    let bytes: usize = texts.into_iter().flatten().map(text).sum();
    FRAME_BYTES + bytes as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::FrameKind;
    use crate::kernel::RuntimeWord;

    const LIMIT_BYTES: u64 = 1 << 20;

    fn key(number: u64) -> Key {
        let program = ProgramKey {
            tgid: 7,
            start_ticks: 1,
            exec_id: 0,
        };
        let place = RuntimePlace {
            frame: RuntimeWord::Python(number),
            detail: None,
            innermost: false,
        };
        (program, place)
    }

    fn frame(number: u64, name_bytes: usize) -> Frame {
        Frame {
            kind: FrameKind::Interpreted("cpython"),
            function: Some(format!("{number:0name_bytes$}").into()),
            ..Frame::unknown()
        }
    }

    fn add(known: &mut KnownFrames, number: u64, name_bytes: usize) {
        let frame = known.intern(frame(number, name_bytes));
        known.remember(key(number), Arc::from([frame]));
    }

    #[test]
    fn long_names_stay_within_their_memory_and_what_is_asked_for_stays() {
        let mut known = KnownFrames::within(LIMIT_BYTES);
        add(&mut known, 0, 10);
        for number in 1..20_000 {
            add(&mut known, number, 4_096);
            assert!(known.recall(key(0)).is_some(), "asked for all the time: {number}");
            // One more before the next generation begins.
            assert!(
                known.bytes() <= LIMIT_BYTES + 2 * 4_500,
                "{} at {number}",
                known.bytes()
            );
        }
        assert!(known.recall(key(1)).is_none() && known.forgotten() > 19_000);
        let held: u64 = known.interned.keys().map(|frame| bytes_of(frame)).sum();
        assert_eq!(held, known.frame_bytes);
        known.age();
        known.age();
        assert_eq!((known.bytes(), known.interned.len()), (0, 0));
    }

    #[test]
    fn what_goes_where_the_agent_has_no_memory_left_is_counted() {
        let mut known = KnownFrames::within(LIMIT_BYTES);
        for number in 0..5 {
            add(&mut known, number, 8);
        }
        known.age();
        assert_eq!(known.forgotten(), 0, "all are still there");
        assert!(known.recall(key(3)).is_some());
        known.age();
        assert_eq!(known.forgotten(), 4);
        assert!(known.recall(key(3)).is_some() && known.recall(key(2)).is_none());
    }

    #[test]
    fn short_names_are_bounded_by_their_number() {
        let mut known = KnownFrames::within(1 << 30);
        for number in 0..3 * MAX_PLACES as u64 {
            add(&mut known, number, 8);
            assert!(known.young.len() <= MAX_PLACES && known.old.len() <= MAX_PLACES);
        }
        assert_eq!(known.forgotten(), 0, "not for want of memory");
    }

    /// Stacks that wait to be sent have frames that can't go: generations do not begin at each place for that.
    #[test]
    fn frames_that_others_hold_do_not_make_each_place_a_generation() {
        let mut known = KnownFrames::within(LIMIT_BYTES);
        let held: Vec<Arc<Frame>> = (0..1_000).map(|number| known.intern(frame(number, 4_096))).collect();
        assert!(known.bytes() > 4 * LIMIT_BYTES);
        let mut generations = 0;
        for number in 10_000..20_000 {
            let before = known.young.len();
            add(&mut known, number, 8);
            generations += usize::from(known.young.len() <= before);
        }
        assert!((2..100).contains(&generations), "{generations}");
        drop(held);
        known.age();
        known.age();
        assert_eq!(known.bytes(), 0);
    }

    #[test]
    fn equal_frames_are_one() {
        let mut known = KnownFrames::default();
        let [one, other] = [0, 0].map(|_| known.intern(frame(1, 8)));
        assert!(Arc::ptr_eq(&one, &other));
        assert_eq!(known.frame_bytes, bytes_of(&one));
    }
}
