//! The symbols that belong to one file: its own, those of its debug file, those that are packed in it, Go's table.

use std::cell::OnceCell;

use super::debug_file::Link;
use super::mini_debug;
use crate::elf::pclntab::{Location, Pclntab};
use crate::elf::symbols::{Kind, MAX_TABLES, Name, SHT_SYMTAB, SYMBOL_BYTES, SymbolReader, SymbolTable};
use crate::elf::{Coverage, Image, Section, Segment, code_address, decompressed_bytes, plt, read_from};
use crate::process::SafeFile;
use crate::sys::MemoryFile;

/// Fills a buffer from an offset of a file, or says that it cannot.
pub(super) type ReadAt<'a> = &'a dyn Fn(u64, &mut [u8]) -> bool;

/// What blazesym reads for lines and inlined functions, and the symbols that it reads itself.
const DEBUG_SECTIONS: [&[u8]; 12] = [
    b".debug_info",
    b".debug_abbrev",
    b".debug_line",
    b".debug_str",
    b".debug_line_str",
    b".debug_str_offsets",
    b".debug_addr",
    b".debug_ranges",
    b".debug_rnglists",
    b".debug_aranges",
    b".symtab",
    b".strtab",
];

/// Copied at a time.
const COPY_BYTES: usize = 64 * 1024;
const MAX_GO_NAME_BYTES: usize = 4096;
/// Symbols from which on reading those around some addresses pays, and up to which it is done.
const MANY_SYMBOLS: std::ops::Range<u64> = 32_768..1 << 20;

/// More than that read of a file's tables for some addresses is dear: half a millisecond.
const DEAR_BYTES: u64 = 1 << 20;

/// What can be said of a file's addresses without its debug information.
pub(super) struct FileSymbols {
    segments: Vec<Segment>,
    table: SymbolTable,
    /// Where the names of each of the table's parts stand.
    names: Vec<Names>,
    go: Option<Location>,
    /// What finds the functions that Go inlined, once it was looked for.
    go_trees: OnceCell<Option<u64>>,
    /// Sections of entries of the procedure linkage table: for most addresses without a symbol nothing more is read.
    plts: Vec<Section>,
    debug_file: Option<SafeFile>,
    /// From packed symbols.
    pub(super) unpacked: bool,
    /// Something was there but could not be read.
    pub(super) damaged: bool,
    /// It has more functions than are kept.
    pub(super) full: bool,
}

/// What reading some of a large file's symbols has told of it.
pub(super) struct Glance {
    /// What a table of all of them takes at most.
    pub(super) all_bytes: u64,
    /// Much of the file's tables had to be read for it.
    pub(super) is_dear: bool,
    /// Of tables that were read whole.
    pub(super) found: Vec<Coverage>,
}

enum Names {
    InFile,
    InDebugFile,
    Here(Box<[u8]>),
}

/// A function, and where in it an address is, as Go's table says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GoPlace {
    pub(super) function: String,
    pub(super) line: Option<(String, u32)>,
}

/// The names of a part of a table, in the bytes of the file that it came from; empty where they are not all there.
fn strings<'b>(table: &SymbolTable, part: usize, bytes: &'b [u8]) -> &'b [u8] {
    let range = || {
        let (offset, count) = table.strings(part)?;
        let begin = usize::try_from(offset).ok()?;
        bytes.get(begin..begin.checked_add(usize::try_from(count).ok()?)?)
    };
    range().unwrap_or_default()
}

