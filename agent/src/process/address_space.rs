//! Where the code of a process comes from, as /proc tells it now.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use super::holding::Holding;
use super::made::{JitCode, MadeFile, PerfMapFile};
use super::maps::{Backing, MapLine, neighbours, parse_maps};
use super::modules::{MappedFile, Module, ModuleTable, Opened};
use super::proc_files;
use super::reading::mapped_state;
use crate::elf::Segment;
use crate::frames::SourceId;
use crate::sys::{FileState, Owner, guarded, guarded_for};

/// What a [`SourceId`] stands for, beyond the fixed ones.
#[derive(Debug, Clone)]
pub enum Source {
    /// A file that holds code.
    Module(Arc<Module>),
    /// Code made at run time by one program.
    Jit(Arc<JitCode>),
    /// A name in brackets from /proc/PID/maps.
    Special(Arc<str>),
    /// Code that the kernel made at run time; none where nobody can say what it was at the time.
    Kernel(Option<Arc<str>>),
}

impl Source {
    /// Of the file that is held for it, by which it is known when that is given up.
    pub fn held_id(&self) -> Option<SourceId> {
        match self {
            Self::Module(module) => Some(module.id),
            Self::Jit(code) => Some(code.perf_map.id),
            Self::Special(_) | Self::Kernel(_) => None,
        }
    }
}

/// One executable mapping of a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) source: SourceId,
    /// Added to an address inside gives the place's offset (wrapping).
    pub(super) to_offset: u64,
    /// Of the line of /proc/PID/maps that it begins with.
    pub(super) hash: u64,
}

/// Equal where they mean the same, whatever else /proc says of them.
impl PartialEq for Mapping {
    fn eq(&self, other: &Self) -> bool {
        (self.start, self.end, self.source, self.to_offset) == (other.start, other.end, other.source, other.to_offset)
    }
}

/// Executable memory of a program, `end` exclusive. `offset` is what its first byte is in its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeRange {
    /// Address of the first byte.
    pub start: u64,
    /// Address behind the last byte.
    pub end: u64,
    /// What the code is part of.
    pub source: SourceId,
    /// Of the first byte, in its source.
    pub offset: u64,
}

/// Executable mappings, ascending, and what their sources are.
pub(super) type AddressSpace = (Vec<Mapping>, Vec<(SourceId, Source)>);

/// Executable mappings looked at per process: as many as the kernel allows by default.
const MAX_MAPPINGS: usize = 65_536;
/// Files of one process that hold code which it made; what lies in more of them has no file.
const MAX_MADE_FILES: usize = 64;

/// A line of /proc/PID/maps, and what file it shows.
struct Line {
    map: MapLine,
    /// As the process's mapping tells it; none where that is known from the last time, or can't be told.
    state: Option<FileState>,
    /// It is a file that needs no server.
    local: bool,
}

/// Reads the mappings of a process, and asks of those that are new what they show. `before` is what it had when it was
/// read last.
fn scan(tgid: u32, before: &[Mapping]) -> Option<Vec<Line>> {
    let text = proc_files::maps(tgid)?;
    let code = parse_maps(&text, MAX_MAPPINGS);
    let around = if code.iter().any(|line| line.backing.may_be_made()) {
        neighbours(&text, &code)
    } else {
        Vec::new()
    };
    // What can be found among the others need not be opened again.
    let is_other = |line: &MapLine| !line.executable;
    let lines = code.into_iter().chain(around.into_iter().filter(is_other));
    let state_of = |map: MapLine| {
        let is_new = matches!(map.backing, Backing::File { .. }) && known(before, &map).is_none();
        let told = is_new.then(|| mapped_state(tgid, map.start, map.end)).flatten();
        let (state, local) = told.map_or((None, true), |(state, local)| (Some(state), local));
        Line { map, state, local }
    };
    Some(lines.map(state_of).collect())
}

/// A file that is to be opened.
struct Wanted {
    /// Which line shows it.
    line: usize,
    range: (u64, u64),
    inode: u64,
    path: String,
    /// The device of its filesystem, where that needs a server.
    server: Option<u64>,
    /// Nothing was asked about it this time.
    unasked: bool,
}

impl Wanted {
    fn open(&self, tgid: u32) -> Option<Opened> {
        // Was tried before: its server did not answer then.
        let (start, end) = self.range;
        if self.unasked && mapped_state(tgid, start, end).is_some_and(|(_, local)| !local) {
            return None;
        }
        Opened::of_mapping(tgid, self.range, self.inode, &self.path)
    }
}

