//! A number for each of many things in each of some steps. Pure.

/// Slots that get their memory at once: what was counted is not moved when more comes.
const CHUNK_SLOTS: usize = 4096;

/// A number for each slot and step.
#[derive(Debug, Clone)]
pub(crate) struct Matrix<T> {
    pub(crate) steps: usize,
    chunks: Vec<Vec<T>>,
}

impl<T: Clone + Default> Matrix<T> {
    pub(crate) fn new(steps: usize) -> Matrix<T> {
        Matrix {
            steps,
            chunks: Vec::new(),
        }
    }

    /// Room for so many slots.
    pub(crate) fn grow(&mut self, slots: usize) {
        while self.slots() < slots {
            self.chunks.push(vec![T::default(); CHUNK_SLOTS * self.steps]);
        }
    }

    /// Takes other cells of as many steps in behind its own. Returns which slot their first one is then.
    pub(crate) fn append(&mut self, other: Self) -> usize {
        let first = self.slots();
        self.chunks.extend(other.chunks);
        first
    }

    /// Slots that have their memory.
    pub(crate) fn slots(&self) -> usize {
        self.chunks.len() * CHUNK_SLOTS
    }

    /// The steps of a slot, which are its own no more.
    pub(crate) fn take(&mut self, slot: usize) -> Vec<T> {
        let of_slot = self.of_mut(slot);
        let taken = of_slot.to_vec();
        of_slot.fill(T::default());
        taken
    }

    /// Moves the steps of a slot to another one, in place of what that had.
    pub(crate) fn shift(&mut self, from: usize, to: usize) {
        if from != to {
            let moved = self.take(from);
            self.of_mut(to).clone_from_slice(&moved);
        }
    }

    /// Gives back the memory behind so many slots.
    pub(crate) fn truncate(&mut self, slots: usize) {
        self.chunks.truncate(slots.div_ceil(CHUNK_SLOTS));
    }

    /// The steps of a slot.
    pub(crate) fn of(&self, slot: usize) -> &[T] {
        &self.chunks[slot / CHUNK_SLOTS][slot % CHUNK_SLOTS * self.steps..][..self.steps]
    }

    pub(crate) fn of_mut(&mut self, slot: usize) -> &mut [T] {
        &mut self.chunks[slot / CHUNK_SLOTS][slot % CHUNK_SLOTS * self.steps..][..self.steps]
    }

    /// The steps of all slots, slot by slot.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[T]> {
        self.chunks.iter().flat_map(|chunk| chunk.chunks_exact(self.steps))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.slots() * self.steps * size_of::<T>()
    }
}
