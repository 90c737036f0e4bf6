//! Which function an address belongs to, by tables of symbols (System V gABI, chapter 4): a file's own, and those
//! that were taken out of it. All that are known of a file become one, since a symbol without a size ends where the
//! next one of any table begins.
//!
//! A symbol stands only for the addresses that it covers: those of its size, or, where it has none, those up to the
//! next symbol or the end of its section. Of several names for one address the one with fewer leading underscores is
//! taken (`read` rather than `__read`), then global before weak before local, then the shorter one.

use super::blocks::Blocks;
use super::coverage::{BLOCK_SYMBOLS, Coverage, Mask, Slices};
use super::image::{Image, Section, Segment, field};

pub(crate) const SHT_SYMTAB: u64 = 2;
pub(crate) const SHT_DYNSYM: u64 = 11;
const BLOCK_BYTES: u64 = (BLOCK_SYMBOLS * SYMBOL_BYTES) as u64;
const STT_NOTYPE: u8 = 0;
const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;
const STB_GLOBAL: u8 = 1;
const STB_WEAK: u8 = 2;
const SHN_UNDEF: u64 = 0;
pub(crate) const SYMBOL_BYTES: usize = 24;
const CHUNK_SYMBOLS: usize = 8 * BLOCK_SYMBOLS;
/// Functions of one file, 16 bytes each; what is more has no name.
const MAX_SYMBOLS: usize = 1 << 19;
/// Functions that may lie in one another.
const MAX_NESTING: usize = 16;
/// Longer names are cut. Those of C++ templates do become that long.
const MAX_NAME_BYTES: u64 = 16 * 1024;
const NAME_CHUNK_BYTES: usize = 256;
/// A label that begins farther below an address says nothing of it, where only some addresses are asked for.
const NEAR_BYTES: u64 = 64 * 1024;
/// What is read of two names to choose between them.
const MAX_COMPARED_BYTES: usize = 64;

/// Which of a file's two tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// All symbols; stripped files don't have it.
    All,
    /// What the loader needs.
    Dynamic,
}

/// Tables that one file's symbols may come from.
pub(crate) const MAX_TABLES: usize = 4;

/// The range of a function, and where its name stands.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    address: u64,
    /// In its table's section of names.
    name: u32,
    /// Number of the table (2 bits), how good the symbol is (4 bits), size in bytes (26 bits).
    rest: u32,
}

const SIZE_BITS: u32 = 26;
const SIZE_MASK: u32 = (1 << SIZE_BITS) - 1;
const RANK_MASK: u32 = 0xf;
const TABLE_SHIFT: u32 = SIZE_BITS + 4;
const RANK_SIZED: u32 = 8;
const RANK_TYPED: u32 = 4;

impl Symbol {
    /// `rank` has four bits: has a size, is known to be a function, binding (2 global, 1 weak, 0 local).
    fn new(address: u64, bytes: u64, name: u32, rank: u32, table: usize) -> Self {
        let size = u32::try_from(bytes).unwrap_or(u32::MAX).min(SIZE_MASK);
        Self {
            address,
            name,
            rest: (table as u32) << TABLE_SHIFT | rank << SIZE_BITS | size,
        }
    }

    fn bytes(self) -> u64 {
        u64::from(self.rest & SIZE_MASK)
    }

    fn rank(self) -> u32 {
        self.rest >> SIZE_BITS & RANK_MASK
    }

    fn binding(self) -> u32 {
        self.rank() & 3
    }

    fn table(self) -> usize {
        (self.rest >> TABLE_SHIFT) as usize
    }

    fn is_sized(self) -> bool {
        self.rank() & RANK_SIZED != 0
    }
}

/// A file's functions, ascending: 16 bytes each. Names stay where they are.
#[derive(Debug)]
pub(crate) struct SymbolTable {
    symbols: Vec<Symbol>,
    /// Sections of names: offset in their file, bytes.
    strings: Vec<(u64, u64)>,
    /// Something could not be read or made no sense.
    pub(crate) damaged: bool,
    /// There are more functions than are kept.
    pub(crate) full: bool,
}

