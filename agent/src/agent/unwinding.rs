//! Keeps the kernel side's tables in step with what runs.
//!
//! A thread of its own compiles the tables of files, one after the other; each is installed once, for all programs that map
//! the file. A program's mappings are published when it is met, and again whenever they or their tables change.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

use super::pace::{Pace, Worker};
use crate::elf::Turns;
use crate::kernel::{self, Sensor};
use crate::process::{Module, ProgramKey, SourceId, Table};
use crate::unwind::{self, Code, CodeMapping, FileTable, Installed, NoRoom, Segment, TableError};

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

type Compiled = (SourceId, Result<FileTable, TableError>);

pub(super) struct Unwinding {
    files: HashMap<SourceId, FileState>,
    waiting: BTreeMap<SourceId, Arc<Module>>,
    /// How many stacks are known to wait for the table of each.
    needed: HashMap<SourceId, u32>,
    /// None after the end.
    requests: Option<mpsc::SyncSender<Arc<Module>>>,
    results: mpsc::Receiver<Compiled>,
    row_limit: usize,
    compiling: usize,
    swept_ns: u64,
    thread: Option<JoinHandle<()>>,
    pub(super) stats: UnwindStats,
}

impl Unwinding {
    /// Tables take at most `table_bytes`; large files are read in turns.
    pub(super) fn start(pace: Arc<Pace>, table_bytes: u64, turns: Turns) -> Result<Self, super::AgentError> {
        let (requests, todo) = mpsc::sync_channel::<Arc<Module>>(MAX_COMPILING);
        // No table waits here: the next one is not begun before this one is taken.
        let (done, results) = mpsc::sync_channel::<Compiled>(0);
        let row_limit = (table_bytes / TABLE_BYTES_A_ROW).min(MAX_ROWS_PER_FILE) as usize;
        let thread = super::spawn("stakeout-table", move || {
            let mut worker = Worker::new(pace);
            for module in todo {
                let turn = turns.take(module.bytes);
                if turn.is_some() {
                    kernel::release_memory();
                }
                let table = unwind::compile(|offset, bytes| module.read_at(offset, bytes), row_limit);
                let sent = done.send((module.id, table));
                drop(turn);
                if sent.is_err() {
                    break;
                }
                worker.pause();
            }
        })?;
        Ok(Self {
            files: HashMap::new(),
            waiting: BTreeMap::new(),
            needed: HashMap::new(),
            requests: Some(requests),
            results,
            row_limit,
            compiling: 0,
            swept_ns: 0,
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
        let table = unwind::compile(read, self.row_limit);
        self.compiling += 1;
        self.settle(SourceId::VDSO, table, sensor, false, 0);
    }

    /// Samples were taken in code of these sources.
    pub(super) fn mark_used(&mut self, sources: impl Iterator<Item = SourceId>, now_ns: u64) {
        for source in sources {
            if let Some(FileState::Installed { used_ns, .. }) = self.files.get_mut(&source) {
                *used_ns = now_ns;
            }
        }
    }

    /// A stack ended in code of this source, whose table may have been given up.
    pub(super) fn want_again(&mut self, table: &Table, key: ProgramKey, source: SourceId, now_ns: u64) {
        if !matches!(self.files.get(&source), Some(FileState::Evicted { until_ns }) if *until_ns <= now_ns) {
            return;
        }
        self.files.remove(&source);
        if let Some(module) = table.modules(key).find(|module| module.id == source) {
            self.want(module);
        }
    }

    /// True while no table is being made that somebody may wait for.
    pub(super) fn is_settled(&self) -> bool {
        self.waiting.is_empty() && self.compiling == 0
    }

    /// True where a table of the program's code is still to come.
    pub(super) fn is_pending(&self, table: &Table, key: ProgramKey) -> bool {
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
        while let Ok((id, compiled)) = self.results.try_recv() {
            let evicted = self.make_room(&compiled, sensor, now_ns);
            for id in &evicted {
                again.extend(table.users_of(*id));
            }
            self.settle(id, compiled, sensor, !evicted.is_empty(), now_ns);
            again.extend(table.users_of(id));
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
            && let Some(id) = most_urgent(&self.waiting, &self.needed)
            && let Some(module) = self.waiting.remove(&id)
        {
            // There is room, and the other side ends only with this one.
            if requests.try_send(module).is_ok() {
                self.compiling += 1;
            }
        }
    }

    /// Says which programs' stacks wait for tables, and at which source each of them stopped.
    pub(super) fn prefer(&mut self, table: &Table, late: impl Iterator<Item = (ProgramKey, SourceId)>) {
        self.needed.clear();
        let mut stacks: HashMap<ProgramKey, u32> = HashMap::new();
        for (key, source) in late {
            *self.needed.entry(source).or_default() += 1;
            *stacks.entry(key).or_default() += 1;
        }
        // Behind the code where it stopped, the stack may need all others of its program.
        for (key, count) in stacks {
            for module in table.modules(key) {
                *self.needed.entry(module.id).or_default() += count;
            }
        }
    }

    fn settle(
        &mut self,
        id: SourceId,
        compiled: Result<FileTable, TableError>,
        sensor: &mut Sensor,
        made_room: bool,
        now_ns: u64,
    ) {
        self.compiling -= 1;
        let state = match compiled {
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
                    TableError::TooManyRows { .. } | TableError::TooManyFunctions => self.stats.no_room += 1,
                    _ => self.stats.without_information += 1,
                }
                FileState::NoTable
            }
        };
        self.files.insert(id, state);
    }

    /// Gives up the tables that were not needed the longest, until a new one fits; their room is free a moment later, and the
    /// new one is asked for again then. Returns whose they were.
    fn make_room(
        &mut self,
        compiled: &Result<FileTable, TableError>,
        sensor: &mut Sensor,
        now_ns: u64,
    ) -> Vec<SourceId> {
        let Ok(file) = compiled else { return Vec::new() };
        let wanted = (file.rows.len() + file.chunks.len() * 2) as u64 * 4;
        let mut free = sensor.tables().free_bytes();
        let mut evicted = Vec::new();
        while free < wanted {
            let installed = self.files.iter().filter_map(|(id, state)| match state {
                FileState::Installed { used_ns, .. } if *id != SourceId::VDSO => Some((*used_ns, *id)),
                _ => None,
            });
            let Some((used_ns, id)) = installed.min() else { break };
            if now_ns.saturating_sub(used_ns) < KEEP_NS {
                break;
            }
            free += self.evict(id, sensor, now_ns);
            evicted.push(id);
        }
        evicted
    }

    /// Gives an installed table up, until it is asked for again. Returns its bytes.
    fn evict(&mut self, id: SourceId, sensor: &mut Sensor, now_ns: u64) -> u64 {
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
        let unused: Vec<SourceId> = self
            .files
            .iter()
            .filter(|(id, state)| {
                let old = |used_ns: &u64| now_ns.saturating_sub(*used_ns) >= KEEP_NS;
                **id != SourceId::VDSO && matches!(state, FileState::Installed { used_ns, .. } if old(used_ns))
            })
            .map(|(id, _)| *id)
            .collect();
        let mut again = Vec::new();
        for id in unused {
            self.evict(id, sensor, now_ns);
            again.extend(table.users_of(id));
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
                FileState::Installed { used_ns, .. } => now_ns.saturating_sub(*used_ns) >= KEEP_NS,
                FileState::Pending => false,
                FileState::NoTable | FileState::Evicted { .. } => true,
            };
            if old && *id != SourceId::VDSO && !mapped.contains(id) {
                unused.push(*id);
            }
        }
        for id in unused {
            if let Some(FileState::Installed { table, .. }) = self.files.remove(&id) {
                self.stats.tables -= 1;
                sensor.tables().remove(table, now_ns);
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
                    Some(FileState::NoTable) | None => Code::NoTable,
                },
            })
            .collect();
        if !mappings.is_empty() && !sensor.tables().publish(key, &mappings, now_ns) {
            self.stats.no_room += 1;
        }
    }
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
