//! What is known of each file's table, and what of it lies where the kernel side walks.

use std::collections::HashSet;
use std::sync::Arc;

use super::compiler::Made;
use super::eviction::{Candidate, KEEP_NS};
use super::stats::UnwindStats;
use crate::frames::{CodeLocation, SourceId};
use crate::hash::FastMap;
use crate::kernel::Tables;
use crate::unwind::{self, Code, FileTable, Filled, Installed, NoRoom, Outline, Segment, TableError};

/// How long a part is kept that no sample needs, while other parts of its file are needed: a compiler or browser that
/// runs now and then gets into other parts each time, which would stay until all room is taken.
const KEEP_PART_NS: u64 = 2 * KEEP_NS;
/// How long a table that found no room is not tried again.
const NO_ROOM_NS: u64 = 10_000_000_000;

/// What is known of a source's code.
enum FileState {
    Pending,
    NoTable,
    /// The file can't be read at present: its table is made when it is met again.
    Unread,
    Installed {
        table: Installed,
        base: u64,
        segments: Vec<Segment>,
        used_ns: u64,
    },
    /// Was given up for room, or found none; made again when a sample needs it after that time.
    Evicted {
        until_ns: u64,
    },
    InParts(InParts),
}

/// A large file.
struct InParts {
    directory: Installed,
    outline: Arc<Outline>,
    /// Those that were ever asked for and not given up since.
    parts: FastMap<u32, PartState>,
    used_ns: u64,
}

enum PartState {
    Asked,
    Filled {
        filled: Filled,
        used_ns: u64,
    },
    /// Found no room; asked for again after that time.
    Refused {
        until_ns: u64,
    },
}

impl FileState {
    fn bytes(&self) -> u64 {
        match self {
            FileState::Installed { table, .. } => table.bytes(),
            FileState::InParts(file) => {
                let filled = file.parts.values().filter_map(|state| match state {
                    PartState::Filled { filled, .. } => Some(filled.bytes()),
                    _ => None,
                });
                filled.sum()
            }
            _ => 0,
        }
    }
}

impl InParts {
    /// The part in which an offset of the file lies.
    fn part_at(&self, offset: u64) -> Option<u32> {
        self.outline
            .part_of(unwind::code_address(&self.outline.segments, offset)?)
    }
}

/// What a stack that stopped at a location still lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lack {
    /// The table is there, or there will never be one.
    Nothing,
    /// It is being made, or will be.
    Pending,
    /// The file's table is to be asked for again.
    File,
    /// So is a part of it.
    Part(u32),
    /// There is no room for it yet.
    Waits,
    /// It is no file: code that a program makes, or of which nothing is known.
    NoFile,
}

/// All files whose code was met.
#[derive(Default)]
pub(super) struct Files {
    states: FastMap<SourceId, FileState>,
    pub(super) stats: UnwindStats,
}

impl Files {
    /// True where the file was not known before, or could not be read: from now on its table is to come, or it has
    /// none.
    pub(super) fn meet(&mut self, id: SourceId, can_be_read: bool) -> bool {
        let is_new = matches!(self.states.get(&id), None | Some(FileState::Unread));
        if is_new {
            let state = if can_be_read {
                FileState::Pending
            } else {
                FileState::Unread
            };
            self.states.insert(id, state);
        }
        is_new && can_be_read
    }

    pub(super) fn lack(&self, location: CodeLocation, now_ns: u64) -> Lack {
        match self.states.get(&location.source) {
            Some(FileState::Installed { .. } | FileState::NoTable | FileState::Unread) => Lack::Nothing,
            Some(FileState::Pending) => Lack::Pending,
            Some(FileState::Evicted { until_ns }) if *until_ns <= now_ns => Lack::File,
            Some(FileState::InParts(file)) => {
                let Some(part) = file.part_at(location.offset) else {
                    return Lack::Nothing;
                };
                match file.parts.get(&part) {
                    Some(PartState::Filled { .. }) => Lack::Nothing,
                    Some(PartState::Asked) => Lack::Pending,
                    Some(PartState::Refused { until_ns }) if *until_ns > now_ns => Lack::Waits,
                    Some(PartState::Refused { .. }) | None => Lack::Part(part),
                }
            }
            Some(FileState::Evicted { .. }) => Lack::Waits,
            None => Lack::NoFile,
        }
    }

    /// A part of a file was asked for.
    pub(super) fn ask_part(&mut self, id: SourceId, part: u32) {
        if let Some(FileState::InParts(file)) = self.states.get_mut(&id) {
            file.parts.insert(part, PartState::Asked);
        }
    }

    /// What is asked for again is as new.
    pub(super) fn forget(&mut self, id: SourceId) {
        self.states.remove(&id);
    }

    pub(super) fn outline_of(&self, id: SourceId) -> Option<Arc<Outline>> {
        match self.states.get(&id) {
            Some(FileState::InParts(file)) => Some(Arc::clone(&file.outline)),
            _ => None,
        }
    }

