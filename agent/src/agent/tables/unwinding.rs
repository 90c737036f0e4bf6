//! What the kernel side walks by, kept in step with what runs: each turn of the sampling thread takes what was made and
//! asks for more.

use std::collections::BTreeSet;

use super::compiler::{Compiler, Made};
use super::eviction::{Eviction, Size};
use super::files::{Files, Lack};
use super::fit;
use super::stats::UnwindStats;
use crate::agent::runtimes::Runtimes;
use crate::agent::threads::AgentError;
use crate::cpu_budget::CpuBudget;
use crate::elf::ReadTurn;
use crate::frames::{CodeLocation, ProgramKey, SourceId};
use crate::kernel::{Sensor, Waker};
use crate::process::Table;
use crate::unwind::{self, Code, CodeMapping, RETIRE_NS};

/// Of all room for tables, what one file's may take, in bytes a row: half. Until it is installed it stands in this
/// process's memory too. A browser's engine has two million rows of 4 bytes.
const TABLE_BYTES_A_ROW: u64 = 8;
const MAX_ROWS_PER_FILE: u64 = 4 << 20;
/// How often files that nothing runs any more, and parts that nothing needs, are forgotten.
const SWEEP_NS: u64 = 30_000_000_000;
/// So often room is made for one table: what is free may lie in too many pieces.
const MOST_TRIES: u32 = 3;
/// Of all room for tables, how much of what was made may wait until room is free, in this process's memory.
const HELD_PART: u64 = 16;

/// What was made and waits for room that was given up, which is free when no walk can be reading it any more.
struct Held {
    id: SourceId,
    made: Made,
    until_ns: u64,
    tries: u32,
}

pub(in crate::agent) struct Unwinding {
    files: Files,
    compiler: Compiler,
    eviction: Eviction,
    row_limit: usize,
    /// In the order in which they came.
    held: Vec<Held>,
    held_limit_bytes: u64,
    swept_ns: u64,
    /// Programs whose mappings found no room, which are tried again with each sweep.
    unpublished: BTreeSet<ProgramKey>,
    /// Something has come that deferred stacks may have waited for.
    progress: bool,
}

impl Unwinding {
    /// Tables take at most `table_bytes`; large files are read in turns, and all of them within that CPU budget.
    pub(in crate::agent) fn start(
        table_bytes: u64,
        read_turn: ReadTurn,
        cpu_budget: CpuBudget,
        waker: Waker,
    ) -> Result<Self, AgentError> {
        let row_limit = (table_bytes / TABLE_BYTES_A_ROW).min(MAX_ROWS_PER_FILE) as usize;
        Ok(Self {
            files: Files::default(),
            compiler: Compiler::start(row_limit, read_turn, cpu_budget, waker)?,
            eviction: Eviction::of(table_bytes),
            row_limit,
            held: Vec::new(),
            held_limit_bytes: table_bytes / HELD_PART,
            swept_ns: 0,
            unpublished: BTreeSet::new(),
            progress: false,
        })
    }

    pub(in crate::agent) fn stats(&self) -> UnwindStats {
        self.files.stats
    }

    pub(in crate::agent) fn stats_mut(&mut self) -> &mut UnwindStats {
        &mut self.files.stats
    }

    /// The vDSO is the same code in every 64-bit process.
    pub(in crate::agent) fn add_vdso(&mut self, image: &[u8], sensor: &mut Sensor) {
        let read = |offset: u64, bytes: &mut [u8]| {
            let part = usize::try_from(offset)
                .ok()
                .and_then(|at| image.get(at..)?.get(..bytes.len()));
            part.map(|part| bytes.copy_from_slice(part)).is_some()
        };
        let made = Made::Table(unwind::compile(read, self.row_limit).map(Box::new));
        // The first table of all finds room.
        let _ = self.files.settle(SourceId::VDSO, made, sensor.tables(), 0);
    }

