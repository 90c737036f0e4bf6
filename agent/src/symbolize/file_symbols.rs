//! The symbols that belong to one file: its own, those of its debug file, those that are packed in it, Go's table.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::debug_file::Link;
use super::mini_debug;
use crate::elf::pclntab::{Location, Pclntab};
use crate::elf::symbols::{Kind, Name, SymbolTable};
use crate::elf::{Image, Segment, code_address, decompressed_bytes};

/// Fills a buffer from an offset of a file, or says that it cannot.
pub(super) type ReadAt<'a> = &'a dyn Fn(u64, &mut [u8]) -> bool;

const MAX_GO_NAME_BYTES: usize = 4096;

/// What can be said of a file's addresses without the file's debug information.
pub(super) struct FileSymbols {
    segments: Vec<Segment>,
    /// The first one that covers an address names it.
    tables: Vec<(SymbolTable, Names)>,
    go: Option<Location>,
    debug_file: Option<File>,
    /// From packed symbols.
    pub(super) unpacked: bool,
    /// Something was there but could not be read.
    pub(super) damaged: bool,
}

/// Where the names of a table stand.
enum Names {
    InFile,
    InDebugFile,
    Here(Box<[u8]>),
}

/// What Go's table says of an address.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GoPlace {
    pub(super) function: String,
    pub(super) line: Option<(String, u32)>,
}

/// Fills a buffer from an offset of what lies in memory, or says that it cannot.
pub(super) fn read_from(bytes: &[u8], offset: u64, into: &mut [u8]) -> bool {
    let part = usize::try_from(offset)
        .ok()
        .and_then(|begin| bytes.get(begin..)?.get(..into.len()));
    part.is_some_and(|part| {
        into.copy_from_slice(part);
        true
    })
}

impl FileSymbols {
    /// Reads all tables of a file. `debug_file` opens the debug file that a link leads to. None where it is no ELF file of a
    /// known machine.
    pub(super) fn read(file: ReadAt<'_>, debug_file: impl FnOnce(&Link) -> Option<File>) -> Option<Self> {
        let image = Image::open(file)?;
        let mut symbols = Self {
            segments: image.segments.clone(),
            tables: Vec::new(),
            go: Location::find(&image),
            debug_file: None,
            unpacked: false,
            damaged: image.claims_sections() && image.sections().is_none(),
        };
        symbols.add(&image, Kind::All, Names::InFile);
        if symbols.tables.is_empty() || image.section(&[b".debug_line"]).is_none() {
            symbols.debug_file = debug_file(&Link::of(&image));
        }
        if let Some(file) = symbols.debug_file.as_ref().and_then(|file| file.try_clone().ok())
            && let Some(debug) = Image::open(|offset, into: &mut [u8]| file.read_exact_at(into, offset).is_ok())
        {
            symbols.add(&debug, Kind::All, Names::InDebugFile);
        }
        if symbols.tables.is_empty() {
            symbols.add_packed(&image);
        }
        symbols.add(&image, Kind::Dynamic, Names::InFile);
        Some(symbols)
    }

    fn add<R: Fn(u64, &mut [u8]) -> bool>(&mut self, image: &Image<R>, kind: Kind, names: Names) {
        if let Some(table) = SymbolTable::read(image, kind, &self.segments) {
            self.damaged |= table.damaged;
            if !table.is_empty() {
                self.tables.push((table, names));
            }
        }
    }

    fn add_packed<R: Fn(u64, &mut [u8]) -> bool>(&mut self, image: &Image<R>) {
        let unpacked = match mini_debug::unpack(image) {
            None => return,
            Some(Ok(unpacked)) => unpacked,
            Some(Err(error)) => {
                tracing::debug!(error, "packed symbols are not used");
                self.damaged = true;
                return;
            }
        };
        let table = Image::open(|offset, into: &mut [u8]| read_from(&unpacked, offset, into))
            .and_then(|image| SymbolTable::read(&image, Kind::All, &self.segments));
        let Some(table) = table else {
            self.damaged = true;
            return;
        };
        let (offset, bytes) = table.strings();
        let end = offset.saturating_add(bytes);
        let range = usize::try_from(offset).unwrap_or(usize::MAX)..usize::try_from(end).unwrap_or(usize::MAX);
        self.damaged |= table.damaged;
        if let Some(names) = unpacked.get(range) {
            self.unpacked = true;
            self.tables.push((table, Names::Here(names.into())));
        }
    }

    /// Memory that it takes.
    pub(super) fn bytes(&self) -> u64 {
        let of = |(table, names): &(SymbolTable, Names)| match names {
            Names::Here(names) => table.bytes() + names.len() as u64,
            _ => table.bytes(),
        };
        self.tables.iter().map(of).sum()
    }

    pub(super) fn is_go(&self) -> bool {
        self.go.is_some()
    }

    pub(super) fn debug_file(&self) -> Option<&File> {
        self.debug_file.as_ref()
    }

    /// The address (SVMA) of an offset of the file that is mapped as code.
    pub(super) fn address(&self, offset: u64) -> Option<u64> {
        code_address(&self.segments, offset)
    }

    /// The symbol that covers an address, as the file has it.
    pub(super) fn name(&self, address: u64, file: ReadAt<'_>) -> Option<Name> {
        self.tables
            .iter()
            .find_map(|(table, names)| match (names, &self.debug_file) {
                (Names::InFile, _) => table.name(address, file),
                (Names::InDebugFile, Some(debug)) => {
                    table.name(address, |offset, into| debug.read_exact_at(into, offset).is_ok())
                }
                (Names::InDebugFile, None) => None,
                (Names::Here(bytes), _) => table.name(address, |offset, into| {
                    let offset = offset.checked_sub(table.strings().0);
                    offset.is_some_and(|offset| read_from(bytes, offset, into))
                }),
            })
    }

    /// What Go's table says of addresses; nothing for other programs.
    pub(super) fn go_places(&self, addresses: &[Option<u64>], file: ReadAt<'_>) -> Vec<Option<GoPlace>> {
        let (Some(location), Some(image)) = (self.go, Image::open(file)) else {
            return Vec::new();
        };
        let mut table = Pclntab::new(&image, location);
        let mut bytes = vec![0; MAX_GO_NAME_BYTES];
        let mut place = |address: u64| {
            let function = table.find(address)?;
            let name = String::from_utf8_lossy(table.name(&function, &mut bytes)?).into_owned();
            let line = table
                .line(&function, address, &mut bytes)
                .map(|(file, line)| (String::from_utf8_lossy(file).into_owned(), line));
            (!name.is_empty()).then_some(GoPlace { function: name, line })
        };
        addresses.iter().map(|address| place((*address)?)).collect()
    }
}

/// True where blazesym may read a file's line numbers: it has some, and with all compressed sections unpacked it is not
/// larger than `limit`.
pub(super) fn has_lines_within(file: ReadAt<'_>, bytes: u64, limit: u64) -> bool {
    let within = || {
        let image = Image::open(file)?;
        image.section(&[b".debug_line"])?;
        decompressed_bytes(&image, limit.checked_sub(bytes)?)
    };
    within().is_some()
}