    /// Samples were taken in code at these locations.
    pub(super) fn mark_used<'p>(&mut self, locations: impl Iterator<Item = &'p CodeLocation>, now_ns: u64) {
        // Neighbours in a stack are of one file mostly: it is looked up once.
        let mut marked_whole = None;
        for location in locations {
            if marked_whole == Some(location.source) {
                continue;
            }
            match self.states.get_mut(&location.source) {
                Some(FileState::InParts(file)) => {
                    file.used_ns = now_ns;
                    let part = file.part_at(location.offset);
                    if let Some(PartState::Filled { used_ns, .. }) = part.and_then(|part| file.parts.get_mut(&part)) {
                        *used_ns = now_ns;
                    }
                    continue;
                }
                Some(FileState::Installed { used_ns, .. }) => *used_ns = now_ns,
                _ => {}
            }
            marked_whole = Some(location.source);
        }
    }

    /// What the walk is told of code at an offset of a source that begins at `start` in a process.
    pub(super) fn code(&self, source: SourceId, start: u64, offset: u64) -> Code<'_> {
        let table = |installed, base: u64, segments| {
            unwind::code_address(segments, offset).map_or(Code::NoTable, |address| Code::Table {
                installed,
                chunk_zero: start.wrapping_sub(address).wrapping_add(base),
            })
        };
        match self.states.get(&source) {
            Some(FileState::Pending | FileState::Evicted { .. }) => Code::Pending,
            Some(FileState::Installed {
                table: installed,
                base,
                segments,
                ..
            }) => table(installed, *base, segments),
            Some(FileState::InParts(file)) => table(&file.directory, file.outline.base, &file.outline.segments),
            Some(FileState::NoTable | FileState::Unread) | None => Code::NoTable,
        }
    }

    /// Puts what was made where walks find it. Gives it back where there is no room.
    pub(super) fn settle(&mut self, id: SourceId, made: Made, tables: &mut Tables, now_ns: u64) -> Result<(), Made> {
        match made {
            Made::Table(Ok(file)) => self.install(id, file, tables, now_ns),
            Made::Table(Err(error)) => {
                tracing::debug!(%error, "no unwinding table");
                match error {
                    TableError::TooManyRows { .. } | TableError::TooManyFunctions | TableError::TooMuchToRead => {
                        self.stats.no_room += 1;
                    }
                    _ => self.stats.without_information += 1,
                }
                self.states.insert(id, FileState::NoTable);
                Ok(())
            }
            Made::Unread(None) => {
                self.states.insert(id, FileState::Unread);
                Ok(())
            }
            Made::Unread(Some(part)) => {
                if let Some(FileState::InParts(file)) = self.states.get_mut(&id) {
                    let until_ns = now_ns + NO_ROOM_NS;
                    file.parts.insert(part, PartState::Refused { until_ns });
                }
                Ok(())
            }
            Made::Outline(outline) => self.open(id, outline, tables, now_ns),
            Made::Part(part, compiled) => {
                let table = compiled.unwrap_or_else(|error| {
                    tracing::debug!(%error, part, "no unwinding table of a part");
                    let too_much = matches!(error, TableError::TooManyRows { .. } | TableError::TooMuchToRead);
                    self.stats.no_room += u64::from(too_much);
                    Box::default()
                });
                self.fill(id, part, table, tables, now_ns)
            }
        }
    }

    fn install(&mut self, id: SourceId, file: Box<FileTable>, tables: &mut Tables, now_ns: u64) -> Result<(), Made> {
        let state = match tables.install(&file) {
            Ok(table) => {
                self.stats.tables += 1;
                FileState::Installed {
                    table,
                    base: file.base,
                    segments: file.segments,
                    used_ns: now_ns,
                }
            }
            Err(NoRoom::Tables) => return Err(Made::Table(Ok(file))),
            Err(NoRoom::Rules) => {
                tracing::debug!("a table has too many new rules");
                self.stats.no_room += 1;
                FileState::NoTable
            }
        };
        self.states.insert(id, state);
        Ok(())
    }

    fn open(&mut self, id: SourceId, outline: Box<Outline>, tables: &mut Tables, now_ns: u64) -> Result<(), Made> {
        let Ok(directory) = tables.open(outline.chunks) else {
            return Err(Made::Outline(outline));
        };
        self.stats.tables += 1;
        let file = InParts {
            directory,
            outline: Arc::from(outline),
            parts: FastMap::default(),
            used_ns: now_ns,
        };
        self.states.insert(id, FileState::InParts(file));
        Ok(())
    }

    fn fill(
        &mut self,
        id: SourceId,
        part: u32,
        table: Box<FileTable>,
        tables: &mut Tables,
        now_ns: u64,
    ) -> Result<(), Made> {
        let Some(FileState::InParts(file)) = self.states.get_mut(&id) else {
            return Ok(());
        };
        let chunks = file.outline.chunks_of(part);
        let state = match tables.fill(&file.directory, chunks, &table, file.outline.base) {
            Ok(filled) => PartState::Filled {
                filled,
                used_ns: now_ns,
            },
            Err(NoRoom::Tables) => return Err(Made::Part(part, Ok(table))),
            Err(NoRoom::Rules) => {
                self.stats.no_room += 1;
                PartState::Refused {
                    until_ns: now_ns + NO_ROOM_NS,
                }
            }
        };
        file.parts.insert(part, state);
        Ok(())
    }

    /// There is no room for what was made, and will be none for a while.
    pub(super) fn refuse(&mut self, id: SourceId, made: &Made, now_ns: u64) {
        tracing::debug!(bytes = made.bytes(), "a table does not fit");
        self.stats.no_room += 1;
        let until_ns = now_ns + NO_ROOM_NS;
        match (made, self.states.get_mut(&id)) {
            (Made::Part(part, _), Some(FileState::InParts(file))) => {
                file.parts.insert(*part, PartState::Refused { until_ns });
            }
            (Made::Part(..), _) => {}
            _ => {
                self.states.insert(id, FileState::Evicted { until_ns });
            }
        }
    }

    /// Tables, and parts of them, that could be given up.
    pub(super) fn candidates(&self) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for (id, state) in self.states.iter().filter(|(id, _)| **id != SourceId::VDSO) {
            let file_bytes = state.bytes();
            let mut add = |part: Option<u32>, used_ns: u64, bytes: u64| {
                candidates.push(Candidate {
                    used_ns,
                    id: *id,
                    part,
                    bytes,
                    file_bytes,
                });
            };
            match state {
                FileState::Installed { table, used_ns, .. } => add(None, *used_ns, table.bytes()),
                FileState::InParts(file) => {
                    for (part, state) in &file.parts {
                        if let PartState::Filled { filled, used_ns } = state {
                            add(Some(*part), *used_ns, filled.bytes());
                        }
                    }
                }
                _ => {}
            }
        }
        candidates
    }

    /// What a file's table, or its parts that are there, take.
    pub(super) fn bytes_of(&self, id: SourceId) -> u64 {
        self.states.get(&id).map_or(0, FileState::bytes)
    }

    /// Gives tables up until they are asked for again; their room is free a moment later. Returns whose programs are to
    /// be published anew: a part is given up where it lies, and its programs need not hear of it.
    pub(super) fn give_up(&mut self, candidates: &[Candidate], tables: &mut Tables, now_ns: u64) -> Vec<SourceId> {
        let mut whole = Vec::new();
        for Candidate { id, part, .. } in candidates {
            match (part, self.states.get_mut(id)) {
                (Some(part), Some(FileState::InParts(file))) => {
                    if let Some(PartState::Filled { filled, .. }) = file.parts.remove(part) {
                        self.stats.evicted += 1;
                        tables.empty(&file.directory, filled, now_ns);
                    }
                }
                (None, Some(state @ FileState::Installed { .. })) => {
                    let evicted = FileState::Evicted { until_ns: now_ns };
                    if let FileState::Installed { table, .. } = std::mem::replace(state, evicted) {
                        self.stats.evicted += 1;
                        self.stats.tables -= 1;
                        tables.remove(table, now_ns);
                        whole.push(*id);
                    }
                }
                _ => {}
            }
        }
        whole
    }

    /// Gives up parts that no sample needed for a while: others of their file may stay in use for ever.
    pub(super) fn sweep_parts(&mut self, tables: &mut Tables, now_ns: u64) {
        for state in self.states.values_mut() {
            let FileState::InParts(file) = state else { continue };
            let is_old = |_: &u32, state: &mut PartState| match state {
                PartState::Filled { used_ns, .. } => now_ns.saturating_sub(*used_ns) >= KEEP_PART_NS,
                _ => false,
            };
            for (_, state) in file.parts.extract_if(is_old) {
                if let PartState::Filled { filled, .. } = state {
                    tables.empty(&file.directory, filled, now_ns);
                }
            }
        }
    }

    /// Forgets files that no program maps any more, a while after the last one was needed.
    pub(super) fn sweep(&mut self, mapped: &HashSet<SourceId>, tables: &mut Tables, now_ns: u64) {
        let is_old = |state: &FileState| match state {
            FileState::Installed { used_ns, .. } | FileState::InParts(InParts { used_ns, .. }) => {
                now_ns.saturating_sub(*used_ns) >= KEEP_NS
            }
            FileState::Pending => false,
            FileState::NoTable | FileState::Unread | FileState::Evicted { .. } => true,
        };
        let unused =
            |id: &SourceId, state: &mut FileState| is_old(state) && *id != SourceId::VDSO && !mapped.contains(id);
        for (_, state) in self.states.extract_if(unused) {
            match state {
                FileState::Installed { table, .. } => {
                    self.stats.tables -= 1;
                    tables.remove(table, now_ns);
                }
                FileState::InParts(file) => {
                    self.stats.tables -= 1;
                    for state in file.parts.into_values() {
                        if let PartState::Filled { filled, .. } = state {
                            tables.empty(&file.directory, filled, now_ns);
                        }
                    }
                    tables.remove(file.directory, now_ns);
                }
                _ => {}
            }
        }
    }
}
