//! Where the return address of a stack's innermost function lies.

use std::collections::HashMap;

use super::cfi;
use super::entry::{Cie, Entry, Fde, Format, Kind, MAX_ENTRY_BYTES};
use super::frames::{Body, read_entry};
use super::image::{Arch, Image};
use super::reader::{Bases, Reader};
use super::rule::{CallerPc, Cfa, Rule};
use crate::process::Place;

/// Where the return address of code at one place lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReturnAddress {
    /// Word 0 or 1 at the stack pointer: the function has no frame yet, or none at all.
    StackWord(u8),
    /// Above the frame pointer, further up, or nobody says.
    Elsewhere,
}

/// Places whose rule is remembered, in two generations.
const CAPACITY: usize = 32_768;

/// An entry of .eh_frame_hdr, and how many are read at once.
const PAIR_BYTES: u64 = 8;
const BLOCK_PAIRS: u64 = 256;

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
                .and_then(|read_file| Index::open(read_file)?.rule(place.offset))
                .unwrap_or(ReturnAddress::Elsewhere)
        });
        if self.young.len() >= CAPACITY / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(place, rule);
        rule
    }
}

/// An ELF file whose .eh_frame_hdr leads to single entries.
struct Index<R> {
    image: Image<R>,
    /// Of .eh_frame_hdr.
    address: u64,
}

impl<R: Fn(u64, &mut [u8]) -> bool> Index<R> {
    /// x86-64 only: elsewhere a function without a frame keeps its return address in a register.
    fn open(read_file: R) -> Option<Self> {
        let image = Image::open(read_file).filter(|image| image.arch == Arch::X86_64)?;
        let address = image.eh_frame_header?;
        Some(Self { image, address })
    }

    fn rule(&self, offset: u64) -> Option<ReturnAddress> {
        let rule = self.packed_rule(self.image.address_of(offset)?)?;
        let word = match rule.cfa() {
            Cfa::Sp(8) => 0,
            Cfa::Sp(16) => 1,
            _ => return Some(ReturnAddress::Elsewhere),
        };
        // The return address is the word below the canonical frame address.
        let below = rule.pc() == CallerPc::BelowCfa;
        Some(if below {
            ReturnAddress::StackWord(word)
        } else {
            ReturnAddress::Elsewhere
        })
    }

    fn packed_rule(&self, pc: u64) -> Option<Rule> {
        let address = self.find_fde(pc)?;
        // Offsets are addresses here, as if the section began at zero.
        let body = self.entry(address)?;
        let Kind::Fde { cie } = entry(address, &body)?.kind(Format::EhFrame, 0)?.0 else {
            return None;
        };
        let cie_body = self.entry(cie)?;
        let (Kind::Cie, reader) = entry(cie, &cie_body)?.kind(Format::EhFrame, 0)? else {
            return None;
        };
        let cie = Cie::parse(reader, Format::EhFrame, Arch::X86_64, Bases::default())?;
        let (_, reader) = entry(address, &body)?.kind(Format::EhFrame, 0)?;
        let fde = Fde::parse(reader, &cie, Bases::default())?;
        let mut found = None;
        cfi::rows(&cie, &fde, Bases::default(), &mut |(begin, end, rule, _)| {
            if (begin..end).contains(&pc) {
                found = Some(rule);
            }
        });
        found
    }

    fn entry(&self, address: u64) -> Option<Body> {
        read_entry(MAX_ENTRY_BYTES, |at, into| {
            self.image.read(address.checked_add(at)?, into)
        })
    }

    /// The address of the FDE that may cover `pc`: binary search in .eh_frame_hdr, of which only the form that linkers
    /// write is read (pairs of 4 bytes, relative to the table's own address, ascending).
    fn find_fde(&self, pc: u64) -> Option<u64> {
        const HEADER: [u8; 4] = [1, 0x1b, 0x03, 0x3b];
        let mut header = [0; 12];
        self.image.read(self.address, &mut header)?;
        if header[..4] != HEADER {
            return None;
        }
        let count = Reader::new(&header[8..]).unsigned(4)?;
        let block = |first: u64, count: u64| {
            let mut bytes = vec![0; (count * PAIR_BYTES) as usize];
            let skipped = first.checked_mul(PAIR_BYTES)?.checked_add(12)?;
            self.image.read(self.address.checked_add(skipped)?, &mut bytes)?;
            Some(bytes)
        };
        let begin = |pair: &[u8]| Some(self.address.wrapping_add_signed(Reader::new(pair).signed(4)?));
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
        Some(self.address.wrapping_add_signed(Reader::new(pair.get(4..)?).signed(4)?))
    }
}

fn entry(address: u64, body: &Body) -> Option<Entry<'_>> {
    Some(Entry {
        offset: address,
        body_offset: address.checked_add(body.length_bytes)?,
        long: body.length_bytes > 4,
        body: &body.bytes,
    })
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
        let Some(index) = Index::open(read) else { return };
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
                let below = row.register(gimli::X86_64::RA) == Some(gimli::RegisterRule::Offset(-8));
                let expected = match row.cfa() {
                    _ if !below => ReturnAddress::Elsewhere,
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
                    let found = index.rule(index.image.place(pc).unwrap().0);
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
