//! Room for tables: ranges of words in slabs, of which there may be only so many.

/// Words of 4 bytes in a slab.
pub const SLAB_WORDS: u32 = 1 << SLAB_BITS;
const SLAB_BITS: u32 = 18;
/// The first words of the first slab are never given away: their place is zero, which stands for "none".
const RESERVED_WORDS: u32 = 8;

/// Consecutive words of one slab: `place` is slab << 18 | word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Number of the slab and of the first word in it, in one.
    pub place: u32,
    /// How many words of 4 bytes these are.
    pub words: u32,
}

impl Range {
    /// The number of the slab.
    pub fn slab(self) -> usize {
        (self.place >> SLAB_BITS) as usize
    }

    /// Of its slab.
    pub fn first_word(self) -> usize {
        (self.place & (SLAB_WORDS - 1)) as usize
    }
}

/// Which words are free: in each slab (first, words), ascending, never adjacent.
#[derive(Debug, Default)]
pub(super) struct Space {
    slabs: Vec<Vec<(u32, u32)>>,
}

impl Space {
    pub(super) fn slabs(&self) -> usize {
        self.slabs.len()
    }

    /// One more slab, all free.
    pub(super) fn add_slab(&mut self) {
        let first = if self.slabs.is_empty() { RESERVED_WORDS } else { 0 };
        self.slabs.push(vec![(first, SLAB_WORDS - first)]);
    }

    /// The first range that is free and long enough; none where there is none.
    pub(super) fn take(&mut self, words: u32) -> Option<Range> {
        let words = words.max(1);
        for (number, free) in self.slabs.iter_mut().enumerate() {
            let Some(index) = free.iter().position(|(_, length)| *length >= words) else {
                continue;
            };
            let (first, length) = free[index];
            if length == words {
                free.remove(index);
            } else {
                free[index] = (first + words, length - words);
            }
            let place = u32::try_from(number).ok()? << SLAB_BITS | first;
            return Some(Range { place, words });
        }
        None
    }

    pub(super) fn give_back(&mut self, range: Range) {
        let Some(free) = self.slabs.get_mut(range.slab()) else {
            return;
        };
        let (mut first, mut length) = (range.place & (SLAB_WORDS - 1), range.words);
        let mut at = free.partition_point(|(other, _)| *other < first);
        if let Some((other, _)) = free.get(at)
            && *other == first + length
        {
            length += free.remove(at).1;
        }
        if at > 0 && free[at - 1].0 + free[at - 1].1 == first {
            at -= 1;
            let before = free.remove(at);
            first = before.0;
            length += before.1;
        }
        free.insert(at, (first, length));
    }

    pub(super) fn free_words(&self) -> u64 {
        self.slabs.iter().flatten().map(|(_, words)| u64::from(*words)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_never_overlap_and_what_comes_back_becomes_whole_again() {
        let mut space = Space::default();
        space.add_slab();
        space.add_slab();
        let all = space.free_words();
        assert_eq!(all, u64::from(2 * SLAB_WORDS - RESERVED_WORDS));
        let mut taken: Vec<Range> = Vec::new();
        let mut state = 7u64;
        let mut next = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % bound
        };
        for _ in 0..5_000 {
            if taken.is_empty() || next(3) > 0 {
                let Some(range) = space.take(next(3_000) as u32) else {
                    continue;
                };
                assert!(range.place >= RESERVED_WORDS);
                let end = |range: &Range| range.place + range.words;
                assert!(
                    taken
                        .iter()
                        .all(|other| end(other) <= range.place || end(&range) <= other.place),
                    "{range:?} overlaps"
                );
                assert_eq!(range.place >> SLAB_BITS, (end(&range) - 1) >> SLAB_BITS);
                taken.push(range);
            } else {
                let index = next(taken.len() as u64) as usize;
                space.give_back(taken.swap_remove(index));
            }
            let held: u64 = taken.iter().map(|range| u64::from(range.words)).sum();
            assert_eq!(space.free_words() + held, all);
        }
        taken.into_iter().for_each(|range| space.give_back(range));
        assert_eq!(
            space.slabs,
            [
                vec![(RESERVED_WORDS, SLAB_WORDS - RESERVED_WORDS)],
                vec![(0, SLAB_WORDS)]
            ]
        );
        assert_eq!(space.take(SLAB_WORDS).map(Range::slab), Some(1));
        assert_eq!(space.take(SLAB_WORDS), None);
    }
}
