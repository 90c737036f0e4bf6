//! A map by ids: hashes of content, of which there are hundreds of thousands, looked up for every row.
//!
//! A look-up is mostly one cache line: an id lies where its hash says or right behind, with what it stands for beside
//! it. The library's map reads a line of tags first, and of a large map neither is in a cache.

/// Ids with a value each.
#[derive(Debug, Clone)]
pub(crate) struct IdMap<V> {
    /// A power of two, or none at all. An id of [`FREE`] is no entry.
    slots: Vec<(i64, V)>,
    /// The value of the id that stands for a free slot.
    of_free: Option<V>,
    len: usize,
}

/// The id of a slot without entry.
const FREE: i64 = 0;

/// Slots of the first entries.
const LEAST_SLOTS: usize = 16;

impl<V> Default for IdMap<V> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            of_free: None,
            len: 0,
        }
    }
}

impl<V: Copy + Default> IdMap<V> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Makes room for so many ids in all.
    pub(crate) fn reserve(&mut self, ids: usize) {
        if self.slots.len() < 2 * ids {
            self.resize(2 * ids);
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: i64) -> Option<V> {
        if id == FREE {
            return self.of_free;
        }
        if self.slots.is_empty() {
            return None;
        }
        match self.slots[self.slot(id)] {
            (FREE, _) => None,
            (_, value) => Some(value),
        }
    }

    /// The value of an id; where it has none yet, this one is its from now on.
    #[inline]
    pub(crate) fn get_or_insert(&mut self, id: i64, value: V) -> V {
        if id == FREE {
            self.len += usize::from(self.of_free.is_none());
            return *self.of_free.get_or_insert(value);
        }
        // Half of all slots are free, so that a look-up soon comes to one.
        if self.slots.len() < 2 * (self.len + 1) {
            self.resize(4 * self.len);
        }
        let slot = self.slot(id);
        match &mut self.slots[slot] {
            (known, of_known) if *known == id => *of_known,
            free => {
                *free = (id, value);
                self.len += 1;
                value
            }
        }
    }

    /// Leaves only the ids of which this is true.
    pub(crate) fn retain(&mut self, keep: impl Fn(i64) -> bool) {
        let old = std::mem::take(self);
        let of_free = old.of_free.map(|value| (FREE, value));
        let all = old.slots.into_iter().filter(|(id, _)| *id != FREE).chain(of_free);
        for (id, value) in all.filter(|(id, _)| keep(*id)) {
            self.get_or_insert(id, value);
        }
    }

    /// Where an id is, or would be. There are slots, and one is free.
    #[inline]
    fn slot(&self, id: i64) -> usize {
        // An odd constant near 2^64 divided by the golden ratio spreads ids that are no hashes too (Knuth, TAOCP 3,
        // 6.4).
        let hash = (id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mask = self.slots.len() - 1;
        let mut at = (hash >> 32) as usize & mask;
        while self.slots[at].0 != id && self.slots[at].0 != FREE {
            at = (at + 1) & mask;
        }
        at
    }

    /// Makes it so many slots, or some more.
    #[cold]
    fn resize(&mut self, slots: usize) {
        let more = slots.next_power_of_two().max(LEAST_SLOTS);
        // Written, not only promised by the allocator: pages that are read before they are written cost two
        // interrupts each.
        let mut slots = Vec::with_capacity(more);
        slots.resize(more, (FREE, V::default()));
        let old = std::mem::replace(&mut self.slots, slots);
        for (id, value) in old.into_iter().filter(|(id, _)| *id != FREE) {
            let slot = self.slot(id);
            self.slots[slot] = (id, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn the_same_as_the_library_s_map() {
        let (mut ours, mut theirs) = (IdMap::default(), HashMap::new());
        ours.reserve(100);
        let mut state = 1_u64;
        for step in 0..200_000_u32 {
            // Few of them and many, hashes and small numbers; among them the one that stands for a free slot.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let id = match state >> 62 {
                0 => (state >> 40) as i64 % 50 - 25,
                1 => ((state >> 33) as i64 % 3000) << 44,
                _ => ((state >> 40) as i64 % 40_000).wrapping_mul(0x5851_f42d_4c95_7f2d),
            };
            assert_eq!(ours.get(id), theirs.get(&id).copied(), "{id}");
            assert_eq!(ours.get_or_insert(id, step), *theirs.entry(id).or_insert(step), "{id}");
            assert_eq!(ours.len(), theirs.len());
        }
        assert!(theirs.len() > 30_000 && theirs.contains_key(&FREE));
        ours.retain(|id| id % 3 == 0);
        theirs.retain(|id, _| id % 3 == 0);
        assert_eq!(ours.len(), theirs.len());
        for (id, value) in theirs {
            assert_eq!(ours.get(id), Some(value));
        }
        assert_eq!(ours.get(1), None);
    }
}
