//! Keeps the kernel side's tables in step with what runs.
//!
//! A thread of its own compiles the tables of files, one after the other; each is installed once, for all programs that map
//! the file. A program's mappings are published when it is met, and again whenever they or their tables change. Of large files
//! only those parts are compiled whose code runs; they are filled in and given up in place.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

use crate::elf::Turns;
use crate::kernel::{self, Sensor};
use crate::process::{Module, Place, ProgramKey, SourceId, Table};
use crate::unwind::{self, Code, CodeMapping, FileTable, Filled, Installed, NoRoom, Outline, Segment, TableError};

/// Of all room for tables, what one file's may take, in bytes a row: half. Until it is installed it stands in this process's memory
/// too. A browser's engine has two million rows of 4 bytes.
const TABLE_BYTES_A_ROW: u64 = 8;
const MAX_ROWS_PER_FILE: u64 = 4 << 20;

/// What is known of a source's code.
enum FileState {
    Pending,
    NoTable,
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
    parts: HashMap<u32, PartState>,
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

impl InParts {
    /// The part in which an offset of the file lies.
    fn part_at(&self, offset: u64) -> Option<u32> {
        self.outline
            .part_of(unwind::code_address(&self.outline.segments, offset)?)
    }
}

/// What the compiler is asked for.
enum Job {
    /// A file's table, or its outline.
    File(Arc<Module>),
    Part {
        module: Arc<Module>,
        outline: Arc<Outline>,
        part: u32,
    },
}

/// What it made.
enum Made {
    Table(Result<FileTable, TableError>),
    Outline(Outline),
    Part(u32, Result<FileTable, TableError>),
}

/// Tables that a sample needed in this time are not given up for others.
const KEEP_NS: u64 = 60_000_000_000;
/// How often files that nothing runs any more are forgotten.
const SWEEP_NS: u64 = 30_000_000_000;
/// How long a table that found no room is not tried again.
const NO_ROOM_NS: u64 = 30_000_000_000;

/// What the unwinding has done, cumulative but for the first two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnwindStats {
    /// Files whose tables are installed.
    pub tables: u64,
    /// Bytes of tables and mappings.
    pub table_bytes: u64,
    /// Files that say nothing of their frames.
    pub without_information: u64,
    /// Tables that did not fit.
    pub no_room: u64,
    /// Tables that were given up for others that were needed more.
    pub evicted: u64,
    /// Stacks that were walked in user space, since they came before their tables.
    pub walked_late: u64,
    /// Of these, those whose tables did not come in time.
    pub walked_without_table: u64,
}

/// Stacks that count for the order of files. More would let a compiler's or browser's engine, of a hundred megabytes and with all
/// CPUs at work in it, make every other program wait.
const MOST_COUNTED: u32 = 32;
/// Files that the compiler has: one that it works on, and the next one.
const MAX_COMPILING: usize = 2;

type Compiled = (SourceId, Made);

pub(super) struct Unwinding {
    files: HashMap<SourceId, FileState>,
    waiting: BTreeMap<SourceId, Arc<Module>>,
    /// Parts of files, which somebody waits for: they come first.
    waiting_parts: VecDeque<(Arc<Module>, u32)>,
    /// How many stacks are known to wait for the table of each.
    needed: HashMap<SourceId, u32>,
    /// None after the end.
    requests: Option<mpsc::SyncSender<Job>>,
    results: mpsc::Receiver<Compiled>,
    row_limit: usize,
    compiling: usize,
    swept_ns: u64,
    /// Something has come that late stacks may have waited for.
    progress: bool,
    thread: Option<JoinHandle<()>>,
    pub(super) stats: UnwindStats,
}

