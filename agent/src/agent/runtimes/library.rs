//! A file that has a runtime in it, where a program has it mapped.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::elf::{Image, code_address, dynamic_symbols};
use crate::frames::ProgramKey;
use crate::hash::FastMap;
use crate::process::{Module, Table};
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
        let mapped = table.code_ranges(key).find(|range| range.source == module.id)?;
        let address = code_address(&image.segments, mapped.offset)?;
        Some(Self {
            module: Arc::clone(module),
            bias: mapped.start.wrapping_sub(address),
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

/// What a file says of a runtime in it, read once however many programs map it.
#[derive(Debug, Default)]
pub(super) struct KnownFile {
    /// The file's own addresses of dynamic symbols.
    symbols: Vec<(&'static str, u64)>,
    /// The functions, or parts of them, that addresses lie in.
    functions: Mutex<FastMap<u64, Option<Range<u64>>>>,
}

/// Functions that are remembered of a file: those that its interpreter's loop jumps to.
const MAX_LIMITS: usize = 1024;

impl KnownFile {
    pub(super) fn read(module: &Module, names: &[&'static str]) -> Self {
        let image = Image::open(|offset, into: &mut [u8]| module.read_at(offset, into));
        let found = image.map_or_else(Vec::new, |image| dynamic_symbols(&image, names));
        let named = names.iter().zip(found);
        Self {
            symbols: named.filter_map(|(name, address)| Some((*name, address?))).collect(),
            functions: Mutex::default(),
        }
    }

    /// A symbol's address where the file lies with this bias.
    pub(super) fn address_of(&self, name: &str, bias: u64) -> Option<u64> {
        let found = self.symbols.iter().find(|(known, _)| *known == name);
        found.map(|(_, address)| address.wrapping_add(bias))
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
