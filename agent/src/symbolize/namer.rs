//! Resolves and remembers names.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;

use super::cache::{Names, Remembered};
use super::config::{DegradationLevel, NamerConfig, NamerStats};
use super::forms::{
    KERNEL_MODULE, bare_frame, code_frame, is_bpf_program, jit_frame, named_frame, unsure_module_frame,
};
use super::kernel_modules::{KernelModules, ReplacedModules, can_cover};
use super::kernel_symbols::{KernelSymbol, KernelSymbols};
use super::native::NativeNames;
use super::perf_map::{ENTRY_BYTES, MapText, Named, PerfMap, Reached};
use crate::frames::{CodeLocation, Frame, FrameKind, Frames, SourceId};
use crate::process::{JitCode, Source};

/// How often the kernel's symbols may be read again after an address without a name: a module or BPF program may be
/// new.
const KERNEL_REREAD_NS: u64 = 60_000_000_000;
/// How often is looked at most whether kernel modules came or went.
const MODULES_CHECK_NS: u64 = 1_000_000_000;
/// Symbols that nobody needed for this long are dropped.
const IDLE_NS: u64 = 60_000_000_000;
const MAX_PERF_MAPS: usize = 32;

/// Resolves and remembers names.
#[allow(missing_debug_implementations, reason = "holds blazesym's symbolizer")]
pub struct Namer {
    /// As it is while there is memory.
    plenty: NamerConfig,
    degradation: DegradationLevel,
    config: NamerConfig,
    natives: NativeNames,
    kernel: Option<KernelNames>,
    kernel_unknown: bool,
    /// As of the last check.
    modules: KernelModules,
    modules_checked_ns: u64,
    replaced_modules: ReplacedModules,
    /// When the interval began whose locations are named.
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
        let names = Names::within(config.cached_locations);
        Self::with(config, names)
    }

    /// One that knows, and adds to, these names.
    pub fn with(config: NamerConfig, names: Names) -> Self {
        Self {
            names,
            plenty: config.clone(),
            degradation: DegradationLevel::Nothing,
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
    pub fn set_degradation(&mut self, degradation: DegradationLevel) {
        if degradation == self.degradation {
            return;
        }
        self.degradation = degradation;
        let plenty = &self.plenty;
        let few = degradation >= DegradationLevel::FewTables;
        let share = |of: usize| if few { of / 4 } else { of };
        self.config = NamerConfig {
            cached_locations: share(plenty.cached_locations),
            open_symbol_tables: share(plenty.open_symbol_tables).max(1),
            symbol_table_bytes: plenty.symbol_table_bytes / if few { 4 } else { 1 },
            open_line_tables: plenty.open_line_tables,
            line_table_bytes: plenty.line_table_bytes,
            lines_limit_bytes: if degradation >= DegradationLevel::NoLines {
                0
            } else {
                plenty.lines_limit_bytes
            },
            perf_map_bytes: plenty.perf_map_bytes,
            read_turn: plenty.read_turn.clone(),
            cpu_budget: plenty.cpu_budget.clone(),
            needed_by: plenty.needed_by,
            bpf_functions: plenty.bpf_functions,
        };
        self.natives.start_lines_anew(degradation < DegradationLevel::NoInlines);
        self.names.lock().cache.resize(self.config.cached_locations);
    }

    /// With what the namer did that names ahead.
    pub fn stats(&self) -> NamerStats {
        let known = self.names.lock();
        let (open_symbol_tables, symbol_table_bytes) = self.natives.holds();
        NamerStats {
            cached_locations: known.cache.len() + known.made.len(),
            open_symbol_tables,
            symbol_table_bytes,
            ..self.stats.and(&known.ahead)
        }
    }

    /// Says when the interval began whose locations are named from now on, by the same clock: what the kernel had at an
    /// address since then may have been two things.
    pub fn begin(&mut self, begun_ns: u64) {
        self.begun_ns = begun_ns;
    }

    /// Finds the frames of all `locations`, in the same order. `sources` says what their sources are, but for the fixed
    /// ones. `now_ns` is any clock that moves on.
    pub fn name<S: BuildHasher>(
        &mut self,
        locations: &[CodeLocation],
        sources: &HashMap<SourceId, Source, S>,
        now_ns: u64,
    ) -> Vec<Frames> {
        self.notice_kernel_modules(now_ns);
        let mut known = self.names.lock();
        let mut result: Vec<Option<Frames>> = locations.iter().map(|location| known.cache.get(location)).collect();
        drop(known);
        let mut missing: HashMap<SourceId, Vec<usize>> = HashMap::new();
        for (index, location) in locations.iter().enumerate() {
            if result[index].is_none() {
                missing.entry(location.source).or_default().push(index);
            }
        }
        let resolved_before = self.stats.locations_resolved;
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
                    result[*index] = known.cache.get(&locations[*index]);
                    result[*index].is_none()
                });
            }
            if indices.is_empty() {
                continue;
            }
            let offsets: Vec<u64> = indices.iter().map(|index| locations[*index].offset).collect();
            self.stats.locations_resolved += offsets.len() as u64;
            let named = self.name_source(source, &offsets, sources.get(&source), now_ns);
            let given_up = is_given_up();
            let is_made = matches!(sources.get(&source), Some(Source::Jit(_)));
            // Code that is made at run time can be replaced, and its map grows: such names are never remembered. A file
            // may be there again.
            let remember = !given_up && !is_made;
            // Already in between: the first interval meets everything that runs.
            self.natives.limit(now_ns, &self.config);
            self.config.cpu_budget.rest(self.config.needed_by);
            let mut known = self.names.lock();
            let Remembered {
                cache, made, interner, ..
            } = &mut *known;
            for (index, frames) in indices.into_iter().zip(named) {
                // It may have been given up while it was read here, and named ahead before.
                let ahead = if given_up { cache.get(&locations[index]) } else { None };
                let frames = ahead.unwrap_or_else(|| interner.intern(frames));
                let is_unsure = source == SourceId::KERNEL
                    && self.replaced_modules.is_unsure(locations[index].offset, self.begun_ns);
                if remember && !is_unsure {
                    cache.insert(locations[index], Arc::clone(&frames));
                } else if self.ahead && is_made {
                    made.insert(locations[index], Arc::clone(&frames));
                }
                result[index] = Some(frames);
            }
        }
        self.tidy(now_ns);
        if self.stats.locations_resolved > resolved_before {
            crate::sys::release_memory();
        }
        let known = self.names.lock();
        let nothing = || known.interner.lookup_only(Frame::unknown());
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
            (_, None) => offsets.iter().map(|_| vec![Frame::unknown()]).collect(),
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
        let frame = |named: Option<&Named>, address: u64| match (named, &code.file) {
            (None, Some(file)) => {
                let offset = address.wrapping_add(file.to_offset);
                bare_frame(FrameKind::Native, &file.path, None, offset)
            }
            (named, _) => Frame {
                file: named.and_then(|named| named.file.as_deref().map(Arc::from)),
                line: named.map_or(0, |named| named.line),
                ..jit_frame(named.map(|named| &*named.name))
            },
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
        let rest = || self.config.cpu_budget.rest(self.config.needed_by);
        map.refresh(text, usize::try_from(room).unwrap_or(usize::MAX), &rest);
        let (names, Reached { searched, left_out }) = map.names(text, addresses, &rest);
        self.stats.perf_maps_searched += u64::from(searched);
        self.stats.perf_maps_left_out += u64::from(left_out);
        let named = names.iter().zip(addresses);
        named
            .map(|(named, address)| vec![frame(named.as_ref(), *address)])
            .collect()
    }

    /// Names locations whose files are about to be given up, so that whoever shares the names still knows them then.
    pub fn name_ahead<S: BuildHasher>(
        &mut self,
        locations: &[CodeLocation],
        sources: &HashMap<SourceId, Source, S>,
        now_ns: u64,
    ) {
        self.ahead = true;
        self.name(locations, sources, now_ns);
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
        known.interner.tidy(self.config.cached_locations);
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