/// A name as the file has it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) text: String,
    /// It is longer, or its end could not be read.
    pub(crate) cut: bool,
}

impl SymbolTable {
    /// Memory that a table of so many functions takes.
    pub(crate) fn bytes_of(functions: u64) -> u64 {
        functions.saturating_mul(size_of::<Symbol>() as u64)
    }

    /// Memory that the table takes.
    pub(crate) fn bytes(&self) -> u64 {
        (self.symbols.capacity() * size_of::<Symbol>()) as u64
    }

    /// Offset and length of the names of a table in its file, by the number that [`SymbolReader::add`] gave.
    pub(crate) fn strings(&self, table: usize) -> Option<(u64, u64)> {
        self.strings.get(table).copied()
    }

    /// The name of the innermost function that covers an address. `read_strings` fills a buffer from an offset of the
    /// file that a table came from.
    pub(crate) fn name(&self, address: u64, read_strings: impl Fn(usize, u64, &mut [u8]) -> bool) -> Option<Name> {
        let after = self.symbols.partition_point(|symbol| symbol.address <= address);
        let mut below = self.symbols[..after].iter().rev().take(MAX_NESTING);
        let symbol = below.find(|symbol| address - symbol.address < symbol.bytes())?;
        let (offset, bytes) = self.strings(symbol.table())?;
        let begin = offset.checked_add(u64::from(symbol.name))?;
        let left = bytes.checked_sub(u64::from(symbol.name))?;
        read_name(begin, left, |at, into| read_strings(symbol.table(), at, into))
    }
}

/// The name that begins at an offset of a file, in a section of which so many bytes are left. None where there is none.
pub(crate) fn read_name(begin: u64, left: u64, read: impl Fn(u64, &mut [u8]) -> bool) -> Option<Name> {
    let left = left.min(MAX_NAME_BYTES);
    let mut text = Vec::new();
    let mut chunk = [0; NAME_CHUNK_BYTES];
    let mut cut = true;
    while (text.len() as u64) < left {
        let count = usize::try_from(left - text.len() as u64).map_or(NAME_CHUNK_BYTES, |n| n.min(NAME_CHUNK_BYTES));
        if !read(begin.checked_add(text.len() as u64)?, &mut chunk[..count]) {
            break;
        }
        if let Some(end) = chunk[..count].iter().position(|byte| *byte == 0) {
            text.extend_from_slice(&chunk[..end]);
            cut = false;
            break;
        }
        text.extend_from_slice(&chunk[..count]);
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    (!text.is_empty()).then_some(Name { text, cut })
}

#[cfg(any(test, fuzzing))]
impl SymbolTable {
    /// Holds of every table, whatever file it came from. Gives the addresses of its functions.
    pub(crate) fn check(&self) -> Vec<u64> {
        let addresses: Vec<u64> = self.symbols.iter().map(|symbol| symbol.address).collect();
        assert!(
            addresses.is_sorted_by(|one, next| one < next),
            "two symbols for one address, or out of order"
        );
        for symbol in &self.symbols {
            assert!(symbol.bytes() > 0 && symbol.address.checked_add(symbol.bytes()).is_some());
            assert!(self.strings(symbol.table()).is_some());
        }
        addresses
    }
}

/// An entry of a table that may name code.
struct Entry {
    name: u32,
    info: u8,
    section: u64,
    address: u64,
    size: u64,
}

impl Entry {
    fn of(bytes: &[u8]) -> Option<Self> {
        let entry = Self {
            name: u32::try_from(field(bytes, 0, 4)?).ok()?,
            info: *bytes.get(4)?,
            section: field(bytes, 6, 2)?,
            address: field(bytes, 8, 8)?,
            size: field(bytes, 16, 8)?,
        };
        let may_be_code = is_typed(entry.info) || entry.info & 0xf == STT_NOTYPE;
        (may_be_code && entry.name != 0 && entry.section != SHN_UNDEF).then_some(entry)
    }
}

fn is_typed(info: u8) -> bool {
    matches!(info & 0xf, STT_FUNC | STT_GNU_IFUNC)
}

/// Of what the symbols of a block might say something: [`SymbolReader::is_wanted`] for any address.
fn mask_of(entries: &[u8], slices: Option<Slices>) -> Mask {
    let mut mask = Mask::default();
    let Some(slices) = slices else { return mask };
    let entries = entries.chunks_exact(SYMBOL_BYTES).filter_map(Entry::of);
    for entry in entries.filter(|entry| slices.hold(entry.address)) {
        slices.add(&mut mask, entry.address, entry.size.saturating_add(NEAR_BYTES));
    }
    mask
}

/// Where only what says something of some addresses is kept.
struct Around<'a> {
    /// Ascending.
    addresses: Vec<u64>,
    slices: Option<Slices>,
    wanted: Mask,
    /// What is known of the tables.
    known: &'a [Coverage],
    /// What has been found of others.
    found: Vec<Coverage>,
    read_bytes: u64,
}

