//! Copies of stacks that wait for their tables. In: bytes as the kernel side read them. Out: the same bytes, each time that a walk
//! goes on. All that is kept counts against one limit, of which every file has a part.

use std::collections::hash_map::Entry;

use zstd::bulk::{Compressor, Decompressor};

use crate::maps::FastMap;
use crate::process::SourceId;

/// Of the memory limit, what copies may take; beyond it stacks stay cut.
const LIMIT_PART: u64 = 8;
/// Of that, what all programs' may take as they come; and what the copies that stopped in the code of one file may take in any case, so
/// that those of a compiler, on all CPUs, leave room for others.
const SHARED_PART: usize = 2;
const FILE_PART: usize = 8;
/// Of what all may take, so much holds copies as they are. Further ones are packed: a fifth of the size, for 50 µs of CPU time.
const PLAIN_PART: usize = 16;
/// Higher levels take twice the time to save a twentieth more.
const LEVEL: i32 = -1;
/// Nothing is packed where not even so small a part of it has room.
const HARDLY_SMALLER: usize = 16;

/// One copy.
#[derive(Debug)]
pub(super) struct Kept {
    bytes: Box<[u8]>,
    /// Its size as it was, where it is packed.
    unpacked_bytes: Option<usize>,
    /// The file by whose share of the room it was admitted.
    file: SourceId,
}

/// Room for all of them.
#[derive(Default)]
pub(super) struct Copies {
    bytes: usize,
    bytes_by_file: FastMap<SourceId, usize>,
    limit_bytes: usize,
    /// Where zstd's memory and the copy that was unpacked last are; none while nothing is packed.
    packer: Option<Packer>,
    packed: usize,
}

struct Packer {
    compressor: Compressor<'static>,
    decompressor: Decompressor<'static>,
    unpacked: Vec<u8>,
}

impl Packer {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            compressor: Compressor::new(LEVEL)?,
            decompressor: Decompressor::new()?,
            unpacked: Vec::new(),
        })
    }
}

