//! Addresses to names: symbol tables and the kernel's list read by ourselves, lines and inlined functions by blazesym.
//!
//! In: [`CodeLocation`]s (a source of code and an offset in it) with what their sources are. Out: frames, innermost inlined
//! function first. Offsets are bytes in the file; kernel places are addresses. It needs no live process:
//! what it reads are files that the process room holds open, so that deleted files are named too. What is asked for before these are given
//! up, some seconds after their last process ended, is remembered. Only separate debug files are opened here, in the root of a process where
//! one still lives.
//!
//! A [`Namer`] lives as long as the agent, on a thread of its own (blazesym's type cannot leave its thread). There are two: one names
//! intervals, and one what is about to be given up, which can't wait until the other has read a large file. What they remember is
//! common to both, and bounded.

mod cache;
mod debug_file;
mod demangle;
mod file_symbols;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod kernel_modules;
mod kernel_symbols;
mod mini_debug;
mod native;
mod perf_map;
mod vdso;

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

pub use crate::cpu_budget::{CpuBudget, Waits};
pub use crate::elf::ReadTurn;
use crate::frames::{CodeLocation, Frame, FrameKind, Frames, SourceId};
use crate::process::{JitCode, Source};
use cache::Known;
pub use cache::Names;
use kernel_modules::{KernelModules, ReplacedModules, can_cover};
pub use kernel_symbols::BpfFunctions;
use kernel_symbols::{KernelSymbol, KernelSymbols};
use native::NativeNames;
use perf_map::{ENTRY_BYTES, MapText, PerfMap, Reached};

/// Bounds of what the namer remembers.
#[derive(Debug, Clone)]
pub struct NamerConfig {
    /// Places whose names are remembered.
    pub cached_places: usize,
    /// Files whose symbols may be held at the same time; each may also hold its debug file open.
    pub open_symbol_tables: usize,
    /// Memory for their symbols. One file's alone may take more, but is then dropped at once.
    pub symbol_table_bytes: u64,
    /// Those of them that blazesym may hold parsed for their lines.
    pub open_line_tables: usize,
    /// Debug information of those in all, unpacked; that of a file with more is not read. blazesym's memory is up to twice that.
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
    /// Who waits for that.
    pub waits: Waits,
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
            waits: Waits::Files,
            ..self.clone()
        }
    }
}

impl Default for NamerConfig {
    fn default() -> Self {
        Self {
            cached_places: 32_768,
            open_symbol_tables: 128,
            symbol_table_bytes: 6 * 1024 * 1024,
            open_line_tables: 32,
            line_table_bytes: 4 * 1024 * 1024,
            lines_limit_bytes: 16 * 1024 * 1024,
            perf_map_bytes: 8 * 1024 * 1024,
            read_turn: ReadTurn::default(),
            cpu_budget: CpuBudget::default(),
            waits: Waits::Nobody,
            bpf_functions: HashMap::new,
        }
    }
}

/// What is given up while memory is short, in this order; each includes those before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Frugality {
    #[default]
    Nothing,
    /// Inlined functions are not named.
    NoInlines,
    /// Nor are source lines.
    NoLines,
    /// Tables and symbols that were not needed in the last minute are given up, and of the rest fewer are kept.
    FewTables,
}

impl Frugality {
    pub const ALL: [Self; 4] = [Self::Nothing, Self::NoInlines, Self::NoLines, Self::FewTables];

    /// The so-many-th level, or the last.
    pub fn at(level: usize) -> Self {
        Self::ALL.get(level).copied().unwrap_or(Self::FewTables)
    }
}

/// Where the kernel's own functions are.
const KERNEL_MODULE: &str = "[kernel]";
/// How often the kernel's symbols may be read again after an address without a name: a module or BPF program may be new.
const KERNEL_REREAD_NS: u64 = 60_000_000_000;
/// How often is looked at most whether kernel modules came or went.
const MODULES_CHECK_NS: u64 = 1_000_000_000;
/// Symbols that nobody needed for this long are dropped.
const IDLE_NS: u64 = 60_000_000_000;
const MAX_PERF_MAPS: usize = 32;

