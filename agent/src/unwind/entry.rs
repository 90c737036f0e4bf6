//! CIEs and FDEs of .eh_frame (LSB 5.0, chapter 10.6) and .debug_frame (DWARF 5, section 6.4.1).

use std::io::Read;

use crate::elf::Arch;
use crate::elf::reader::{Bases, Reader};

/// Longer entries don't describe functions; they are passed over and counted as malformed.
pub(super) const MAX_ENTRY_BYTES: u64 = 256 * 1024;
/// How much of a section is in memory at once, at first and at most: most sections are small, and memory that was never
/// touched costs a fault for each page.
const FIRST_WINDOW_BYTES: usize = 32 * 1024;
const WINDOW_BYTES: usize = 512 * 1024;

/// Which of the two formats a section has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    EhFrame,
    DebugFrame,
}

/// One entry behind its length.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    /// Of the length, from the section's start.
    pub(super) offset: u64,
    /// Of the first byte of `body`, from the section's start.
    pub(super) body_offset: u64,
    /// True in the form with lengths of 64 bits.
    pub(super) long: bool,
    pub(super) body: &'a [u8],
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Cie,
    /// With the offset of its CIE from the section's start.
    Fde {
        cie: u64,
    },
}

impl<'a> Entry<'a> {
    /// What this entry is, and a reader behind the field that tells. `address` is the section's.
    pub(super) fn kind(&self, format: Format, address: u64) -> Option<(Kind, Reader<'a>)> {
        let mut reader = Reader::at(self.body, address.wrapping_add(self.body_offset));
        // In .eh_frame the field has 4 bytes in both forms.
        let long = self.long && format == Format::DebugFrame;
        let id = reader.unsigned(if long { 8 } else { 4 })?;
        let kind = match format {
            Format::EhFrame if id == 0 => Kind::Cie,
            Format::EhFrame => Kind::Fde {
                cie: self.body_offset.checked_sub(id)?,
            },
            Format::DebugFrame if id == if long { u64::MAX } else { u64::from(u32::MAX) } => Kind::Cie,
            Format::DebugFrame => Kind::Fde { cie: id },
        };
        Some((kind, reader))
    }
}

/// The entries of a section one after the other, with a bounded part of it in memory.
#[derive(Debug)]
pub(super) struct Entries<R> {
    source: R,
    buffer: Vec<u8>,
    begin: usize,
    end: usize,
    /// Of the byte at `begin`, from the section's start.
    offset: u64,
    /// Entries that were too long.
    pub(super) skipped: u64,
}

impl<R: Read> Entries<R> {
    pub(super) fn new(source: R) -> Self {
        Self {
            source,
            buffer: Vec::new(),
            begin: 0,
            end: 0,
            offset: 0,
            skipped: 0,
        }
    }

    /// None at the end, or where the data ends in the middle of an entry.
    pub(super) fn next(&mut self) -> Option<Entry<'_>> {
        loop {
            let offset = self.offset;
            let mut length = self.take(4)?.unsigned(4)?;
            let long = length == u64::from(u32::MAX);
            if long {
                length = self.take(8)?.unsigned(8)?;
            }
            if length == 0 {
                return None;
            }
            if length > MAX_ENTRY_BYTES {
                self.skipped = self.skipped.saturating_add(1);
                self.pass_over(length)?;
                continue;
            }
            let body_offset = self.offset;
            let body = self.take(usize::try_from(length).ok()?)?.rest();
            return Some(Entry {
                offset,
                body_offset,
                long,
                body,
            });
        }
    }

    fn take(&mut self, bytes: usize) -> Option<Reader<'_>> {
        if self.end - self.begin < bytes {
            self.fill(bytes);
        }
        let begin = self.begin;
        let taken = self.buffer.get(begin..self.end)?.get(..bytes)?;
        self.begin += bytes;
        self.offset = self.offset.checked_add(u64::try_from(bytes).ok()?)?;
        Some(Reader::new(taken))
    }

    /// Makes at least `bytes` bytes available, if there are so many.
    fn fill(&mut self, bytes: usize) {
        self.buffer.copy_within(self.begin..self.end, 0);
        self.end -= self.begin;
        self.begin = 0;
        let window = (self.buffer.len() * 2)
            .clamp(FIRST_WINDOW_BYTES, WINDOW_BYTES)
            .max(bytes);
        self.buffer.resize(window, 0);
        while self.end < bytes {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(count @ 1..) => self.end += count,
                _ => return,
            }
        }
    }

    fn pass_over(&mut self, mut bytes: u64) -> Option<()> {
        while bytes > 0 {
            let step = bytes.min(MAX_ENTRY_BYTES);
            self.take(usize::try_from(step).ok()?)?;
            bytes -= step;
        }
        Some(())
    }
}