impl Unwinding {
    /// Tables take at most `table_bytes`; large files are read in turns.
    pub(super) fn start(table_bytes: u64, turns: Turns) -> Result<Self, super::AgentError> {
        let (requests, todo) = mpsc::sync_channel::<Job>(MAX_COMPILING);
        // No table waits here: the next one is not begun before this one is taken.
        let (done, results) = mpsc::sync_channel::<Compiled>(0);
        let row_limit = (table_bytes / TABLE_BYTES_A_ROW).min(MAX_ROWS_PER_FILE) as usize;
        let thread = super::spawn("stakeout-table", move || {
            for job in todo {
                let (sent, _turn) = match job {
                    Job::File(module) => {
                        let read = |offset: u64, bytes: &mut [u8]| module.read_at(offset, bytes);
                        if let Some(outline) = unwind::outline(read) {
                            (done.send((module.id, Made::Outline(outline))), None)
                        } else {
                            let turn = turns.take(module.bytes);
                            if turn.is_some() {
                                kernel::release_memory();
                            }
                            let table = unless_written_over(&module, unwind::compile(read, row_limit));
                            (done.send((module.id, Made::Table(table))), turn)
                        }
                    }
                    Job::Part { module, outline, part } => {
                        let read = |offset: u64, bytes: &mut [u8]| module.read_at(offset, bytes);
                        let table = unwind::compile_part(read, &outline, part, row_limit);
                        let table = unless_written_over(&module, table);
                        (done.send((module.id, Made::Part(part, table))), None)
                    }
                };
                if sent.is_err() {
                    break;
                }
            }
        })?;
        Ok(Self {
            files: HashMap::new(),
            waiting: BTreeMap::new(),
            waiting_parts: VecDeque::new(),
            needed: HashMap::new(),
            requests: Some(requests),
            results,
            row_limit,
            compiling: 0,
            swept_ns: 0,
            progress: false,
            thread: Some(thread),
            stats: UnwindStats::default(),
        })
    }

    /// The vDSO is the same code in every 64-bit process.
    pub(super) fn add_vdso(&mut self, image: &[u8], sensor: &mut Sensor) {
        let read = |offset: u64, bytes: &mut [u8]| {
            let part = usize::try_from(offset)
                .ok()
                .and_then(|at| image.get(at..)?.get(..bytes.len()));
            part.map(|part| bytes.copy_from_slice(part)).is_some()
        };
        let table = Made::Table(unwind::compile(read, self.row_limit));
        self.compiling += 1;
        self.settle(SourceId::VDSO, table, sensor, false, 0);
    }

