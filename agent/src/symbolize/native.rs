//! Names of code that came from files.
//!
//! Symbol tables are read by ourselves, through reads of the file: they are what nearly every name comes from, and a
//! file that is mapped instead ends its reader when somebody truncates it. blazesym adds lines and inlined functions,
//! for files that are small enough.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use blazesym::symbolize::source::{Elf, Source as ElfSource};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer, evict};

use super::config::{NamerConfig, NamerStats};
use super::demangle::demangle;
use super::file_symbols::{FileSymbols, GoPlace, LinesFound, ReadAt, copy_for_lines, lines_in};
use super::forms::{bare_frame, named_frame};
use super::vdso::Vdso;
use crate::elf::Coverage;
use crate::frames::{Frame, FrameKind, SourceId};
use crate::process::Module;
use crate::sys::MemoryFile;

/// Symbols that nobody needed for this long are dropped.
const IDLE_NS: u64 = 60_000_000_000;

/// So often in that time much of a large file's tables is read for what is asked for before all of it is sorted and
/// kept, which costs as much. What is needed now and then is better read each time: kept, it would be several megabytes
/// for a few names.
const GLANCES: u32 = 8;
const GLANCES_NS: u64 = 60_000_000_000;
/// Large files whose glances are counted.
const MAX_GLANCED: usize = 1024;
/// What may be remembered of which parts of their tables say what: 20 files with half a million symbols each.
const MAX_COVERAGE_BYTES: u64 = 640 * 1024;

/// A file whose symbols were read.
struct Loaded {
    module: Arc<Module>,
    /// None for what is no ELF file of a known machine.
    symbols: Option<FileSymbols>,
    lines: Option<Lines>,
    used_ns: u64,
}

/// A copy of what has line numbers, and the size of the debug information, unpacked.
struct Lines {
    path: PathBuf,
    bytes: u64,
    /// What the path leads to.
    _copy: MemoryFile,
}

/// How often much of a file's tables was read for some of its symbols since a moment, and what all of them would take.
struct Glances {
    count: u32,
    since_ns: u64,
    bytes: u64,
    /// Which parts of its tables say what.
    coverage: Vec<Coverage>,
}

/// Files whose symbols were read, a bounded number, and what reads their lines.
pub(super) struct NativeNames {
    loaded: HashMap<SourceId, Loaded>,
    /// Large files whose symbols are not kept.
    glanced: HashMap<SourceId, Glances>,
    line_reader: Symbolizer,
    vdso: Option<(Vdso, FileSymbols)>,
}

/// A symbolizer that looks for debug information nowhere but in the file itself.
fn line_reader(inlines: bool) -> Symbolizer {
    Symbolizer::builder()
        .set_debug_dirs(Some([] as [PathBuf; 0]))
        .enable_code_info(true)
        .enable_inlined_fns(inlines)
        .enable_demangling(false)
        .build()
}

impl NativeNames {
    pub(super) fn new() -> Self {
        let vdso = Vdso::of_this_process().and_then(|vdso| {
            let symbols = FileSymbols::read(&|offset, into| vdso.read_at(offset, into), |_| None)?;
            Some((vdso, symbols))
        });
        Self {
            loaded: HashMap::new(),
            glanced: HashMap::new(),
            line_reader: line_reader(true),
            vdso,
        }
    }

    /// Drops all lines that were read, and reads inlined functions from now on or not.
    pub(super) fn start_lines_anew(&mut self, inlines: bool) {
        self.loaded.retain(|_, loaded| loaded.lines.is_none());
        self.line_reader = line_reader(inlines);
    }

    /// Files whose symbols are held, and the memory that these take.
    pub(super) fn holds(&self) -> (usize, u64) {
        let symbols = self.loaded.values().filter_map(|loaded| loaded.symbols.as_ref());
        (self.loaded.len(), symbols.map(FileSymbols::bytes).sum())
    }