impl FileSymbols {
    /// Reads all tables of a file. `open_debug_file` opens the debug file that a link leads to. None where it is no ELF
    /// file of a known machine.
    pub(super) fn read(file: ReadAt<'_>, open_debug_file: impl FnOnce(&Link) -> Option<SafeFile>) -> Option<Self> {
        let image = Image::open(file)?;
        let segments = image.segments.clone();
        let mut damaged = image.claims_sections() && image.sections().is_none();
        let own = image.section_of_kind(SHT_SYMTAB).is_some();
        let debug_file = if own && image.section(&[b".debug_line"]).is_some() {
            None
        } else {
            open_debug_file(&Link::of(&image))
        };
        let read_debug_file = |offset: u64, into: &mut [u8]| {
            let file = debug_file.as_ref();
            file.is_some_and(|file| file.read_at(offset, into))
        };
        let debug = Image::open(&read_debug_file as ReadAt<'_>);
        let unpacked = match mini_debug::unpack(&image).filter(|_| !own && debug.is_none()) {
            Some(Ok(unpacked)) => Some(unpacked),
            Some(Err(error)) => {
                tracing::debug!(error, "packed symbols are not used");
                damaged = true;
                None
            }
            None => None,
        };
        let read_unpacked = |offset: u64, into: &mut [u8]| {
            let bytes = unpacked.as_deref();
            bytes.is_some_and(|bytes| read_from(bytes, offset, into))
        };
        let packed = Image::open(&read_unpacked as ReadAt<'_>);
        damaged |= unpacked.is_some() && packed.is_none();

        let mut reader = SymbolReader::new(&segments);
        reader.add(&image, Kind::All);
        let in_debug_file = debug.as_ref().and_then(|debug| reader.add(debug, Kind::All));
        let in_packed = packed.as_ref().and_then(|packed| reader.add(packed, Kind::All));
        reader.add(&image, Kind::Dynamic);
        let table = reader.finish();
        let full = table.full;
        damaged |= table.damaged;
        let names_of = |part: usize| match &unpacked {
            Some(unpacked) if in_packed == Some(part) => Names::Here(strings(&table, part, unpacked).into()),
            _ if in_debug_file == Some(part) => Names::InDebugFile,
            _ => Names::InFile,
        };
        let names = (0..MAX_TABLES).map(names_of).collect();
        let go = Location::find(&image);
        Some(Self {
            names,
            go,
            go_trees: OnceCell::new(),
            plts: plt::sections(&image),
            table,
            unpacked: in_packed.is_some(),
            damaged,
            full,
            debug_file,
            segments,
        })
    }

    /// Reads of a large file's own symbols those that say something of some of its offsets: nothing is sorted that
    /// nobody asked for. None where that does not pay, or others may know more. Where it is `known` which parts of the
    /// file's tables say what, the others are not read.
    pub(super) fn read_around(file: ReadAt<'_>, offsets: &[u64], known: &[Coverage]) -> Option<(Self, Glance)> {
        let image = Image::open(file)?;
        let all = image.section_of_kind(SHT_SYMTAB)?.bytes / SYMBOL_BYTES as u64;
        if !MANY_SYMBOLS.contains(&all) {
            return None;
        }
        let segments = image.segments.clone();
        let addresses = offsets.iter().filter_map(|offset| code_address(&segments, *offset));
        let mut reader = SymbolReader::new(&segments).around(addresses.collect(), known);
        reader.add(&image, Kind::All);
        reader.add(&image, Kind::Dynamic);
        let reading = reader.take_reading();
        let table = reader.finish();
        let symbols = Self {
            names: (0..MAX_TABLES).map(|_| Names::InFile).collect(),
            go: Location::find(&image),
            go_trees: OnceCell::new(),
            plts: plt::sections(&image),
            unpacked: false,
            damaged: table.damaged,
            full: table.full,
            table,
            debug_file: None,
            segments,
        };
        let (found, read_bytes) = reading.map_or((Vec::new(), 0), |reading| (reading.found, reading.read_bytes));
        let glance = Glance {
            all_bytes: SymbolTable::bytes_of(all),
            is_dear: read_bytes > DEAR_BYTES,
            found,
        };
        Some((symbols, glance))
    }

    /// Memory that it takes.
    pub(super) fn bytes(&self) -> u64 {
        let names = self.names.iter().map(|names| match names {
            Names::Here(names) => names.len() as u64,
            _ => 0,
        });
        self.table.bytes() + names.sum::<u64>()
    }

    pub(super) fn is_go(&self) -> bool {
        self.go.is_some()
    }

    pub(super) fn debug_file(&self) -> Option<&SafeFile> {
        self.debug_file.as_ref()
    }

    /// The address (SVMA) of an offset of the file that is mapped as code.
    pub(super) fn address(&self, offset: u64) -> Option<u64> {
        code_address(&self.segments, offset)
    }

    /// The symbol that covers an address, as the file has it.
    pub(super) fn name(&self, address: u64, file: ReadAt<'_>) -> Option<Name> {
        self.table.name(address, |part, offset, into| {
            match (self.names.get(part), &self.debug_file) {
                (Some(Names::InFile), _) => file(offset, into),
                (Some(Names::InDebugFile), Some(debug)) => debug.read_at(offset, into),
                (Some(Names::Here(names)), _) => {
                    let begin = self.table.strings(part).map(|(begin, _)| begin);
                    let offset = begin.and_then(|begin| offset.checked_sub(begin));
                    offset.is_some_and(|offset| read_from(names, offset, into))
                }
                _ => false,
            }
        })
    }

    /// The symbol that an entry of the file's procedure linkage table leads to, where it is one.
    pub(super) fn plt_name(&self, address: u64, file: ReadAt<'_>) -> Option<Name> {
        let section = plt::section_at(&self.plts, address)?;
        match plt::target(&Image::open(file)?, section, address)? {
            plt::Target::Function(name) => Some(name),
            plt::Target::Resolver(address) => self.name(address, file),
        }
    }

    /// What Go's table says of addresses: the functions that were inlined there, innermost first, and the one whose
    /// code it is. Nothing where it says nothing, and for other programs.
    pub(super) fn go_places(&self, addresses: &[Option<u64>], file: ReadAt<'_>) -> Vec<Vec<GoPlace>> {
        let (Some(location), Some(image)) = (self.go, Image::open(file)) else {
            return Vec::new();
        };
        let mut table = Pclntab::new(&image, location);
        let mut bytes = vec![0; MAX_GO_NAME_BYTES];
        let mut places = |address: u64| {
            let function = table.find(address)?;
            let trees = || *self.go_trees.get_or_init(|| location.trees(&image));
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            if let Some(calls) = table.calls(&function, address, trees) {
                let mut place = |call| {
                    let function_name = text(table.called(call, &mut bytes)?);
                    let line = table.line(&function, call, &mut bytes);
                    let line = line.map(|(file, line)| (text(file), line));
                    let place = GoPlace {
                        function: function_name,
                        line,
                    };
                    (!place.function.is_empty()).then_some(place)
                };
                return calls.into_iter().map(&mut place).collect();
            }
            // Its line there is one of a function that nobody can name.
            let name = text(table.name(&function, &mut bytes)?);
            (!name.is_empty()).then(|| {
                vec![GoPlace {
                    function: name,
                    line: None,
                }]
            })
        };
        let places = addresses
            .iter()
            .map(|address| address.and_then(&mut places).unwrap_or_default());
        places.collect()
    }
}

#[cfg(any(test, fuzzing))]
impl FileSymbols {
    /// Holds of every file. Gives the addresses of its functions.
    pub(super) fn check(&self) -> Vec<u64> {
        self.table.check()
    }
}

/// Whether blazesym may read a file's line numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinesFound {
    None,
    /// There are some, but they would take too much memory.
    TooLarge,
    /// Bytes of the debug information, unpacked.
    Bytes(u64),
}

/// What of a file of `bytes` bytes blazesym needs for its lines, at the places where the file has it: a file of its
/// own, since blazesym maps what it reads, and who truncates a mapped file ends whoever looks at it. None where the
/// file can't be read to its end.
pub(super) fn copy_for_lines(file: ReadAt<'_>, bytes: u64) -> Option<MemoryFile> {
    let image = Image::open(file)?;
    let mut copy = MemoryFile::new(c"lines", bytes)
        .inspect_err(|error| tracing::debug!(%error, "no memory for line numbers"))
        .ok()?;
    let sections: Vec<Section> = DEBUG_SECTIONS
        .iter()
        .filter_map(|name| image.section(&[name]))
        .collect();
    let headers = image.headers_for(&sections)?;
    let sections = sections.iter().map(|section| (section.offset, section.bytes));
    let parts: Vec<(u64, u64)> = headers.parts.into_iter().chain(sections).collect();
    // Sections that overlap would be counted, and copied, more than once.
    if parts.iter().fold(0_u64, |sum, (_, length)| sum.saturating_add(*length)) > bytes {
        return None;
    }
    let mut chunk = vec![0; COPY_BYTES];
    for (offset, length) in parts {
        let end = offset.checked_add(length).filter(|end| *end <= bytes)?;
        let mut at = offset;
        while at < end {
            let count = usize::try_from(end - at).map_or(COPY_BYTES, |left| left.min(COPY_BYTES));
            let part = &mut chunk[..count];
            if !file(at, part) || copy.write_at(part, at).is_err() {
                return None;
            }
            at += count as u64;
        }
    }
    let end = headers.sections_offset.checked_add(headers.sections.len() as u64)?;
    if end > bytes || copy.write_at(&headers.sections, headers.sections_offset).is_err() {
        return None;
    }
    Some(copy)
}

/// Looks at a file of `bytes` bytes: with all compressed sections unpacked it must be at most `limits.0` large, and the
/// debug information in it at most `limits.1`.
pub(super) fn lines_in(file: ReadAt<'_>, bytes: u64, limits: (u64, u64)) -> LinesFound {
    let Some(image) = Image::open(file).filter(|image| image.section(&[b".debug_line"]).is_some()) else {
        return LinesFound::None;
    };
    let unpacked = limits
        .0
        .checked_sub(bytes)
        .and_then(|left| decompressed_bytes(&image, left.min(limits.1)));
    let plain = DEBUG_SECTIONS.iter().filter_map(|name| image.section(&[name]));
    let plain = plain.filter(|section| !section.compressed).map(|section| section.bytes);
    match unpacked.map(|unpacked| plain.fold(unpacked, u64::saturating_add)) {
        Some(debug_bytes) if debug_bytes <= limits.1 => LinesFound::Bytes(debug_bytes),
        _ => LinesFound::TooLarge,
    }
}
