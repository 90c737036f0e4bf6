//! Where the return address of a stack's innermost function lies.

use std::collections::HashMap;

use super::cfa::{Cfa, Cie, Reader, Register, cfa_at};
use crate::process::Place;

/// Where the return address of code at one place lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReturnAddress {
    /// Word 0 or 1 at the stack pointer: the function has no frame yet, or none at all.
    StackWord(u8),
    /// Above the frame pointer, further up, or nobody says.
    Elsewhere,
}

const RSP: Register = Register(7);
const PT_LOAD: u64 = 1;
const PT_GNU_EH_FRAME: u64 = 0x6474_e550;
const MAX_PROGRAM_HEADERS: u64 = 128;
/// Longer entries don't describe functions.
const MAX_ENTRY_BYTES: u64 = 64 * 1024;
/// Places whose rule is remembered, in two generations.
const CAPACITY: usize = 32_768;

/// An entry of .eh_frame_hdr, and how many are read at once.
const PAIR_BYTES: u64 = 8;
const BLOCK_PAIRS: u64 = 256;

/// A segment of an ELF file: (file offset, bytes in the file, address).
type Segment = (u64, u64, u64);

/// Finds and remembers rules.
#[derive(Debug, Default)]
pub struct LeafRules {
    young: HashMap<Place, ReturnAddress>,
    old: HashMap<Place, ReturnAddress>,
}

impl LeafRules {
    /// The rule for a place. `open` is called only where it is not remembered, and gives a function that fills a buffer from
    /// an offset of the place's file, or says that it cannot.
    pub fn find<R>(&mut self, place: Place, open: impl FnOnce() -> Option<R>) -> ReturnAddress
    where
        R: Fn(u64, &mut [u8]) -> bool,
    {
        if let Some(rule) = self.young.get(&place) {
            return *rule;
        }
        let rule = self.old.remove(&place).unwrap_or_else(|| {
            open()
                .and_then(|read_file| Image::open(read_file)?.rule(place.offset))
                .unwrap_or(ReturnAddress::Elsewhere)
        });
        if self.young.len() >= CAPACITY / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(place, rule);
        rule
    }
}

/// The parts of an ELF file that lead to its unwinding information.
struct Image<R> {
    read_file: R,
    segments: Vec<Segment>,
    /// Address of .eh_frame_hdr.
    index_address: u64,
}

impl<R: Fn(u64, &mut [u8]) -> bool> Image<R> {
    /// x86-64 only: elsewhere a function without a frame keeps its return address in a register.
    fn open(read_file: R) -> Option<Self> {
        const EM_X86_64: u64 = 62;
        let mut header = [0; 64];
        if !read_file(0, &mut header) || &header[..6] != b"\x7fELF\x02\x01" {
            return None;
        }
        let field = |at: usize, bytes: u64| Reader::new(header.get(at..)?).unsigned(bytes);
        if field(18, 2)? != EM_X86_64 || field(54, 2)? != 56 {
            return None;
        }
        let mut table = vec![0; (field(56, 2)?.min(MAX_PROGRAM_HEADERS) * 56) as usize];
        if !read_file(field(32, 8)?, &mut table) {
            return None;
        }
        let (mut segments, mut index_address) = (Vec::new(), None);
        for entry in table.chunks_exact(56) {
            let field = |at: usize, bytes: u64| Reader::new(&entry[at..]).unsigned(bytes);
            match field(0, 4)? {
                PT_LOAD => segments.push((field(8, 8)?, field(32, 8)?, field(16, 8)?)),
                PT_GNU_EH_FRAME => index_address = field(16, 8),
                _ => {}
            }
        }
        Some(Self {
            read_file,
            segments,
            index_address: index_address?,
        })
    }

    fn address_of(&self, offset: u64) -> Option<u64> {
        let inside = |(begin, bytes, _): &&Segment| offset.wrapping_sub(*begin) < *bytes;
        let (begin, _, address) = self.segments.iter().find(inside)?;
        address.checked_add(offset - begin)
    }

    fn read(&self, address: u64, bytes: &mut [u8]) -> Option<()> {
        let inside = |(_, bytes, begin): &&Segment| address.wrapping_sub(*begin) < *bytes;
        let (offset, _, begin) = self.segments.iter().find(inside)?;
        (self.read_file)(offset.checked_add(address - begin)?, bytes).then_some(())
    }

    fn rule(&self, offset: u64) -> Option<ReturnAddress> {
        let pc = self.address_of(offset)?;
        let (fde, fde_address) = self.entry(self.find_fde(pc)?)?;
        let back = Reader::new(&fde).unsigned(4)?;
        let (cie, _) = self.entry(fde_address.checked_sub(back)?)?;
        let cfa = cfa_at(&Cie::parse(&cie)?, &fde, fde_address, pc)?;
        // The return address is the word below the canonical frame address.
        Some(match cfa {
            Cfa::RegisterOffset(RSP, 8) => ReturnAddress::StackWord(0),
            Cfa::RegisterOffset(RSP, 16) => ReturnAddress::StackWord(1),
            _ => ReturnAddress::Elsewhere,
        })
    }

    /// A CIE or FDE without its length, and the address behind the length. `address` is that of the length.
    fn entry(&self, address: u64) -> Option<(Vec<u8>, u64)> {
        let mut length = [0; 4];
        self.read(address, &mut length)?;
        let length = u64::from(u32::from_le_bytes(length));
        if !(4..=MAX_ENTRY_BYTES).contains(&length) {
            return None;
        }
        let mut body = vec![0; length as usize];
        self.read(address + 4, &mut body)?;
        Some((body, address + 4))
    }

