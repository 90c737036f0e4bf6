//! Copies of stacks that wait for their tables. In: bytes as the kernel side read them. Out: the same bytes, each time
//! that a walk goes on. All that is kept counts against one limit, of which every file has a part.
//!
//! A thread's stacks are nearly the same from sample to sample: the first copy of a thread is kept as it came, later
//! ones as what differs from it.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use zstd::bulk::{Compressor, Decompressor};

use crate::frames::SourceId;
use crate::hash::FastMap;
use crate::kernel::StackCopy;

/// Of the memory limit, what copies may take; beyond it stacks stay cut.
const LIMIT_PART: u64 = 8;
/// Of that, what all programs' may take as they come; and what the copies that stopped in the code of one file may take
/// in any case, so that those of a compiler, on all CPUs, leave room for others.
const SHARED_PART: usize = 2;
const FILE_PART: usize = 8;
/// Of what all may take, so much holds copies as they are. Further ones are packed: a fifth of the size, for 50 µs of
/// CPU time.
const PLAIN_PART: usize = 16;
/// Of what all may take, so much holds threads' first copies, from which others differ by a few words: a hundredth of
/// the size.
const BASE_PART: usize = 4;
/// A copy that differs from the thread's first one by more than this part of itself is the next one's to differ from.
const HARDLY_ALIKE: usize = 8;
/// Higher levels take twice the time to save a twentieth more.
const LEVEL: i32 = -1;
/// Nothing is packed where not even so small a part of it has room.
const HARDLY_SMALLER: usize = 256;

/// A copy as it came.
#[derive(Debug)]
struct Plain {
    address: u64,
    bytes: Box<[u8]>,
    /// The file by whose share of the room it was admitted.
    file: SourceId,
}

impl Plain {
    /// Makes of a copy what differs from this one, and of that the copy again: where both have the same address.
    fn differ(&self, address: u64, bytes: &mut [u8]) {
        let (own_end, end) = (
            self.address.saturating_add(self.bytes.len() as u64),
            address.saturating_add(bytes.len() as u64),
        );
        let (first, last) = (self.address.max(address), own_end.min(end));
        if first < last {
            let own = &self.bytes[(first - self.address) as usize..(last - self.address) as usize];
            let (own_words, own_rest) = own.as_chunks::<8>();
            let both = &mut bytes[(first - address) as usize..(last - address) as usize];
            let (words, rest) = both.as_chunks_mut::<8>();
            for (word, own) in words.iter_mut().zip(own_words) {
                *word = (u64::from_ne_bytes(*word) ^ u64::from_ne_bytes(*own)).to_ne_bytes();
            }
            rest.iter_mut().zip(own_rest).for_each(|(byte, own)| *byte ^= own);
        }
    }
}

#[derive(Debug)]
enum Content {
    Plain(Arc<Plain>),
    Packed {
        bytes: Box<[u8]>,
        size: usize,
        address: u64,
        /// What is packed is what differs from it.
        base: Option<Arc<Plain>>,
    },
}

/// One copy.
#[derive(Debug)]
pub(in crate::agent) struct Kept {
    content: Content,
    tid: u32,
    file: SourceId,
    /// What else is kept of its sample.
    beside_bytes: usize,
}

/// What is to be kept.
#[derive(Debug, Clone, Copy)]
pub(in crate::agent) struct Wanted<'a> {
    /// In whose code the walk stopped.
    pub(in crate::agent) file: SourceId,
    pub(in crate::agent) tid: u32,
    pub(in crate::agent) stack: StackCopy<'a>,
    /// What else is kept of its sample.
    pub(in crate::agent) beside_bytes: usize,
}