    pub(super) fn name_vdso(&self, offsets: &[u64]) -> Vec<Vec<Frame>> {
        let module: Arc<str> = "[vdso]".into();
        let name = |offset: u64| {
            let (vdso, symbols) = self.vdso.as_ref()?;
            symbols.name(symbols.address(offset)?, &|offset, into| vdso.read_at(offset, into))
        };
        let frame = |offset: &u64| match name(*offset) {
            Some(name) => named_frame(FrameKind::Native, Arc::clone(&module), None, &demangle(&name.text)),
            None => bare_frame(FrameKind::Native, &module, None, *offset),
        };
        offsets.iter().map(|offset| vec![frame(offset)]).collect()
    }

    pub(super) fn name_module(
        &mut self,
        module: &Arc<Module>,
        offsets: &[u64],
        now_ns: u64,
        config: &NamerConfig,
        stats: &mut NamerStats,
    ) -> Vec<Vec<Frame>> {
        if module.was_given_up() {
            stats.locations_given_up += offsets.len() as u64;
            self.evict(module.id);
            return offsets.iter().map(|offset| vec![bare(module, *offset)]).collect();
        }
        // Kept for the second look: who gives it up meanwhile does not hide that it was written over.
        let file = module.file();
        let is_overwritten = || file.as_ref().is_some_and(|file| module.is_another(file));
        if is_overwritten() {
            stats.overwritten_files += 1;
            self.evict(module.id);
            return offsets.iter().map(|offset| vec![bare(module, *offset)]).collect();
        }
        let glance = self.glance(module, offsets, now_ns, config, stats);
        if glance.is_none() {
            self.load(module, config, stats);
        }
        let loaded = self.loaded.get_mut(&module.id);
        let kept = loaded.and_then(|loaded| {
            loaded.used_ns = now_ns;
            Some((loaded.symbols.as_ref()?, loaded.lines.as_ref()))
        });
        let Some((symbols, lines)) = glance.as_ref().map(|symbols| (symbols, None)).or(kept) else {
            return offsets.iter().map(|offset| vec![bare(module, *offset)]).collect();
        };
        let read = reader(module, config);
        let addresses: Vec<Option<u64>> = offsets.iter().map(|offset| symbols.address(*offset)).collect();
        let _turn = lines.and_then(|lines| config.read_turn.take(lines.bytes.saturating_mul(2)));
        let details = details(&self.line_reader, lines, &addresses);
        if lines.is_some() {
            // What blazesym has mapped of the copy counts twice, and the next file needs the room.
            crate::sys::release_memory();
        }
        let go = if symbols.is_go() {
            symbols.go_places(&addresses, &read)
        } else {
            Vec::new()
        };
        let frames = |(index, address): (usize, &Option<u64>)| {
            let go = go.get(index).map_or(&[][..], Vec::as_slice);
            let name = address
                .filter(|_| go.is_empty())
                .and_then(|address| symbols.name(address, &read));
            let plt_name = || symbols.plt_name((*address)?, &read);
            let plt = if name.is_none() && go.is_empty() {
                plt_name()
            } else {
                None
            };
            stats.cut_names += u64::from(name.as_ref().or(plt.as_ref()).is_some_and(|name| name.cut));
            let found = Found {
                symbol: name.map(|name| name.text),
                plt: plt.map(|name| name.text),
                detail: details.get(index).and_then(Symbolized::as_sym),
                go,
            };
            found
                .frames(module)
                .unwrap_or_else(|| vec![bare(module, offsets[index])])
        };
        let named = addresses.iter().enumerate().map(frames).collect();
        if module.was_given_up() {
            // Meanwhile: what was read of its tables may be a part.
            self.evict(module.id);
        }
        if is_overwritten() {
            // Meanwhile: nobody knows what of it was read before and what after.
            stats.overwritten_files += 1;
            self.evict(module.id);
            return offsets.iter().map(|offset| vec![bare(module, *offset)]).collect();
        }
        named
    }

