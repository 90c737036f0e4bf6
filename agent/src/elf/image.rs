//! Where things lie in an ELF file: segments, sections, notes, the dynamic section (System V gABI, chapters 4 and 5).

use std::io;

use super::reader::Reader;

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const PT_NOTE: u64 = 4;
const PT_GNU_EH_FRAME: u64 = 0x6474_e550;
const PF_EXECUTE: u64 = 1;
const PF_WRITE: u64 = 2;
const PROGRAM_HEADER_BYTES: usize = 56;
const SECTION_HEADER_BYTES: usize = 64;
const DYNAMIC_BYTES: usize = 16;
const SHT_NOTE: u64 = 7;
const SHT_NOBITS: u64 = 8;
const NT_GNU_BUILD_ID: u64 = 3;
const SHF_COMPRESSED: u64 = 0x800;
/// Larger tables are not looked at to their end.
const MAX_PROGRAM_HEADERS: u64 = 128;
const MAX_SECTIONS: u64 = 4096;
const MAX_NAMES_BYTES: u64 = 64 * 1024;
const MAX_NOTES_BYTES: u64 = 64 * 1024;
const MAX_DYNAMIC_BYTES: u64 = 4096;

/// DWARF's numbers of the registers that unwinding gives rules of their own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Registers {
    pub(crate) sp: u64,
    pub(crate) fp: u64,
}

/// The machines that the agent knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arch {
    X86_64,
    Arm64,
}

impl Arch {
    /// DWARF's numbers (System V psABI of each).
    pub(crate) fn registers(self) -> Registers {
        match self {
            Self::X86_64 => Registers { sp: 7, fp: 6 },
            Self::Arm64 => Registers { sp: 31, fp: 29 },
        }
    }

    /// DWARF's number of the return address.
    pub(crate) fn return_address(self) -> u64 {
        match self {
            Self::X86_64 => 16,
            Self::Arm64 => 30,
        }
    }
}

/// A part of the file that is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// In the file.
    pub offset: u64,
    /// In the file; what is more in memory is zero.
    pub bytes: u64,
    /// Of the first byte, before relocation (SVMA).
    pub address: u64,
    /// True for code.
    pub executable: bool,
    /// True for data that the loader or the program changes.
    pub writable: bool,
}

/// A section by its header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Section {
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) compressed: bool,
    /// `SHT_*`.
    pub(crate) kind: u64,
    /// Number of the section that this one needs: the names of its symbols.
    pub(crate) link: usize,
    pub(crate) entry_bytes: u64,
}

impl Section {
    fn parse(header: &[u8]) -> Option<Self> {
        Some(Self {
            address: field(header, 16, 8)?,
            offset: field(header, 24, 8)?,
            bytes: field(header, 32, 8)?,
            compressed: field(header, 8, 8)? & SHF_COMPRESSED != 0,
            kind: field(header, 4, 4)?,
            link: usize::try_from(field(header, 40, 4)?).ok()?,
            entry_bytes: field(header, 56, 8)?,
        })
    }
}

/// The headers of a file of which only some sections are copied.
#[derive(Debug)]
pub(crate) struct Headers {
    /// To be copied as they are: offset, bytes.
    pub(crate) parts: [(u64, u64); 3],
    pub(crate) sections_offset: u64,
    /// The table of sections, in which those that are neither loaded nor copied are empty.
    pub(crate) sections: Vec<u8>,
}

/// The parts of an ELF file that lead to its unwinding information. `R` fills a buffer from an offset of the file, or
/// says that it cannot.
#[derive(Debug)]
pub(crate) struct Image<R> {
    read_file: R,
    pub(crate) arch: Arch,
    pub(crate) segments: Vec<Segment>,
    /// Address of .eh_frame_hdr.
    pub(crate) eh_frame_header: Option<u64>,
    notes: Vec<(u64, u64)>,
    dynamic: Option<(u64, u64)>,
    header: [u8; 64],
}

impl<R: Fn(u64, &mut [u8]) -> bool> Image<R> {
    /// None where the file is no 64-bit little-endian ELF file for one of the known machines.
    pub(crate) fn open(read_file: R) -> Option<Self> {
        const EM_X86_64: u64 = 62;
        const EM_AARCH64: u64 = 183;
        let mut header = [0; 64];
        if !read_file(0, &mut header) || !header.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let arch = match field(&header, 18, 2)? {
            EM_X86_64 => Arch::X86_64,
            EM_AARCH64 => Arch::Arm64,
            _ => return None,
        };
        let mut image = Self {
            read_file,
            arch,
            segments: Vec::new(),
            eh_frame_header: None,
            notes: Vec::new(),
            dynamic: None,
            header,
        };
        image.read_program_headers()?;
        Some(image)
    }

