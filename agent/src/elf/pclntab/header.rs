//! Where pclntab lies, and what its header says.

use super::super::image::{Arch, Image, field};

const SECTIONS: [&[u8]; 2] = [b".gopclntab", b".data.rel.ro.gopclntab"];
const HEADER_BYTES: usize = 72;
/// The linker aligns the table to 32 bytes; an external linker may keep less.
const ALIGNMENT: usize = 8;
const WINDOW_BYTES: usize = 1 << 20;
/// In one program.
const MAX_FUNCTIONS: u64 = 1 << 21;
/// In one file, over all its segments.
pub(crate) const MAX_SEARCH_BYTES: u64 = 1 << 31;

/// Formats by the first version that writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Go116,
    Go118,
    Go120,
}

/// Where the fields of a function's record stand (`_func` in runtime/runtime2.go).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) name: u64,
    pub(crate) pcsp: u64,
    pub(crate) pcfile: u64,
    pub(crate) pcln: u64,
    /// How many kinds of values the function has beyond those; where they stand follows the record.
    pub(crate) more: u64,
    pub(crate) unit: u64,
    pub(crate) record_bytes: u64,
    pub(crate) flags: u64,
}

/// Where the fields of an inlined function's entry stand (`inlinedCall` in runtime/symtabinl.go).
#[derive(Debug, Clone, Copy)]
pub(crate) struct InlinedLayout {
    pub(crate) name: usize,
    pub(crate) caller: usize,
    pub(crate) bytes: u64,
}

impl Version {
    pub(crate) fn inlined(self) -> InlinedLayout {
        let (name, caller, bytes) = match self {
            Self::Go116 | Self::Go118 => (12, 16, 20),
            Self::Go120 => (4, 8, 16),
        };
        InlinedLayout { name, caller, bytes }
    }

    fn of(magic: u64) -> Option<Self> {
        match magic {
            0xffff_fffa => Some(Self::Go116),
            0xffff_fff0 => Some(Self::Go118),
            0xffff_fff1 => Some(Self::Go120),
            _ => None,
        }
    }

    /// Of an address or offset in the list of functions.
    pub(crate) fn functab_field_bytes(self) -> u64 {
        if self == Self::Go116 { 8 } else { 4 }
    }

    pub(crate) fn layout(self) -> Layout {
        let (name, flags, record_bytes) = match self {
            Self::Go116 => (8, 41, 44),
            Self::Go118 => (4, 37, 40),
            Self::Go120 => (4, 41, 44),
        };
        Layout {
            name,
            pcsp: name + 12,
            pcfile: name + 16,
            pcln: name + 20,
            more: name + 24,
            unit: name + 28,
            record_bytes,
            flags,
        }
    }
}

/// What leads to everything else. Offsets without other words count from the table's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Of the table, in the file.
    pub(crate) offset: u64,
    /// Of the table, or up to the end of its segment.
    pub(crate) bytes: u64,
    pub(crate) address: u64,
    pub(crate) version: Version,
    /// Bytes that one unit of code has.
    pub(crate) quantum: u64,
    pub(crate) functions: u64,
    /// What the header says that functions' addresses count from; zero since Go 1.26, and before relocation.
    pub(crate) text: u64,
    pub(crate) names: u64,
    /// For each compilation unit, where the names of its files stand.
    pub(crate) units: u64,
    pub(crate) files: u64,
    pub(crate) deltas: u64,
    pub(crate) functab: u64,
}

impl Header {
    /// None where it is no header of a table of at most `bytes` bytes.
    fn parse(header: &[u8], arch: Arch, offset: u64, bytes: u64, address: u64) -> Option<Self> {
        let version = Version::of(field(header, 0, 4)?)?;
        let quantum = match arch {
            Arch::X86_64 => 1,
            Arch::Arm64 => 4,
        };
        if header.get(4..8)? != [0, 0, quantum, 8] {
            return None;
        }
        let word = |index: usize| field(header, 8 + index * 8, 8);
        // The first address of the code came in between.
        let first = if version == Version::Go116 { 2 } else { 3 };
        let parsed = Self {
            offset,
            bytes,
            address,
            version,
            quantum: u64::from(quantum),
            functions: word(0)?,
            text: if version == Version::Go116 { 0 } else { word(2)? },
            names: word(first)?,
            units: word(first + 1)?,
            files: word(first + 2)?,
            deltas: word(first + 3)?,
            functab: word(first + 4)?,
        };
        let order = [parsed.names, parsed.units, parsed.files, parsed.deltas, parsed.functab];
        let list = parsed.functions.checked_mul(2)?.checked_add(1)?;
        let end = parsed
            .functab
            .checked_add(list.checked_mul(version.functab_field_bytes())?)?;
        let plausible = (1..=MAX_FUNCTIONS).contains(&parsed.functions)
            && order.is_sorted()
            && parsed.names >= u64::try_from(HEADER_BYTES - 8).ok()?
            && end <= bytes;
        plausible.then_some(parsed)
    }
}

