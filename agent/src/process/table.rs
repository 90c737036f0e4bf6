//! Processes that run or ran a moment ago, and where their code comes from.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use super::address_space::{CodeRange, Source, Sources};
use super::command_line::CommandLines;
use super::kernel_code::KernelCode;
use super::modules::{Module, ModuleTable};
use super::rescan::RescanSchedule;
use crate::frames::{CodeLocation, ProgramKey, SourceId};
use crate::metadata::Resolver;
use entry::{Entry, Knowledge, ProcessEntry};
use labels::Labels;
pub use program::{Changes, Found, Program, Sighting};
use unmapped_scan::UnmappedScan;

/// Programs that were replaced by an exec are remembered for so long, all together so many: their samples may still be
/// in the ring, or wait for tables.
const REPLACED_NS: u64 = 35_000_000_000;
const MAX_REPLACED: usize = 4096;
const MAX_MOVES: usize = 16;
/// How long an exited process is kept: its samples are in the ring or in the batch being gathered.
const EXIT_GRACE_NS: u64 = 10_000_000_000;
/// Code that runs outside all known mappings leads to another reading, but not more often than this.
const REREAD_NS: u64 = 500_000_000;
/// The same for return addresses: where code keeps no frame pointers most of those are not addresses at all.
const REREAD_FOR_CALLER_NS: u64 = 10_000_000_000;
/// Mappings older than this are read again before they are trusted: a library may have been unloaded and replaced.
const STALE_NS: u64 = 60_000_000_000;
/// Delay of the second look at a new program, where new mappings are not told: by then its loader has mapped its
/// libraries.
const SECOND_LOOK_NS: u64 = 5_000_000;
/// Of its age, how long a process that was just met may wait to be opened, and the longest.
const OPENED_LATER_PART: u64 = 4;
const OPENED_LATER_NS: u64 = 5_000_000_000;
/// Of the unit in which /proc/PID/stat tells when a process started, the same on all machines.
const TICK_NS: u64 = 10_000_000;

/// What the table has done, for logs and tests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableStats {
    /// Gauge: processes that are known, those that ended a moment ago among them.
    pub processes: usize,
    /// Gauge: files that are held open, perf maps among them.
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
    /// Programs that were replaced by an exec, and forgotten for room before their samples can have come.
    pub programs_forgotten: u64,
    /// Code that the kernel made at run time and that was forgotten for room.
    pub kernel_code_forgotten: u64,
    /// Addresses that had other code before or after the look that tells what is there.
    pub code_replaced: u64,
}

/// All processes. Bounded: those that were not seen the longest go first.
#[derive(Debug)]
pub struct Table {
    /// By process id and start time: whose id was given away are side by side, the present owner last.
    processes: BTreeMap<(u32, u64), ProcessEntry>,
    sources: Sources,
    resolver: Resolver,
    command_lines: CommandLines,
    kernel_code: KernelCode,
    capacity: usize,
    rescans: RescanSchedule,
    stats: TableStats,
    swept_ns: u64,
    changes: Changes,
    held: UnmappedScan,
    /// When, in that order, which programs were replaced.
    replaced: VecDeque<(u64, ProgramKey)>,
    /// Of processes that have another id in /proc than in samples, the latter by the former.
    by_proc_tgid: HashMap<u32, u32>,
}

