//! Which tables are given up for others where the room for tables is full.
//!
//! What no sample needed for the longest time goes first. A large table, or a part of one, waits until something was
//! not needed for a while, since two that take each other's room in turn would be compiled again and again; but a file
//! that has several times as much as the one that wants some gives it up at once. A part of the room stays free for
//! what is small: a program's own few rows, or its mappings, never wait for those of a compiler.

use crate::frames::SourceId;

/// Tables that a sample needed in this time are kept also where memory is short.
pub(super) const KEEP_NS: u64 = 60_000_000_000;
/// And in this time they are not given up for others of their size. An interval's samples count when it ends.
const RECENT_NS: u64 = 20_000_000_000;
/// A file that has so many times the room of another has too much while that one has too little.
const UNFAIR: u64 = 4;
/// Of all room, what is kept free for what is small.
const RESERVED_PART: u64 = 32;
/// Of that, what one table may take to be small.
const SMALL_PART: u64 = 4;

/// A table, or a part of one, that could be given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) used_ns: u64,
    pub(super) id: SourceId,
    pub(super) part: Option<u32>,
    pub(super) bytes: u64,
    /// Of the whole file, as far as it is there.
    pub(super) file_bytes: u64,
}

/// How a table asks for room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Size {
    Small,
    Large,
}

/// Decides for the room of all tables and mappings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Eviction {
    reserved_bytes: u64,
}

impl Eviction {
    pub(super) fn of(bytes: u64) -> Self {
        Self {
            reserved_bytes: bytes / RESERVED_PART,
        }
    }

    /// Of these bytes, which may be a part's. A part has a whole file behind it, and is large however few they are.
    pub(super) fn size(self, wanted: u64, is_part: bool) -> Size {
        if is_part || !self.is_small(wanted) {
            Size::Large
        } else {
            Size::Small
        }
    }

    /// Bytes that are missing for a table, where so many are free.
    pub(super) fn missing(self, size: Size, wanted: u64, free: u64) -> u64 {
        let kept = match size {
            Size::Small => 0,
            Size::Large => self.reserved_bytes,
        };
        (wanted + kept).saturating_sub(free)
    }

    /// Bytes that are missing for what is small and may come at any time.
    pub(super) fn missing_reserve(self, free: u64) -> u64 {
        if free < self.reserved_bytes / 2 {
            self.reserved_bytes - free
        } else {
            0
        }
    }

    fn is_small(self, bytes: u64) -> bool {
        bytes <= self.reserved_bytes / SMALL_PART
    }

    /// What is to be given up to free `missing` bytes for a table of a file that will have `file_bytes` with it: what
    /// was not needed lately, of files that have far more also what was, and for a small one all that is large. Nothing
    /// where that is not enough.
    pub(super) fn choose(
        self,
        size: Size,
        file_bytes: u64,
        candidates: Vec<Candidate>,
        missing: u64,
        now_ns: u64,
    ) -> Vec<Candidate> {
        let may_go = |candidate: &Candidate| {
            let is_idle = now_ns.saturating_sub(candidate.used_ns) >= RECENT_NS;
            let is_larger = self.size(candidate.bytes, candidate.part.is_some()) > size;
            // Not whole tables: one that all programs share, the C library's, is larger than many.
            let is_unfair = candidate.part.is_some() && candidate.file_bytes >= file_bytes.saturating_mul(UNFAIR);
            is_idle || is_larger || is_unfair
        };
        oldest(candidates.into_iter().filter(may_go).collect(), missing).unwrap_or_default()
    }

    /// What is given up where memory is short: all that was not needed in the last minute.
    pub(super) fn unused(candidates: Vec<Candidate>, now_ns: u64) -> Vec<Candidate> {
        let unused = |candidate: &Candidate| now_ns.saturating_sub(candidate.used_ns) >= KEEP_NS;
        candidates.into_iter().filter(unused).collect()
    }
}