impl std::fmt::Debug for Copies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Copies")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Copies {
    pub(super) fn within(memory_limit_bytes: u64) -> Self {
        Self {
            limit_bytes: usize::try_from(memory_limit_bytes / LIMIT_PART).unwrap_or(usize::MAX),
            ..Self::default()
        }
    }

    /// True where there is soon no room left for copies of stacks of the program that has most.
    pub(super) fn are_crowded(&self) -> bool {
        self.bytes > self.limit_bytes / SHARED_PART / 4 * 3
    }

    /// Keeps a copy of a stack that stopped in a file's code. None where there is no room.
    pub(super) fn keep(&mut self, file: SourceId, stack: &[u8]) -> Option<Kept> {
        let is_plain = self.bytes + stack.len() <= self.limit_bytes / SHARED_PART / PLAIN_PART;
        let packed = if !is_plain && self.has_room(file, stack.len() / HARDLY_SMALLER) {
            self.pack(stack)
        } else {
            None
        };
        if !self.has_room(file, packed.as_ref().map_or(stack.len(), Vec::len)) {
            return None;
        }
        let unpacked_bytes = packed.is_some().then_some(stack.len());
        let bytes = packed.map_or_else(|| stack.into(), Vec::into_boxed_slice);
        self.bytes += bytes.len();
        *self.bytes_by_file.entry(file).or_default() += bytes.len();
        self.packed += usize::from(unpacked_bytes.is_some());
        Some(Kept {
            bytes,
            unpacked_bytes,
            file,
        })
    }

    /// The bytes of a copy; none where zstd has no memory.
    pub(super) fn stack<'a>(&'a mut self, kept: &'a Kept) -> &'a [u8] {
        let Some(size) = kept.unpacked_bytes else {
            return &kept.bytes;
        };
        let Some(packer) = &mut self.packer else { return &[] };
        packer.unpacked.clear();
        packer.unpacked.reserve(size);
        match packer
            .decompressor
            .decompress_to_buffer(&kept.bytes, &mut packer.unpacked)
        {
            Ok(_) => &packer.unpacked,
            Err(_) => &[],
        }
    }

    pub(super) fn release(&mut self, kept: &Kept) {
        self.bytes -= kept.bytes.len();
        if let Entry::Occupied(mut of_file) = self.bytes_by_file.entry(kept.file) {
            *of_file.get_mut() -= kept.bytes.len();
            if *of_file.get() == 0 {
                of_file.remove();
            }
        }
        self.packed -= usize::from(kept.unpacked_bytes.is_some());
        if self.packed == 0 {
            self.packer = None;
        }
    }

    /// None where that makes it no smaller.
    fn pack(&mut self, stack: &[u8]) -> Option<Vec<u8>> {
        if self.packer.is_none() {
            self.packer = Packer::new().ok();
        }
        let packed = self.packer.as_mut()?.compressor.compress(stack).ok()?;
        (packed.len() < stack.len()).then_some(packed)
    }

    fn has_room(&self, file: SourceId, bytes: usize) -> bool {
        let all = self.bytes + bytes;
        let of_file = self.bytes_by_file.get(&file).copied().unwrap_or(0) + bytes;
        let shared = all <= self.limit_bytes / SHARED_PART;
        let own = all <= self.limit_bytes && of_file <= self.limit_bytes / FILE_PART;
        shared || own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COPY: usize = 32 << 10;

    /// Bytes in which zstd finds nothing.
    fn noise(seed: u64) -> Vec<u8> {
        let word = |i: u64| xxhash_rust::xxh3::xxh3_64_with_seed(&i.to_ne_bytes(), seed).to_ne_bytes();
        (0..COPY as u64 / 8).flat_map(word).collect()
    }

    /// Addresses of a few functions and of the stack itself, as stacks hold them.
    fn frames(seed: u64) -> Vec<u8> {
        let word = |i: u64| match i % 4 {
            0 => 0x5555_5555_0000 + (i + seed) % 23 * 0x40,
            1 => 0x7fff_ffff_0000 + i * 8,
            _ => 0,
        };
        (0..COPY as u64 / 8).flat_map(|i| word(i).to_ne_bytes()).collect()
    }

    #[test]
    fn copies_of_one_file_leave_room_for_others_and_all_of_them_are_bounded() {
        let mut copies = Copies::within((64 * LIMIT_PART) << 20);
        let stack = noise(1);
        let mut kept = vec![];
        let mut fill = |file, kept: &mut Vec<Kept>| {
            let before = kept.len();
            kept.extend(std::iter::from_fn(|| copies.keep(file, &stack)));
            (kept.len() - before) * COPY
        };
        assert_eq!(fill(SourceId::KERNEL, &mut kept), 32 << 20, "one takes what is shared");
        assert_eq!(fill(SourceId::VDSO, &mut kept), 8 << 20, "another one its own part");
        assert_eq!(fill(SourceId::KERNEL, &mut kept), 0);
        for kept in &kept {
            copies.release(kept);
        }
        assert_eq!((copies.bytes, copies.bytes_by_file.len(), copies.packed), (0, 0, 0));
        assert!(copies.keep(SourceId::VDSO, &vec![0; 256]).is_some());
        let mut small = Copies::within(LIMIT_PART * COPY as u64 - 8);
        assert!(small.keep(SourceId::VDSO, &stack).is_none());
    }

    #[test]
    fn many_copies_are_packed_and_come_out_as_they_went_in() {
        let mut copies = Copies::within((LIMIT_PART * 4) << 20);
        let shared = 2 << 20;
        let stacks = |i: u64| if i.is_multiple_of(16) { noise(i) } else { frames(i) };
        let kept: Vec<Kept> = (0..).map_while(|i| copies.keep(SourceId::KERNEL, &stacks(i))).collect();
        let plain = kept.iter().filter(|kept| kept.unpacked_bytes.is_none()).count();
        assert!(plain >= shared / PLAIN_PART / COPY, "few are kept as they are: {plain}");
        assert!(
            kept.len() > 3 * shared / COPY,
            "{} in the room of {}",
            kept.len(),
            shared / COPY
        );
        assert!(copies.bytes <= shared);
        for (i, kept) in kept.iter().enumerate() {
            assert!(copies.stack(kept) == stacks(i as u64), "the copy {i}");
        }
        for kept in &kept {
            copies.release(kept);
        }
        assert!(copies.packer.is_none(), "memory is given back");
    }
}