/// What the namer did, for logs and tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NamerStats {
    pub cached_places: usize,
    pub open_symbol_tables: usize,
    pub symbol_table_bytes: u64,
    pub kernel_reads: u64,
    pub places_resolved: u64,
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
    /// Places that were asked for after their file had been given up, since no process maps it.
    pub places_given_up: u64,
}

impl NamerStats {
    /// What both did.
    fn and(&self, other: &Self) -> Self {
        Self {
            cached_places: self.cached_places + other.cached_places,
            open_symbol_tables: self.open_symbol_tables + other.open_symbol_tables,
            symbol_table_bytes: self.symbol_table_bytes + other.symbol_table_bytes,
            kernel_reads: self.kernel_reads + other.kernel_reads,
            places_resolved: self.places_resolved + other.places_resolved,
            debug_files: self.debug_files + other.debug_files,
            unpacked_files: self.unpacked_files + other.unpacked_files,
            damaged_files: self.damaged_files + other.damaged_files,
            overwritten_files: self.overwritten_files + other.overwritten_files,
            symbols_left_out: self.symbols_left_out + other.symbols_left_out,
            lines_left_out: self.lines_left_out + other.lines_left_out,
            cut_names: self.cut_names + other.cut_names,
            perf_maps_searched: self.perf_maps_searched + other.perf_maps_searched,
            perf_maps_left_out: self.perf_maps_left_out + other.perf_maps_left_out,
            places_given_up: self.places_given_up + other.places_given_up,
        }
    }
}

/// Resolves and remembers names.
#[allow(missing_debug_implementations, reason = "holds blazesym's symbolizer")]
pub struct Namer {
    /// As it is while there is memory.
    plenty: NamerConfig,
    frugality: Frugality,
    config: NamerConfig,
    natives: NativeNames,
    kernel: Option<KernelNames>,
    kernel_unknown: bool,
    /// As of the last check.
    modules: KernelModules,
    modules_checked_ns: u64,
    replaced_modules: ReplacedModules,
    /// When the interval began whose places are named.
    begun_ns: u64,
    perf_maps: HashMap<SourceId, PerfMap>,
    /// What is named now is named for the last time: its files are about to be given up.
    ahead: bool,
    names: Names,
    stats: NamerStats,
}

struct KernelNames {
    symbols: KernelSymbols,
    read_ns: u64,
    used_ns: u64,
}

impl Namer {
    /// One that shares its names with nobody.
    pub fn new(config: NamerConfig) -> Self {
        let names = Names::within(config.cached_places);
        Self::with(config, names)
    }

    /// One that knows, and adds to, these names.
    pub fn with(config: NamerConfig, names: Names) -> Self {
        Self {
            names,
            plenty: config.clone(),
            frugality: Frugality::Nothing,
            config,
            natives: NativeNames::new(),
            kernel: None,
            kernel_unknown: false,
            modules: KernelModules::read(),
            modules_checked_ns: 0,
            replaced_modules: ReplacedModules::default(),
            begun_ns: 0,
            perf_maps: HashMap::new(),
            ahead: false,
            stats: NamerStats::default(),
        }
    }