/// By section; where there is none (stripped, or merged into another by an external linker) by search, but only in
/// what the Go linker has written.
pub(crate) fn find<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>) -> Option<Header> {
    if let Some(section) = image.section(&SECTIONS).filter(|section| !section.compressed) {
        let mut header = [0; HEADER_BYTES];
        image.read_offset(section.offset, &mut header)?;
        return Header::parse(&header, image.arch, section.offset, section.bytes, section.address);
    }
    if !image.has_go_note() {
        return None;
    }
    // Segments of a file that makes sense don't overlap, so this is no limit for one.
    let mut budget = MAX_SEARCH_BYTES;
    image.segments.iter().find_map(|segment| {
        let bytes = segment.bytes.min(budget);
        budget -= bytes;
        search(image, segment.offset, bytes, segment.address)
    })
}

fn search<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, offset: u64, bytes: u64, address: u64) -> Option<Header> {
    let mut window = Vec::new();
    let step = u64::try_from(WINDOW_BYTES - HEADER_BYTES).ok()?;
    let mut done = 0;
    while done < bytes {
        let left = bytes - done;
        window.resize(usize::try_from(left).unwrap_or(usize::MAX).min(WINDOW_BYTES), 0);
        image.read_offset(offset.checked_add(done)?, &mut window)?;
        let headers = window.windows(HEADER_BYTES).step_by(ALIGNMENT).enumerate();
        // The magic's last three bytes first: nearly all that is no table ends there.
        let mut candidates = headers.filter(|(_, header)| header[1..4] == [0xff; 3]);
        let found = candidates.find_map(|(index, header)| {
            let before = u64::try_from(index * ALIGNMENT).ok()?.checked_add(done)?;
            let (at, left) = (offset.checked_add(before)?, bytes.checked_sub(before)?);
            Header::parse(header, image.arch, at, left, address.checked_add(before)?)
        });
        if found.is_some() {
            return found;
        }
        done = done.checked_add(step)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(version: u32, words: &[u64]) -> Vec<u8> {
        let mut bytes = version.to_le_bytes().to_vec();
        bytes.extend([0, 0, 1, 8]);
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        bytes.resize(HEADER_BYTES, 0);
        bytes
    }

    #[test]
    fn three_versions_and_nonsense() {
        let parse = |bytes: &[u8]| Header::parse(bytes, Arch::X86_64, 0, 1000, 0x4000);
        let old = parse(&header(0xffff_fffa, &[2, 1, 64, 80, 90, 100, 200])).unwrap();
        assert_eq!(
            (old.functions, old.names, old.deltas, old.functab, old.text),
            (2, 64, 100, 200, 0)
        );
        let words = [2, 1, 0x40_1000, 72, 80, 90, 100, 200];
        let new = parse(&header(0xffff_fff1, &words)).unwrap();
        assert_eq!(
            (new.functions, new.names, new.deltas, new.functab, new.text),
            (2, 72, 100, 200, 0x40_1000)
        );
        assert!(parse(&header(0xffff_fffb, &words)).is_none(), "Go 1.2");
        assert!(
            parse(&header(0xffff_fff1, &[200, 1, 0, 72, 80, 90, 100, 200])).is_none(),
            "too many"
        );
        assert!(
            parse(&header(0xffff_fff1, &[2, 1, 0, 72, 60, 90, 100, 200])).is_none(),
            "disorder"
        );
        assert!(parse(&header(0xffff_fff1, &[u64::MAX, 1, 0, 72, 80, 90, 100, u64::MAX])).is_none());
    }
}
