//! Memories of processes that are made up, for tests and fuzzing of what reads a language's runtime.

use std::ops::Range;

use super::ReadMemory;

/// Where such a memory begins.
pub(super) const BASE: u64 = 0x7f00_0000_0000;

/// A part of a process' memory. Nothing else of it can be read.
#[derive(Clone)]
pub(super) struct Memory {
    pub(super) bytes: Vec<u8>,
    hole: Range<u64>,
}

impl Memory {
    pub(super) fn new(bytes: Vec<u8>) -> Self {
        Self::with_hole(bytes, 0..0)
    }

    /// Of which something inside cannot be read either.
    pub(super) fn with_hole(bytes: Vec<u8>, hole: Range<u64>) -> Self {
        Self { bytes, hole }
    }

    pub(super) fn put(&mut self, address: u64, bytes: &[u8]) {
        let first = (address - BASE) as usize;
        self.bytes[first..first + bytes.len()].copy_from_slice(bytes);
    }

    pub(super) fn word(&mut self, address: u64, value: u64) {
        self.put(address, &value.to_le_bytes());
    }
}

impl ReadMemory for Memory {
    fn read(&self, address: u64, to: &mut [u8]) -> bool {
        if address < self.hole.end && address.saturating_add(to.len() as u64) > self.hole.start {
            return false;
        }
        let first = address.checked_sub(BASE).and_then(|first| usize::try_from(first).ok());
        let piece = first.and_then(|first| self.bytes.get(first..first.checked_add(to.len())?));
        piece.map(|piece| to.copy_from_slice(piece)).is_some()
    }
}