    /// Samples were taken in code at these places.
    pub(super) fn mark_used<'p>(&mut self, places: impl Iterator<Item = &'p Place>, now_ns: u64) {
        for place in places {
            match self.files.get_mut(&place.source) {
                Some(FileState::Installed { used_ns, .. }) => *used_ns = now_ns,
                Some(FileState::InParts(file)) => {
                    file.used_ns = now_ns;
                    let part = file.part_at(place.offset);
                    if let Some(PartState::Filled { used_ns, .. }) = part.and_then(|part| file.parts.get_mut(&part)) {
                        *used_ns = now_ns;
                    }
                }
                _ => {}
            }
        }
    }

    /// A stack waits for the table of the code at this place, which may not have been asked for, or have been given up.
    pub(super) fn want_at(&mut self, table: &Table, key: ProgramKey, place: Place, now_ns: u64) {
        let module = || table.modules(key).find(|module| module.id == place.source);
        match self.files.get_mut(&place.source) {
            Some(FileState::Evicted { until_ns }) if *until_ns <= now_ns => {
                self.files.remove(&place.source);
                if let Some(module) = module() {
                    self.want(module);
                }
            }
            Some(FileState::InParts(file)) => {
                let Some(part) = file.part_at(place.offset) else { return };
                let is_due = match file.parts.get(&part) {
                    Some(PartState::Refused { until_ns }) => *until_ns <= now_ns,
                    Some(_) => false,
                    None => true,
                };
                if is_due && let Some(module) = module() {
                    file.parts.insert(part, PartState::Asked);
                    self.waiting_parts.push_back((Arc::clone(module), part));
                }
            }
            _ => {}
        }
    }

    /// True where what a stack waits for at this place has come.
    pub(super) fn is_there(&self, place: Place) -> bool {
        match self.files.get(&place.source) {
            Some(FileState::Installed { .. } | FileState::NoTable) => true,
            Some(FileState::InParts(file)) => {
                let part = file.part_at(place.offset).and_then(|part| file.parts.get(&part));
                matches!(part, Some(PartState::Filled { .. }))
            }
            _ => false,
        }
    }

    /// True where something came since the last call that a stack may have waited for.
    pub(super) fn take_progress(&mut self) -> bool {
        std::mem::take(&mut self.progress)
    }

    /// True while no table is being made that somebody may wait for.
    pub(super) fn is_settled(&self) -> bool {
        self.waiting.is_empty() && self.waiting_parts.is_empty() && self.compiling == 0
    }

    /// True where the table of the code at this place, or another one of the program's files, is still to come.
    pub(super) fn is_pending(&self, table: &Table, key: ProgramKey, place: Place) -> bool {
        if let Some(FileState::InParts(file)) = self.files.get(&place.source) {
            let part = file.part_at(place.offset).and_then(|part| file.parts.get(&part));
            return matches!(part, Some(PartState::Asked));
        }
        table
            .modules(key)
            .any(|module| matches!(self.files.get(&module.id), Some(FileState::Pending)))
    }

    /// Takes tables that are ready, asks for those of new files, and publishes what changed.
    pub(super) fn follow(&mut self, table: &mut Table, sensor: &mut Sensor, now_ns: u64) {
        sensor.tables().reclaim(now_ns);
        let changes = table.take_changes();
        for key in &changes.gone {
            sensor.tables().withdraw(*key, now_ns);
        }
        let mut again = changes.changed;
        again.sort_unstable();
        again.dedup();
        for key in &again {
            for module in table.modules(*key) {
                self.want(module);
            }
        }
        while let Ok((id, made)) = self.results.try_recv() {
            self.progress = true;
            let room = match &made {
                Made::Table(Ok(file)) | Made::Part(_, Ok(file)) => file.rows.len() + file.chunks.len() * 2,
                Made::Outline(outline) => outline.chunks as usize * 2,
                _ => 0,
            };
            let evicted = self.make_room(room as u64 * 4, sensor, now_ns);
            for id in &evicted {
                again.extend(table.users_of(*id));
            }
            let is_part = matches!(made, Made::Part(..));
            self.settle(id, made, sensor, !evicted.is_empty(), now_ns);
            if !is_part {
                again.extend(table.users_of(id));
            }
        }
        self.ask();
        self.sweep(table, sensor, now_ns);
        again.sort_unstable();
        again.dedup();
        for key in again {
            self.publish(key, table, sensor, now_ns);
        }
        self.stats.table_bytes = sensor.tables().used_bytes();
    }

    fn want(&mut self, module: &Arc<Module>) {
        if self.files.contains_key(&module.id) {
            return;
        }
        let state = if module.open_path().is_some() {
            self.waiting.insert(module.id, Arc::clone(module));
            FileState::Pending
        } else {
            FileState::NoTable
        };
        self.files.insert(module.id, state);
    }

    fn ask(&mut self) {
        let Some(requests) = &self.requests else { return };
        while self.compiling < MAX_COMPILING
            && let Some((module, part)) = self.waiting_parts.pop_front()
        {
            // Forgotten meanwhile, if there is no such file any more.
            let Some(FileState::InParts(file)) = self.files.get(&module.id) else {
                continue;
            };
            let job = Job::Part {
                module,
                outline: Arc::clone(&file.outline),
                part,
            };
            if requests.try_send(job).is_ok() {
                self.compiling += 1;
            }
        }
        while self.compiling < MAX_COMPILING
            && let Some(id) = most_urgent(&self.waiting, &self.needed)
            && let Some(module) = self.waiting.remove(&id)
        {
            // There is room, and the other side ends only with this one.
            if requests.try_send(Job::File(module)).is_ok() {
                self.compiling += 1;
            }
        }
    }

    /// Says which programs' stacks wait for tables, and at which source each of them stopped.
    pub(super) fn prefer(&mut self, table: &Table, late: impl Iterator<Item = (ProgramKey, Place)>) {
        self.needed.clear();
        let mut stacks: HashMap<ProgramKey, u32> = HashMap::new();
        for (key, place) in late {
            *self.needed.entry(place.source).or_default() += 1;
            *stacks.entry(key).or_default() += 1;
        }
        // Behind the code where it stopped, the stack may need all others of its program.
        for (key, count) in stacks {
            for module in table.modules(key) {
                *self.needed.entry(module.id).or_default() += count;
            }
        }
    }

    fn settle(&mut self, id: SourceId, made: Made, sensor: &mut Sensor, made_room: bool, now_ns: u64) {
        self.compiling -= 1;
        let state = match made {
            Made::Table(compiled) => self.install(compiled, sensor, made_room, now_ns),
            Made::Outline(outline) => self.open(outline, sensor, now_ns),
            Made::Part(part, compiled) => return self.fill(id, part, compiled, sensor, made_room, now_ns),
        };
        self.files.insert(id, state);
    }

    fn install(
        &mut self,
        compiled: Result<FileTable, TableError>,
        sensor: &mut Sensor,
        made_room: bool,
        now_ns: u64,
    ) -> FileState {
        match compiled {
            Ok(file) => match sensor.tables().install(&file) {
                Ok(table) => {
                    self.stats.tables += 1;
                    FileState::Installed {
                        table,
                        base: file.base,
                        segments: file.segments,
                        used_ns: now_ns,
                    }
                }
                Err(reason) => {
                    tracing::debug!(?reason, "a table does not fit");
                    self.stats.no_room += 1;
                    match reason {
                        NoRoom::Tables if made_room => FileState::Evicted { until_ns: now_ns },
                        NoRoom::Tables => FileState::Evicted {
                            until_ns: now_ns + NO_ROOM_NS,
                        },
                        NoRoom::Rules => FileState::NoTable,
                    }
                }
            },
            Err(error) => {
                tracing::debug!(%error, "no unwinding table");
                match error {
                    TableError::TooManyRows { .. } | TableError::TooManyFunctions | TableError::TooMuchToRead => {
                        self.stats.no_room += 1;
                    }
                    _ => self.stats.without_information += 1,
                }
                FileState::NoTable
            }
        }
    }

    fn open(&mut self, outline: Outline, sensor: &mut Sensor, now_ns: u64) -> FileState {
        match sensor.tables().open(outline.chunks) {
            Ok(directory) => {
                self.stats.tables += 1;
                FileState::InParts(InParts {
                    directory,
                    outline: Arc::new(outline),
                    parts: HashMap::new(),
                    used_ns: now_ns,
                })
            }
            Err(reason) => {
                tracing::debug!(?reason, "a directory does not fit");
                self.stats.no_room += 1;
                FileState::Evicted {
                    until_ns: now_ns + NO_ROOM_NS,
                }
            }
        }
    }

    fn fill(
        &mut self,
        id: SourceId,
        part: u32,
        compiled: Result<FileTable, TableError>,
        sensor: &mut Sensor,
        made_room: bool,
        now_ns: u64,
    ) {
        let Some(FileState::InParts(file)) = self.files.get_mut(&id) else {
            return;
        };
        let table = compiled.unwrap_or_else(|error| {
            tracing::debug!(%error, part, "no unwinding table of a part");
            let too_much = matches!(error, TableError::TooManyRows { .. } | TableError::TooMuchToRead);
            self.stats.no_room += u64::from(too_much);
            FileTable::default()
        });
        let chunks = file.outline.chunks_of(part);
        let state = match sensor.tables().fill(&file.directory, chunks, &table, file.outline.base) {
            Ok(filled) => PartState::Filled {
                filled,
                used_ns: now_ns,
            },
            Err(reason) => {
                tracing::debug!(?reason, part, "a part's table does not fit");
                self.stats.no_room += 1;
                // Room that was made is free in a moment.
                let wait_ns = if made_room { 0 } else { NO_ROOM_NS };
                PartState::Refused {
                    until_ns: now_ns + wait_ns,
                }
            }
        };
        file.parts.insert(part, state);
    }

    /// Gives up the tables that were not needed the longest, until there is room for so many bytes; it is free a moment later, and what
    /// is new is asked for again then. Returns whose programs are to be published anew.
    fn make_room(&mut self, wanted: u64, sensor: &mut Sensor, now_ns: u64) -> Vec<SourceId> {
        let mut free = sensor.tables().free_bytes();
        let mut evicted = Vec::new();
        if free >= wanted {
            return evicted;
        }
        for (id, part) in self.unused(now_ns) {
            free += self.evict(id, part, sensor, now_ns);
            // A part is given up where it lies: its programs need not hear of it.
            if part.is_none() {
                evicted.push(id);
            }
            if free >= wanted {
                break;
            }
        }
        evicted
    }

    /// Tables, or parts of them, that no sample needed in the last minute; those that were not needed the longest come first.
    fn unused(&self, now_ns: u64) -> Vec<(SourceId, Option<u32>)> {
        let mut unused = Vec::new();
        let mut add = |used_ns: u64, id: SourceId, part: Option<u32>| {
            if now_ns.saturating_sub(used_ns) >= KEEP_NS {
                unused.push((used_ns, id, part));
            }
        };
        for (id, state) in self.files.iter().filter(|(id, _)| **id != SourceId::VDSO) {
            match state {
                FileState::Installed { used_ns, .. } => add(*used_ns, *id, None),
                FileState::InParts(file) => {
                    for (part, state) in &file.parts {
                        if let PartState::Filled { used_ns, .. } = state {
                            add(*used_ns, *id, Some(*part));
                        }
                    }
                }
                _ => {}
            }
        }
        unused.sort_unstable();
        unused.into_iter().map(|(_, id, part)| (id, part)).collect()
    }

    /// Gives an installed table up, or a part of one, until it is asked for again. Returns its bytes.
    fn evict(&mut self, id: SourceId, part: Option<u32>, sensor: &mut Sensor, now_ns: u64) -> u64 {
        if let Some(part) = part {
            let Some(FileState::InParts(file)) = self.files.get_mut(&id) else {
                return 0;
            };
            let Some(PartState::Filled { filled, .. }) = file.parts.remove(&part) else {
                return 0;
            };
            let bytes = filled.bytes();
            sensor.tables().empty(&file.directory, filled, now_ns);
            self.stats.evicted += 1;
            return bytes;
        }
        let evicted = FileState::Evicted { until_ns: now_ns };
        let Some(FileState::Installed { table, .. }) = self.files.insert(id, evicted) else {
            return 0;
        };
        self.stats.evicted += 1;
        self.stats.tables -= 1;
        let bytes = table.bytes();
        sensor.tables().remove(table, now_ns);
        bytes
    }

    /// Gives up all tables that no sample needed in the last minute; their room is used again before more is taken.
    pub(super) fn give_up_unused(&mut self, table: &mut Table, sensor: &mut Sensor, now_ns: u64) {
        let mut again = Vec::new();
        for (id, part) in self.unused(now_ns) {
            self.evict(id, part, sensor, now_ns);
            if part.is_none() {
                again.extend(table.users_of(id));
            }
        }
        again.sort_unstable();
        again.dedup();
        for key in again {
            self.publish(key, table, sensor, now_ns);
        }
    }

    /// Forgets files that no program maps any more, a while after the last one was needed.
    fn sweep(&mut self, table: &Table, sensor: &mut Sensor, now_ns: u64) {
        if now_ns.saturating_sub(self.swept_ns) < SWEEP_NS {
            return;
        }
        self.swept_ns = now_ns;
        let mapped = table.mapped_sources();
        let mut unused: Vec<SourceId> = Vec::new();
        for (id, state) in &self.files {
            let old = match state {
                FileState::Installed { used_ns, .. } | FileState::InParts(InParts { used_ns, .. }) => {
                    now_ns.saturating_sub(*used_ns) >= KEEP_NS
                }
                FileState::Pending => false,
                FileState::NoTable | FileState::Evicted { .. } => true,
            };
            if old && *id != SourceId::VDSO && !mapped.contains(id) {
                unused.push(*id);
            }
        }
        for id in unused {
            match self.files.remove(&id) {
                Some(FileState::Installed { table, .. }) => {
                    self.stats.tables -= 1;
                    sensor.tables().remove(table, now_ns);
                }
                Some(FileState::InParts(file)) => {
                    self.stats.tables -= 1;
                    for state in file.parts.into_values() {
                        if let PartState::Filled { filled, .. } = state {
                            sensor.tables().empty(&file.directory, filled, now_ns);
                        }
                    }
                    sensor.tables().remove(file.directory, now_ns);
                }
                _ => {}
            }
        }
    }

    fn publish(&mut self, key: ProgramKey, table: &Table, sensor: &mut Sensor, now_ns: u64) {
        let mappings: Vec<CodeMapping<'_>> = table
            .code_ranges(key)
            .map(|range| CodeMapping {
                begin: range.start,
                end: range.end,
                code: match self.files.get(&range.source) {
                    Some(FileState::Pending | FileState::Evicted { .. }) => Code::Pending,
                    Some(FileState::Installed {
                        table, base, segments, ..
                    }) => unwind::code_address(segments, range.offset).map_or(Code::NoTable, |address| Code::Table {
                        installed: table,
                        chunk_zero: range.start.wrapping_sub(address).wrapping_add(*base),
                    }),
                    Some(FileState::InParts(file)) => unwind::code_address(&file.outline.segments, range.offset)
                        .map_or(Code::NoTable, |address| Code::Table {
                            installed: &file.directory,
                            chunk_zero: range.start.wrapping_sub(address).wrapping_add(file.outline.base),
                        }),
                    Some(FileState::NoTable) | None => Code::NoTable,
                },
            })
            .collect();
        if !mappings.is_empty() && !sensor.tables().publish(key, &mappings, now_ns) {
            self.stats.no_room += 1;
        }
    }
}