/// Opens files that a process maps: local ones together, and each of the others by itself, so that who does not answer
/// takes none with it.
fn open_all(tgid: u32, wanted: Vec<Wanted>) -> Vec<(usize, Option<Opened>)> {
    let (served, local): (Vec<Wanted>, Vec<Wanted>) = wanted.into_iter().partition(|file| file.server.is_some());
    let lines: Vec<usize> = local.iter().map(|file| file.line).collect();
    let mut all = Vec::with_capacity(lines.len() + served.len());
    if !local.is_empty() {
        let opened = guarded_for(tgid, move || {
            local.iter().map(|file| file.open(tgid)).collect::<Vec<_>>()
        });
        let mut opened = opened.unwrap_or_default().into_iter();
        all.extend(lines.into_iter().map(|line| (line, opened.next().flatten())));
    }
    for file in served {
        let (line, device) = (file.line, file.server.unwrap_or_default());
        let opened = guarded(Owner::Device(device), move || file.open(tgid));
        all.push((line, opened.flatten()));
    }
    all
}

/// The mapping of the same line.
fn known<'a>(before: &'a [Mapping], line: &MapLine) -> Option<&'a Mapping> {
    let at = before.binary_search_by_key(&line.start, |mapping| mapping.start).ok()?;
    before.get(at).filter(|mapping| mapping.hash == line.hash)
}

/// All sources of code that were met.
#[derive(Debug)]
pub(super) struct Sources {
    modules: ModuleTable,
    next: u32,
    holding: Holding,
}

impl Sources {
    pub(super) fn new(modules: ModuleTable) -> Self {
        Self {
            modules,
            next: SourceId::FIRST_FREE,
            holding: Holding::default(),
        }
    }

    pub(super) fn take_id(&mut self) -> SourceId {
        SourceId::take(&mut self.next)
    }

    /// Files held open.
    pub(super) fn open_files(&self) -> usize {
        self.modules.open_files()
    }

    /// Files that are held, and since when nobody needs them.
    pub(super) fn holding(&self) -> &Holding {
        &self.holding
    }

    pub(super) fn holding_mut(&mut self) -> &mut Holding {
        &mut self.holding
    }

    /// Where the code of a process comes from now. What was there when it was read last (`before`) keeps its sources.
    pub(super) fn read(
        &mut self,
        tgid: u32,
        before: &Arc<Vec<Mapping>>,
        sources: &[(SourceId, Source)],
    ) -> Option<AddressSpace> {
        let lines = {
            let before = Arc::clone(before);
            guarded_for(tgid, move || scan(tgid, &before))??
        };
        let files = self.files_of(tgid, &lines, before, sources);
        let mut space = Space {
            tgid,
            sources: self,
            before: sources,
            found: Vec::new(),
            mappings: Vec::with_capacity(lines.len()),
        };
        let is_code = |(line, _): &(&Line, &Option<MappedFile>)| line.map.executable;
        let origins = Origins::of(&lines, &files);
        for (line, file) in lines.iter().zip(&files).filter(is_code) {
            space.add(&line.map, file.as_ref(), &origins);
        }
        let Space { mappings, found, .. } = space;
        Some((mappings, found))
    }

    /// The file of each line that shows one: those that are known, and others that are opened for that.
    fn files_of(
        &mut self,
        tgid: u32,
        lines: &[Line],
        before: &[Mapping],
        sources: &[(SourceId, Source)],
    ) -> Vec<Option<MappedFile>> {
        let mut files: Vec<Option<MappedFile>> = lines
            .iter()
            .map(|line| self.recall(tgid, line, before, sources))
            .collect();
        // Each file once, by what is known of it.
        let mut wanted: Vec<Wanted> = Vec::new();
        let mut asked: HashMap<(u64, u64, u64, &str), usize> = HashMap::new();
        let mut same: Vec<(usize, usize)> = Vec::new();
        for (index, line) in lines.iter().enumerate().filter(|(index, _)| files[*index].is_none()) {
            let Backing::File { device, inode, path } = &line.map.backing else {
                continue;
            };
            let real = line
                .state
                .map_or((*device, *inode), |state| (state.device, state.inode));
            match asked.entry((real.0, real.1, *inode, path)) {
                Entry::Occupied(first) => same.push((index, *first.get())),
                Entry::Vacant(entry) => {
                    entry.insert(index);
                    wanted.push(Wanted {
                        line: index,
                        range: (line.map.start, line.map.end),
                        inode: *inode,
                        path: path.clone(),
                        server: line.state.filter(|_| !line.local).map(|state| state.device),
                        unasked: line.state.is_none(),
                    });
                }
            }
        }
        // What may not be opened any more is a module without names.
        let beyond = wanted.split_off(wanted.len().min(self.modules.room()));
        let beyond = beyond.into_iter().map(|file| (file.line, None));
        for (index, opened) in open_all(tgid, wanted).into_iter().chain(beyond) {
            let Backing::File { device, inode, path } = &lines[index].map.backing else {
                continue;
            };
            let next = &mut self.next;
            let file = self
                .modules
                .add(tgid, opened, (*device, *inode, path), &mut || SourceId::take(next));
            if let MappedFile::Module(module) = &file {
                self.holding.watch(module.id, module.held());
            }
            files[index] = Some(file);
        }
        for (index, first) in same {
            files[index] = match &files[first] {
                Some(MappedFile::Module(module)) => Some(MappedFile::Module(Arc::clone(module))),
                Some(MappedFile::Made) => Some(MappedFile::Made),
                None => None,
            };
        }
        files
    }