/// Those that were not needed the longest, as many as have so many bytes together, if there are. Of equal age, which
/// all have that were needed in the same interval, the one whose file has most goes first.
fn oldest(mut candidates: Vec<Candidate>, missing: u64) -> Option<Vec<Candidate>> {
    if missing == 0 {
        return Some(Vec::new());
    }
    candidates.sort_unstable_by_key(|candidate| {
        let size = std::cmp::Reverse((candidate.file_bytes, candidate.bytes));
        (candidate.used_ns, size, candidate.id, candidate.part)
    });
    let mut bytes = 0;
    let enough = candidates.iter().position(|candidate| {
        bytes += candidate.bytes;
        bytes >= missing
    });
    candidates.truncate(enough? + 1);
    Some(candidates)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const NOW: u64 = 1_000 * SECOND;
    const EVICTION: Eviction = Eviction {
        reserved_bytes: 512 << 10,
    };

    /// A part, or a whole file's table, that was needed so many seconds ago.
    fn needed(seconds_ago: u64, part: Option<u32>, bytes: u64) -> Candidate {
        Candidate {
            used_ns: NOW - seconds_ago * SECOND,
            id: SourceId::VDSO,
            part,
            bytes,
            file_bytes: 2 << 20,
        }
    }

    /// Of some hundred parts that were all needed lately.
    fn busy_compiler() -> Vec<Candidate> {
        (0..400)
            .map(|part| needed(u64::from(part % 15), Some(part), 40 << 10))
            .collect()
    }

    #[test]
    fn a_small_table_takes_the_room_of_parts_that_were_needed_a_moment_ago() {
        let small = needed(14, None, 9 << 10);
        let mut candidates = busy_compiler();
        candidates.push(small);
        let chosen = EVICTION.choose(Size::Small, 9 << 10, candidates, 100 << 10, NOW);
        assert_eq!(chosen.len(), 3);
        assert!(!chosen.contains(&small), "small tables stay for each other");
        let oldest = NOW - 14 * SECOND;
        assert!(chosen.iter().all(|candidate| candidate.used_ns == oldest), "{chosen:?}");
    }

    #[test]
    fn parts_do_not_take_each_others_room_in_turn() {
        let for_large = |candidates, missing| EVICTION.choose(Size::Large, 1 << 20, candidates, missing, NOW);
        assert_eq!(for_large(busy_compiler(), 40 << 10), []);
        let mut candidates = busy_compiler();
        candidates.extend([needed(25, Some(1000), 30 << 10), needed(40, None, 30 << 10)]);
        let chosen = for_large(candidates.clone(), 40 << 10);
        assert_eq!(chosen, [candidates[401], candidates[400]]);
        // Nothing is given up in vain.
        assert_eq!(for_large(candidates.clone(), 80 << 10), []);
        assert_eq!(for_large(candidates, 0), []);
    }

    #[test]
    fn who_has_little_takes_the_room_of_who_has_several_times_as_much() {
        let for_file = |file_bytes| EVICTION.choose(Size::Large, file_bytes, busy_compiler(), 60 << 10, NOW);
        let chosen = for_file(512 << 10);
        assert_eq!(chosen.len(), 2);
        let oldest = NOW - 14 * SECOND;
        assert!(chosen.iter().all(|candidate| candidate.used_ns == oldest), "{chosen:?}");
        assert_eq!(for_file((512 << 10) + 1), []);
        let shared = needed(15, None, 3 << 20);
        let candidates = [vec![shared], busy_compiler()].concat();
        let chosen = EVICTION.choose(Size::Large, 40 << 10, candidates, 60 << 10, NOW);
        assert!(!chosen.is_empty() && !chosen.contains(&shared), "{chosen:?}");
    }

    #[test]
    fn some_room_stays_free_for_what_is_small() {
        let reserved = EVICTION.reserved_bytes;
        let missing = |is_part, wanted, free| EVICTION.missing(EVICTION.size(wanted, is_part), wanted, free);
        assert_eq!(missing(false, 9 << 10, 10 << 10), 0);
        assert_eq!(missing(false, 400 << 10, 400 << 10), reserved);
        assert_eq!(missing(true, 9 << 10, 10 << 10), reserved - (1 << 10));
        assert_eq!(
            (
                EVICTION.missing_reserve(reserved),
                EVICTION.missing_reserve(reserved / 2)
            ),
            (0, 0)
        );
        assert_eq!(EVICTION.missing_reserve(1000), reserved - 1000);
    }

    #[test]
    fn where_memory_is_short_all_goes_that_was_not_needed_for_a_minute() {
        let candidates = vec![needed(59, None, 1), needed(61, Some(1), 2), needed(60, None, 3)];
        assert_eq!(Eviction::unused(candidates.clone(), NOW), candidates[1..]);
    }
}
