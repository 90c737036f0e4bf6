//! A file that has a runtime in it, where a program has it mapped.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::elf::{Image, Segment, code_address, dynamic_symbols, static_symbols};
use crate::frames::{ProgramKey, SourceId};
use crate::hash::FastMap;
use crate::process::{CodeRange, Module, Table};
use crate::unwind;

/// A mapped file, and what is added to its own addresses in the process.
pub(super) struct Library {
    pub(super) module: Arc<Module>,
    pub(super) bias: u64,
    /// Memory of the same program that has code which was made while it runs.
    pub(super) made: Vec<Range<u64>>,
}

impl Library {
    /// One of a program's files, where its code is mapped.
    pub(super) fn of(key: ProgramKey, module: &Arc<Module>, table: &Table) -> Option<Self> {
        let image = Image::open(|offset, into: &mut [u8]| module.read_at(offset, into))?;
        let mapped = table.code_ranges(key).filter(|range| range.source == module.id);
        Some(Self {
            module: Arc::clone(module),
            bias: bias_of(&image.segments, mapped)?,
            made: Self::made(key, table),
        })
    }

    /// A program's memory with code that was made while it runs.
    pub(super) fn made(key: ProgramKey, table: &Table) -> Vec<Range<u64>> {
        let made = table.code_ranges(key).filter(|range| table.is_made(key, range.source));
        made.map(|range| range.start..range.end).collect()
    }

    /// The last part of its path.
    pub(super) fn base_name(module: &Module) -> &str {
        module.path.rsplit('/').next().unwrap_or_default()
    }
}

/// What is added to a file's own addresses, by where its code is mapped. A program may have a part of it mapped once
/// more, perhaps before all of it: V8 has its own code beside what it makes, so that calls between them are short. What
/// most of the code agrees on counts.
fn bias_of(segments: &[Segment], mapped: impl Iterator<Item = CodeRange>) -> Option<u64> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for range in mapped {
        let Some(address) = code_address(segments, range.offset) else {
            continue;
        };
        let bias = range.start.wrapping_sub(address);
        let bytes = range.end.saturating_sub(range.start);
        match found.iter_mut().find(|(known, _)| *known == bias) {
            Some((_, sum)) => *sum = sum.saturating_add(bytes),
            None => found.push((bias, bytes)),
        }
    }
    // Of equals the first.
    let most = found.into_iter().rev().max_by_key(|(_, bytes)| *bytes);
    most.map(|(bias, _)| bias)
}