/// The stack pool: room for all copies.
#[derive(Default)]
pub(in crate::agent) struct StackPool {
    bytes: usize,
    bytes_by_file: FastMap<SourceId, usize>,
    limit_bytes: usize,
    /// Of each thread a copy as it came, while copies are kept that differ from it.
    bases: FastMap<u32, Arc<Plain>>,
    base_bytes: usize,
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

impl std::fmt::Debug for StackPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StackPool")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl StackPool {
    pub(in crate::agent) fn within(memory_limit_bytes: u64) -> Self {
        Self {
            limit_bytes: usize::try_from(memory_limit_bytes / LIMIT_PART).unwrap_or(usize::MAX),
            ..Self::default()
        }
    }

    /// True where there is soon no room left for copies of stacks of the program that has most.
    pub(in crate::agent) fn are_crowded(&self) -> bool {
        self.bytes > self.limit_bytes / SHARED_PART / 4 * 3
    }

    /// Keeps a copy of a stack. None where there is no room.
    pub(in crate::agent) fn keep(&mut self, wanted: Wanted<'_>) -> Option<Kept> {
        let Wanted {
            file,
            tid,
            stack: StackCopy { address, bytes },
            beside_bytes,
        } = wanted;
        if !self.has_room(file, beside_bytes + bytes.len() / HARDLY_SMALLER) {
            return None;
        }
        let shared = self.limit_bytes / SHARED_PART;
        let is_plain = self.bytes + beside_bytes + bytes.len() <= shared / PLAIN_PART;
        let base = self.bases.get(&tid).cloned();
        let packed = if is_plain {
            None
        } else {
            self.pack(StackCopy { address, bytes }, base.as_deref())
        };
        let is_alike = base.is_some()
            && packed
                .as_ref()
                .is_some_and(|packed| packed.len() <= bytes.len() / HARDLY_ALIKE);
        let becomes_base = !is_alike
            && (base.is_none() || !is_plain)
            && self.base_bytes + bytes.len() <= shared / BASE_PART
            && self.has_room(file, beside_bytes + bytes.len());
        let content = match packed {
            Some(packed) if !becomes_base => Content::Packed {
                bytes: packed.into(),
                size: bytes.len(),
                address,
                base,
            },
            _ => Content::Plain(Arc::new(Plain {
                address,
                bytes: bytes.into(),
                file,
            })),
        };
        let kept_bytes = match &content {
            Content::Plain(plain) => plain.bytes.len(),
            Content::Packed { bytes, .. } => bytes.len(),
        };
        if !self.has_room(file, beside_bytes + kept_bytes) {
            return None;
        }
        self.add(file, beside_bytes + kept_bytes);
        match &content {
            Content::Plain(plain) if becomes_base => {
                self.base_bytes += kept_bytes;
                if let Some(before) = self.bases.insert(tid, Arc::clone(plain)) {
                    // Those that differ from it keep it; it is nobody's base any more.
                    self.base_bytes -= before.bytes.len();
                }
            }
            Content::Plain(_) => {}
            Content::Packed { .. } => self.packed += 1,
        }
        Some(Kept {
            content,
            tid,
            file,
            beside_bytes,
        })
    }

    /// The bytes of a copy; none where zstd has no memory.
    pub(in crate::agent) fn stack<'a>(&'a mut self, kept: &'a Kept) -> StackCopy<'a> {
        match &kept.content {
            Content::Plain(plain) => StackCopy {
                address: plain.address,
                bytes: &plain.bytes,
            },
            Content::Packed {
                bytes,
                size,
                address,
                base,
            } => StackCopy {
                address: *address,
                bytes: self.packer.as_mut().map_or(&[], |packer| {
                    packer.unpacked.clear();
                    packer.unpacked.reserve(*size);
                    match packer.decompressor.decompress_to_buffer(bytes, &mut packer.unpacked) {
                        Ok(_) => {
                            if let Some(base) = base {
                                base.differ(*address, &mut packer.unpacked);
                            }
                            packer.unpacked.as_slice()
                        }
                        Err(_) => &[],
                    }
                }),
            },
        }
    }