    /// Reads all symbols of a file, unless they are there.
    fn load(&mut self, module: &Arc<Module>, config: &NamerConfig, stats: &mut NamerStats) {
        if self.loaded.contains_key(&module.id) {
            return;
        }
        let turn = config.read_turn.take(module.bytes);
        if turn.is_some() {
            crate::sys::release_memory();
        }
        let loaded = load(module, config, stats);
        self.make_room_for_lines(&loaded, config);
        self.loaded.insert(module.id, loaded);
    }

    /// The symbols around some offsets of a large file that gives no lines. None where all of them are there, or should
    /// be: they were needed often, and find room.
    fn glance(
        &mut self,
        module: &Arc<Module>,
        offsets: &[u64],
        now_ns: u64,
        config: &NamerConfig,
        stats: &mut NamerStats,
    ) -> Option<FileSymbols> {
        if self.loaded.contains_key(&module.id) || module.bytes <= config.lines_limit_bytes {
            return None;
        }
        let known = self.glanced.get(&module.id);
        let counted = known.filter(|known| now_ns.saturating_sub(known.since_ns) < GLANCES_NS);
        let (count, since_ns) = counted.map_or((0, now_ns), |counted| (counted.count, counted.since_ns));
        if known.is_some_and(|known| {
            count >= GLANCES && self.holds().1.saturating_add(known.bytes) <= config.symbol_table_bytes
        }) {
            self.glanced.remove(&module.id);
            return None;
        }
        let read = reader(module, config);
        let coverage = known.map_or(&[][..], |known| &known.coverage);
        let (symbols, glance) = FileSymbols::read_around(&read, offsets, coverage)?;
        if known.is_none() {
            stats.damaged_files += u64::from(symbols.damaged);
            if config.lines_limit_bytes > 0 {
                // For the count of lines that are left out.
                lines_of(module, &symbols, config, stats);
            }
            if self.glanced.len() >= MAX_GLANCED {
                self.glanced.clear();
            }
        }
        self.make_room_for_coverage(&glance.found);
        let glances = self.glanced.entry(module.id).or_insert_with(|| Glances {
            count: 0,
            since_ns,
            bytes: 0,
            coverage: Vec::new(),
        });
        glances.bytes = glance.all_bytes;
        glances.since_ns = since_ns;
        glances.count = count.saturating_add(u32::from(glance.is_dear));
        if !glance.found.is_empty() {
            glances.coverage = glance.found;
        }
        Some(symbols)
    }

    /// Forgets what is known of files' tables where that would be too much together with `new`.
    fn make_room_for_coverage(&mut self, new: &[Coverage]) {
        let bytes = |coverage: &[Coverage]| coverage.iter().map(Coverage::bytes).sum::<u64>();
        let held: u64 = self.glanced.values().map(|glances| bytes(&glances.coverage)).sum();
        if !new.is_empty() && held + bytes(new) > MAX_COVERAGE_BYTES {
            self.glanced
                .values_mut()
                .for_each(|glances| glances.coverage = Vec::new());
        }
    }

    /// Gives up the lines of other files, those used longest ago first, until those of `new` fit beside what stays.
    fn make_room_for_lines(&mut self, new: &Loaded, config: &NamerConfig) {
        let Some(wanted) = new.lines.as_ref().map(|lines| lines.bytes) else {
            return;
        };
        let with_lines = |(id, loaded): (&SourceId, &Loaded)| Some((loaded.used_ns, *id, loaded.lines.as_ref()?.bytes));
        let mut by_age: Vec<(u64, SourceId, u64)> = self.loaded.iter().filter_map(with_lines).collect();
        by_age.sort_unstable();
        let mut held: u64 = by_age.iter().map(|(.., bytes)| bytes).sum();
        for (_, id, bytes) in by_age {
            if held.saturating_add(wanted) <= config.line_table_bytes {
                break;
            }
            self.evict(id);
            held -= bytes;
        }
    }