/// What a file says of a runtime in it, read once however many programs map it.
#[derive(Debug, Default)]
pub(super) struct KnownFile {
    /// The file's own addresses of symbols.
    symbols: Vec<(&'static str, u64)>,
    /// The functions, or parts of them, that addresses lie in.
    functions: Mutex<FastMap<u64, Option<Range<u64>>>>,
    /// The file's own addresses of what has no symbol, and was found in a process.
    learned: Mutex<Vec<(&'static str, u64)>>,
    /// The last function whose calls were looked for, and where they are.
    calls: Mutex<Option<(u64, Vec<u64>)>>,
    /// The layout of its runtime was checked in a process.
    is_checked: AtomicBool,
}

/// Files that have a runtime in them, or may have had.
pub(super) type KnownFiles = FastMap<SourceId, Arc<KnownFile>>;

/// Which of a file's tables of symbols are looked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SymbolTables {
    /// What it exports. Of files that have hardly anything to do with the language.
    Exported,
    /// And where it does not export the runtime, the table of all symbols: a program may have the runtime in itself.
    All,
}

/// The first of these files that has the symbol. Of each that was not met before, all of `symbols` are looked for.
pub(super) fn having<'a>(
    symbol: &str,
    symbols: &[&'static str],
    modules: impl Iterator<Item = &'a Arc<Module>>,
    tables: impl Fn(&Module) -> SymbolTables,
    known: &mut KnownFiles,
) -> Option<(&'a Arc<Module>, Arc<KnownFile>)> {
    for module in modules {
        let file = known.entry(module.id);
        let file = file.or_insert_with(|| Arc::new(KnownFile::read(module, symbol, symbols, tables(module))));
        if file.address_of(symbol, 0).is_some() {
            return Some((module, Arc::clone(file)));
        }
    }
    None
}

/// Calls of a function that are told apart.
const MAX_CALLS: usize = 64;
/// Code of a file that is looked through for them, and so much of it at a time.
const MAX_CODE_BYTES: u64 = 1 << 26;
const CODE_PIECE_BYTES: usize = 1 << 16;

/// Addresses of a function's calls, both as the file has them.
fn find_calls(module: &Module, function: u64) -> Vec<u64> {
    const CALL_BYTES: usize = 5;
    let mut found = Vec::new();
    let image = Image::open(|offset, into: &mut [u8]| module.read_at(offset, into));
    let segments = image.map_or_else(Vec::new, |image| image.segments);
    let Some(segment) = segments.iter().find(|segment| segment.executable) else {
        return found;
    };
    let mut piece = vec![0; CODE_PIECE_BYTES];
    let bytes = segment.bytes.min(MAX_CODE_BYTES);
    let mut begin = 0;
    while begin + (CALL_BYTES as u64) < bytes && found.len() < MAX_CALLS {
        let length = CODE_PIECE_BYTES.min(usize::try_from(bytes - begin).unwrap_or(CODE_PIECE_BYTES));
        if !module.read_at(segment.offset + begin, &mut piece[..length]) {
            break;
        }
        for (at, code) in piece[..length].windows(CALL_BYTES).enumerate() {
            if let [0xe8, a, b, c, d] = *code {
                let address = segment.address.wrapping_add(begin + at as u64);
                let distance = i64::from(i32::from_le_bytes([a, b, c, d]));
                let next = address.wrapping_add(CALL_BYTES as u64);
                if next.wrapping_add_signed(distance) == function && found.len() < MAX_CALLS {
                    found.push(address);
                }
            }
        }
        // One that lies across two pieces is looked at with the second.
        begin += (length - (CALL_BYTES - 1)) as u64;
    }
    found
}

/// Functions that are remembered of a file: those that its interpreter's loop jumps to.
const MAX_LIMITS: usize = 1024;

impl KnownFile {
    /// `runtime` is the one of the names that tells whether the runtime is there.
    pub(super) fn read(module: &Module, runtime: &str, names: &[&'static str], tables: SymbolTables) -> Self {
        let image = Image::open(|offset, into: &mut [u8]| module.read_at(offset, into));
        let found = image.map_or_else(Vec::new, |image| {
            let exported = dynamic_symbols(&image, names);
            let has_runtime = names
                .iter()
                .zip(&exported)
                .any(|(name, found)| *name == runtime && found.is_some());
            if has_runtime || tables == SymbolTables::Exported {
                return exported;
            }
            let all = static_symbols(&image, names);
            exported.into_iter().zip(all).map(|(own, all)| own.or(all)).collect()
        });
        let named = names.iter().zip(found);
        Self {
            symbols: named.filter_map(|(name, address)| Some((*name, address?))).collect(),
            ..Self::default()
        }
    }

    /// Whether the layout of its runtime was checked in a process: a process that has not begun then needs no look.
    pub(super) fn is_checked(&self) -> bool {
        self.is_checked.load(Ordering::Relaxed)
    }

    pub(super) fn set_checked(&self) {
        self.is_checked.store(true, Ordering::Relaxed);
    }

    /// A symbol's address where the file lies with this bias.
    pub(super) fn address_of(&self, name: &str, bias: u64) -> Option<u64> {
        let of_name = |(known, _): &&(&str, u64)| *known == name;
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let found = self.symbols.iter().find(of_name);
        let found = found.or_else(|| learned.iter().find(of_name));
        found.map(|(_, address)| address.wrapping_add(bias))
    }

    /// Remembers the file's own address of what has no symbol.
    pub(super) fn learn(&self, name: &'static str, address: u64) {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.retain(|(known, _)| *known != name);
        learned.push((name, address));
    }

    /// Where the file's code is, and its data that is written to, with this bias.
    pub(super) fn segments(&self, module: &Module, bias: u64) -> (Option<Range<u64>>, Vec<Range<u64>>) {
        let Some(image) = Image::open(|offset, into: &mut [u8]| module.read_at(offset, into)) else {
            return (None, Vec::new());
        };
        let range = |segment: &Segment| {
            let start = segment.address.wrapping_add(bias);
            start..start.saturating_add(segment.bytes)
        };
        let code = image.segments.iter().find(|segment| segment.executable).map(range);
        let data = image.segments.iter().filter(|segment| segment.writable);
        (code, data.map(range).collect())
    }

    /// Addresses of the calls of a function, of those that say where it is relative to themselves.
    pub(super) fn calls(&self, module: &Module, function: u64, bias: u64) -> Vec<u64> {
        let own = function.wrapping_sub(bias);
        let mut known = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match &*known {
            Some((of, calls)) if *of == own => calls.clone(),
            _ => find_calls(module, own),
        };
        *known = Some((own, found.clone()));
        found.into_iter().map(|address| address.wrapping_add(bias)).collect()
    }

    /// The limits of the function that an address lies in, both where the file lies with this bias.
    pub(super) fn limits(&self, module: &Module, address: u64, bias: u64) -> Option<Range<u64>> {
        let own = address.wrapping_sub(bias);
        let mut known = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_LIMITS {
            known.clear();
        }
        let read = || unwind::function_limits(|offset: u64, into: &mut [u8]| module.read_at(offset, into), own);
        let limits = known.entry(own).or_insert_with(read).clone()?;
        Some(limits.start.wrapping_add(bias)..limits.end.wrapping_add(bias))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Debian's libnode.so has its code: one segment, of which V8 maps its own part again below it.
    #[test]
    fn a_part_that_is_mapped_once_more_does_not_say_where_a_file_lies() {
        const CODE: u64 = 0x9b_2000;
        const BYTES: u64 = 0x215_f000;
        const PART: u64 = 0xe4_3000;
        const LOW: u64 = 0x7f96_0f60_0000;
        const BIAS: u64 = 0x7f96_6e80_0000;
        let segment = |address: u64, executable| Segment {
            offset: address,
            bytes: if executable { BYTES } else { CODE },
            address,
            executable,
            writable: false,
        };
        let segments = [segment(0, false), segment(CODE, true)];
        let range = |start: u64, offset: u64, bytes: u64| CodeRange {
            start,
            end: start + bytes,
            source: SourceId::UNKNOWN,
            offset,
        };
        let of = |ranges: &[CodeRange]| bias_of(&segments, ranges.iter().copied());
        let whole = range(BIAS + CODE, CODE, BYTES);
        let again = range(LOW, PART, 0x19_2000);
        assert_eq!(of(&[whole]), Some(BIAS));
        assert_eq!(of(&[again, whole]), Some(BIAS));
        assert_eq!(of(&[whole, again]), Some(BIAS));
        // In pieces, each of which is shorter than what was mapped once more.
        let pieces = (0..BYTES).step_by(0x10_0000);
        let mut ranges: Vec<CodeRange> = vec![again];
        ranges.extend(pieces.map(|at| range(BIAS + CODE + at, CODE + at, 0x10_0000.min(BYTES - at))));
        assert_eq!(of(&ranges), Some(BIAS));
        // Of equals the first; what is no code of the file says nothing.
        assert_eq!(of(&[whole, range(LOW, CODE, BYTES)]), Some(BIAS));
        assert_eq!(of(&[range(LOW, 0, CODE), whole]), Some(BIAS));
        assert_eq!(of(&[range(LOW, 0, CODE)]), None);
        assert_eq!(of(&[]), None);
    }
}