    /// Samples were taken in code at these locations.
    pub(in crate::agent) fn mark_used<'p>(&mut self, locations: impl Iterator<Item = &'p CodeLocation>, now_ns: u64) {
        self.files.mark_used(locations, now_ns);
    }

    /// A stack waits for the table of the code at this location, which may not have been asked for, or have been given
    /// up.
    pub(in crate::agent) fn want_at(&mut self, table: &Table, key: ProgramKey, location: CodeLocation, now_ns: u64) {
        let lack = self.files.lack(location, now_ns);
        if !matches!(lack, Lack::File | Lack::Part(_)) {
            return;
        }
        let Some(module) = table.modules(key).find(|module| module.id == location.source) else {
            return;
        };
        if let Lack::Part(part) = lack {
            self.files.ask_part(module.id, part);
            self.compiler.want_part(module, part);
        } else {
            self.files.forget(module.id);
            if self.files.meet(module.id, module.is_open()) {
                self.compiler.want_file(module);
            }
        }
    }

    /// True where what a stack waits for at this location has come, or may have: of code that a program makes, only the
    /// walk can tell.
    pub(in crate::agent) fn may_be_there(&self, location: CodeLocation) -> bool {
        matches!(self.files.lack(location, 0), Lack::Nothing | Lack::NoFile)
    }

    /// True where the table of the code at this location is still to come.
    pub(in crate::agent) fn is_pending(&self, location: CodeLocation) -> bool {
        self.files.lack(location, 0) == Lack::Pending
    }

    /// Stacks came: what they stopped for may have come while they were in the ring.
    pub(in crate::agent) fn look_at_stacks(&mut self) {
        self.progress = true;
    }

    /// True where stacks are to be looked at since the last call: something came that one may have waited for.
    pub(in crate::agent) fn take_progress(&mut self) -> bool {
        std::mem::take(&mut self.progress)
    }

    /// True while no table is being made that a stack waits for.
    pub(in crate::agent) fn is_settled(&self) -> bool {
        self.held.is_empty() && self.compiler.is_settled()
    }

    /// Says which programs' stacks wait for tables, and at which source each of them stopped.
    pub(in crate::agent) fn prefer(&mut self, table: &Table, stops: impl Iterator<Item = (ProgramKey, CodeLocation)>) {
        self.compiler.prefer(table, stops);
    }

    /// Takes tables that are ready, asks for those of new files, and publishes what changed.
    pub(in crate::agent) fn follow(
        &mut self,
        table: &mut Table,
        runtimes: &mut Runtimes,
        sensor: &mut Sensor,
        now_ns: u64,
    ) {
        sensor.tables().reclaim(now_ns);
        let changes = table.take_changes();
        for key in &changes.gone {
            sensor.tables().withdraw(*key, now_ns);
            self.unpublished.remove(key);
            runtimes.forget(*key);
        }
        let mut again = changes.changed;
        self.progress |= !again.is_empty();
        again.sort_unstable();
        again.dedup();
        for key in &again {
            runtimes.meet(*key, table, now_ns);
            for module in table.modules(*key) {
                if self.files.meet(module.id, module.is_open()) {
                    self.compiler.want_file(module);
                }
            }
        }
        let known_now = runtimes.look_again(table, now_ns);
        self.progress |= !known_now.is_empty();
        again.extend(known_now);
        let mut changed = Vec::new();
        for held in self
            .held
            .extract_if(.., |held| held.until_ns <= now_ns)
            .collect::<Vec<_>>()
        {
            self.settle(held.id, held.made, held.tries, sensor, now_ns, &mut changed);
        }
        while let Some((id, made)) = self.compiler.take() {
            self.settle(id, made, 0, sensor, now_ns, &mut changed);
        }
        let missing = self.eviction.missing_reserve(self.expected_bytes(sensor));
        if missing > 0 {
            let chosen = self
                .eviction
                .choose(Size::Small, u64::MAX, self.files.candidates(), missing, now_ns);
            changed.extend(self.files.give_up(&chosen, sensor.tables(), now_ns));
        }
        self.ask();
        if now_ns.saturating_sub(self.swept_ns) >= SWEEP_NS {
            self.swept_ns = now_ns;
            self.files.sweep(&table.mapped_sources(), sensor.tables(), now_ns);
            self.files.sweep_parts(sensor.tables(), now_ns);
            again.extend(std::mem::take(&mut self.unpublished));
        }
        again.extend(changed.into_iter().flat_map(|id| table.users_of(id)));
        self.publish(again, table, runtimes, sensor, now_ns);
        self.files.stats.table_bytes = sensor.tables().used_bytes();
    }

    /// Gives the compiler its next work.
    pub(in crate::agent) fn ask(&mut self) {
        let Self { files, compiler, .. } = self;
        compiler.ask(|id| files.outline_of(id));
    }

    /// What will be free in a moment for others than those that wait for it.
    fn expected_bytes(&self, sensor: &mut Sensor) -> u64 {
        let tables = sensor.tables();
        (tables.free_bytes() + tables.retiring_bytes()).saturating_sub(self.held_bytes())
    }

    fn held_bytes(&self) -> u64 {
        self.held.iter().map(|held| held.made.bytes()).sum()
    }

    /// Puts a table where walks find it, or gives up others for it; `changed` are the files whose programs are to be
    /// published anew.
    fn settle(
        &mut self,
        id: SourceId,
        made: Made,
        tries: u32,
        sensor: &mut Sensor,
        now_ns: u64,
        changed: &mut Vec<SourceId>,
    ) {
        let wanted = made.bytes();
        let is_part = matches!(made, Made::Part(..));
        let size = self.eviction.size(wanted, is_part);
        let fits = self.eviction.missing(size, wanted, sensor.tables().free_bytes()) == 0;
        let refused = if fits {
            // Refused all the same where what is free lies in pieces.
            self.files.settle(id, made, sensor.tables(), now_ns).err()
        } else {
            Some(made)
        };
        let Some(made) = refused else {
            self.progress = true;
            if !is_part {
                changed.push(id);
            }
            return;
        };
        // One may be as large as it is: nothing would ever be given up for it otherwise.
        let has_room = self.held.is_empty() || self.held_bytes() + wanted <= self.held_limit_bytes;
        let may_wait = tries < MOST_TRIES && has_room;
        let missing = if fits {
            wanted
        } else {
            self.eviction.missing(size, wanted, self.expected_bytes(sensor))
        };
        let chosen = if may_wait {
            let file_bytes = self.files.bytes_of(id) + wanted;
            self.eviction
                .choose(size, file_bytes, self.files.candidates(), missing, now_ns)
        } else {
            Vec::new()
        };
        if !may_wait || (missing > 0 && chosen.is_empty()) {
            self.progress = true;
            self.files.refuse(id, &made, now_ns);
            return;
        }
        changed.extend(self.files.give_up(&chosen, sensor.tables(), now_ns));
        self.held.push(Held {
            id,
            made,
            until_ns: now_ns + RETIRE_NS,
            tries: tries + 1,
        });
    }

    /// Gives up all tables that no sample needed in the last minute; their room is used again before more is taken.
    pub(in crate::agent) fn give_up_unused(
        &mut self,
        table: &mut Table,
        runtimes: &Runtimes,
        sensor: &mut Sensor,
        now_ns: u64,
    ) {
        let chosen = Eviction::unused(self.files.candidates(), now_ns);
        let changed = self.files.give_up(&chosen, sensor.tables(), now_ns);
        let again = changed.into_iter().flat_map(|id| table.users_of(id)).collect();
        self.publish(again, table, runtimes, sensor, now_ns);
    }

    /// Makes what is known of programs' mappings what their samples are walked by.
    fn publish(
        &mut self,
        mut keys: Vec<ProgramKey>,
        table: &Table,
        runtimes: &Runtimes,
        sensor: &mut Sensor,
        now_ns: u64,
    ) {
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let waits = runtimes.is_waiting(key);
            let mapping = |range: crate::process::CodeRange| CodeMapping {
                begin: range.start,
                end: range.end,
                code: if waits && table.is_made(key, range.source) {
                    Code::Pending
                } else {
                    self.files.code(range.source, range.start, range.offset)
                },
            };
            let mappings: Vec<CodeMapping<'_>> = fit::fit(table.code_ranges(key).map(mapping).collect());
            let runtime = runtimes.described(key);
            if !mappings.is_empty() && !sensor.tables().publish(key, &mappings, runtime, now_ns) {
                self.files.stats.no_room += 1;
                self.unpublished.insert(key);
            }
        }
    }
}