/// What was read of a file that was written over meanwhile is neither the old one nor the new one.
fn unless_written_over(module: &Module, table: Result<FileTable, TableError>) -> Result<FileTable, TableError> {
    table.and_then(|table| {
        if module.is_overwritten() {
            return Err(TableError::WrittenOver);
        }
        Ok(table)
    })
}

/// The file that frees the most stacks for its size: a browser's engine takes as long as hundreds of libraries.
fn most_urgent(waiting: &BTreeMap<SourceId, Arc<Module>>, needed: &HashMap<SourceId, u32>) -> Option<SourceId> {
    let urgency = |id: &SourceId, bytes: u64| {
        let stacks = needed.get(id).copied().unwrap_or(0).min(MOST_COUNTED);
        // What nobody is known to wait for may be needed in a moment.
        f64::from(stacks).max(0.1) / bytes.max(1) as f64
    };
    let most = waiting
        .iter()
        .max_by(|(one, a), (other, b)| urgency(one, a.bytes).total_cmp(&urgency(other, b.bytes)));
    most.map(|(id, _)| *id)
}

impl Drop for Unwinding {
    fn drop(&mut self) {
        self.requests = None;
        // Room for what is being compiled, so that the thread can end.
        while self.results.recv().is_ok() {}
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked on anybody's behalf but its own, and there is nothing left to do.
            let _ = thread.join();
        }
    }
}
