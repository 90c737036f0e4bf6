//! Addresses to names, with blazesym behind one small interface.
//!
//! In: [`Place`]s (a source of code and an offset in it) with what their sources are. Out: frames, innermost inlined
//! function first. Offsets are bytes in the file; kernel places are addresses. It never asks a live process for anything:
//! what it opens are descriptors that the process room holds, so that ended processes and deleted files are named too.
//!
//! One [`Namer`] lives as long as the agent, on a thread of its own (blazesym's type cannot leave its thread). Everything it
//! remembers is bounded.

mod cache;
mod kernel_modules;
mod perf_map;
mod vdso;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use blazesym::symbolize::source::{Elf, Kernel, Source as ElfSource};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};
use blazesym::{MaybeDefault, symbolize::evict};

use crate::process::{Module, Place, Source, SourceId};
use crate::ship::{Frame, FrameKind};
use cache::{Interner, PlaceCache};
use kernel_modules::{KernelModules, addresses_are_hidden};
use perf_map::PerfMap;
use vdso::Vdso;

/// The frames of one place. Shared: equal frames are the same allocation.
pub type Frames = Arc<[Arc<Frame>]>;

/// Bounds of what the namer remembers.
#[derive(Debug, Clone)]
pub struct NamerConfig {
    /// Places whose names are remembered.
    pub cached_places: usize,
    /// Files that blazesym may hold parsed at the same time.
    pub open_symbol_tables: usize,
    /// Sizes of those files in all; the one used last is always kept.
    pub open_symbol_table_bytes: u64,
    /// Files up to this size also give lines and inlined functions; 0 for none. What blazesym needs for that is
    /// several times the size of a file's debug information.
    pub lines_limit_bytes: u64,
}

impl Default for NamerConfig {
    fn default() -> Self {
        Self {
            cached_places: 32_768,
            open_symbol_tables: 32,
            open_symbol_table_bytes: 1 << 30,
            lines_limit_bytes: 16 * 1024 * 1024,
        }
    }
}

/// How often the kernel's symbols may be read again after an address without a name: a module or BPF program may be new.
const KERNEL_REREAD_NS: u64 = 60_000_000_000;
/// Symbol tables that nobody needed for this long are dropped.
const IDLE_NS: u64 = 60_000_000_000;
const MAX_PERF_MAPS: usize = 32;

/// What the namer did, for logs and tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NamerStats {
    pub cached_places: usize,
    pub open_symbol_tables: usize,
    pub kernel_reads: u64,
    pub places_resolved: u64,
}

/// A parsed file; the module keeps its descriptor, and with it its path, alive.
struct Loaded {
    /// Line numbers are looked up too.
    lines: bool,
    module: Arc<Module>,
    path: PathBuf,
    used_ns: u64,
}

/// Resolves and remembers names.
#[allow(missing_debug_implementations, reason = "holds blazesym's symbolizer")]
pub struct Namer {
    config: NamerConfig,
    files: Symbolizer,
    loaded: HashMap<SourceId, Loaded>,
    kernel: Option<KernelNames>,
    kernel_unknown: bool,
    perf_maps: HashMap<SourceId, PerfMap>,
    vdso: Option<Vdso>,
    cache: PlaceCache,
    interner: Interner,
    stats: NamerStats,
}

struct KernelNames {
    symbolizer: Symbolizer,
    modules: KernelModules,
    /// The kernel does not tell its addresses.
    hidden: bool,
    read_ns: u64,
    used_ns: u64,
}

/// A new symbolizer that looks for debug information nowhere but in the file itself.
fn file_symbolizer() -> Symbolizer {
    Symbolizer::builder()
        .set_debug_dirs(None::<[PathBuf; 0]>)
        .enable_code_info(true)
        .enable_inlined_fns(true)
        .enable_demangling(true)
        .build()
}

impl Namer {
    pub fn new(config: NamerConfig) -> Self {
        Self {
            cache: PlaceCache::new(config.cached_places),
            config,
            files: file_symbolizer(),
            loaded: HashMap::new(),
            kernel: None,
            kernel_unknown: false,
            perf_maps: HashMap::new(),
            vdso: Vdso::of_this_process(),
            interner: Interner::default(),
            stats: NamerStats::default(),
        }
    }

    pub fn stats(&self) -> NamerStats {
        NamerStats {
            cached_places: self.cache.len(),
            open_symbol_tables: self.loaded.len(),
            ..self.stats
        }
    }

