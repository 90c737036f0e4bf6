//! Processes that run or ran a moment ago, and where their code comes from.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::address_space::{CodeRange, Mapping, Place, Source, SourceId, Sources};
use super::looks::Looks;
use super::modules::{Module, ModuleTable};
use super::proc_files;
use super::reading::guarded_for;
use crate::metadata::{Metadata, Subject};

/// One program run by one process: execve makes another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProgramKey {
    pub tgid: u32,
    pub start_ticks: u64,
    pub exec_id: u32,
}

/// What is known of a program.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    pub key: ProgramKey,
    /// Base name; the thread name of kernel threads and of processes that were gone too soon.
    pub executable: Arc<str>,
    /// Empty for kernel threads.
    pub executable_path: Arc<str>,
    pub command_line: Arc<str>,
    pub build_id: Option<Arc<str>>,
    pub metadata: Arc<Metadata>,
}

/// What became of programs since it was last asked.
#[derive(Debug, Default)]
pub struct Changes {
    /// New, or their mappings are others now.
    pub changed: Vec<ProgramKey>,
    /// Forgotten.
    pub gone: Vec<ProgramKey>,
}

/// A program with its address space.
#[derive(Debug)]
struct Entry {
    program: Arc<Program>,
    mappings: Arc<Vec<Mapping>>,
    sources: Arc<Vec<(SourceId, Source)>>,
    /// Grows by one at each reading that found something new: addresses may mean something else since.
    generation: u32,
    read_ns: u64,
}

#[derive(Debug)]
struct ProcessEntry {
    /// By exec id, newest last; at most [`PROGRAMS_PER_PROCESS`].
    programs: Vec<Entry>,
    exited_ns: Option<u64>,
    used_ns: u64,
}

/// Programs of one process that are remembered: samples of the one before an exec may still be in the ring.
const PROGRAMS_PER_PROCESS: usize = 3;
/// How long an exited process is kept: its samples are in the ring or in the batch being gathered.
const EXIT_GRACE_NS: u64 = 10_000_000_000;
/// Code that runs outside all known mappings leads to another reading, but not more often than this.
const REREAD_NS: u64 = 500_000_000;
/// The same for return addresses: where code keeps no frame pointers most of those are not addresses at all.
const REREAD_FOR_CALLER_NS: u64 = 10_000_000_000;
/// Mappings older than this are read again before they are trusted: a library may have been unloaded and replaced.
const STALE_NS: u64 = 60_000_000_000;
/// Delay of the second look at a new program, where new mappings are not told: by then its loader has mapped its libraries.
const SECOND_LOOK_NS: u64 = 5_000_000;
/// Of its age, how long a process that was just met may wait to be opened, and the longest.
const OPENED_LATER_PART: u64 = 4;
const OPENED_LATER_NS: u64 = 5_000_000_000;
/// Of the unit in which /proc/PID/stat tells when a process started, the same on all machines.
const TICK_NS: u64 = 10_000_000;

/// What the table has done, for logs and tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableStats {
    pub processes: usize,
    pub open_files: usize,
    /// Executions, and processes with new mappings, that were too many to be looked at early.
    pub early_looks_skipped: u64,
    /// Readings since something was mapped.
    pub mapping_looks: u64,
    /// Readings that were put off noticeably, since the process maps too often, or too many do.
    pub mapping_looks_put_off: u64,
    /// Processes that were forgotten for room.
    pub forgotten: u64,
    /// Files that no process mapped any more and that were given up before all their names were read.
    pub given_up_unread: u64,
}