    /// What is known of a line's file. A mapping that was there before shows what it showed then, unless that was
    /// written over or given up.
    fn recall(
        &mut self,
        tgid: u32,
        line: &Line,
        before: &[Mapping],
        sources: &[(SourceId, Source)],
    ) -> Option<MappedFile> {
        if !matches!(line.map.backing, Backing::File { .. }) {
            return None;
        }
        if let Some(state) = line.state {
            return self.modules.known(tgid, state).map(MappedFile::Module);
        }
        let mapping = known(before, &line.map)?;
        let (_, source) = sources.iter().find(|(id, _)| *id == mapping.source)?;
        match source {
            Source::Module(module) => {
                module.used_by(tgid);
                let is_same = module.is_open() && !module.is_overwritten();
                is_same.then(|| MappedFile::Module(Arc::clone(module)))
            }
            Source::Jit(_) => Some(MappedFile::Made),
            Source::Special(_) | Source::Kernel(_) => None,
        }
    }
}

/// An address space while it is put together.
struct Space<'a> {
    tgid: u32,
    sources: &'a mut Sources,
    before: &'a [(SourceId, Source)],
    found: Vec<(SourceId, Source)>,
    mappings: Vec<Mapping>,
}

impl Space<'_> {
    fn add(&mut self, line: &MapLine, file: Option<&MappedFile>, origins: &Origins) {
        match (&line.backing, file) {
            (Backing::File { .. }, Some(MappedFile::Module(module))) => {
                let id = self.take(module.id, || Source::Module(Arc::clone(module)));
                self.push(line, line.start, id, line.file_offset.wrapping_sub(line.start));
            }
            (Backing::Anonymous, _) => self.add_made(line, None, origins),
            (Backing::File { path, .. }, _) => {
                let is_memory = line.backing.may_be_made();
                let file = (!is_memory).then(|| MadeFile {
                    path: path.as_str().into(),
                    to_offset: line.file_offset.wrapping_sub(line.start),
                });
                self.add_made(line, file, origins);
            }
            // A 32-bit process has another vDSO than the one that names are known of.
            (Backing::Vdso, _) if line.start >= 1 << 32 => {
                self.push(line, line.start, SourceId::VDSO, 0u64.wrapping_sub(line.start));
            }
            (Backing::Vdso, _) => self.add_special(line, "[vdso]"),
            (Backing::Special(name), _) => self.add_special(line, name),
        }
    }

    /// Code that was made, or copied from a program's file to where the program has it.
    fn add_made(&mut self, line: &MapLine, file: Option<MadeFile>, origins: &Origins) {
        let mut start = line.start;
        if let Some(origin) = origins.find(line.start) {
            let module = &origin.module;
            let id = self.take(module.id, || Source::Module(Arc::clone(module)));
            let end = line.end.min(origin.end);
            self.mappings.push(Mapping {
                start,
                end,
                source: id,
                to_offset: origin.to_offset,
                hash: line.hash,
            });
            start = end;
        }
        if start < line.end {
            let id = self.jit(file);
            self.push(line, start, id, 0);
        }
    }

    fn add_special(&mut self, line: &MapLine, name: &str) {
        let is_same = |(_, source): &&(SourceId, Source)| matches!(source, Source::Special(known) if **known == *name);
        let known = self.found.iter().chain(self.before).find(is_same).cloned();
        let (id, source) =
            known.unwrap_or_else(|| (SourceId::take(&mut self.sources.next), Source::Special(name.into())));
        let id = self.take(id, || source);
        self.push(line, line.start, id, 0);
    }

    /// The source of code that this process made in a file, or in none. All of them share its perf map.
    fn jit(&mut self, file: Option<MadeFile>) -> SourceId {
        let made = |(id, source): &(SourceId, Source)| match source {
            Source::Jit(code) => Some((*id, Arc::clone(code))),
            _ => None,
        };
        let all = self.found.iter().chain(self.before);
        let known: Vec<(SourceId, Arc<JitCode>)> = all.filter_map(made).collect();
        let file = file.filter(|_| known.len() < MAX_MADE_FILES);
        if let Some((id, code)) = known.iter().find(|(_, code)| code.file == file) {
            if let Some(file) = &file {
                code.perf_map.note_mapped(&file.path);
            }
            return self.take(*id, || Source::Jit(Arc::clone(code)));
        }
        let id = SourceId::take(&mut self.sources.next);
        let perf_map = known.first().map(|(_, code)| Arc::clone(&code.perf_map));
        let perf_map = perf_map.unwrap_or_else(|| {
            let map = PerfMapFile::new(id, self.tgid, self.sources.modules.count());
            self.sources.holding.watch(id, map.held());
            Arc::new(map)
        });
        if let Some(file) = &file {
            perf_map.note_mapped(&file.path);
        }
        let tgid = self.tgid;
        self.take(id, || Source::Jit(Arc::new(JitCode { tgid, perf_map, file })))
    }

    fn take(&mut self, id: SourceId, source: impl FnOnce() -> Source) -> SourceId {
        if !self.found.iter().any(|(known, _)| *known == id) {
            self.found.push((id, source()));
        }
        id
    }

    /// One more mapping; what a run-time compiler mapped piece by piece, one behind the other, is one.
    fn push(&mut self, line: &MapLine, start: u64, source: SourceId, to_offset: u64) {
        if to_offset == 0
            && let Some(last) = self.mappings.last_mut()
            && (last.end, last.source, last.to_offset) == (start, source, 0)
        {
            last.end = line.end;
            return;
        }
        self.mappings.push(Mapping {
            start,
            end: line.end,
            source,
            to_offset,
            hash: line.hash,
        });
    }
}

