//! What a namer is told when it starts, and what it did.

use std::collections::HashMap;

use super::kernel_symbols::BpfFunctions;
use crate::cpu_budget::{CpuBudget, NeededBy};
use crate::elf::ReadTurn;

/// Bounds of what the namer remembers.
#[derive(Debug, Clone)]
pub struct NamerConfig {
    /// Code locations whose names are remembered.
    pub cached_locations: usize,
    /// Files whose symbols may be held at the same time; each may also hold its debug file open.
    pub open_symbol_tables: usize,
    /// Memory for their symbols. One file's alone may take more, but is then dropped at once.
    pub symbol_table_bytes: u64,
    /// Those of them that blazesym may hold parsed for their lines.
    pub open_line_tables: usize,
    /// Debug information of those in all, unpacked; that of a file with more is not read. blazesym's memory is up to
    /// twice that.
    pub line_table_bytes: u64,
    /// Files up to this size also give lines and inlined functions; 0 for none. What blazesym needs for that is
    /// several times the size of a file's debug information.
    pub lines_limit_bytes: u64,
    /// Memory for what is known of perf maps; lines beyond it are looked through each time.
    pub perf_map_bytes: u64,
    /// Shared with whoever else reads large files.
    pub read_turn: ReadTurn,
    /// At which files are read.
    pub cpu_budget: CpuBudget,
    /// Who needs that.
    pub needed_by: NeededBy,
    /// Tells where functions of BPF programs end, which /proc/kallsyms does not.
    pub bpf_functions: BpfFunctions,
}

impl NamerConfig {
    /// With what is right where all of the agent may take `bytes` of memory.
    pub fn within(bytes: u64) -> Self {
        Self {
            symbol_table_bytes: bytes / 32 * 3,
            line_table_bytes: bytes / 16,
            perf_map_bytes: bytes / 8,
            ..Self::default()
        }
    }

    /// For a second namer beside one of this: of what is about to be given up it holds a few files for a moment.
    pub fn ahead(&self) -> Self {
        Self {
            open_symbol_tables: 4,
            symbol_table_bytes: self.symbol_table_bytes / 4,
            open_line_tables: 1,
            line_table_bytes: self.line_table_bytes / 4,
            perf_map_bytes: self.perf_map_bytes / 4,
            needed_by: NeededBy::Files,
            ..self.clone()
        }
    }
}

impl Default for NamerConfig {
    fn default() -> Self {
        Self {
            cached_locations: 32_768,
            open_symbol_tables: 128,
            symbol_table_bytes: 6 * 1024 * 1024,
            open_line_tables: 32,
            line_table_bytes: 4 * 1024 * 1024,
            lines_limit_bytes: 16 * 1024 * 1024,
            perf_map_bytes: 8 * 1024 * 1024,
            read_turn: ReadTurn::default(),
            cpu_budget: CpuBudget::default(),
            needed_by: NeededBy::Nobody,
            bpf_functions: HashMap::new,
        }
    }
}

/// What is given up while memory is short, in this order; each includes those before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum DegradationLevel {
    /// Everything is named.
    #[default]
    Nothing,
    /// Inlined functions are not named.
    NoInlines,
    /// Nor are source lines.
    NoLines,
    /// Tables and symbols that were not needed in the last minute are given up, and of the rest fewer are kept.
    FewTables,
}

impl DegradationLevel {
    /// The least that is given up first.
    pub const ALL: [Self; 4] = [Self::Nothing, Self::NoInlines, Self::NoLines, Self::FewTables];

    /// The so-many-th level, or the last.
    pub fn at(level: usize) -> Self {
        Self::ALL.get(level).copied().unwrap_or(Self::FewTables)
    }
}

/// What the namer did, for logs and tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NamerStats {
    /// Gauge: code locations whose names are kept.
    pub cached_locations: usize,
    /// Gauge: files whose symbols are in memory.
    pub open_symbol_tables: usize,
    /// Gauge: memory of these symbols.
    pub symbol_table_bytes: u64,
    /// How often the kernel's symbols and modules were read.
    pub kernel_reads: u64,
    /// Code locations that were named, those that were in memory already left out.
    pub locations_resolved: u64,
    /// Files whose separate debug file was used, counted at each reading like the following.
    pub debug_files: u64,
    /// Files with packed symbols (MiniDebugInfo).
    pub unpacked_files: u64,
    /// Files with something that could not be read or made no sense.
    pub damaged_files: u64,
    /// Files that were written over while their code was running, counted each time that names of one were asked for.
    pub overwritten_files: u64,
    /// Files with more functions than are kept of one.
    pub symbols_left_out: u64,
    /// Files whose lines would have taken too much memory.
    pub lines_left_out: u64,
    /// Names that were longer than 16 KiB, or had no end.
    pub cut_names: u64,
    /// Perf maps that were looked through, since there was no room for all their lines, counted each time.
    pub perf_maps_searched: u64,
    /// Those of them of which only the newest part was.
    pub perf_maps_left_out: u64,
    /// Code locations that were asked for after their file had been given up, since no process maps it.
    pub locations_given_up: u64,
}

impl NamerStats {
    /// What both did.
    pub(super) fn and(&self, other: &Self) -> Self {
        Self {
            cached_locations: self.cached_locations + other.cached_locations,
            open_symbol_tables: self.open_symbol_tables + other.open_symbol_tables,
            symbol_table_bytes: self.symbol_table_bytes + other.symbol_table_bytes,
            kernel_reads: self.kernel_reads + other.kernel_reads,
            locations_resolved: self.locations_resolved + other.locations_resolved,
            debug_files: self.debug_files + other.debug_files,
            unpacked_files: self.unpacked_files + other.unpacked_files,
            damaged_files: self.damaged_files + other.damaged_files,
            overwritten_files: self.overwritten_files + other.overwritten_files,
            symbols_left_out: self.symbols_left_out + other.symbols_left_out,
            lines_left_out: self.lines_left_out + other.lines_left_out,
            cut_names: self.cut_names + other.cut_names,
            perf_maps_searched: self.perf_maps_searched + other.perf_maps_searched,
            perf_maps_left_out: self.perf_maps_left_out + other.perf_maps_left_out,
            locations_given_up: self.locations_given_up + other.locations_given_up,
        }
    }
}
