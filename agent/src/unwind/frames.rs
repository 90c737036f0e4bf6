//! .eh_frame and .debug_frame from front to back into the table builder.

use std::collections::HashMap;
use std::io::Read;
use std::ops::Range;

use super::cfi::{self, Common};
use super::entry::{Entries, Entry, Fde, Format, Kind, MAX_ENTRY_BYTES};
use super::error::TableError;
use super::table_builder::{TableBuilder, Taken};
use crate::elf::reader::{Bases, Reader};
use crate::elf::{Blocks, FileRange, Image, decompressed};

/// CIEs that are remembered. The linker leaves few in .eh_frame; .debug_frame has one per compilation unit, in front of
/// those that use it.
const MAX_CIES: usize = 4096;
/// CIEs that are read out of turn; in files as linkers write them there are none.
const MAX_LATE_CIES: usize = 65_536;
const MAX_CIE_BYTES: u64 = 4096;
const DT_PLTGOT: u64 = 3;
/// Where nothing else says how long .eh_frame_hdr's header is.
const HEADER_BYTES: usize = 20;
/// Numbers of 4 bytes, relative to the header: the only encoding that linkers write.
const INDEX_ENCODING: u8 = 0x3b;
const INDEX_ENTRY_BYTES: u64 = 8;
/// Entries that are read at a time.
const INDEX_BLOCK: u64 = 512;
/// A file of 4 GiB of code has fewer.
const MAX_INDEXED: u64 = 1 << 24;

/// Where .eh_frame lies: address, offset in the file, bytes up to its end or its segment's.
fn eh_frame<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>) -> Option<(u64, u64, u64)> {
    let section = image.section(&[b".eh_frame"]).filter(|section| !section.compressed);
    let section = section.map(|section| (section.address, section.offset, section.bytes));
    let Some(address) = image.eh_frame_header.and_then(|header| eh_frame_address(image, header)) else {
        return section;
    };
    if let Some(section) = section.filter(|section| section.0 == address) {
        return Some(section);
    }
    let (offset, bytes) = image.place(address)?;
    Some((address, offset, bytes))
}

/// What .eh_frame_hdr says (LSB 5.0, chapter 10.6.2).
fn eh_frame_address<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, header: u64) -> Option<u64> {
    header_of(image, header).map(|(address, _)| address)
}

/// The address of .eh_frame, and the index where there is one of the usual form.
fn header_of<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, header: u64) -> Option<(u64, Option<Index>)> {
    let mut bytes = [0; HEADER_BYTES];
    image.read(header, &mut bytes)?;
    let mut reader = Reader::at(&bytes, header);
    let (version, encoding) = (reader.u8()?, reader.u8()?);
    let (count_encoding, table_encoding) = (reader.u8()?, reader.u8()?);
    let bases = Bases { data: Some(header) };
    let pointer = reader.pointer(encoding, bases)?;
    let count = reader.pointer(count_encoding, bases);
    let table = header.wrapping_add((HEADER_BYTES - reader.rest().len()) as u64);
    let index = count.filter(|_| table_encoding == INDEX_ENCODING).map(|count| Index {
        header,
        table,
        count: count.min(MAX_INDEXED),
    });
    (version == 1).then_some((pointer, index))
}

/// The linker's index: for each function its first address and that of its description, ascending, both of 4 bytes and
/// relative to the header.
#[derive(Debug, Clone, Copy)]
struct Index {
    header: u64,
    table: u64,
    count: u64,
}

impl Index {
    /// First address, and that of the description, of up to `most` functions from a number on.
    fn entries<R: Fn(u64, &mut [u8]) -> bool>(
        &self,
        image: &Image<R>,
        first: u64,
        most: u64,
    ) -> Option<Vec<(u64, u64)>> {
        let count = self.count.checked_sub(first)?.min(most);
        let mut bytes = vec![0; usize::try_from(count * INDEX_ENTRY_BYTES).ok()?];
        image.read(self.table.checked_add(first * INDEX_ENTRY_BYTES)?, &mut bytes)?;
        let mut reader = Reader::new(&bytes);
        let mut place = || Some(self.header.wrapping_add(reader.signed(4)?.cast_unsigned()));
        (0..count).map(|_| Some((place()?, place()?))).collect()
    }

    /// The number of the first function that begins behind an address.
    fn behind<R: Fn(u64, &mut [u8]) -> bool>(&self, image: &Image<R>, address: u64) -> Option<u64> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entries(image, middle, 1)?.first()?.0 <= address {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(low)
    }
}

/// The limits of the function, or of the part of one, that an address lies in, in the file's own addresses: where it is
/// described, up to the next one that is.
pub fn function_limits(read_file: impl Fn(u64, &mut [u8]) -> bool, address: u64) -> Option<Range<u64>> {
    limits_of(&Image::open(read_file)?, address)
}