    /// Does with less from now on, or with all again. Names that are remembered stay as they are.
    pub fn set_frugality(&mut self, frugality: Frugality) {
        if frugality == self.frugality {
            return;
        }
        self.frugality = frugality;
        let plenty = &self.plenty;
        let few = frugality >= Frugality::FewTables;
        let share = |of: usize| if few { of / 4 } else { of };
        self.config = NamerConfig {
            cached_places: share(plenty.cached_places),
            open_symbol_tables: share(plenty.open_symbol_tables).max(1),
            symbol_table_bytes: plenty.symbol_table_bytes / if few { 4 } else { 1 },
            open_line_tables: plenty.open_line_tables,
            line_table_bytes: plenty.line_table_bytes,
            lines_limit_bytes: if frugality >= Frugality::NoLines {
                0
            } else {
                plenty.lines_limit_bytes
            },
            perf_map_bytes: plenty.perf_map_bytes,
            read_turn: plenty.read_turn.clone(),
            cpu_budget: plenty.cpu_budget.clone(),
            waits: plenty.waits,
            bpf_functions: plenty.bpf_functions,
        };
        self.natives.start_lines_anew(frugality < Frugality::NoInlines);
        self.names.lock().cache.resize(self.config.cached_places);
    }

    /// With what the namer did that names ahead.
    pub fn stats(&self) -> NamerStats {
        let known = self.names.lock();
        let (open_symbol_tables, symbol_table_bytes) = self.natives.holds();
        NamerStats {
            cached_places: known.cache.len() + known.made.len(),
            open_symbol_tables,
            symbol_table_bytes,
            ..self.stats.and(&known.ahead)
        }
    }

    /// Says when the interval began whose places are named from now on, by the same clock: what the kernel had at an address since then may
    /// have been two things.
    pub fn begin(&mut self, begun_ns: u64) {
        self.begun_ns = begun_ns;
    }

    /// Finds the frames of all `places`, in the same order. `sources` says what their sources are, but for the fixed ones.
    /// `now_ns` is any clock that moves on.
    pub fn name<S: BuildHasher>(
        &mut self,
        places: &[CodeLocation],
        sources: &HashMap<SourceId, Source, S>,
        now_ns: u64,
    ) -> Vec<Frames> {
        self.notice_kernel_modules(now_ns);
        let mut known = self.names.lock();
        let mut result: Vec<Option<Frames>> = places.iter().map(|place| known.cache.get(place)).collect();
        drop(known);
        let mut missing: HashMap<SourceId, Vec<usize>> = HashMap::new();
        for (index, place) in places.iter().enumerate() {
            if result[index].is_none() {
                missing.entry(place.source).or_default().push(index);
            }
        }
        let resolved_before = self.stats.places_resolved;
        // What was made and small files first: a large file may take long, and others may be given up meanwhile.
        let size_of = |source: &SourceId| match sources.get(source) {
            Some(Source::Module(module)) => module.bytes,
            _ => 0,
        };
        let mut missing: Vec<(SourceId, Vec<usize>)> = missing.into_iter().collect();
        missing.sort_by_cached_key(|(source, _)| (size_of(source), *source));
        for (source, mut indices) in missing {
            let is_given_up = || matches!(sources.get(&source), Some(Source::Module(module)) if module.was_given_up());
            if is_given_up() {
                // Before, it was named ahead, perhaps while those before it were read.
                let mut known = self.names.lock();
                indices.retain(|index| {
                    result[*index] = known.cache.get(&places[*index]);
                    result[*index].is_none()
                });
            }
            if indices.is_empty() {
                continue;
            }
            let offsets: Vec<u64> = indices.iter().map(|index| places[*index].offset).collect();
            self.stats.places_resolved += offsets.len() as u64;
            let named = self.name_source(source, &offsets, sources.get(&source), now_ns);
            let given_up = is_given_up();
            let is_made = matches!(sources.get(&source), Some(Source::Jit(_)));
            // Code that is made at run time can be replaced, and its map grows: such names are never remembered. A file may be there again.
            let remember = !given_up && !is_made;
            // Already in between: the first interval meets everything that runs.
            self.natives.limit(now_ns, &self.config);
            self.config.cpu_budget.rest(self.config.waits);
            let mut known = self.names.lock();
            let Known {
                cache, made, interner, ..
            } = &mut *known;
            for (index, frames) in indices.into_iter().zip(named) {
                // It may have been given up while it was read here, and named ahead before.
                let ahead = if given_up { cache.get(&places[index]) } else { None };
                let frames = ahead.unwrap_or_else(|| interner.intern(frames));
                let is_unsure =
                    source == SourceId::KERNEL && self.replaced_modules.is_unsure(places[index].offset, self.begun_ns);
                if remember && !is_unsure {
                    cache.insert(places[index], Arc::clone(&frames));
                } else if self.ahead && is_made {
                    made.insert(places[index], Arc::clone(&frames));
                }
                result[index] = Some(frames);
            }
        }
        self.tidy(now_ns);
        if self.stats.places_resolved > resolved_before {
            crate::sys::release_memory();
        }
        let known = self.names.lock();
        let nothing = || known.interner.lookup_only(unknown_frame());
        let named = result.into_iter().map(|frames| frames.unwrap_or_else(nothing));
        named.collect()
    }