/// Finds the labels of a process. Asked once for each program, while the process lives where that is possible.
pub type Labeller = Box<dyn FnMut(Subject<'_>) -> Metadata + Send>;

/// All processes. Bounded: those that were not seen the longest go first.
#[allow(missing_debug_implementations, reason = "holds a closure")]
pub struct Table {
    /// By process id and start time: whose id was given away are side by side, the present owner last.
    processes: BTreeMap<(u32, u64), ProcessEntry>,
    sources: Sources,
    labeller: Labeller,
    capacity: usize,
    looks: Looks,
    stats: TableStats,
    swept_ns: u64,
    changes: Changes,
    held: held::Looks,
}

impl Table {
    pub fn new(capacity: usize, modules: ModuleTable, labeller: Labeller) -> Self {
        Self {
            processes: BTreeMap::new(),
            sources: Sources::new(modules),
            labeller,
            capacity,
            looks: Looks::default(),
            stats: TableStats::default(),
            swept_ns: 0,
            changes: Changes::default(),
            held: held::Looks::default(),
        }
    }

    /// Which programs' executable memory changed since the last call.
    pub fn take_changes(&mut self) -> Changes {
        std::mem::take(&mut self.changes)
    }

    /// A program's executable memory, ascending; empty where nothing is known.
    pub fn code_ranges(&self, key: ProgramKey) -> impl Iterator<Item = CodeRange> {
        let mappings = self.entry(key).map(|entry| entry.mappings.as_slice());
        mappings.unwrap_or_default().iter().map(|mapping| CodeRange {
            start: mapping.start,
            end: mapping.end,
            source: mapping.source,
            offset: mapping.start.wrapping_add(mapping.to_offset),
        })
    }

    /// The files that a program's code comes from.
    pub fn modules(&self, key: ProgramKey) -> impl Iterator<Item = &Arc<Module>> {
        let sources = self.entry(key).map(|entry| entry.sources.as_slice());
        sources
            .unwrap_or_default()
            .iter()
            .filter_map(|(_, source)| match source {
                Source::Module(module) => Some(module),
                _ => None,
            })
    }

    /// Where the code of all programs comes from.
    pub fn mapped_sources(&self) -> HashSet<SourceId> {
        let programs = self.processes.values().flat_map(|process| &process.programs);
        let mappings = programs.flat_map(|entry| entry.mappings.iter());
        mappings.map(|mapping| mapping.source).collect()
    }

    /// The programs whose code comes from a source among others.
    pub fn users_of(&self, source: SourceId) -> Vec<ProgramKey> {
        let programs = self.processes.values().flat_map(|process| &process.programs);
        programs
            .filter(|entry| entry.mappings.iter().any(|mapping| mapping.source == source))
            .map(|entry| entry.program.key)
            .collect()
    }

    pub fn stats(&self) -> TableStats {
        TableStats {
            processes: self.processes.len(),
            open_files: self.sources.open_files(),
            early_looks_skipped: self.looks.skipped(),
            given_up_unread: self.sources.holding().given_up_unread(),
            mapping_looks_put_off: self.looks.put_off(),
            ..self.stats
        }
    }

    /// A process became another program: opens its files at once. Where new mappings are not told ([`Self::on_map`]), its
    /// libraries are looked for a moment later.
    pub fn on_exec(&mut self, key: ProgramKey, mappings_told: bool, now_ns: u64) {
        if !self.looks.admit_exec(now_ns) {
            return;
        }
        if let Some(entry) = self.load(key, now_ns) {
            self.insert(key, entry, now_ns);
            if !mappings_told {
                self.looks.want(key.tgid, u64::MAX, now_ns + SECOND_LOOK_NS);
            }
        }
    }

    /// A process has new executable memory since `mapped_ns`: it is looked at by the next [`Self::tick`] or soon after.
    pub fn on_map(&mut self, tgid: u32, mapped_ns: u64, now_ns: u64) {
        self.looks.want(tgid, mapped_ns, now_ns);
    }

    /// A new process is its parent's program until it calls exec.
    pub fn on_fork(&mut self, child: ProgramKey, parent: ProgramKey, now_ns: u64) {
        let Some(process) = self.processes.get_mut(&(parent.tgid, parent.start_ticks)) else {
            return;
        };
        let Some(entry) = process
            .programs
            .iter()
            .find(|entry| entry.program.key.exec_id == parent.exec_id)
        else {
            return;
        };
        let program = Program {
            key: child,
            executable: Arc::clone(&entry.program.executable),
            executable_path: Arc::clone(&entry.program.executable_path),
            command_line: Arc::clone(&entry.program.command_line),
            build_id: entry.program.build_id.clone(),
            metadata: Arc::clone(&entry.program.metadata),
        };
        let entry = Entry {
            program: Arc::new(program),
            mappings: Arc::clone(&entry.mappings),
            sources: Arc::clone(&entry.sources),
            generation: 0,
            read_ns: entry.read_ns,
        };
        self.insert(child, entry, now_ns);
        // What the parent mapped and nobody has looked at yet is the child's as well.
        if let Some(mapped_ns) = self.looks.wanted(parent.tgid) {
            self.looks.want(child.tgid, mapped_ns, now_ns);
        }
    }

    pub fn on_exit(&mut self, tgid: u32, start_ticks: u64, now_ns: u64) {
        if let Some(process) = self.processes.get_mut(&(tgid, start_ticks)) {
            process.exited_ns = Some(now_ns);
            self.held.one_ended();
        }
    }

    /// When the next look at a process is due; none where there is none.
    pub fn next_look_ns(&self) -> Option<u64> {
        self.looks.next_ns()
    }

    /// Reads the mappings of programs that have new ones, and forgets what ended long enough ago.
    pub fn tick(&mut self, now_ns: u64) {
        while let Some((tgid, mapped_ns)) = self.looks.take_due(now_ns) {
            // Unknown processes are read at their first sample, and what was read since then needs no other look.
            let program = self.present_program(tgid).filter(|entry| entry.read_ns < mapped_ns);
            if let Some(key) = program.map(|entry| entry.program.key) {
                self.reread(key, now_ns);
                self.looks.looked(tgid, now_ns);
                self.stats.mapping_looks += 1;
            } else {
                self.looks.passed_over(tgid);
            }
        }
        if now_ns.saturating_sub(self.swept_ns) >= 1_000_000_000 {
            self.swept_ns = now_ns;
            self.look_for_unmapped(now_ns);
            self.looks.forget_quiet(now_ns);
            self.forget(|process| {
                process
                    .exited_ns
                    .is_some_and(|at| now_ns.saturating_sub(at) >= EXIT_GRACE_NS)
            });
        }
    }

    /// Until when a program need not be opened: who has lived for long is likely to live on for a part of that. None where it was.
    pub fn opens_by_ns(&self, key: ProgramKey, now_ns: u64) -> Option<u64> {
        let age_ns = now_ns.saturating_sub(key.start_ticks.saturating_mul(TICK_NS));
        let is_known = self.processes.contains_key(&(key.tgid, key.start_ticks));
        (!is_known).then(|| now_ns + (age_ns / OPENED_LATER_PART).min(OPENED_LATER_NS))
    }

    /// The program of a sample, loaded if it is new, with a number that changes whenever the meaning of its addresses may
    /// have changed. `comm` names it where nothing else is known.
    pub fn program(&mut self, key: ProgramKey, kernel_thread: bool, comm: &str, now_ns: u64) -> (Arc<Program>, u32) {
        let known = self
            .processes
            .get_mut(&(key.tgid, key.start_ticks))
            .and_then(|process| {
                process.used_ns = now_ns;
                let position = process
                    .programs
                    .iter()
                    .position(|entry| entry.program.key.exec_id == key.exec_id)?;
                let last = position + 1 == process.programs.len();
                Some((&process.programs[position], last && process.exited_ns.is_none()))
            });
        if let Some((entry, current)) = known {
            let stale = current && !kernel_thread && now_ns.saturating_sub(entry.read_ns) > STALE_NS;
            if !stale {
                return (Arc::clone(&entry.program), entry.generation);
            }
            self.reread(key, now_ns);
            if let Some(entry) = self.entry(key) {
                return (Arc::clone(&entry.program), entry.generation);
            }
        }
        let newer_known = self.processes.get(&(key.tgid, key.start_ticks)).is_some_and(|process| {
            process
                .programs
                .iter()
                .any(|entry| entry.program.key.exec_id > key.exec_id)
        });
        let loaded = if kernel_thread || newer_known {
            None
        } else {
            self.load(key, now_ns)
        };
        let entry = loaded.unwrap_or_else(|| self.nameless(key, kernel_thread, comm, now_ns));
        let result = (Arc::clone(&entry.program), entry.generation);
        self.insert(key, entry, now_ns);
        result
    }

    /// Where a user address of the program comes from. Reads the mappings again where none covers it; `is_code` says that
    /// something surely is there: the address was being executed, or tables led to it.
    pub fn place(&mut self, key: ProgramKey, address: u64, is_code: bool, now_ns: u64) -> Place {
        let unknown = Place {
            source: SourceId::UNKNOWN,
            offset: address,
        };
        let Some(entry) = self.entry(key) else { return unknown };
        if let Some(place) = entry.find(address) {
            return place;
        }
        let wait_ns = if is_code { REREAD_NS } else { REREAD_FOR_CALLER_NS };
        if now_ns.saturating_sub(entry.read_ns) < wait_ns || !self.reread(key, now_ns) {
            return unknown;
        }
        self.entry(key).and_then(|entry| entry.find(address)).unwrap_or(unknown)
    }

    /// True where the program's mappings were last read before that time, and can still be read again.
    pub fn may_read_after(&self, key: ProgramKey, time_ns: u64) -> bool {
        let Some(process) = self.processes.get(&(key.tgid, key.start_ticks)) else {
            return false;
        };
        let last = process.programs.last().filter(|entry| entry.program.key == key);
        process.exited_ns.is_none() && last.is_some_and(|entry| entry.read_ns < time_ns)
    }

    /// What a source of this program stands for; none for the fixed ones.
    pub fn source(&mut self, key: ProgramKey, id: SourceId, now_ns: u64) -> Option<Source> {
        let entry = self.entry(key)?;
        let source = entry
            .sources
            .iter()
            .find(|(known, _)| *known == id)
            .map(|(_, source)| source.clone())?;
        if let Source::Jit(code) = &source {
            code.perf_map.look(now_ns);
        }
        Some(source)
    }

    fn entry(&self, key: ProgramKey) -> Option<&Entry> {
        let process = self.processes.get(&(key.tgid, key.start_ticks))?;
        process
            .programs
            .iter()
            .find(|entry| entry.program.key.exec_id == key.exec_id)
    }

    /// What a live process runs.
    fn present_program(&self, tgid: u32) -> Option<&Entry> {
        let owners = self.processes.range((tgid, 0)..=(tgid, u64::MAX));
        let mut live = owners.rev().filter(|(_, process)| process.exited_ns.is_none());
        live.next().and_then(|(_, process)| process.programs.last())
    }

    fn entry_mut(&mut self, key: ProgramKey) -> Option<&mut Entry> {
        let process = self.processes.get_mut(&(key.tgid, key.start_ticks))?;
        process
            .programs
            .iter_mut()
            .find(|entry| entry.program.key.exec_id == key.exec_id)
    }

    fn insert(&mut self, key: ProgramKey, entry: Entry, now_ns: u64) {
        if self.processes.len() >= self.capacity && !self.processes.contains_key(&(key.tgid, key.start_ticks)) {
            self.forget_oldest();
        }
        let process = self
            .processes
            .entry((key.tgid, key.start_ticks))
            .or_insert_with(|| ProcessEntry {
                programs: Vec::new(),
                exited_ns: None,
                used_ns: now_ns,
            });
        process.used_ns = now_ns;
        process
            .programs
            .retain(|known| known.program.key.exec_id != key.exec_id);
        process.programs.push(entry);
        process.programs.sort_by_key(|entry| entry.program.key.exec_id);
        if process.programs.len() > 1 {
            self.held.one_ended();
        }
        if process.programs.len() > PROGRAMS_PER_PROCESS {
            self.changes.gone.push(process.programs.remove(0).program.key);
        }
        self.changes.changed.push(key);
    }

    fn forget(&mut self, unwanted: impl Fn(&ProcessEntry) -> bool) {
        let (gone, held) = (&mut self.changes.gone, &mut self.held);
        self.processes.retain(|_, process| {
            let keep = !unwanted(process);
            if !keep {
                gone.extend(process.programs.iter().map(|entry| entry.program.key));
                held.one_ended();
            }
            keep
        });
    }

    fn forget_oldest(&mut self) {
        let mut uses: Vec<u64> = self.processes.values().map(|process| process.used_ns).collect();
        uses.sort_unstable();
        let keep_from = uses[uses.len() / 4];
        let before = self.processes.len();
        self.forget(|process| process.used_ns <= keep_from);
        self.stats.forgotten += (before - self.processes.len()) as u64;
    }

    /// Reads a live process; none where it is gone or its id was given to another.
    fn load(&mut self, key: ProgramKey, now_ns: u64) -> Option<Entry> {
        let path = proc_files::executable_path(key.tgid)?;
        let executable = path.rsplit('/').next().unwrap_or(&path).to_owned();
        // It lies in the process's own memory, which may be a file that nobody serves.
        let tgid = key.tgid;
        let command_line = guarded_for(tgid, move || proc_files::command_line(tgid)).unwrap_or_default();
        let (mappings, sources) = self.sources.read(key.tgid, &Arc::default(), &[])?;
        let build_id = sources.iter().find_map(|(_, source)| match source {
            Source::Module(module) if *module.path == *path => module.build_id.clone(),
            _ => None,
        });
        let subject = Subject {
            tgid: key.tgid,
            executable: &executable,
            kernel_thread: false,
        };
        let metadata = Arc::new((self.labeller)(subject));
        // Asked after everything was read: who has the id now had it all the while, or all of it would be another process's.
        if proc_files::start_ticks(key.tgid)? != key.start_ticks {
            return None;
        }
        Some(Entry {
            program: Arc::new(Program {
                key,
                executable: executable.into(),
                executable_path: path.into(),
                command_line: command_line.into(),
                build_id,
                metadata,
            }),
            mappings: Arc::new(mappings),
            sources: Arc::new(sources),
            generation: 0,
            read_ns: now_ns,
        })
    }

    fn nameless(&mut self, key: ProgramKey, kernel_thread: bool, comm: &str, now_ns: u64) -> Entry {
        // Each CPU has an idle task of its own, all with process id 0.
        let executable = if key.tgid == 0 { "swapper" } else { comm };
        Entry {
            program: Arc::new(Program {
                key,
                executable: executable.into(),
                executable_path: "".into(),
                command_line: "".into(),
                build_id: None,
                metadata: Arc::new((self.labeller)(Subject {
                    tgid: key.tgid,
                    executable,
                    kernel_thread,
                })),
            }),
            mappings: Arc::new(Vec::new()),
            sources: Arc::new(Vec::new()),
            generation: 0,
            read_ns: now_ns,
        }
    }

    /// Reads the mappings of the process's present program again. False where that is not the one meant, or it is gone.
    fn reread(&mut self, key: ProgramKey, now_ns: u64) -> bool {
        let Some(process) = self.processes.get_mut(&(key.tgid, key.start_ticks)) else {
            return false;
        };
        let exited = process.exited_ns.is_some();
        let Some(entry) = process.programs.last_mut().filter(|entry| entry.program.key == key) else {
            return false;
        };
        entry.read_ns = now_ns;
        if exited || entry.program.executable_path.is_empty() {
            return false;
        }
        let (old_mappings, old_sources) = (Arc::clone(&entry.mappings), Arc::clone(&entry.sources));
        // The mappings of a process that is exiting are empty: what was known before is better.
        let read = self.sources.read(key.tgid, &old_mappings, &old_sources);
        let Some((mappings, sources)) = read.filter(|(mappings, _)| !mappings.is_empty()) else {
            return false;
        };
        // As in `load`.
        if proc_files::start_ticks(key.tgid) != Some(key.start_ticks) {
            return false;
        }
        let Some(entry) = self.entry_mut(key) else { return false };
        let is_new = mappings != *entry.mappings;
        entry.mappings = Arc::new(mappings);
        entry.sources = Arc::new(sources);
        if is_new {
            entry.generation += 1;
            self.changes.changed.push(key);
            // Something may be mapped no longer.
            self.held.one_ended();
        }
        true
    }
}

impl Entry {
    fn find(&self, address: u64) -> Option<Place> {
        let after = self.mappings.partition_point(|mapping| mapping.start <= address);
        let mapping = self.mappings[..after].last().filter(|mapping| address < mapping.end)?;
        Some(Place {
            source: mapping.source,
            offset: address.wrapping_add(mapping.to_offset),
        })
    }
}

mod held;
#[cfg(test)]
mod tests;
