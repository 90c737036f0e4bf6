//! Small pieces out of a large part of a file, in any order, through a small memory of blocks: lists of functions, of
//! their descriptions and of names lead to and fro.

use super::image::Image;

const BLOCK_BYTES: u64 = 4096;
const BLOCKS: usize = 64;

/// A part of the file in blocks of 4 KiB, of which 64 are remembered.
pub(crate) struct Blocks<'a, R> {
    image: &'a Image<R>,
    offset: u64,
    bytes: u64,
    blocks: Vec<Block>,
    /// Of the file, in all.
    pub(crate) read_bytes: u64,
}

#[derive(Clone, Default)]
struct Block {
    /// Number of the block plus one; zero in an empty one.
    tag: u64,
    bytes: Vec<u8>,
}

impl<'a, R: Fn(u64, &mut [u8]) -> bool> Blocks<'a, R> {
    pub(crate) fn new(image: &'a Image<R>, offset: u64, bytes: u64) -> Self {
        Self {
            image,
            offset,
            bytes,
            blocks: vec![Block::default(); BLOCKS],
            read_bytes: 0,
        }
    }

    /// What is there of a block.
    fn block(&mut self, number: u64) -> Option<&[u8]> {
        let slot = usize::try_from(number).ok()? % BLOCKS;
        let block = self.blocks.get_mut(slot)?;
        if block.tag != number + 1 {
            let begin = number * BLOCK_BYTES;
            let bytes = self.bytes.checked_sub(begin)?.min(BLOCK_BYTES);
            block.bytes.resize(usize::try_from(bytes).ok()?, 0);
            block.tag = 0;
            self.read_bytes = self.read_bytes.saturating_add(bytes);
            self.image
                .read_offset(self.offset.checked_add(begin)?, &mut block.bytes)?;
            block.tag = number + 1;
        }
        Some(&block.bytes)
    }

    pub(crate) fn byte(&mut self, at: u64) -> Option<u8> {
        let rest = usize::try_from(at % BLOCK_BYTES).ok()?;
        self.block(at / BLOCK_BYTES)?.get(rest).copied()
    }

    /// Fills a buffer with what lies there; none where the part ends before.
    pub(crate) fn copy(&mut self, at: u64, mut into: &mut [u8]) -> Option<()> {
        let mut at = at;
        while !into.is_empty() {
            let begin = usize::try_from(at % BLOCK_BYTES).ok()?;
            let there = self.block(at / BLOCK_BYTES)?.get(begin..)?;
            let bytes = there.len().min(into.len());
            if bytes == 0 {
                return None;
            }
            let (now, later) = into.split_at_mut(bytes);
            now.copy_from_slice(there.get(..bytes)?);
            (into, at) = (later, at.checked_add(bytes as u64)?);
        }
        Some(())
    }

    /// An unsigned little-endian number of at most 8 bytes.
    pub(crate) fn number(&mut self, at: u64, bytes: u64) -> Option<u64> {
        let mut value = 0;
        for index in (0..bytes).rev() {
            value = value << 8 | u64::from(self.byte(at.checked_add(index)?)?);
        }
        Some(value)
    }

    /// A number in groups of seven bits, the lowest first; at most 32 bits.
    pub(crate) fn varint(&mut self, at: &mut u64) -> Option<u64> {
        let mut value = 0;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte(*at)?;
            *at = at.checked_add(1)?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}
