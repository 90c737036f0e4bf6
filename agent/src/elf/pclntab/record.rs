//! The runtime's own record of the module: which address the functions' offsets count from, and where the trees of
//! inlined functions lie. Up to Go 1.25 the table's header says the former, as far as it is not left to the loader
//! (position-independent programs).

use super::super::image::{Arch, Image, field};
use super::header::{Header, MAX_SEARCH_BYTES, Version};

/// Where `moduledata` (runtime/symtab.go) holds the first and the last address of functions, and the start of the code.
/// Its first word points to pclntab. The same in all versions since 1.16.
const LOWEST_PC: u64 = 160;
const TEXT: u64 = 176;
/// Since Go 1.26 it has a section of its own.
const SECTION: &[u8] = b".go.module";
const WINDOW_BYTES: usize = 1 << 20;
/// Of it, what is looked at.
const RECORD_BYTES: usize = 328;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const RELOCATION_BYTES: usize = 24;
/// Words that point to pclntab and may be a module's record.
const MAX_CANDIDATES: usize = 16;

/// What is taken from it.
#[derive(Debug, Clone, Copy)]
struct Record {
    text: u64,
    /// What the offsets of functions' further data count from (`gofunc`).
    data: u64,
}

impl Version {
    /// Where the record holds that. Since 1.20 two words of coverage stand before.
    fn data(self) -> u64 {
        match self {
            Self::Go116 | Self::Go118 => 304,
            Self::Go120 => 320,
        }
    }
}

/// The start of the code. None where nothing plausible says it.
pub(super) fn start<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, header: &Header) -> Option<u64> {
    if header.version == Version::Go116 {
        return Some(0);
    }
    let extent = extent(image, header)?;
    let in_header = Some(header.text).filter(|text| plausible(image, extent, *text));
    in_header.or_else(|| Some(find(image, header, extent)?.text))
}

/// The address that the offsets of functions' trees count from. None before Go 1.18, whose functions point to them.
pub(super) fn trees<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, header: &Header) -> Option<u64> {
    if header.version == Version::Go116 {
        return None;
    }
    let record = find(image, header, extent(image, header)?)?;
    image.place(record.data).map(|_| record.data)
}

fn find<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, header: &Header, extent: (u64, u64)) -> Option<Record> {
    let makes_sense = |record: &Record| plausible(image, extent, record.text);
    let in_place = in_place(image, header, extent.0).filter(makes_sense);
    in_place.or_else(|| relocated(image, header).into_iter().find(makes_sense))
}

/// Whether all functions lie in code if their offsets count from there.
fn plausible<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, (first, last): (u64, u64), text: u64) -> bool {
    let (begin, end) = (text.checked_add(first), text.checked_add(last));
    text != 0 && begin.zip(end).is_some_and(|(begin, end)| image.is_code(begin, end))
}

/// The first function's offset, and the last one's end.
fn extent<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, header: &Header) -> Option<(u64, u64)> {
    let number = |index: u64| {
        let mut bytes = [0; 4];
        let at = header.functab.checked_add(index.checked_mul(8)?)?;
        image.read_offset(header.offset.checked_add(at)?, &mut bytes)?;
        Some(u64::from(u32::from_le_bytes(bytes)))
    };
    Some((number(0)?, number(header.functions)?))
}

/// As the file has it.
fn in_place<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, header: &Header, first: u64) -> Option<Record> {
    let wanted = header.address.to_le_bytes();
    let record = |bytes: &[u8]| {
        let word = |at: u64| field(bytes, usize::try_from(at).ok()?, 8);
        let text = word(TEXT).filter(|_| bytes.starts_with(&wanted))?;
        let record = Record {
            text,
            data: word(header.version.data())?,
        };
        (text.checked_add(first) == word(LOWEST_PC)).then_some(record)
    };
    if let Some(section) = image.section(&[SECTION]).filter(|section| !section.compressed) {
        let mut bytes = [0; RECORD_BYTES];
        image.read_offset(section.offset, &mut bytes)?;
        return record(&bytes);
    }
    let mut budget = MAX_SEARCH_BYTES;
    let data = image.segments.iter().filter(|segment| segment.writable);
    data.filter_map(|segment| {
        let bytes = segment.bytes.min(budget);
        budget -= bytes;
        let mut found = None;
        each_window(image, segment.offset, bytes, RECORD_BYTES, |window| {
            found = window.windows(RECORD_BYTES).step_by(8).find_map(record);
            found.is_none()
        });
        found
    })
    .next()
}

/// From the relocations that the loader will apply to it.
fn relocated<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, header: &Header) -> Vec<Record> {
    let relative = match image.arch {
        Arch::X86_64 => 8,
        Arch::Arm64 => 1027,
    };
    let table = || {
        let (table, bytes) = (image.dynamic(DT_RELA)?, image.dynamic(DT_RELASZ)?);
        let (offset, available) = image.place(table)?;
        Some((offset, bytes.min(available)))
    };
    let Some((offset, bytes)) = table() else {
        return Vec::new();
    };
    let each = |take: &mut dyn FnMut(u64, u64) -> bool| {
        each_window(image, offset, bytes, 0, |window| {
            window.chunks_exact(RELOCATION_BYTES).all(|relocation| {
                let word = |at: usize| field(relocation, at, 8);
                match (word(0), word(8), word(16)) {
                    (Some(place), Some(kind), Some(value)) if kind == relative => take(place, value),
                    _ => true,
                }
            })
        });
    };
    let mut candidates = Vec::new();
    each(&mut |place, value| {
        if value == header.address {
            candidates.push((place, Record { text: 0, data: 0 }));
        }
        candidates.len() < MAX_CANDIDATES
    });
    each(&mut |place, value| {
        for (begin, record) in &mut candidates {
            match place.checked_sub(*begin) {
                Some(TEXT) => record.text = value,
                Some(at) if at == header.version.data() => record.data = value,
                _ => {}
            }
        }
        true
    });
    candidates.into_iter().map(|(_, record)| record).collect()
}

/// Hands out a part of the file piece by piece, a whole number of relocations each, until `go_on` says no. Each piece
/// begins `overlap` bytes before the end of the one before.
fn each_window<R: Fn(u64, &mut [u8]) -> bool>(
    image: &Image<R>,
    offset: u64,
    bytes: u64,
    overlap: usize,
    mut go_on: impl FnMut(&[u8]) -> bool,
) -> Option<()> {
    let size = WINDOW_BYTES / RELOCATION_BYTES * RELOCATION_BYTES;
    let step = u64::try_from(size.checked_sub(overlap)?).ok()?;
    let mut window = Vec::new();
    let mut done = 0;
    while done < bytes {
        let left = usize::try_from(bytes - done).unwrap_or(usize::MAX);
        window.resize(left.min(size), 0);
        image.read_offset(offset.checked_add(done)?, &mut window)?;
        if !go_on(&window) {
            return Some(());
        }
        done = done.checked_add(step)?;
    }
    Some(())
}