/// What a CIE says about its FDEs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cie {
    pub(super) arch: Arch,
    pub(super) code_alignment: u64,
    pub(super) data_alignment: i64,
    /// Encoding of addresses, `DW_EH_PE_*`.
    pub(super) encoding: u8,
    has_augmentation_length: bool,
    /// The kernel calls this code: its frame is a signal frame.
    pub(super) signal: bool,
}

impl Cie {
    /// `reader` stands behind the CIE's id; the one that comes back, at its first instruction. None where it makes no
    /// sense or uses what no compiler for Linux writes.
    pub(super) fn parse(mut reader: Reader<'_>, format: Format, arch: Arch) -> Option<(Self, Reader<'_>)> {
        let version = reader.u8()?;
        if !matches!((version, format), (1 | 3, _) | (4, Format::DebugFrame)) {
            return None;
        }
        let augmentation = reader.text()?;
        if version == 4 {
            let (address_bytes, segment_bytes) = (reader.u8()?, reader.u8()?);
            if (address_bytes, segment_bytes) != (8, 0) {
                return None;
            }
        }
        let code_alignment = reader.uleb()?;
        let data_alignment = reader.sleb()?;
        let return_address = if version == 1 {
            u64::from(reader.u8()?)
        } else {
            reader.uleb()?
        };
        if return_address != arch.return_address() {
            return None;
        }
        let mut cie = Self {
            arch,
            code_alignment,
            data_alignment,
            encoding: 0,
            has_augmentation_length: false,
            signal: false,
        };
        cie.augment(augmentation, &mut reader)?;
        Some((cie, reader))
    }

    fn augment(&mut self, augmentation: &[u8], reader: &mut Reader<'_>) -> Option<()> {
        let Some((first, letters)) = augmentation.split_first() else {
            return Some(());
        };
        if *first != b'z' {
            return None;
        }
        self.has_augmentation_length = true;
        let bytes = reader.uleb()?;
        // Where the data begins counts for aligned pointers.
        let mut data = *reader;
        reader.skip(bytes)?;
        for letter in letters {
            match letter {
                b'R' => self.encoding = data.u8()?,
                b'L' => {
                    data.u8()?;
                }
                b'P' => {
                    let encoding = data.u8()?;
                    data.skip_pointer(encoding)?;
                }
                b'S' => self.signal = true,
                // Which key signs return addresses on arm64, and that stacks are tagged: no matter here.
                b'B' | b'G' => {}
                _ => return None,
            }
        }
        Some(())
    }
}

/// A function's description.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fde<'a> {
    /// First address, and the one behind the last.
    pub(super) begin: u64,
    pub(super) end: u64,
    /// Stands at the first instruction.
    pub(super) instructions: Reader<'a>,
}

impl<'a> Fde<'a> {
    /// `reader` stands behind the offset of the CIE.
    pub(super) fn parse(mut reader: Reader<'a>, cie: &Cie, bases: Bases) -> Option<Self> {
        let begin = reader.pointer(cie.encoding, bases)?;
        let end = begin.checked_add(reader.encoded(cie.encoding)?)?;
        if cie.has_augmentation_length {
            let bytes = reader.uleb()?;
            reader.skip(bytes)?;
        }
        Some(Self {
            begin,
            end,
            instructions: reader,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lengths_both_formats_and_too_long_entries() {
        let mut bytes = vec![5, 0, 0, 0, 1, 2, 3, 4, 5];
        bytes.extend(u32::MAX.to_le_bytes());
        bytes.extend(12u64.to_le_bytes());
        bytes.extend([7, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9]);
        let long = MAX_ENTRY_BYTES + 1;
        bytes.extend(u32::try_from(long).unwrap().to_le_bytes());
        bytes.resize(bytes.len() + usize::try_from(long).unwrap(), 1);
        bytes.extend([4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let mut entries = Entries::new(bytes.as_slice());
        let first = entries.next().unwrap();
        assert_eq!((first.offset, first.body_offset, first.long), (0, 4, false));
        assert_eq!(first.body, [1, 2, 3, 4, 5]);
        let second = entries.next().unwrap();
        assert_eq!((second.offset, second.body_offset, second.long), (9, 21, true));
        assert_eq!(second.kind(Format::DebugFrame, 0).unwrap().0, Kind::Fde { cie: 7 });
        assert_eq!(second.kind(Format::EhFrame, 0).unwrap().0, Kind::Fde { cie: 14 });
        let third = entries.next().unwrap();
        assert_eq!(third.kind(Format::EhFrame, 0).unwrap().0, Kind::Cie);
        assert!(entries.next().is_none(), "the terminator");
        assert_eq!(entries.skipped, 1);
    }

    #[test]
    fn an_entry_that_ends_nowhere_is_none() {
        assert!(Entries::new([100u8, 0, 0, 0, 1].as_slice()).next().is_none());
        assert!(Entries::new([0xffu8, 0xff, 0xff, 0xff, 1].as_slice()).next().is_none());
        assert!(Entries::new([].as_slice()).next().is_none());
    }
}