    /// Finds the frames of all `places`, in the same order. `sources` says what their sources are, but for the fixed ones.
    /// `now_ns` is any clock that moves on.
    pub fn name(&mut self, places: &[Place], sources: &HashMap<SourceId, Source>, now_ns: u64) -> Vec<Frames> {
        let mut result: Vec<Option<Frames>> = places.iter().map(|place| self.cache.get(place)).collect();
        let mut missing: HashMap<SourceId, Vec<usize>> = HashMap::new();
        for (index, place) in places.iter().enumerate() {
            if result[index].is_none() {
                missing.entry(place.source).or_default().push(index);
            }
        }
        let resolved_before = self.stats.places_resolved;
        for (source, indices) in missing {
            let offsets: Vec<u64> = indices.iter().map(|index| places[*index].offset).collect();
            self.stats.places_resolved += offsets.len() as u64;
            // Code that is made at run time can be replaced, and its map grows: such names are never remembered.
            let remember = !matches!(sources.get(&source), Some(Source::Jit(_)));
            let named = self.name_source(source, &offsets, sources.get(&source), now_ns);
            // Already in between: the first interval meets everything that runs.
            self.limit_symbol_tables(now_ns);
            for (index, frames) in indices.into_iter().zip(named) {
                let frames = self.interner.intern(frames);
                if remember {
                    self.cache.insert(places[index], Arc::clone(&frames));
                }
                result[index] = Some(frames);
            }
        }
        self.tidy(now_ns);
        if self.stats.places_resolved > resolved_before {
            crate::kernel::release_memory();
        }
        let nothing = || self.interner.lookup_only(unknown_frame());
        result
            .into_iter()
            .map(|frames| frames.unwrap_or_else(nothing))
            .collect()
    }

    fn name_source(&mut self, id: SourceId, offsets: &[u64], source: Option<&Source>, now_ns: u64) -> Vec<Vec<Frame>> {
        match (id, source) {
            (SourceId::KERNEL, _) => self.name_kernel(offsets, now_ns),
            (SourceId::VDSO, _) => self.name_vdso(offsets),
            (_, Some(Source::Module(module))) => self.name_module(module, offsets, now_ns),
            (_, Some(Source::Jit(code))) => {
                let map = self.perf_maps.entry(id).or_default();
                if let Some(file) = &code.perf_map {
                    map.refresh(file);
                }
                map.used_ns = now_ns;
                offsets
                    .iter()
                    .map(|address| vec![jit_frame(map.find(*address))])
                    .collect()
            }
            (_, Some(Source::Special(name))) => offsets
                .iter()
                .map(|offset| vec![bare_frame(FrameKind::Native, name, None, *offset)])
                .collect(),
            (_, None) => offsets.iter().map(|_| vec![unknown_frame()]).collect(),
        }
    }

    fn name_kernel(&mut self, addresses: &[u64], now_ns: u64) -> Vec<Vec<Frame>> {
        let outdated = self.kernel_unknown
            && self
                .kernel
                .as_ref()
                .is_some_and(|kernel| now_ns.saturating_sub(kernel.read_ns) >= KERNEL_REREAD_NS);
        if outdated {
            self.kernel = None;
            self.cache.forget_source(SourceId::KERNEL);
        }
        if self.kernel.is_none() {
            self.stats.kernel_reads += 1;
            self.kernel_unknown = false;
        }
        let kernel = self.kernel.get_or_insert_with(|| KernelNames {
            symbolizer: Symbolizer::builder()
                .enable_code_info(false)
                .enable_inlined_fns(false)
                .build(),
            modules: KernelModules::read(),
            hidden: addresses_are_hidden(),
            read_ns: now_ns,
            used_ns: now_ns,
        });
        kernel.used_ns = now_ns;
        // Only what the running kernel says of itself: an image on disk may be another kernel's, and is large.
        let source = ElfSource::Kernel(Kernel {
            vmlinux: MaybeDefault::None,
            debug_syms: false,
            ..Kernel::default()
        });
        let symbols = if kernel.hidden {
            Vec::new()
        } else {
            kernel
                .symbolizer
                .symbolize(&source, Input::AbsAddr(addresses))
                .unwrap_or_else(|error| {
                    tracing::debug!(%error, "kernel symbols are not available");
                    Vec::new()
                })
        };
        let kernel_text: Arc<str> = "[kernel]".into();
        let mut frames = Vec::with_capacity(addresses.len());
        for (index, address) in addresses.iter().enumerate() {
            let module = kernel
                .modules
                .find(*address)
                .unwrap_or_else(|| Arc::clone(&kernel_text));
            match symbols.get(index).and_then(Symbolized::as_sym) {
                Some(symbol) => {
                    let module = if symbol.name.starts_with("bpf_prog_") {
                        "[bpf]".into()
                    } else {
                        module
                    };
                    frames.push(vec![named_frame(FrameKind::Kernel, module, None, &symbol.name)]);
                }
                None => {
                    self.kernel_unknown = true;
                    frames.push(vec![bare_frame(FrameKind::Kernel, &module, None, *address)]);
                }
            }
        }
        frames
    }

    fn name_vdso(&mut self, offsets: &[u64]) -> Vec<Vec<Frame>> {
        let module: Arc<str> = "[vdso]".into();
        let path = self.vdso.as_ref().and_then(Vdso::open_path);
        self.name_elf(path.map(PathBuf::from), false, &module, None, offsets)
    }

