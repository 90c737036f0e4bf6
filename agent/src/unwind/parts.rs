//! Large files in parts: only the code that runs gets tables.
//!
//! A browser's engine or a compiler has a hundred megabytes of code, of which a machine runs a few. The linker's index
//! of .eh_frame (.eh_frame_hdr), and Go's list of functions, lead to the descriptions of any address, so that a part
//! costs what it has, and not what the file has.

use std::ops::Range;

use super::error::TableError;
use super::table::{CHUNK_BYTES, FileTable};
use super::table_builder::{ROOM_BYTES, TableBuilder};
use super::{frames, go, known};
use crate::elf::pclntab::Location;
use crate::elf::{Image, Segment};

/// Functions from which on a file is compiled in parts. A C library has four thousand.
const MANY_FUNCTIONS: u64 = 8192;
/// Chunks of a part: 512 KiB of code, some 40 KiB of rows.
pub const PART_CHUNKS: u32 = 8;
/// A file's code spans at most 4 GiB.
const MAX_CHUNKS: u64 = 1 << 16;

/// What a file's parts are parts of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// Address of the first chunk, a multiple of 64 KiB.
    pub base: u64,
    /// How many chunks there are, of [`CHUNK_BYTES`] each.
    pub chunks: u32,
    /// As of [`FileTable`].
    pub segments: Vec<Segment>,
    /// Of a Go program.
    go: Option<Location>,
}

impl Outline {
    /// The part that describes an address of the file.
    pub fn part_of(&self, address: u64) -> Option<u32> {
        let chunk = address.checked_sub(self.base)? / CHUNK_BYTES;
        (chunk < u64::from(self.chunks)).then_some(chunk as u32 / PART_CHUNKS)
    }

    /// The chunks of a part.
    pub fn chunks_of(&self, part: u32) -> Range<u32> {
        let first = part.saturating_mul(PART_CHUNKS).min(self.chunks);
        first..first.saturating_add(PART_CHUNKS).min(self.chunks)
    }

    /// The addresses that a part describes.
    pub fn addresses_of(&self, part: u32) -> Range<u64> {
        let Range { start, end } = self.chunks_of(part);
        let address = |chunk: u32| self.base.saturating_add(u64::from(chunk) * CHUNK_BYTES);
        address(start)..address(end)
    }
}

/// Says how a file is divided where it is better compiled in parts: it has many functions, and an index of them. None:
/// compile it as a whole.
pub fn outline(read_file: impl Fn(u64, &mut [u8]) -> bool) -> Option<Outline> {
    let image = Image::open(read_file)?;
    let go = Location::find(&image);
    let indexed = frames::indexed_functions(&image);
    // Go's own table is an index of itself, and its linker's .debug_frame tells no more; beside it may stand C code,
    // with an index or without one.
    let functions = match go {
        Some(location) if indexed.is_some() || !frames::has_eh_frame(&image) => {
            location.functions().saturating_add(indexed.unwrap_or(0))
        }
        Some(_) => return None,
        None => indexed?,
    };
    if functions < MANY_FUNCTIONS {
        return None;
    }
    let code = || image.segments.iter().filter(|segment| segment.executable);
    let begin = code().map(|segment| segment.address).min()? / CHUNK_BYTES * CHUNK_BYTES;
    let end = code()
        .map(|segment| segment.address.saturating_add(segment.bytes))
        .max()?;
    let chunks = end.checked_sub(begin)?.div_ceil(CHUNK_BYTES);
    Some(Outline {
        base: begin,
        chunks: u32::try_from(chunks).ok().filter(|_| chunks <= MAX_CHUNKS)?,
        segments: image.segments,
        go,
    })
}

/// Compiles what a file says of one of its parts, by its index.
pub fn compile_part(
    read_file: impl Fn(u64, &mut [u8]) -> bool,
    outline: &Outline,
    part: u32,
    row_limit: usize,
) -> Result<FileTable, TableError> {
    let image = Image::open(read_file).ok_or(TableError::NotElf)?;
    let addresses = outline.addresses_of(part);
    let sources = |builder: &mut TableBuilder| {
        if let Some(location) = outline.go {
            go::compile(&image, location, &addresses, builder)?;
            builder.settle();
        }
        frames::compile_indexed(&image, &addresses, builder)?;
        builder.settle();
        // Go's runtime has a way back of its own, which its table tells.
        if outline.go.is_none() {
            known::restorer::compile(&image, &addresses, builder)?;
            builder.settle();
        }
        Ok(())
    };
    TableBuilder::new(addresses.clone(), row_limit, ROOM_BYTES).compile(sources, &image.segments)
}