impl Table {
    /// An empty table for at most so many processes. `modules` opens their files, `resolver` finds their labels.
    pub fn new(capacity: usize, modules: ModuleTable, resolver: Resolver, command_lines: CommandLines) -> Self {
        Self {
            processes: BTreeMap::new(),
            sources: Sources::new(modules),
            resolver,
            command_lines,
            kernel_code: KernelCode::default(),
            capacity,
            rescans: RescanSchedule::default(),
            stats: TableStats::default(),
            swept_ns: 0,
            changes: Changes::default(),
            held: UnmappedScan::default(),
            replaced: VecDeque::new(),
            by_proc_tgid: HashMap::new(),
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
            .map(|entry| entry.labels.key())
            .collect()
    }

    /// What was done so far, and what is held now.
    pub fn stats(&self) -> TableStats {
        TableStats {
            processes: self.processes.len(),
            open_files: self.sources.open_files(),
            early_looks_skipped: self.rescans.skipped(),
            given_up_unread: self.sources.holding().given_up_unread(),
            mapping_looks_put_off: self.rescans.put_off(),
            kernel_code_forgotten: self.kernel_code.forgotten(),
            ..self.stats
        }
    }

    /// When the next look at a process is due; none where there is none.
    pub fn next_look_ns(&self) -> Option<u64> {
        self.rescans.next_ns()
    }

    /// Reads the mappings of programs that have new ones, and forgets what ended long enough ago.
    pub fn tick(&mut self, now_ns: u64) {
        while let Some((tgid, mapped_ns)) = self.rescans.take_due(now_ns) {
            // Unknown processes are read at their first sample, and what was read since then needs no other look.
            let program = self.present_program(tgid).filter(|entry| entry.read_ns < mapped_ns);
            if let Some(key) = program.map(|entry| entry.labels.key()) {
                self.reread(key, now_ns);
                self.rescans.looked(tgid, now_ns);
                self.stats.mapping_looks += 1;
            } else {
                self.rescans.passed_over(tgid);
            }
        }
        if now_ns.saturating_sub(self.swept_ns) >= 1_000_000_000 {
            self.swept_ns = now_ns;
            self.look_for_unmapped(now_ns);
            self.rescans.forget_quiet(now_ns);
            self.kernel_code.forget_old(now_ns);
            while let Some((at, key)) = self.replaced.front().copied() {
                if now_ns.saturating_sub(at) < REPLACED_NS {
                    break;
                }
                self.replaced.pop_front();
                self.forget_program(key);
            }
            self.forget(|process| {
                process
                    .exited_ns
                    .is_some_and(|at| now_ns.saturating_sub(at) >= EXIT_GRACE_NS)
            });
        }
    }

    /// Until when a program need not be opened: who has lived for long is likely to live on for a part of that. None
    /// where it was.
    pub fn opens_by_ns(&self, key: ProgramKey, now_ns: u64) -> Option<u64> {
        let age_ns = now_ns.saturating_sub(key.start_ticks.saturating_mul(TICK_NS));
        let is_known = self.entry(key).is_some_and(|entry| entry.knowledge != Knowledge::Told);
        (!is_known).then(|| now_ns + (age_ns / OPENED_LATER_PART).min(OPENED_LATER_NS))
    }

    /// True where a source of the program's code is made at run time.
    pub fn is_made(&self, key: ProgramKey, source: SourceId) -> bool {
        let sources = self.entry(key).map(|entry| entry.sources.as_slice());
        let mut sources = sources.unwrap_or_default().iter();
        sources.any(|(id, kind)| *id == source && matches!(kind, Source::Jit(_)))
    }

    /// The id under which /proc, and whoever reads its memory, finds a program that still runs.
    pub fn proc_id(&self, key: ProgramKey) -> Option<u32> {
        let process = self.processes.get(&(key.tgid, key.start_ticks))?;
        let last = process.programs.last().filter(|entry| entry.labels.key() == key)?;
        (process.exited_ns.is_none() && last.read_id != 0).then_some(last.read_id)
    }

    /// True where more is known of the program than what some thread was called.
    pub fn knows(&self, key: ProgramKey) -> bool {
        let is_known = |entry: &Entry| entry.labels.is_told() || entry.knowledge == Knowledge::Read;
        self.entry(key).is_some_and(is_known)
    }

    /// The program of a sample, read if it is new.
    pub fn program(&mut self, seen: &Sighting<'_>, now_ns: u64) -> Found {
        if let Some(found) = self.labelled(seen, now_ns, false) {
            return found;
        }
        self.meet(seen, now_ns);
        // There is one after that, unless it was forgotten for room at once.
        self.labelled(seen, now_ns, true).unwrap_or_else(|| Found {
            program: Labels::nameless(seen).at(seen, 0, None, &mut self.resolver),
            generation: 0,
            moves: 0,
        })
    }

    /// Processes that run such a program now, by their ids in samples.
    pub fn running(&mut self, is_such: impl Fn(&Program) -> bool, now_ns: u64) -> BTreeSet<u32> {
        let Self {
            processes, resolver, ..
        } = self;
        let present = processes.values_mut().filter(|process| process.exited_ns.is_none());
        let is_wanted = |entry: &mut ProcessEntry| {
            let moves = entry.moves_until(u64::MAX);
            let last = entry.programs.last_mut()?;
            let program = last.labels.now(now_ns, moves, last.read_id, resolver);
            is_such(&program).then_some(program.key.tgid)
        };
        present.filter_map(is_wanted).collect()
    }

    /// The program as it is known. None where it may be known better, unless that is enough.
    fn labelled(&mut self, seen: &Sighting<'_>, now_ns: u64, is_enough: bool) -> Option<Found> {
        let process = self.processes.get_mut(&(seen.key.tgid, seen.key.start_ticks))?;
        process.used_ns = now_ns;
        let moves = process.moves_until(seen.time_ns);
        let is_present = process.exited_ns.is_none() && moves == process.moves_until(u64::MAX);
        let entry = process.program_mut(seen.key.exec_id)?;
        let is_fresh = entry.knowledge == Knowledge::Read && now_ns.saturating_sub(entry.read_ns) <= STALE_NS;
        (is_enough || is_fresh || seen.kernel_thread).then(|| Found {
            generation: entry.generation_at(seen.time_ns),
            program: entry
                .labels
                .at(seen, moves, is_present.then_some(entry.read_id), &mut self.resolver),
            moves,
        })
    }

    /// Sees to it that there is an entry for a sample's program, as well known as can be.
    fn meet(&mut self, seen: &Sighting<'_>, now_ns: u64) {
        let key = seen.key;
        let process = self.processes.get(&(key.tgid, key.start_ticks));
        let is_present = process.is_none_or(|process| {
            let newest = process.programs.last().map(|entry| entry.labels.key().exec_id);
            process.exited_ns.is_none() && newest.is_none_or(|newest| newest <= key.exec_id)
        });
        let may_read = !seen.kernel_thread && seen.proc_tgid != 0 && is_present;
        let Some(entry) = self.entry_mut(key) else {
            let entry = Entry {
                proc_tgid: seen.proc_tgid,
                image: seen.image,
                read_id: seen.proc_tgid,
                ..Entry::nameless(Labels::nameless(seen), now_ns)
            };
            self.insert(key, entry, now_ns);
            if may_read {
                self.load(key, now_ns);
            }
            return;
        };
        if !may_read {
            return;
        }
        match entry.knowledge {
            Knowledge::Read => {
                if now_ns.saturating_sub(entry.read_ns) > STALE_NS {
                    self.reread(key, now_ns);
                }
            }
            Knowledge::Told => {
                self.load(key, now_ns);
            }
            Knowledge::Missed => {
                // The sample that led to the first look may have been taken in the middle of an exec.
                if entry.image != seen.image && seen.image != 0 && !entry.labels.is_told() {
                    entry.image = seen.image;
                    self.load(key, now_ns);
                }
            }
        }
    }

    /// Where a user address of the program comes from. Reads the mappings again where none covers it; `is_code` says
    /// that something surely is there: the address was being executed, or tables led to it.
    pub fn location(&mut self, key: ProgramKey, address: u64, is_code: bool, now_ns: u64) -> CodeLocation {
        let unknown = CodeLocation {
            source: SourceId::UNKNOWN,
            offset: address,
        };
        let Some(entry) = self.entry(key) else { return unknown };
        if let Some(location) = entry.find(address) {
            return location;
        }
        let read_ns = entry.read_ns;
        let wait_ns = if is_code { REREAD_NS } else { REREAD_FOR_CALLER_NS };
        // What it mapped since is looked at in a while, and somebody waits for it.
        let is_told = is_code && self.rescans.may_hurry(key.tgid, now_ns);
        if !is_told && now_ns.saturating_sub(read_ns) < wait_ns || !self.reread(key, now_ns) {
            return unknown;
        }
        if is_told {
            self.rescans.looked(key.tgid, now_ns);
        }
        self.entry(key).and_then(|entry| entry.find(address)).unwrap_or(unknown)
    }

    /// Where an address of a sample of that time comes from: [`SourceId::REPLACED`] where something else may have been
    /// there than the last look has found.
    pub fn location_at(
        &mut self,
        key: ProgramKey,
        address: u64,
        time_ns: u64,
        is_code: bool,
        now_ns: u64,
    ) -> CodeLocation {
        let location = self.location(key, address, is_code, now_ns);
        if !self.entry(key).is_some_and(|entry| entry.is_unsure(address, time_ns)) {
            return location;
        }
        self.stats.code_replaced += 1;
        CodeLocation {
            source: SourceId::REPLACED,
            offset: address,
        }
    }

    /// True where the program's mappings were last read before that time, and can still be read again.
    pub fn may_read_after(&self, key: ProgramKey, time_ns: u64) -> bool {
        let Some(process) = self.processes.get(&(key.tgid, key.start_ticks)) else {
            return false;
        };
        let last = process.programs.last().filter(|entry| entry.labels.key() == key);
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
        self.processes.get(&(key.tgid, key.start_ticks))?.program(key.exec_id)
    }

    /// What a live process runs.
    fn present_program(&self, tgid: u32) -> Option<&Entry> {
        let owners = self.processes.range((tgid, 0)..=(tgid, u64::MAX));
        let mut live = owners.rev().filter(|(_, process)| process.exited_ns.is_none());
        live.next().and_then(|(_, process)| process.programs.last())
    }

    fn present_program_mut(&mut self, tgid: u32) -> Option<&mut Entry> {
        let owners = self.processes.range_mut((tgid, 0)..=(tgid, u64::MAX));
        let mut live = owners.rev().filter(|(_, process)| process.exited_ns.is_none());
        live.next().and_then(|(_, process)| process.programs.last_mut())
    }

    fn entry_mut(&mut self, key: ProgramKey) -> Option<&mut Entry> {
        self.processes
            .get_mut(&(key.tgid, key.start_ticks))?
            .program_mut(key.exec_id)
    }

    fn insert(&mut self, key: ProgramKey, entry: Entry, now_ns: u64) {
        if self.processes.len() >= self.capacity && !self.processes.contains_key(&(key.tgid, key.start_ticks)) {
            self.forget_oldest();
        }
        if entry.proc_tgid != key.tgid && entry.proc_tgid != 0 {
            self.by_proc_tgid.insert(entry.proc_tgid, key.tgid);
        }
        let has_code = !entry.mappings.is_empty();
        let process = self
            .processes
            .entry((key.tgid, key.start_ticks))
            .or_insert_with(|| ProcessEntry {
                programs: Vec::new(),
                exited_ns: None,
                used_ns: now_ns,
                moves: VecDeque::new(),
                earlier_moves: 0,
            });
        process.used_ns = now_ns;
        let at = process
            .programs
            .partition_point(|known| known.labels.key().exec_id < key.exec_id);
        if let Some(known) = process.programs.get_mut(at).filter(|known| known.labels.key() == key) {
            *known = entry;
        } else {
            process.programs.insert(at, entry);
            if process.programs.len() > 1 {
                self.held.one_ended();
            }
            // All but the newest one were replaced.
            let older = if at + 1 < process.programs.len() {
                Some(key)
            } else {
                None
            };
            let before = at.checked_sub(1).map(|before| process.programs[before].labels.key());
            self.replaced.extend(older.or(before).map(|key| (now_ns, key)));
        }
        if has_code {
            self.changes.changed.push(key);
        }
        if self.replaced.len() > MAX_REPLACED
            && let Some((_, key)) = self.replaced.pop_front()
        {
            self.stats.programs_forgotten += 1;
            self.forget_program(key);
        }
    }

    /// Forgets a program of a process that runs another one.
    fn forget_program(&mut self, key: ProgramKey) {
        if let Some(process) = self.processes.get_mut(&(key.tgid, key.start_ticks)) {
            process.programs.retain(|entry| entry.labels.key() != key);
            self.changes.gone.push(key);
        }
    }

    fn forget(&mut self, unwanted: impl Fn(&ProcessEntry) -> bool) {
        let (gone, held) = (&mut self.changes.gone, &mut self.held);
        self.processes.retain(|_, process| {
            let keep = !unwanted(process);
            if !keep {
                gone.extend(process.programs.iter().map(|entry| entry.labels.key()));
                held.one_ended();
            }
            keep
        });
        let processes = &self.processes;
        self.by_proc_tgid
            .retain(|_, tgid| processes.range((*tgid, 0)..=(*tgid, u64::MAX)).next().is_some());
    }

    fn forget_oldest(&mut self) {
        let mut uses: Vec<u64> = self.processes.values().map(|process| process.used_ns).collect();
        uses.sort_unstable();
        let keep_from = uses[uses.len() / 4];
        let before = self.processes.len();
        self.forget(|process| process.used_ns <= keep_from);
        self.stats.forgotten += (before - self.processes.len()) as u64;
    }
}

mod certainty;
mod entry;
mod held;
mod labels;
mod load;
mod news;
mod program;
mod replaced;
#[cfg(test)]
mod tests;
mod unmapped_scan;