    fn read_program_headers(&mut self) -> Option<()> {
        let header = self.header;
        if field(&header, 54, 2)? != u64::try_from(PROGRAM_HEADER_BYTES).ok()? {
            return None;
        }
        let count = usize::try_from(field(&header, 56, 2)?.min(MAX_PROGRAM_HEADERS)).ok()?;
        let table = self.bytes_at(field(&header, 32, 8)?, count * PROGRAM_HEADER_BYTES)?;
        for entry in table.chunks_exact(PROGRAM_HEADER_BYTES) {
            let (offset, address, bytes) = (field(entry, 8, 8)?, field(entry, 16, 8)?, field(entry, 32, 8)?);
            match field(entry, 0, 4)? {
                PT_LOAD => self.segments.push(Segment {
                    offset,
                    bytes,
                    address,
                    executable: field(entry, 4, 4)? & PF_EXECUTE != 0,
                    writable: field(entry, 4, 4)? & PF_WRITE != 0,
                }),
                PT_GNU_EH_FRAME => self.eh_frame_header = Some(address),
                PT_NOTE => self.notes.push((offset, bytes)),
                PT_DYNAMIC => self.dynamic = Some((offset, bytes)),
                _ => {}
            }
        }
        Some(())
    }

    /// The segment that holds an address, of the bytes that the file has.
    pub(crate) fn segment_at(&self, address: u64) -> Option<&Segment> {
        let inside = |segment: &&Segment| {
            let skipped = address.checked_sub(segment.address);
            skipped.is_some_and(|skipped| skipped < segment.bytes)
        };
        self.segments.iter().find(inside)
    }

    /// True where all addresses from `begin` up to `end` are code.
    pub(crate) fn is_code(&self, begin: u64, end: u64) -> bool {
        begin < end
            && self
                .segments
                .iter()
                .any(|segment| segment.executable && begin >= segment.address && end - segment.address <= segment.bytes)
    }

    /// Where an address lies in the file, and how many bytes of its segment follow there.
    pub(crate) fn place(&self, address: u64) -> Option<(u64, u64)> {
        let segment = self.segment_at(address)?;
        let skipped = address - segment.address;
        Some((segment.offset.checked_add(skipped)?, segment.bytes - skipped))
    }

    /// Fills `bytes` from an offset of the file.
    pub(crate) fn read_offset(&self, offset: u64, bytes: &mut [u8]) -> Option<()> {
        (self.read_file)(offset, bytes).then_some(())
    }

    /// Fills `bytes` from an address.
    pub(crate) fn read(&self, address: u64, bytes: &mut [u8]) -> Option<()> {
        self.read_offset(self.place(address)?.0, bytes)
    }

    fn bytes_at(&self, offset: u64, count: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.read_offset(offset, &mut bytes)?;
        Some(bytes)
    }

    /// A section that has bytes in the file.
    pub(crate) fn section(&self, names: &[&[u8]]) -> Option<Section> {
        let table = self.section_headers()?;
        let mut headers = table.chunks_exact(SECTION_HEADER_BYTES);
        let names_header = headers
            .clone()
            .nth(usize::try_from(field(&self.header, 62, 2)?).ok()?)?;
        let names_bytes = usize::try_from(field(names_header, 32, 8)?.min(MAX_NAMES_BYTES)).ok()?;
        let names_table = self.bytes_at(field(names_header, 24, 8)?, names_bytes)?;
        let named = |header: &&[u8]| {
            let name = field(header, 0, 4).and_then(|at| names_table.get(usize::try_from(at).ok()?..));
            let name = name.and_then(|name| Reader::new(name).text());
            name.is_some_and(|name| names.contains(&name)) && field(header, 4, 4) != Some(SHT_NOBITS)
        };
        Section::parse(headers.find(named)?)
    }

    /// All sections by number, also those without bytes in the file. None where the file has no readable table of them.
    pub(crate) fn sections(&self) -> Option<Vec<Section>> {
        let table = self.section_headers()?;
        table.chunks_exact(SECTION_HEADER_BYTES).map(Section::parse).collect()
    }