    fn name_source(&mut self, id: SourceId, offsets: &[u64], source: Option<&Source>, now_ns: u64) -> Vec<Vec<Frame>> {
        match (id, source) {
            (SourceId::KERNEL, _) => self.name_kernel(offsets, now_ns),
            (SourceId::VDSO, _) => self.natives.name_vdso(offsets),
            (_, Some(Source::Module(module))) => {
                self.natives
                    .name_module(module, offsets, now_ns, &self.config, &mut self.stats)
            }
            (_, Some(Source::Jit(code))) => self.name_made(id, code, offsets, now_ns),
            (_, Some(Source::Special(name))) => offsets
                .iter()
                .map(|offset| vec![bare_frame(FrameKind::Native, name, None, *offset)])
                .collect(),
            (_, Some(Source::Kernel(name))) => {
                let frame = code_frame(name.as_deref());
                offsets.iter().map(|_| vec![frame.clone()]).collect()
            }
            (_, None) => offsets.iter().map(|_| vec![unknown_frame()]).collect(),
        }
    }

    /// Names of code that a process made, at these addresses.
    fn name_made(&mut self, source: SourceId, code: &JitCode, addresses: &[u64], now_ns: u64) -> Vec<Vec<Frame>> {
        code.perf_map.look(now_ns);
        let id = code.perf_map.id;
        let others = self.perf_maps.iter().filter(|(other, _)| **other != id);
        let taken: u64 = others.map(|(_, map)| map.bytes()).sum();
        let room = self.config.perf_map_bytes.saturating_sub(taken) / ENTRY_BYTES;
        let map = self.perf_maps.entry(id).or_default();
        map.used_ns = now_ns;
        let frame = |name: Option<&str>, address: u64| match (name, &code.file) {
            (None, Some(file)) => {
                let offset = address.wrapping_add(file.to_offset);
                bare_frame(FrameKind::Native, &file.path, None, offset)
            }
            _ => jit_frame(name),
        };
        let file = code.perf_map.get().and_then(|file| Some((file.present_state()?, file)));
        let Some((state, file)) = file else {
            // Before it was given up, it was asked for what would be needed.
            let mut known = self.names.lock();
            let name = |address: &u64| {
                let offset = *address;
                known.made.get(&CodeLocation { source, offset }).map_or_else(
                    || vec![frame(None, offset)],
                    |frames| frames.iter().map(|frame| (**frame).clone()).collect(),
                )
            };
            return addresses.iter().map(name).collect();
        };
        let read = |offset: u64, into: &mut [u8]| file.read_some(offset, into);
        let text = MapText {
            read: &read,
            bytes: state.bytes,
            inode: state.inode,
        };
        let rest = || self.config.cpu_budget.rest(self.config.waits);
        map.refresh(text, usize::try_from(room).unwrap_or(usize::MAX), &rest);
        let (names, Reached { searched, left_out }) = map.names(text, addresses, &rest);
        self.stats.perf_maps_searched += u64::from(searched);
        self.stats.perf_maps_left_out += u64::from(left_out);
        let named = names.iter().zip(addresses);
        named
            .map(|(name, address)| vec![frame(name.as_deref(), *address)])
            .collect()
    }

