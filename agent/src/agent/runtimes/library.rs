//! A file that has a runtime in it, where a program has it mapped.

use std::sync::Arc;

use crate::elf::{Image, code_address, dynamic_symbols};
use crate::frames::ProgramKey;
use crate::process::{Module, Table};

/// A mapped file, and what is added to its own addresses in the process.
pub(super) struct Library {
    pub(super) module: Arc<Module>,
    pub(super) bias: u64,
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
        })
    }

    /// The last part of its path.
    pub(super) fn base_name(module: &Module) -> &str {
        module.path.rsplit('/').next().unwrap_or_default()
    }

    /// Where these of its dynamic symbols are in the process.
    pub(super) fn symbols(&self, names: &[&'static str]) -> Vec<(&'static str, u64)> {
        let found = symbols_in(&self.module, names);
        let known = names.iter().zip(found);
        known
            .filter_map(|(name, address)| Some((*name, address?.wrapping_add(self.bias))))
            .collect()
    }
}

/// A file's own addresses of dynamic symbols.
pub(super) fn symbols_in(module: &Module, names: &[&str]) -> Vec<Option<u64>> {
    match Image::open(|offset, into: &mut [u8]| module.read_at(offset, into)) {
        Some(image) => dynamic_symbols(&image, names),
        None => vec![None; names.len()],
    }
}

/// The address that goes with a name.
pub(super) fn address_of(symbols: &[(&'static str, u64)], name: &str) -> Option<u64> {
    let found = symbols.iter().find(|(known, _)| *known == name);
    found.map(|(_, address)| *address)
}