    /// Drops symbols that are idle, or too many: those used longest ago first.
    pub(super) fn limit(&mut self, now_ns: u64, config: &NamerConfig) {
        let mut by_age: Vec<(u64, SourceId)> = self.loaded.iter().map(|(id, loaded)| (loaded.used_ns, *id)).collect();
        by_age.sort_unstable();
        let (mut files, mut bytes) = self.holds();
        let lines = self.loaded.values().filter_map(|loaded| loaded.lines.as_ref());
        let mut line_bytes: u64 = lines.clone().map(|lines| lines.bytes).sum();
        let mut with_lines = lines.count();
        for (used_ns, id) in by_age {
            let too_much = files > config.open_symbol_tables
                || bytes > config.symbol_table_bytes
                || with_lines > config.open_line_tables
                || (with_lines > 1 && line_bytes > config.line_table_bytes);
            let loaded = self.loaded.get(&id);
            // Its debug file would be held for nobody.
            let given_up = loaded.is_some_and(|loaded| loaded.module.was_given_up());
            if !too_much && !given_up && now_ns.saturating_sub(used_ns) < IDLE_NS {
                continue;
            }
            if let Some(loaded) = loaded {
                files -= 1;
                bytes -= loaded.symbols.as_ref().map_or(0, FileSymbols::bytes);
                with_lines -= usize::from(loaded.lines.is_some());
                line_bytes -= loaded.lines.as_ref().map_or(0, |lines| lines.bytes);
            }
            self.evict(id);
        }
    }

    pub(super) fn evict_all(&mut self) {
        let all: Vec<SourceId> = self.loaded.keys().copied().collect();
        all.into_iter().for_each(|id| self.evict(id));
        self.glanced = HashMap::new();
    }

    pub(super) fn evict(&mut self, id: SourceId) {
        if let Some(loaded) = self.loaded.remove(&id)
            && let Some(Lines { path, .. }) = loaded.lines
        {
            let target = evict::Evict::Elf(evict::Elf::new(path));
            if let Err(error) = self.line_reader.evict(&target) {
                tracing::debug!(module = &*loaded.module.path, %error, "could not drop line numbers");
            }
        }
    }
}

/// Reads a file as fast as the CPU budget allows, unless tables wait for that.
fn reader<'a>(module: &'a Module, config: &'a NamerConfig) -> impl Fn(u64, &mut [u8]) -> bool + use<'a> {
    |offset, into| {
        if !config.read_turn.is_waited_for() {
            config.cpu_budget.rest(config.needed_by);
        }
        module.read_at(offset, into)
    }
}

fn load(module: &Arc<Module>, config: &NamerConfig, stats: &mut NamerStats) -> Loaded {
    let read = reader(module, config);
    let symbols = FileSymbols::read(&read, |link| link.open(&module.path, module.user_tgid()));
    let mut lines = None;
    if let Some(symbols) = &symbols {
        stats.damaged_files += u64::from(symbols.damaged);
        stats.unpacked_files += u64::from(symbols.unpacked);
        stats.debug_files += u64::from(symbols.debug_file().is_some());
        stats.symbols_left_out += u64::from(symbols.full);
        if config.lines_limit_bytes > 0 {
            lines = lines_of(module, symbols, config, stats);
        }
    }
    Loaded {
        module: Arc::clone(module),
        symbols,
        lines,
        used_ns: 0,
    }
}