    /// The first section of a kind (`SHT_*`).
    pub(crate) fn section_of_kind(&self, kind: u64) -> Option<Section> {
        self.sections()?.into_iter().find(|section| section.kind == kind)
    }

    /// True where the file says that it has sections.
    pub(crate) fn claims_sections(&self) -> bool {
        field(&self.header, 60, 2).is_some_and(|count| count > 0)
    }

    /// What a copy of the file needs that is to hold some of its sections. None where the file has no readable table
    /// of them.
    pub(crate) fn headers_for(&self, copied: &[Section]) -> Option<Headers> {
        const SHF_ALLOC: u64 = 2;
        const BYTES: std::ops::Range<usize> = 32..40;
        const FLAGS: std::ops::Range<usize> = 8..16;
        let mut table = self.section_headers()?;
        let names = usize::try_from(field(&self.header, 62, 2)?).ok()?;
        let names = Section::parse(table.chunks_exact(SECTION_HEADER_BYTES).nth(names)?)?;
        for header in table.chunks_exact_mut(SECTION_HEADER_BYTES) {
            let section = Section::parse(header)?;
            let stays = |kept: &Section| (kept.offset, kept.bytes) == (section.offset, section.bytes);
            if field(header, 8, 8)? & SHF_ALLOC == 0 && !stays(&names) && !copied.iter().any(stays) {
                header[BYTES].fill(0);
                header[FLAGS].fill(0);
            }
        }
        let programs = field(&self.header, 56, 2)?.min(MAX_PROGRAM_HEADERS) * PROGRAM_HEADER_BYTES as u64;
        let parts = [
            (0, self.header.len() as u64),
            (field(&self.header, 32, 8)?, programs),
            (names.offset, names.bytes.min(MAX_NAMES_BYTES)),
        ];
        Some(Headers {
            parts,
            sections_offset: field(&self.header, 40, 8)?,
            sections: table,
        })
    }

    fn section_headers(&self) -> Option<Vec<u8>> {
        let header_bytes = u64::try_from(SECTION_HEADER_BYTES).ok()?;
        if field(&self.header, 58, 2)? != header_bytes {
            return None;
        }
        let count = usize::try_from(field(&self.header, 60, 2)?.min(MAX_SECTIONS)).ok()?;
        self.bytes_at(field(&self.header, 40, 8)?, count * SECTION_HEADER_BYTES)
    }

    /// The GNU build id in lower-case hex.
    pub(crate) fn build_id(&self) -> Option<String> {
        let in_part = |(offset, bytes): (u64, u64)| {
            let notes = self.bytes_at(offset, usize::try_from(bytes.min(MAX_NOTES_BYTES)).ok()?)?;
            // Notes are padded to 4 bytes, in some segments to 8.
            build_id_in_notes(&notes, 4).or_else(|| build_id_in_notes(&notes, 8))
        };
        let by_segment = self.notes.iter().copied().find_map(in_part);
        // Separate debug files keep the note, but not always at the place that their segments tell.
        by_segment.or_else(|| {
            let sections = self.sections()?.into_iter();
            let notes = sections.filter(|section| section.kind == SHT_NOTE);
            notes.map(|section| (section.offset, section.bytes)).find_map(in_part)
        })
    }

    /// True where the Go linker has left its note, which it does in every program, stripped or not.
    pub(crate) fn has_go_note(&self) -> bool {
        let holds = |(offset, bytes): &(u64, u64)| {
            let bytes = usize::try_from((*bytes).min(MAX_NOTES_BYTES)).ok()?;
            let notes = self.bytes_at(*offset, bytes)?;
            // Length of the name, length of the content, kind 4, name.
            let is_go = |note: &[u8]| note.starts_with(&[4, 0, 0, 0]) && note.get(8..16) == Some(b"\x04\0\0\0Go\0\0");
            Some(notes.windows(16).step_by(4).any(is_go))
        };
        self.notes.iter().any(|note| holds(note).unwrap_or(false))
    }

    /// A value of the dynamic section.
    pub(crate) fn dynamic(&self, tag: u64) -> Option<u64> {
        let (offset, bytes) = self.dynamic?;
        let table = self.bytes_at(offset, usize::try_from(bytes.min(MAX_DYNAMIC_BYTES)).ok()?)?;
        let mut entries = table.chunks_exact(DYNAMIC_BYTES);
        let entry = entries.find(|entry| field(entry, 0, 8) == Some(tag))?;
        field(entry, 8, 8)
    }
}