/// The same of a file that is open.
pub(super) fn limits_of<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, address: u64) -> Option<Range<u64>> {
    let (_, index) = header_of(image, image.eh_frame_header?)?;
    let index = index?;
    let behind = index.behind(image, address)?;
    let begin = index.entries(image, behind.checked_sub(1)?, 1)?.first()?.0;
    let end = match index.entries(image, behind, 1)?.first() {
        Some((next, _)) => *next,
        None => image.segment_at(begin).map(|segment| segment.address + segment.bytes)?,
    };
    (begin..end).contains(&address).then_some(begin..end)
}

/// Functions that the index of .eh_frame leads to; none without an index.
pub(super) fn indexed_functions<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>) -> Option<u64> {
    let (_, index) = header_of(image, image.eh_frame_header?)?;
    index.map(|index| index.count)
}

/// True where there is .eh_frame, with or without an index.
pub(super) fn has_eh_frame<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>) -> bool {
    eh_frame(image).is_some()
}

/// Compiles what .eh_frame says of some addresses.
pub(super) fn compile_indexed<R: Fn(u64, &mut [u8]) -> bool>(
    image: &Image<R>,
    addresses: &Range<u64>,
    builder: &mut TableBuilder,
) -> Result<(), TableError> {
    let header = image.eh_frame_header.and_then(|header| header_of(image, header));
    let Some((address, Some(index))) = header else {
        return Ok(());
    };
    let mut walk = Walk {
        image,
        builder,
        format: Format::EhFrame,
        address,
        bases: Bases {
            data: image.dynamic(DT_PLTGOT),
        },
        cies: HashMap::new(),
        late_cies: 0,
        file_offset: image.place(address).map(|(offset, _)| offset),
    };
    walk.run_indexed(index, addresses)
}

/// Compiles .eh_frame. Nothing happens where the file has none.
pub(super) fn compile_eh_frame<R: Fn(u64, &mut [u8]) -> bool>(
    image: &Image<R>,
    builder: &mut TableBuilder,
) -> Result<(), TableError> {
    let Some((address, offset, bytes)) = eh_frame(image) else {
        return Ok(());
    };
    let bases = Bases {
        data: image.dynamic(DT_PLTGOT),
    };
    let mut walk = Walk {
        image,
        builder,
        format: Format::EhFrame,
        address,
        bases,
        cies: HashMap::new(),
        late_cies: 0,
        file_offset: Some(offset),
    };
    walk.run(FileRange::new(image, offset, bytes))
}

/// Compiles .debug_frame for what is not settled yet. Nothing happens where the file has none.
pub(super) fn compile_debug_frame<R: Fn(u64, &mut [u8]) -> bool>(
    image: &Image<R>,
    builder: &mut TableBuilder,
) -> Result<(), TableError> {
    let Some(section) = image.section(&[b".debug_frame"]) else {
        return Ok(());
    };
    let mut walk = Walk {
        image,
        builder,
        format: Format::DebugFrame,
        address: section.address,
        bases: Bases::default(),
        cies: HashMap::new(),
        late_cies: 0,
        file_offset: (!section.compressed).then_some(section.offset),
    };
    if !section.compressed {
        return walk.run(FileRange::new(image, section.offset, section.bytes));
    }
    match decompressed(image, section) {
        Some(Ok(source)) => walk.run(source),
        _ => {
            walk.malformed();
            Ok(())
        }
    }
}

struct Walk<'a, R> {
    image: &'a Image<R>,
    builder: &'a mut TableBuilder,
    format: Format,
    /// Of the section.
    address: u64,
    bases: Bases,
    /// By offset from the section's start; none for those that make no sense.
    cies: HashMap<u64, Option<Common>>,
    late_cies: usize,
    /// Of the section; none where the file has it compressed.
    file_offset: Option<u64>,
}