    /// Names places whose files are about to be given up, so that whoever shares the names still knows them then.
    pub fn name_ahead<S: BuildHasher>(
        &mut self,
        places: &[CodeLocation],
        sources: &HashMap<SourceId, Source, S>,
        now_ns: u64,
    ) {
        self.ahead = true;
        self.name(places, sources, now_ns);
        self.ahead = false;
        self.names.lock().ahead = self.stats;
    }

    /// A module that was loaded may have taken the place of another: what is remembered of its addresses is then wrong.
    fn notice_kernel_modules(&mut self, now_ns: u64) {
        if self.ahead || now_ns.saturating_sub(self.modules_checked_ns) < MODULES_CHECK_NS {
            return;
        }
        self.modules_checked_ns = now_ns;
        let modules = KernelModules::read();
        if modules != self.modules {
            self.replaced_modules.notice(&self.modules, &modules, now_ns);
            self.modules = modules;
            self.kernel = None;
            self.names.lock().cache.forget_source(SourceId::KERNEL);
        }
    }

    /// Reads the kernel's functions, which every interval needs: while the first one is gathered there is time.
    pub fn prepare(&mut self, now_ns: u64) {
        self.kernel = Some(self.take_kernel(now_ns));
    }

    /// What is known of the kernel's functions, read where it is not there; to be put back.
    fn take_kernel(&mut self, now_ns: u64) -> KernelNames {
        let known = self.kernel.take();
        let is_due = |kernel: &KernelNames| now_ns.saturating_sub(kernel.read_ns) >= KERNEL_REREAD_NS;
        if self.kernel_unknown && known.as_ref().is_some_and(is_due) {
            self.names.lock().cache.forget_source(SourceId::KERNEL);
        } else if let Some(mut kernel) = known {
            kernel.used_ns = now_ns;
            return kernel;
        }
        self.stats.kernel_reads += 1;
        self.kernel_unknown = false;
        let modules = KernelModules::read();
        self.replaced_modules.notice(&self.modules, &modules, now_ns);
        self.modules = modules;
        KernelNames {
            symbols: KernelSymbols::read(&self.config.cpu_budget, self.config.bpf_functions),
            read_ns: now_ns,
            used_ns: now_ns,
        }
    }

    fn name_kernel(&mut self, addresses: &[u64], now_ns: u64) -> Vec<Vec<Frame>> {
        let kernel = self.take_kernel(now_ns);
        let kernel_text: Arc<str> = KERNEL_MODULE.into();
        let mut frames = Vec::with_capacity(addresses.len());
        for address in addresses {
            if self.replaced_modules.is_unsure(*address, self.begun_ns) {
                frames.push(vec![unsure_module_frame()]);
                continue;
            }
            let module = self.modules.find(*address).unwrap_or_else(|| Arc::clone(&kernel_text));
            let covers = |symbol: &KernelSymbol<'_>| can_cover(&self.modules, symbol.address, symbol.bytes, *address);
            match kernel.symbols.find(*address).filter(covers) {
                Some(symbol) => {
                    let module = if is_bpf_program(symbol.name) {
                        "[bpf]".into()
                    } else {
                        module
                    };
                    frames.push(vec![named_frame(FrameKind::Kernel, module, None, symbol.name)]);
                }
                None => {
                    self.kernel_unknown = true;
                    frames.push(vec![bare_frame(FrameKind::Kernel, &module, None, *address)]);
                }
            }
        }
        self.kernel = Some(kernel);
        frames
    }