/// The address (SVMA) of an offset of the file.
pub(crate) fn address_of(segments: &[Segment], offset: u64) -> Option<u64> {
    let inside = |segment: &&Segment| {
        let skipped = offset.checked_sub(segment.offset);
        skipped.is_some_and(|skipped| skipped < segment.bytes)
    };
    let segment = segments.iter().find(inside)?;
    segment.address.checked_add(offset - segment.offset)
}

/// The address (SVMA) of an offset of the file at which a mapping of its code begins. Mappings begin at whole pages,
/// also where the segment does not, and then show a part of the segment before.
pub fn code_address(segments: &[Segment], file_offset: u64) -> Option<u64> {
    const PAGE_BYTES: u64 = 4096;
    let code = segments.iter().filter(|segment| segment.executable);
    let shown = |segment: &&Segment| {
        let begin = segment.offset / PAGE_BYTES * PAGE_BYTES;
        begin <= file_offset && file_offset < segment.offset.saturating_add(segment.bytes)
    };
    let segment = code.into_iter().find(shown)?;
    Some(segment.address.wrapping_sub(segment.offset).wrapping_add(file_offset))
}

/// A little-endian number in a header.
pub(crate) fn field(bytes: &[u8], at: usize, size: u64) -> Option<u64> {
    Reader::new(bytes.get(at..)?).unsigned(size)
}

/// Fills a buffer from an offset of what lies in memory, or says that it cannot.
pub(crate) fn read_from(bytes: &[u8], offset: u64, into: &mut [u8]) -> bool {
    let part = usize::try_from(offset)
        .ok()
        .and_then(|begin| bytes.get(begin..)?.get(..into.len()));
    part.is_some_and(|part| {
        into.copy_from_slice(part);
        true
    })
}

/// A part of the file from front to back.
pub(crate) struct FileRange<'a, R> {
    image: &'a Image<R>,
    offset: u64,
    left: u64,
}

impl<'a, R> FileRange<'a, R> {
    pub(crate) fn new(image: &'a Image<R>, offset: u64, bytes: u64) -> Self {
        Self {
            image,
            offset,
            left: bytes,
        }
    }
}

impl<R: Fn(u64, &mut [u8]) -> bool> io::Read for FileRange<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(into.len());
        if count == 0 {
            return Ok(0);
        }
        let read = self.image.read_offset(self.offset, &mut into[..count]);
        read.ok_or(io::ErrorKind::UnexpectedEof)?;
        let bytes = u64::try_from(count).map_err(io::Error::other)?;
        self.left -= bytes;
        self.offset = self.offset.checked_add(bytes).ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(count)
    }
}

fn build_id_in_notes(mut notes: &[u8], alignment: usize) -> Option<String> {
    loop {
        let size = |at: usize| usize::try_from(field(notes, at, 4)?).ok();
        let (name_bytes, id_bytes, kind) = (size(0)?, size(4)?, field(notes, 8, 4)?);
        let id_at = 12usize.checked_add(name_bytes)?.checked_next_multiple_of(alignment)?;
        let next = id_at.checked_add(id_bytes)?.checked_next_multiple_of(alignment)?;
        if kind == NT_GNU_BUILD_ID && notes.get(12..)?.get(..name_bytes)? == b"GNU\0" {
            let id = notes.get(id_at..)?.get(..id_bytes)?;
            let plausible = (4..=64).contains(&id.len());
            return plausible.then(|| id.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        notes = notes.get(next..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &[u8], kind: u32, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend((name.len() as u32).to_le_bytes());
        bytes.extend((content.len() as u32).to_le_bytes());
        bytes.extend(kind.to_le_bytes());
        bytes.extend(name);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        let mut notes = note(b"GNU\0", 1, &[0; 16]);
        notes.extend(note(b"Go\0\0", 4, b"abc"));
        notes.extend(note(b"GNU\0", 3, &[0xab, 0xcd, 0x01, 0x02]));
        assert_eq!(build_id_in_notes(&notes, 4).as_deref(), Some("abcd0102"));
    }

    #[test]
    fn notes_that_lie_about_their_lengths_give_nothing() {
        let mut notes = note(b"GNU\0", 3, &[1; 20]);
        notes.truncate(20);
        assert_eq!(build_id_in_notes(&notes, 4), None);
        assert_eq!(build_id_in_notes(&[0xff; 40], 4), None);
        assert_eq!(build_id_in_notes(&[], 4), None);
    }
}