/// What reading symbols around some addresses has told of the tables.
#[derive(Debug)]
pub(crate) struct Reading {
    /// Of tables that were read whole.
    pub(crate) found: Vec<Coverage>,
    /// Of all tables.
    pub(crate) read_bytes: u64,
}

/// Makes one table of several. `R` reads the files that they come from.
pub(crate) struct SymbolReader<'a, R> {
    symbols: Vec<Symbol>,
    names: Vec<Blocks<'a, R>>,
    strings: Vec<(u64, u64)>,
    code: &'a [Segment],
    around: Option<Around<'a>>,
    damaged: bool,
    /// There are more symbols than are kept, so that nobody knows where one without a size ends.
    full: bool,
}

impl<'a, R: Fn(u64, &mut [u8]) -> bool> SymbolReader<'a, R> {
    /// `code` are the segments of the program itself, since a separate debug file may not say what is code.
    pub(crate) fn new(code: &'a [Segment]) -> Self {
        Self {
            symbols: Vec::new(),
            names: Vec::new(),
            strings: Vec::new(),
            code,
            around: None,
            damaged: false,
            full: false,
        }
    }

    /// Keeps only symbols that say something of these addresses: those that cover one, and those that begin shortly
    /// before. Of tables of which is `known` what they cover only that is read.
    pub(crate) fn around(mut self, mut addresses: Vec<u64>, known: &'a [Coverage]) -> Self {
        addresses.sort_unstable();
        let slices = Slices::of(self.code.iter().filter(|s| s.executable).map(|s| (s.address, s.bytes)));
        self.around = Some(Around {
            wanted: slices.map_or([u64::MAX; 4], |slices| slices.mask(&addresses)),
            addresses,
            slices,
            known,
            found: Vec::new(),
            read_bytes: 0,
        });
        self
    }

    /// What reading around some addresses has told.
    pub(crate) fn take_reading(&mut self) -> Option<Reading> {
        let around = self.around.as_mut()?;
        Some(Reading {
            found: std::mem::take(&mut around.found),
            read_bytes: around.read_bytes,
        })
    }

    fn is_wanted(&self, address: u64, bytes: u64) -> bool {
        self.around.as_ref().is_none_or(|Around { addresses, .. }| {
            let next = addresses.get(addresses.partition_point(|wanted| *wanted < address));
            next.is_some_and(|wanted| wanted - address < bytes.saturating_add(NEAR_BYTES))
        })
    }

    /// Adds one of the tables of `image`; at most [`MAX_TABLES`] may be. Gives the table's number where it names any
    /// function.
    pub(crate) fn add(&mut self, image: &'a Image<R>, kind: Kind) -> Option<usize> {
        let wanted = match kind {
            Kind::All => SHT_SYMTAB,
            Kind::Dynamic => SHT_DYNSYM,
        };
        let sections = image.sections()?;
        let section = sections.iter().find(|section| section.kind == wanted)?;
        let strings = sections.get(section.link).filter(|strings| !strings.compressed);
        let readable = section.entry_bytes == SYMBOL_BYTES as u64 && !section.compressed;
        let Some(strings) = strings.filter(|_| readable && self.names.len() < MAX_TABLES) else {
            self.damaged = true;
            return None;
        };
        let (table, before) = (self.names.len(), self.symbols.len());
        self.names.push(Blocks::new(image, strings.offset, strings.bytes));
        self.strings.push((strings.offset, strings.bytes));
        self.read(image, section, &sections, table);
        (self.symbols.len() > before).then_some(table)
    }

