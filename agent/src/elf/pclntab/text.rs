//! Which address the functions' offsets count from. Up to Go 1.25 the table's header says it, as far as it is not left to the
//! loader (position-independent programs); since Go 1.26 only the runtime's own record of the module does.

use super::super::image::{Arch, Image, field};
use super::header::{Header, MAX_SEARCH_BYTES, Version};

/// Where `moduledata` (runtime/symtab.go) holds the first and the last address of functions, and the start of the code.
/// Its first word points to pclntab. The same in all versions since 1.16.
const LOWEST_PC: u64 = 160;
const TEXT: u64 = 176;
const WINDOW_BYTES: usize = 1 << 20;
const RECORD_BYTES: usize = 184;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const RELOCATION_BYTES: usize = 24;
/// Words that point to pclntab and may be a module's record.
const MAX_CANDIDATES: usize = 16;

/// None where nothing plausible says it.
pub(crate) fn start<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, header: &Header) -> Option<u64> {
    if header.version == Version::Go116 {
        return Some(0);
    }
    let (first, last) = extent(image, header)?;
    let plausible = |text: &u64| {
        let (begin, end) = (text.checked_add(first), text.checked_add(last));
        *text != 0 && begin.zip(end).is_some_and(|(begin, end)| image.is_code(begin, end))
    };
    let in_header = Some(header.text).filter(plausible);
    let in_place = || in_place(image, header.address, first).filter(plausible);
    let relocated = || relocated(image, header.address).filter(plausible);
    in_header.or_else(in_place).or_else(relocated)
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

/// From the module's record as the file has it.
fn in_place<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, pclntab: u64, first: u64) -> Option<u64> {
    let wanted = pclntab.to_le_bytes();
    let is_record = |record: &&[u8]| {
        let word = |at: u64| field(record, usize::try_from(at).ok()?, 8);
        let lowest = word(TEXT).and_then(|text| text.checked_add(first));
        record.starts_with(&wanted) && lowest.is_some() && lowest == word(LOWEST_PC)
    };
    let mut budget = MAX_SEARCH_BYTES;
    let data = image.segments.iter().filter(|segment| !segment.executable);
    data.filter_map(|segment| {
        let bytes = segment.bytes.min(budget);
        budget -= bytes;
        let mut text = None;
        each_window(image, segment.offset, bytes, RECORD_BYTES, |window| {
            let record = window.windows(RECORD_BYTES).step_by(8).find(is_record);
            text = record.and_then(|record| field(record, usize::try_from(TEXT).ok()?, 8));
            text.is_none()
        });
        text
    })
    .next()
}

/// From the relocations that the loader will apply to the module's record.
fn relocated<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, pclntab: u64) -> Option<u64> {
    let relative = match image.arch {
        Arch::X86_64 => 8,
        Arch::Arm64 => 1027,
    };
    let (table, bytes) = (image.dynamic(DT_RELA)?, image.dynamic(DT_RELASZ)?);
    let (offset, available) = image.place(table)?;
    let bytes = bytes.min(available);
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
        if value == pclntab {
            candidates.extend(place.checked_add(TEXT));
        }
        candidates.len() < MAX_CANDIDATES
    });
    let mut text = None;
    each(&mut |place, value| {
        if candidates.contains(&place) {
            text = Some(value);
        }
        text.is_none()
    });
    text
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