impl<R: Fn(u64, &mut [u8]) -> bool> Walk<'_, R> {
    fn run(&mut self, source: impl Read) -> Result<(), TableError> {
        let mut entries = Entries::new(source);
        while let Some(entry) = entries.next() {
            self.builder.read(entry.body.len())?;
            match entry.kind(self.format, self.address) {
                Some((Kind::Cie, reader)) => {
                    let cie = Common::parse(reader, self.format, self.image.arch, self.bases);
                    if cie.is_none() {
                        self.malformed();
                    }
                    self.remember(entry.offset, cie);
                }
                Some((Kind::Fde { cie }, reader)) => match self.cie(cie) {
                    Some(cie) => self.function(&cie, reader)?,
                    None => self.malformed(),
                },
                None => self.malformed(),
            }
        }
        self.builder.malformed(entries.skipped);
        Ok(())
    }

    fn run_indexed(&mut self, index: Index, addresses: &Range<u64>) -> Result<(), TableError> {
        // The function before may reach into these addresses.
        let first = index
            .behind(self.image, addresses.start)
            .map(|behind| behind.saturating_sub(1));
        let Some(mut next) = first else {
            self.malformed();
            return Ok(());
        };
        let place = self.image.place(self.address);
        let mut section = place.map(|(offset, bytes)| Blocks::new(self.image, offset, bytes));
        // Each function has a byte at least; an index that is out of order has no end that one would meet.
        let last = next.saturating_add(addresses.end - addresses.start).saturating_add(2);
        while let Some(entries) = index
            .entries(self.image, next, INDEX_BLOCK)
            .filter(|entries| !entries.is_empty() && next <= last)
        {
            next += entries.len() as u64;
            for (begin, description) in entries {
                if begin >= addresses.end {
                    return Ok(());
                }
                self.describe(description, section.as_mut())?;
            }
        }
        Ok(())
    }

    /// Takes the function that is described at an address.
    fn describe(&mut self, address: u64, section: Option<&mut Blocks<'_, R>>) -> Result<(), TableError> {
        let offset = address.checked_sub(self.address);
        let body = offset.zip(section).and_then(|(offset, section)| {
            read_entry(MAX_ENTRY_BYTES, |at, into| section.copy(offset.checked_add(at)?, into))
        });
        let (Some(offset), Some(body)) = (offset, body) else {
            self.malformed();
            return Ok(());
        };
        self.builder.read(body.bytes.len())?;
        let entry = Entry {
            offset,
            body_offset: offset.saturating_add(body.length_bytes),
            long: body.length_bytes > 4,
            body: &body.bytes,
        };
        if let Some((Kind::Fde { cie }, reader)) = entry.kind(self.format, self.address)
            && let Some(cie) = self.cie(cie)
        {
            return self.function(&cie, reader);
        }
        self.malformed();
        Ok(())
    }

    fn malformed(&mut self) {
        self.builder.malformed(1);
    }

    fn function(&mut self, common: &Common, reader: Reader<'_>) -> Result<(), TableError> {
        let Some(fde) = Fde::parse(reader, &common.cie, self.bases) else {
            self.malformed();
            return Ok(());
        };
        // Linkers set what they threw away to zero, or to one in some sections.
        if fde.begin <= 1 || !self.image.is_code(fde.begin, fde.end) {
            self.builder.outside_code();
            return Ok(());
        }
        if self.builder.is_settled(fde.begin, fde.end) {
            return Ok(());
        }
        let (mut result, bases) = (None, self.bases);
        let taken = self.builder.function(fde.begin, fde.end, |row| {
            result = cfi::rows(common, &fde, bases, &mut |(begin, _, rule, reason)| {
                row(begin, rule, reason)
            });
        })?;
        let first = self.builder.is_first_pass();
        let stats = &mut self.builder.stats;
        stats.fdes = stats.fdes.saturating_add(u64::from(first));
        let makes_sense = match taken {
            Taken::Yes => result.is_some(),
            Taken::No => false,
            Taken::Elsewhere => true,
        };
        stats.malformed = stats.malformed.saturating_add(u64::from(!makes_sense));
        Ok(())
    }

    fn cie(&mut self, offset: u64) -> Option<Common> {
        if let Some(known) = self.cies.get(&offset) {
            return *known;
        }
        self.late_cies = self.late_cies.saturating_add(1);
        let cie = if self.late_cies > MAX_LATE_CIES {
            None
        } else {
            self.read_cie(offset)
        };
        self.remember(offset, cie);
        cie
    }

    fn remember(&mut self, offset: u64, cie: Option<Common>) {
        if self.cies.len() >= MAX_CIES {
            self.cies.clear();
        }
        self.cies.insert(offset, cie);
    }

    /// A CIE that was forgotten, or stands behind those that use it.
    fn read_cie(&self, offset: u64) -> Option<Common> {
        let position = self.file_offset?.checked_add(offset)?;
        let body = read_entry(MAX_CIE_BYTES, |at, into| {
            self.image.read_offset(position.checked_add(at)?, into)
        })?;
        let entry = Entry {
            offset,
            body_offset: offset.checked_add(body.length_bytes)?,
            long: body.length_bytes > 4,
            body: &body.bytes,
        };
        match entry.kind(self.format, self.address)? {
            (Kind::Cie, reader) => Common::parse(reader, self.format, self.image.arch, self.bases),
            _ => None,
        }
    }
}

/// An entry that was read on its own.
pub(super) struct Body {
    /// Of the length in front of it.
    pub(super) length_bytes: u64,
    pub(super) bytes: Vec<u8>,
}

/// Reads one entry of at most `most` bytes through a function that fills a buffer from an offset behind the entry's
/// start.
pub(super) fn read_entry(most: u64, mut read: impl FnMut(u64, &mut [u8]) -> Option<()>) -> Option<Body> {
    let mut length = [0; 4];
    read(0, &mut length)?;
    let (mut bytes, mut length_bytes) = (u64::from(u32::from_le_bytes(length)), 4);
    if bytes == u64::from(u32::MAX) {
        let mut length = [0; 8];
        read(4, &mut length)?;
        (bytes, length_bytes) = (u64::from_le_bytes(length), 12);
    }
    if !(4..=most).contains(&bytes) {
        return None;
    }
    let mut body = vec![0; usize::try_from(bytes).ok()?];
    read(length_bytes, &mut body)?;
    Some(Body {
        length_bytes,
        bytes: body,
    })
}