    pub(crate) fn finish(mut self) -> SymbolTable {
        self.one_for_each_address();
        self.give_sizes();
        self.symbols.shrink_to_fit();
        SymbolTable {
            symbols: self.symbols,
            strings: self.strings,
            damaged: self.damaged,
            full: self.full,
        }
    }

    fn read(&mut self, image: &Image<R>, section: &Section, sections: &[Section], table: usize) {
        let all = section.bytes / SYMBOL_BYTES as u64 * SYMBOL_BYTES as u64;
        self.damaged |= all != section.bytes;
        let place = (section.offset, all);
        let slices = self.around.as_ref().and_then(|around| around.slices);
        let known = self.around.as_ref().and_then(|around| {
            let is_of = |known: &&Coverage| around.slices.is_some_and(|slices| known.is_of(slices, place));
            Some((around.known.iter().find(is_of)?, around.wanted))
        });
        let mut found = slices
            .filter(|_| known.is_none())
            .map(|slices| Coverage::new(slices, place));
        let mut chunk = vec![0; CHUNK_SYMBOLS * SYMBOL_BYTES];
        let blocks = usize::try_from(all.div_ceil(BLOCK_BYTES)).unwrap_or(usize::MAX);
        let mut block = 0;
        while block < blocks {
            let is_wanted = |block: &usize| known.is_none_or(|(known, wanted)| known.says(*block, &wanted));
            let run = (block..blocks)
                .take(CHUNK_SYMBOLS / BLOCK_SYMBOLS)
                .take_while(is_wanted)
                .count();
            if run == 0 {
                block += 1;
                continue;
            }
            let done = block as u64 * BLOCK_BYTES;
            let count = (run as u64 * BLOCK_BYTES).min(all - done) as usize;
            let read = section
                .offset
                .checked_add(done)
                .and_then(|at| image.read_offset(at, &mut chunk[..count]));
            if read.is_none() {
                self.damaged = true;
                return;
            }
            for entries in chunk[..count].chunks(BLOCK_BYTES as usize) {
                if let Some(found) = &mut found {
                    found.push(mask_of(entries, slices));
                }
                if !self.take(entries, sections, table) {
                    self.full = true;
                    return;
                }
            }
            if let Some(around) = &mut self.around {
                around.read_bytes += count as u64;
            }
            block += run;
        }
        if let Some(around) = &mut self.around {
            around.found.extend(found);
        }
    }

    /// False where there are more symbols than are kept.
    fn take(&mut self, entries: &[u8], sections: &[Section], table: usize) -> bool {
        for entry in entries.chunks_exact(SYMBOL_BYTES) {
            let Some(symbol) = self.symbol(entry, sections, table) else {
                continue;
            };
            if self.symbols.len() >= MAX_SYMBOLS {
                self.one_for_each_address();
                // Where hardly any was another's alias, looking for more of them would take ever longer.
                if self.symbols.len() > MAX_SYMBOLS / 8 * 7 {
                    return false;
                }
            }
            self.symbols.push(symbol);
        }
        true
    }