    /// Drops what is idle or too much.
    fn tidy(&mut self, now_ns: u64) {
        self.natives.limit(now_ns, &self.config);
        if self
            .kernel
            .as_ref()
            .is_some_and(|kernel| now_ns.saturating_sub(kernel.used_ns) >= IDLE_NS)
        {
            self.kernel = None;
        }
        if self.perf_maps.len() > MAX_PERF_MAPS {
            let mut uses: Vec<u64> = self.perf_maps.values().map(|map| map.used_ns).collect();
            uses.sort_unstable();
            let keep_from = uses[uses.len() - MAX_PERF_MAPS];
            self.perf_maps.retain(|_, map| map.used_ns >= keep_from);
        }
        self.perf_maps
            .retain(|_, map| now_ns.saturating_sub(map.used_ns) < IDLE_NS);
        let mut known = self.names.lock();
        if known.cache.age(now_ns) {
            known.made.age(now_ns);
            known.interner.forget_unused();
        }
        known.interner.tidy(self.config.cached_places);
    }

    /// Drops what is held of files that were given up; their names stay remembered.
    pub fn forget_given_up(&mut self, now_ns: u64) {
        self.natives.limit(now_ns, &self.config);
    }

    /// Drops all that is held of files; their names stay remembered.
    pub fn forget_files(&mut self) {
        self.natives.evict_all();
        self.perf_maps = HashMap::new();
        crate::sys::release_memory();
    }

    /// Drops the parsed form of a source; its names stay remembered.
    pub fn evict(&mut self, id: SourceId) {
        self.natives.evict(id);
    }
}

fn named_frame(kind: FrameKind, module: Arc<str>, build_id: Option<Arc<str>>, name: &str) -> Frame {
    let function = Some(name.into());
    Frame {
        kind,
        module,
        build_id,
        function,
        file: None,
        line: 0,
        inlined: false,
        offset: None,
    }
}

fn bare_frame(kind: FrameKind, module: &Arc<str>, build_id: Option<&Arc<str>>, offset: u64) -> Frame {
    let (module, build_id) = (Arc::clone(module), build_id.cloned());
    Frame {
        kind,
        module,
        build_id,
        function: None,
        file: None,
        line: 0,
        inlined: false,
        offset: Some(offset),
    }
}

/// A program's name has its tag, 16 hexadecimal digits; the kernel has functions of its own that begin as it does.
fn is_bpf_program(name: &str) -> bool {
    let tag = name.strip_prefix("bpf_prog_").and_then(|rest| rest.get(..16));
    tag.is_some_and(|tag| tag.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Of one of two modules.
fn unsure_module_frame() -> Frame {
    Frame {
        kind: FrameKind::Kernel,
        module: "[module]".into(),
        ..unknown_frame()
    }
}

/// Of code that the kernel made at run time.
fn code_frame(name: Option<&str>) -> Frame {
    let is_bpf = name.is_none_or(|name| name.starts_with("bpf_"));
    Frame {
        kind: FrameKind::Kernel,
        module: if is_bpf { "[bpf]" } else { KERNEL_MODULE }.into(),
        function: name.map(Arc::from),
        ..unknown_frame()
    }
}

/// Without an offset: addresses of run-time code mean nothing later, and would only make every sample a stack of its own.
fn jit_frame(name: Option<&str>) -> Frame {
    let function = name.map(Arc::from);
    Frame {
        function,
        kind: FrameKind::Jit,
        ..unknown_frame()
    }
}

fn unknown_frame() -> Frame {
    Frame {
        kind: FrameKind::Unknown,
        module: "".into(),
        build_id: None,
        function: None,
        file: None,
        line: 0,
        inlined: false,
        offset: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_kernel_are_no_bpf_programs() {
        assert!(is_bpf_program("bpf_prog_6deef7357e7b4530_case_first"));
        assert!(is_bpf_program("bpf_prog_6deef7357e7b4530"));
        for function in [
            "bpf_prog_load",
            "bpf_prog_test_run_skb",
            "bpf_prog_",
            "bpf_prog_select_runtime",
        ] {
            assert!(!is_bpf_program(function), "{function}");
        }
    }
}