    pub(in crate::agent) fn release(&mut self, kept: Kept) {
        self.remove(kept.file, kept.beside_bytes);
        let plain = match kept.content {
            Content::Plain(plain) => Some(plain),
            Content::Packed { bytes, base, .. } => {
                self.remove(kept.file, bytes.len());
                self.packed -= 1;
                base
            }
        };
        if let Some(plain) = plain {
            self.release_plain(kept.tid, &plain);
        }
        if self.packed == 0 {
            self.packer = None;
        }
    }

    /// Called by who is about to let go of it: the last one gives its room back.
    fn release_plain(&mut self, tid: u32, plain: &Arc<Plain>) {
        let is_base = matches!(self.bases.get(&tid), Some(base) if Arc::ptr_eq(base, plain));
        if Arc::strong_count(plain) > 1 + usize::from(is_base) {
            return;
        }
        if is_base {
            self.bases.remove(&tid);
            self.base_bytes -= plain.bytes.len();
        }
        self.remove(plain.file, plain.bytes.len());
    }

    /// None where that makes it no smaller.
    fn pack(&mut self, stack: StackCopy<'_>, base: Option<&Plain>) -> Option<Vec<u8>> {
        if self.packer.is_none() {
            self.packer = Packer::new().ok();
        }
        let packer = self.packer.as_mut()?;
        packer.unpacked.clear();
        packer.unpacked.extend_from_slice(stack.bytes);
        if let Some(base) = base {
            base.differ(stack.address, &mut packer.unpacked);
        }
        let packed = packer.compressor.compress(&packer.unpacked).ok()?;
        (packed.len() < stack.bytes.len()).then_some(packed)
    }

    fn add(&mut self, file: SourceId, bytes: usize) {
        self.bytes += bytes;
        *self.bytes_by_file.entry(file).or_default() += bytes;
    }