    /// None for what is no function of this file.
    fn symbol(&mut self, entry: &[u8], sections: &[Section], table: usize) -> Option<Symbol> {
        let Entry {
            name,
            info,
            section,
            address,
            size,
        } = Entry::of(entry)?;
        if !self.is_wanted(address, size) {
            return None;
        }
        let typed = is_typed(info);
        let inside = |segment: &&Segment| {
            let skipped = address.checked_sub(segment.address);
            segment.executable && skipped.is_some_and(|skipped| skipped < segment.bytes)
        };
        let segment = self.code.iter().find(inside)?;
        // On arm64 `$x` and `$d` say where code and data begin; they name nothing.
        if !typed && self.byte(table, u64::from(name)).is_none_or(|first| first == b'$') {
            return None;
        }
        let in_segment = segment.bytes - (address - segment.address);
        let section = usize::try_from(section).ok().and_then(|index| sections.get(index));
        let in_section = section.and_then(|section| {
            let skipped = address.checked_sub(section.address)?;
            section.bytes.checked_sub(skipped)
        });
        // A label at the very end of its section, as linkers make them, covers nothing.
        let room = in_section.unwrap_or(in_segment).min(in_segment);
        let binding = match info >> 4 {
            STB_GLOBAL => 2,
            STB_WEAK => 1,
            _ => 0,
        };
        let mut rank = binding;
        if size > 0 {
            rank |= RANK_SIZED;
        }
        if typed {
            rank |= RANK_TYPED;
        }
        let bytes = if size > 0 { size.min(room) } else { room };
        (bytes > 0).then(|| Symbol::new(address, bytes, name, rank, table))
    }

    fn byte(&mut self, table: usize, at: u64) -> Option<u8> {
        self.names.get_mut(table)?.byte(at)
    }

    /// Of symbols at the same address the best one stays.
    fn one_for_each_address(&mut self) {
        let mut symbols = std::mem::take(&mut self.symbols);
        symbols.sort_unstable_by_key(|symbol| (symbol.address, symbol.table(), symbol.name));
        symbols.dedup_by(|next, kept| {
            let same = next.address == kept.address;
            if same && self.is_better(*next, *kept) {
                *kept = *next;
            }
            same
        });
        self.symbols = symbols;
    }

    fn is_better(&mut self, one: Symbol, other: Symbol) -> bool {
        let certain = |symbol: Symbol| symbol.rank() & (RANK_SIZED | RANK_TYPED);
        if certain(one) != certain(other) {
            return certain(one) > certain(other);
        }
        // An alias may be of a part only.
        if one.is_sized() && one.bytes() != other.bytes() {
            return one.bytes() > other.bytes();
        }
        // A table with a global name has all others of the address too, but packed ones leave out what the loader
        // needs.
        if one.table() != other.table() && other.binding() != 0 {
            return false;
        }
        let (first, second) = (self.looks(one), self.looks(other));
        let key = |symbol: Symbol, (underscores, length): (usize, usize)| (underscores, 3 - symbol.binding(), length);
        key(one, first) < key(other, second)
    }

    /// Leading underscores, and length as far as it matters. Mangled names begin with underscores too, but those are
    /// not ours.
    fn looks(&mut self, symbol: Symbol) -> (usize, usize) {
        let mut begin = [0; MAX_COMPARED_BYTES];
        let mut length = 0;
        for byte in &mut begin {
            match self.byte(symbol.table(), u64::from(symbol.name) + length as u64) {
                Some(read) if read != 0 => *byte = read,
                _ => break,
            }
            length += 1;
        }
        let text = &begin[..length];
        let underscores = text.iter().take_while(|byte| **byte == b'_').count();
        let mangled = text.starts_with(b"_Z") || text.starts_with(b"_R");
        (if mangled { 0 } else { underscores }, length)
    }

    /// Symbols without a size end where the next one begins, and those inside another's are only labels.
    fn give_sizes(&mut self) {
        if self.full {
            self.symbols.retain(|symbol| symbol.is_sized());
            return;
        }
        let mut next = u64::MAX;
        for symbol in self.symbols.iter_mut().rev() {
            if !symbol.is_sized() {
                let bytes = symbol.bytes().min(next - symbol.address);
                *symbol = Symbol::new(symbol.address, bytes, symbol.name, symbol.rank(), symbol.table());
            }
            next = symbol.address;
        }
        let mut covered = 0;
        self.symbols.retain(|symbol| {
            if symbol.is_sized() {
                covered = covered.max(symbol.address.saturating_add(symbol.bytes()));
            }
            symbol.is_sized() || symbol.address >= covered
        });
    }
}