/// Where a program's file says that its code lies, in the process's addresses.
struct Origin {
    start: u64,
    end: u64,
    to_offset: u64,
    module: Arc<Module>,
}

/// Of all files that are mapped near code which was made: such code may have been copied from them, to have it on large
/// pages.
struct Origins(Vec<Origin>);

impl Origins {
    fn of(lines: &[Line], files: &[Option<MappedFile>]) -> Self {
        if !lines
            .iter()
            .any(|line| line.map.executable && line.map.backing.may_be_made())
        {
            return Self(Vec::new());
        }
        let mut origins: Vec<Origin> = Vec::new();
        for (line, file) in lines.iter().zip(files) {
            let Some(MappedFile::Module(module)) = file else {
                continue;
            };
            let known = origins.iter().any(|origin| {
                Arc::ptr_eq(&origin.module, module)
                    && origin.to_offset.wrapping_add(line.map.start) == line.map.file_offset
            });
            if !known {
                origins.extend(origins_of(&line.map, module));
            }
        }
        origins.sort_by_key(|origin| origin.start);
        Self(origins)
    }

    fn find(&self, address: u64) -> Option<&Origin> {
        let after = self.0.partition_point(|origin| origin.start <= address);
        self.0[..after].last().filter(|origin| address < origin.end)
    }
}

/// Where all code of a file lies that is mapped at one place.
fn origins_of(line: &MapLine, module: &Arc<Module>) -> Vec<Origin> {
    const PAGE_BYTES: u64 = 4096;
    let page = |value: u64| value / PAGE_BYTES * PAGE_BYTES;
    let shows = |segment: &&Segment| {
        segment.executable == line.executable
            && page(segment.offset) <= line.file_offset
            && line.file_offset < segment.offset.saturating_add(segment.bytes)
    };
    let Some(shown) = module.segments().iter().find(shows) else {
        return Vec::new();
    };
    let address = line.file_offset.wrapping_sub(shown.offset).wrapping_add(shown.address);
    let bias = line.start.wrapping_sub(address);
    let code = module.segments().iter().filter(|segment| segment.executable);
    code.map(|segment| {
        let start = bias.wrapping_add(segment.address);
        Origin {
            start: page(start),
            end: page(start.saturating_add(segment.bytes).saturating_add(PAGE_BYTES - 1)),
            to_offset: segment.offset.wrapping_sub(start),
            module: Arc::clone(module),
        }
    })
    .collect()
}