    fn remove(&mut self, file: SourceId, bytes: usize) {
        self.bytes -= bytes;
        if let Entry::Occupied(mut of_file) = self.bytes_by_file.entry(file) {
            *of_file.get_mut() -= bytes;
            if *of_file.get() == 0 {
                of_file.remove();
            }
        }
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

    const SP: u64 = 0x7fff_0000_1000;

    fn keep(pool: &mut StackPool, file: SourceId, tid: u32, stack: &[u8]) -> Option<Kept> {
        pool.keep(Wanted {
            file,
            tid,
            stack: StackCopy {
                address: SP,
                bytes: stack,
            },
            beside_bytes: 0,
        })
    }

    fn is_empty(pool: &StackPool) -> bool {
        let counts = (pool.bytes, pool.bytes_by_file.len(), pool.packed);
        counts == (0, 0, 0) && pool.bases.is_empty() && pool.base_bytes == 0 && pool.packer.is_none()
    }

    #[test]
    fn copies_of_one_file_leave_room_for_others_and_all_of_them_are_bounded() {
        let mut pool = StackPool::within((64 * LIMIT_PART) << 20);
        let mut kept = vec![];
        let mut tid = 0;
        let mut fill = |file, kept: &mut Vec<Kept>| {
            let before = kept.len();
            kept.extend(std::iter::from_fn(|| {
                tid += 1;
                keep(&mut pool, file, tid, &noise(u64::from(tid)))
            }));
            (kept.len() - before) * COPY
        };
        assert_eq!(fill(SourceId::KERNEL, &mut kept), 32 << 20, "one takes what is shared");
        assert_eq!(fill(SourceId::VDSO, &mut kept), 8 << 20, "another one its own part");
        assert_eq!(fill(SourceId::KERNEL, &mut kept), 0);
        for kept in kept {
            pool.release(kept);
        }
        assert!(is_empty(&pool), "{pool:?}");
        assert!(keep(&mut pool, SourceId::VDSO, 1, &[0; 256]).is_some());
        let mut small = StackPool::within(LIMIT_PART * COPY as u64 - 8);
        assert!(keep(&mut small, SourceId::VDSO, 1, &noise(1)).is_none());
    }

    #[test]
    fn many_copies_are_packed_and_come_out_as_they_went_in() {
        let mut pool = StackPool::within((LIMIT_PART * 4) << 20);
        let shared = 2 << 20;
        let stacks = |i: u64| if i.is_multiple_of(16) { noise(i) } else { frames(i) };
        let kept: Vec<Kept> = (0..)
            .map_while(|i| keep(&mut pool, SourceId::KERNEL, i as u32, &stacks(i)))
            .collect();
        let is_plain = |kept: &&Kept| matches!(kept.content, Content::Plain(_));
        let plain = kept.iter().filter(is_plain).count();
        assert!(plain >= shared / BASE_PART / COPY, "some are kept as they are: {plain}");
        assert!(
            kept.len() > 2 * shared / COPY,
            "{} in the room of {}",
            kept.len(),
            shared / COPY
        );
        assert!(pool.bytes <= shared);
        for (i, kept) in kept.iter().enumerate() {
            assert!(pool.stack(kept).bytes == stacks(i as u64), "the copy {i}");
        }
        for kept in kept {
            pool.release(kept);
        }
        assert!(is_empty(&pool), "memory is given back: {pool:?}");
    }

    /// As a thread's samples are: from this stack pointer on, with some words of its innermost frames' own.
    fn sampled(i: u64) -> (u64, Vec<u8>) {
        let depth = (i % 7) as usize * 16;
        let mut stack = noise(1)[4096 - depth..].to_vec();
        stack[..8].copy_from_slice(&i.to_ne_bytes());
        stack[depth..depth + 8].copy_from_slice(&(i * i).to_ne_bytes());
        (SP - depth as u64, stack)
    }

    #[test]
    fn a_threads_copies_take_the_room_of_what_differs() {
        let mut pool = StackPool::within((LIMIT_PART * 4) << 20);
        let mut kept = Vec::new();
        for i in 0..3000 {
            let (address, stack) = sampled(i);
            let stack = StackCopy { address, bytes: &stack };
            let wanted = Wanted {
                file: SourceId::KERNEL,
                tid: 5,
                stack,
                beside_bytes: 100,
            };
            kept.push(pool.keep(wanted).expect("room for what differs"));
        }
        assert!(pool.bytes < 1 << 20, "{} bytes of 2 MiB", pool.bytes);
        // Another thread of that id, with nothing alike.
        kept.push(keep(&mut pool, SourceId::VDSO, 5, &noise(2)).unwrap());
        kept.push(keep(&mut pool, SourceId::VDSO, 5, &noise(2)).unwrap());
        for (i, kept) in kept.iter().enumerate().take(3000) {
            let (address, stack) = sampled(i as u64);
            let copy = pool.stack(kept);
            assert!(
                (copy.address, copy.bytes) == (address, stack.as_slice()),
                "the copy {i}"
            );
        }
        assert!(pool.stack(&kept[3001]).bytes == noise(2));
        // In any order: the one from which others differ is there as long as they are.
        for (i, kept) in kept.into_iter().enumerate() {
            if i == 1 {
                assert!(pool.bases.contains_key(&5));
            }
            pool.release(kept);
        }
        assert!(is_empty(&pool), "{pool:?}");
    }

    #[test]
    fn what_is_kept_beside_a_copy_counts() {
        let mut pool = StackPool::within((LIMIT_PART * 4) << 20);
        let beside_bytes = 64 << 10;
        let stack = StackCopy {
            address: SP,
            bytes: &[7; 64],
        };
        let wanted = Wanted {
            file: SourceId::KERNEL,
            tid: 1,
            stack,
            beside_bytes,
        };
        let kept: Vec<Kept> = std::iter::from_fn(|| pool.keep(wanted)).collect();
        assert_eq!(kept.len(), (2 << 20) / beside_bytes - 1);
    }
}