    /// The address of the FDE that may cover `pc`: binary search in .eh_frame_hdr, of which only the form that linkers
    /// write is read (pairs of 4 bytes, relative to the table's own address, ascending).
    fn find_fde(&self, pc: u64) -> Option<u64> {
        const HEADER: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
        let mut header = [0; 12];
        self.read(self.index_address, &mut header)?;
        if header[..4] != HEADER {
            return None;
        }
        let count = Reader::new(&header[8..]).unsigned(4)?;
        let block = |first: u64, count: u64| {
            let mut bytes = vec![0; (count * PAIR_BYTES) as usize];
            self.read(self.index_address + 12 + first * PAIR_BYTES, &mut bytes)?;
            Some(bytes)
        };
        let begin = |pair: &[u8]| Some(self.index_address.wrapping_add_signed(Reader::new(pair).i32()?));
        // Pair by pair as long as the range is large; what is left is read at once.
        let (mut low, mut high) = (0, count);
        while high - low > BLOCK_PAIRS {
            let middle = low + (high - low) / 2;
            if begin(&block(middle, 1)?)? <= pc {
                low = middle;
            } else {
                high = middle;
            }
        }
        let pairs = block(low, high - low)?;
        let pairs = pairs.chunks_exact(PAIR_BYTES as usize);
        let pair = pairs
            .take_while(|pair| begin(pair).is_some_and(|begin| begin <= pc))
            .last()?;
        Some(self.index_address.wrapping_add_signed(Reader::new(&pair[4..]).i32()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::SourceId;
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    /// What `readelf --debug-dump=frames-interp` and gimli both say of the C library of this machine is said here too, for
    /// every row of every function.
    #[test]
    fn every_rule_of_the_c_library_equals_gimlis() {
        use gimli::UnwindSection;

        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let path = maps
            .lines()
            .filter_map(|line| line.split_whitespace().nth(5))
            .find(|path| path.contains("libc.so"));
        let Some(path) = path else { return };
        let bytes = std::fs::read(path).unwrap();
        let file = File::open(path).unwrap();
        let read = |offset: u64, into: &mut [u8]| file.read_exact_at(into, offset).is_ok();
        let Some(image) = Image::open(read) else { return };
        let (address, offset, size) = eh_frame(&bytes);
        let section = gimli::EhFrame::new(&bytes[offset..offset + size], gimli::LittleEndian);
        let bases = gimli::BaseAddresses::default().set_eh_frame(address);
        let mut context = gimli::UnwindContext::new();
        let mut entries = section.entries(&bases);
        let (mut rows, mut at_stack) = (0, 0);
        while let Some(entry) = entries.next().unwrap() {
            let gimli::CieOrFde::Fde(partial) = entry else { continue };
            let fde = partial.parse(gimli::EhFrame::cie_from_offset).unwrap();
            let mut table = fde.rows(&section, &bases, &mut context).unwrap();
            while let Some(row) = table.next_row().unwrap() {
                if row.start_address() >= row.end_address() || fde.is_signal_trampoline() {
                    continue;
                }
                let expected = match row.cfa() {
                    gimli::CfaRule::RegisterAndOffset {
                        register: gimli::X86_64::RSP,
                        offset: 8,
                    } => ReturnAddress::StackWord(0),
                    gimli::CfaRule::RegisterAndOffset {
                        register: gimli::X86_64::RSP,
                        offset: 16,
                    } => ReturnAddress::StackWord(1),
                    _ => ReturnAddress::Elsewhere,
                };
                for pc in [row.start_address(), row.end_address() - 1] {
                    let (begin, _, segment) = image.segments.iter().find(|s| pc.wrapping_sub(s.2) < s.1).unwrap();
                    let found = image.rule(pc - segment + begin);
                    assert_eq!(found, Some(expected), "{pc:x} in {path}");
                    at_stack += u64::from(expected != ReturnAddress::Elsewhere);
                    rows += 1;
                }
            }
        }
        assert!(
            rows > 1000 && at_stack > 100,
            "{rows} rows, {at_stack} at the stack pointer"
        );
    }

    /// Address, file offset and size of .eh_frame, by section header.
    fn eh_frame(bytes: &[u8]) -> (u64, usize, usize) {
        let field = |at: usize, size: u64| Reader::new(&bytes[at..]).unsigned(size).unwrap();
        let (table, count, names) = (field(40, 8) as usize, field(60, 2), field(62, 2) as usize);
        let names = field(table + names * 64 + 24, 8) as usize;
        (0..count as usize)
            .map(|index| table + index * 64)
            .find(|at| bytes[names + field(*at, 4) as usize..].starts_with(b".eh_frame\0"))
            .map(|at| {
                (
                    field(at + 16, 8),
                    field(at + 24, 8) as usize,
                    field(at + 32, 8) as usize,
                )
            })
            .unwrap()
    }

    #[test]
    fn a_rule_is_looked_up_once_and_files_without_rules_say_elsewhere() {
        let mut rules = LeafRules::default();
        let place = Place {
            source: SourceId::VDSO,
            offset: 5,
        };
        let nothing = |_: u64, _: &mut [u8]| false;
        assert_eq!(rules.find(place, || Some(nothing)), ReturnAddress::Elsewhere);
        let again = rules.find(place, || -> Option<fn(u64, &mut [u8]) -> bool> { panic!("remembered") });
        assert_eq!(again, ReturnAddress::Elsewhere);
    }
}