    fn name_module(&mut self, module: &Arc<Module>, offsets: &[u64], now_ns: u64) -> Vec<Vec<Frame>> {
        let path = module.open_path().map(PathBuf::from);
        let lines = match (&path, self.loaded.get_mut(&module.id)) {
            (_, Some(loaded)) => {
                loaded.used_ns = now_ns;
                loaded.lines
            }
            (Some(path), None) => {
                let loaded = Loaded {
                    lines: module.bytes <= self.config.lines_limit_bytes && module.has_lines(),
                    module: Arc::clone(module),
                    path: path.clone(),
                    used_ns: now_ns,
                };
                let lines = loaded.lines;
                self.loaded.insert(module.id, loaded);
                lines
            }
            (None, None) => false,
        };
        self.name_elf(path, lines, &module.path, module.build_id.as_ref(), offsets)
    }

    /// Names from the symbol table; lines and inlined functions from the debug information where `lines` allows it.
    fn name_elf(
        &mut self,
        path: Option<PathBuf>,
        lines: bool,
        module: &Arc<str>,
        build_id: Option<&Arc<str>>,
        offsets: &[u64],
    ) -> Vec<Vec<Frame>> {
        let symbolize = |debug_syms: bool| {
            let mut elf = Elf::new(path.as_ref()?);
            elf.debug_syms = debug_syms;
            match self.files.symbolize(&ElfSource::Elf(elf), Input::FileOffset(offsets)) {
                Ok(symbols) => Some(symbols),
                Err(error) => {
                    tracing::debug!(module = &**module, %error, "a file has no readable symbols");
                    None
                }
            }
        };
        let names = symbolize(false).unwrap_or_default();
        let details = if lines {
            symbolize(true).unwrap_or_default()
        } else {
            Vec::new()
        };
        offsets
            .iter()
            .enumerate()
            .map(|(index, offset)| {
                let (name, detail) = (symbol_at(&names, index), symbol_at(&details, index));
                match name.or(detail) {
                    Some(found) => native_frames(found, detail, module, build_id),
                    None => vec![bare_frame(FrameKind::Native, module, build_id, *offset)],
                }
            })
            .collect()
    }

    /// Drops what is idle or too much.
    fn tidy(&mut self, now_ns: u64) {
        self.limit_symbol_tables(now_ns);
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
        self.interner.tidy(self.config.cached_places);
    }

    /// Drops parsed files that are idle, or too many, or too large: the one used longest ago first.
    fn limit_symbol_tables(&mut self, now_ns: u64) {
        let mut by_age: Vec<(u64, SourceId)> = self.loaded.iter().map(|(id, loaded)| (loaded.used_ns, *id)).collect();
        by_age.sort_unstable();
        let mut files = by_age.len();
        let mut bytes: u64 = self.loaded.values().map(|loaded| loaded.module.bytes).sum();
        for (used_ns, id) in by_age {
            let too_much =
                files > self.config.open_symbol_tables || (files > 1 && bytes > self.config.open_symbol_table_bytes);
            if !too_much && now_ns.saturating_sub(used_ns) < IDLE_NS {
                break;
            }
            bytes -= self.loaded.get(&id).map_or(0, |loaded| loaded.module.bytes);
            files -= 1;
            self.evict(id);
        }
    }

    /// Drops the parsed form of a source; its names stay remembered.
    pub fn evict(&mut self, id: SourceId) {
        if let Some(loaded) = self.loaded.remove(&id) {
            let target = evict::Evict::Elf(evict::Elf::new(&loaded.path));
            if let Err(error) = self.files.evict(&target) {
                tracing::debug!(module = &*loaded.module.path, %error, "could not drop a symbol table");
            }
        }
    }
}

fn symbol_at<'s, 'src>(symbols: &'s [Symbolized<'src>], index: usize) -> Option<&'s Sym<'src>> {
    symbols.get(index).and_then(Symbolized::as_sym)
}

/// The frames of one address, innermost inlined function first.
fn native_frames(
    name: &Sym<'_>,
    detail: Option<&Sym<'_>>,
    module: &Arc<str>,
    build_id: Option<&Arc<str>>,
) -> Vec<Frame> {
    let mut outer = named_frame(FrameKind::Native, Arc::clone(module), build_id.cloned(), &name.name);
    let Some(detail) = detail else { return vec![outer] };
    set_line(&mut outer, detail.code_info.as_deref());
    // blazesym lists the inlined functions outermost first, each with where it stands in its own code.
    let mut frames: Vec<Frame> = detail
        .inlined
        .iter()
        .rev()
        .map(|inlined| {
            let mut frame = named_frame(FrameKind::Native, Arc::clone(module), build_id.cloned(), &inlined.name);
            frame.inlined = true;
            set_line(&mut frame, inlined.code_info.as_ref());
            frame
        })
        .collect();
    frames.push(outer);
    frames
}

fn set_line(frame: &mut Frame, code: Option<&CodeInfo<'_>>) {
    if let Some(code) = code {
        frame.file = Some(code.to_path().to_string_lossy().into());
        frame.line = code.line.unwrap_or(0);
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