/// Where a file's line numbers are, its own or those of its debug file.
fn lines_of(module: &Module, symbols: &FileSymbols, config: &NamerConfig, stats: &mut NamerStats) -> Option<Lines> {
    let limits = (config.lines_limit_bytes, config.line_table_bytes);
    let own = reader(module, config);
    let debug = symbols.debug_file();
    let of_debug_file = |offset: u64, into: &mut [u8]| {
        config.cpu_budget.rest(config.needed_by);
        debug.is_some_and(|debug| debug.read_at(offset, into))
    };
    let (mut read, mut file_bytes): (ReadAt<'_>, u64) = (&own, module.bytes);
    let mut found = lines_in(read, file_bytes, limits);
    if found == LinesFound::None {
        (read, file_bytes) = (&of_debug_file, debug?.state().bytes);
        found = lines_in(read, file_bytes, limits);
    }
    match found {
        LinesFound::None => None,
        LinesFound::TooLarge => {
            stats.lines_left_out += 1;
            None
        }
        LinesFound::Bytes(bytes) => {
            let copy = copy_for_lines(read, file_bytes)?;
            Some(Lines {
                path: copy.path(),
                bytes,
                _copy: copy,
            })
        }
    }
}

/// What debug information says of addresses, in the same order; nothing where there is none.
fn details<'s>(reader: &'s Symbolizer, lines: Option<&Lines>, addresses: &[Option<u64>]) -> Vec<Symbolized<'s>> {
    let Some(Lines { path, .. }) = lines else {
        return Vec::new();
    };
    // No code lies at the highest address.
    let addresses: Vec<u64> = addresses.iter().map(|address| address.unwrap_or(u64::MAX)).collect();
    match reader.symbolize(&ElfSource::Elf(Elf::new(path)), Input::VirtOffset(&addresses)) {
        Ok(details) => details,
        Err(error) => {
            tracing::debug!(path = %path.display(), %error, "a file has no readable line numbers");
            Vec::new()
        }
    }
}

/// True where what was found has a name and is around the address, not merely below it.
fn names(detail: &Sym<'_>) -> bool {
    !detail.name.is_empty() && detail.size.is_some_and(|bytes| detail.offset < bytes)
}

/// What is known of one address.
struct Found<'a> {
    symbol: Option<String>,
    /// Where the address, which no symbol covers, jumps to.
    plt: Option<String>,
    detail: Option<&'a Sym<'a>>,
    /// Innermost first, the function itself last.
    go: &'a [GoPlace],
}

impl Found<'_> {
    /// The frames of the address, innermost inlined function first. None where nothing names it.
    fn frames(&self, module: &Module) -> Option<Vec<Frame>> {
        let frame = |name: &str| {
            named_frame(
                FrameKind::Native,
                Arc::clone(&module.path),
                module.build_id.clone(),
                name,
            )
        };
        if let Some(plt) = &self.plt {
            return Some(vec![frame(&format!("{}@plt", demangle(plt)))]);
        }
        let mut outer = match (&self.symbol, self.detail, self.go.last()) {
            // Go's own table first: its names are those of Go's stack traces, the same whether a program is stripped or
            // not.
            (_, _, Some(go)) => frame(&go.function),
            (Some(symbol), ..) => frame(&demangle(symbol)),
            (None, Some(detail), None) if names(detail) => frame(&demangle(&detail.name)),
            (None, ..) => return None,
        };
        let Some(detail) = self.detail.filter(|detail| detail.code_info.is_some()) else {
            let Some((_, inlined)) = self.go.split_last() else {
                return Some(vec![outer]);
            };
            let mut frames: Vec<Frame> = inlined.iter().map(|place| frame(&place.function)).collect();
            frames.iter_mut().for_each(|frame| frame.inlined = true);
            frames.push(outer);
            for (frame, place) in frames.iter_mut().zip(self.go) {
                if let Some((file, line)) = &place.line {
                    frame.file = Some(file.as_str().into());
                    frame.line = *line;
                }
            }
            return Some(frames);
        };
        set_line(&mut outer, detail.code_info.as_deref());
        // blazesym lists the inlined functions outermost first, each with where it stands in its own code.
        let mut frames: Vec<Frame> = detail
            .inlined
            .iter()
            .rev()
            .map(|inlined| {
                let mut frame = frame(&demangle(&inlined.name));
                frame.inlined = true;
                set_line(&mut frame, inlined.code_info.as_ref());
                frame
            })
            .collect();
        frames.push(outer);
        Some(frames)
    }
}

fn bare(module: &Module, offset: u64) -> Frame {
    bare_frame(FrameKind::Native, &module.path, module.build_id.as_ref(), offset)
}

fn set_line(frame: &mut Frame, code: Option<&CodeInfo<'_>>) {
    if let Some(code) = code {
        frame.file = Some(code.to_path().to_string_lossy().into());
        frame.line = code.line.unwrap_or(0);
    }
}
