//! One interval's samples, with each distinct stack and program once.

use std::sync::Arc;

use super::ahead::{Ahead, is_of};
use super::copies::{Copies, Kept, Wanted};
use super::locate::{kernel_addresses, left_out, locate};
use super::unwinding::UnwindStats;
use crate::cpu_budget::CpuBudget;
use crate::frames::{CodeLocation, ProgramKey, SourceId};
use crate::hash::FastMap;
use crate::kernel::{
    EXACT_ADDRESS, LateWalk, RawSample, StackCopy, Tables, WalkEnd, WalkStop, leave_out_middle, so_walk,
};
use crate::process::{Found, Leaving, Program, Sighting, Source, Table};

/// Beyond it samples are counted as lost: five seconds of 256 busy CPUs at 99 Hz.
const MAX_SAMPLES: usize = 131_072;
/// Stacks remembered across intervals, in two generations.
const REMEMBERED_STACKS: usize = 8192;
/// Names of threads remembered.
const MAX_THREAD_NAMES: usize = 4096;

/// A stack whose addresses have been traced to their sources, leaf first.
#[derive(Debug)]
pub(super) struct LocatedStack {
    pub(super) kernel: Box<[CodeLocation]>,
    pub(super) user: Box<[CodeLocation]>,
    /// What was left out of the middle of `user`.
    pub(super) gap: Option<Gap>,
    pub(super) walk_end: WalkEnd,
    pub(super) kernel_cut: bool,
    /// What the user places refer to.
    pub(super) sources: Box<[(SourceId, Source)]>,
}

/// Frames that were left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap {
    /// Before the place of this index.
    pub(super) at: usize,
    /// At least so many, a power of two: with their exact number, recursion would make a stack of its own for each depth.
    pub(super) frames: u32,
}

/// One sample, referring to its program and stack.
#[derive(Debug)]
pub(super) struct GatheredSample {
    pub(super) time_ns: u64,
    pub(super) cpu: u32,
    pub(super) tid: u32,
    pub(super) thread: Arc<str>,
    pub(super) program: u32,
    pub(super) stack: u32,
}

/// What is gathered.
#[derive(Debug, Default)]
pub(super) struct Interval {
    pub(super) samples: Vec<GatheredSample>,
    pub(super) programs: Vec<Arc<Program>>,
    pub(super) stacks: Vec<Arc<LocatedStack>>,
    /// By the control group as well, of version 2, and how often it was moved in those of version 1.
    program_index: FastMap<(ProgramKey, u64, u32), u32>,
    stack_index: FastMap<u128, u32>,
    late: Vec<LateSample>,
}

/// A sample whose stack is walked to its end when its tables are there.
#[derive(Debug)]
struct LateSample {
    time_ns: u64,
    cpu: u32,
    tid: u32,
    key: ProgramKey,
    proc_tgid: u32,
    image: u64,
    cgroup_id: u64,
    comm: Box<[u8]>,
    kernel: Box<[u64]>,
    kernel_cut: bool,
    user: Vec<u64>,
    user_skipped: u32,
    walk: so_walk,
    /// Of the last frame's code.
    place: CodeLocation,
    stack: Kept,
    /// When its program is opened at the latest; none where it was.
    opens_by_ns: Option<u64>,
    /// As it was known when the sample came, or was opened: by the time that its tables come it may be forgotten.
    program: Option<Arc<Program>>,
}

/// What looking again has brought.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Look {
    /// Mappings were found that were not known before.
    pub(super) found: bool,
    /// Some will be read again soon.
    pub(super) waits: bool,
}

/// Outlives the intervals: what is the same on most samples is found by the hash of its addresses.
#[derive(Debug, Default)]
pub(super) struct Memory {
    young: FastMap<u128, Arc<LocatedStack>>,
    old: FastMap<u128, Arc<LocatedStack>>,
    thread_names: FastMap<Box<[u8]>, Arc<str>>,
    hashed: Vec<u8>,
    /// Of stacks in all intervals that have not been handed over.
    pub(super) copies: Copies,
    /// Copies for which there was no room.
    pub(super) late_left: u64,
}

impl Memory {
    pub(super) fn within(memory_limit_bytes: u64) -> Self {
        Self {
            copies: Copies::within(memory_limit_bytes),
            ..Self::default()
        }
    }

    /// Forgets what was not seen since the last call but one.
    pub(super) fn age(&mut self) {
        self.old = std::mem::take(&mut self.young);
    }

    fn thread_name(&mut self, comm: &[u8]) -> Arc<str> {
        if let Some(name) = self.thread_names.get(comm) {
            return Arc::clone(name);
        }
        if self.thread_names.len() >= MAX_THREAD_NAMES {
            self.thread_names.clear();
        }
        let name: Arc<str> = String::from_utf8_lossy(comm).into();
        self.thread_names.insert(comm.into(), Arc::clone(&name));
        name
    }

    /// Of everything that decides what the stack's addresses mean. Kernel addresses mean the same in every process, but where its code comes
    /// and goes, not at every time.
    fn hash(&mut self, sample: &RawSample<'_>, key: ProgramKey, generation: u32, table: &Table) -> u128 {
        let bytes = &mut self.hashed;
        bytes.clear();
        if !sample.user.is_empty() {
            bytes.extend(key.tgid.to_ne_bytes());
            bytes.extend(key.start_ticks.to_ne_bytes());
            bytes.extend(key.exec_id.to_ne_bytes());
            bytes.extend(generation.to_ne_bytes());
        }
        bytes.push(sample.walk_end as u8);
        bytes.push(u8::from(sample.kernel_cut));
        bytes.extend(left_out(sample.user_skipped).to_ne_bytes());
        bytes.extend((sample.kernel.len() as u16).to_ne_bytes());
        for address in sample.kernel.iter().chain(sample.user) {
            bytes.extend(address.to_ne_bytes());
        }
        for (place, _) in kernel_addresses(sample).filter_map(|address| table.kernel_place(address, sample.time_ns)) {
            bytes.extend(place.source.number().to_ne_bytes());
        }
        xxhash_rust::xxh3::xxh3_128(bytes)
    }

    fn get(&mut self, hash: u128) -> Option<Arc<LocatedStack>> {
        if let Some(stack) = self.young.get(&hash) {
            return Some(Arc::clone(stack));
        }
        let stack = self.old.remove(&hash)?;
        self.put(hash, Arc::clone(&stack));
        Some(stack)
    }

    fn put(&mut self, hash: u128, stack: Arc<LocatedStack>) {
        if self.young.len() >= REMEMBERED_STACKS / 2 {
            self.age();
        }
        self.young.insert(hash, stack);
    }
}

/// The copy of a sample's stack, of which the walk stopped in the code of a file.
fn wanted<'a>(sample: &RawSample<'_>, late: &LateWalk<'a>, file: SourceId) -> Wanted<'a> {
    let addresses = sample.kernel.len() + sample.user.len();
    Wanted {
        file,
        tid: sample.tid,
        stack: StackCopy::of(&late.walk, late.stack),
        beside_bytes: size_of::<LateSample>() + addresses * size_of::<u64>() + sample.comm.len(),
    }
}

impl LateSample {
    fn walk_on(&mut self, tables: &mut Tables, copies: &mut Copies, table: &mut Table, now_ns: u64) -> WalkStop {
        let stack = copies.stack(&self.stack);
        let stop = tables.walk_on(self.key, &mut self.walk, stack, &mut self.user);
        self.user_skipped += leave_out_middle(&mut self.user);
        if stop == WalkStop::NoTable {
            self.place = place_of_stop(&self.user, &self.walk, self.key, table, now_ns);
        }
        stop
    }
}

impl Interval {
    /// False where the interval is full: the sample is lost.
    pub(super) fn add(
        &mut self,
        sample: &RawSample<'_>,
        memory: &mut Memory,
        table: &mut Table,
        cpu_budget: &CpuBudget,
        now_ns: u64,
    ) -> bool {
        if self.samples.len() + self.late.len() >= MAX_SAMPLES {
            return false;
        }
        let key = key_of(sample);
        let Some(late) = &sample.late else {
            self.push(sample, key, None, memory, table, now_ns);
            return true;
        };
        // Met here, so that its files are opened while it lives, and its mappings read again where one is missing; unless it is sure to
        // live on, and there is too much to open just now. All that are unopened share one part of the room for copies: where that is
        // full it is opened all the same, since its file has a part of its own.
        let opens_by_ns = table.opens_by_ns(key, now_ns);
        let opens_by_ns = opens_by_ns.filter(|by_ns| *by_ns > now_ns && !cpu_budget.has_room());
        let unopened = CodeLocation {
            source: SourceId::UNKNOWN,
            offset: 0,
        };
        if opens_by_ns.is_some()
            && let Some(stack) = memory.copies.keep(wanted(sample, late, unopened.source))
        {
            self.put_off(sample, late, stack, key, unopened, opens_by_ns);
            return true;
        }
        let thread = memory.thread_name(sample.comm);
        let found = table.program(&sighting(sample, &thread), now_ns);
        let place = place_of_stop(sample.user, &late.walk, key, table, now_ns);
        if let Some(stack) = memory.copies.keep(wanted(sample, late, place.source)) {
            self.put_off(sample, late, stack, key, place, None);
            if let Some(late) = self.late.last_mut() {
                late.program = Some(found.program);
            }
        } else {
            memory.late_left += 1;
            self.push(sample, key, None, memory, table, now_ns);
        }
        true
    }

    /// Opens programs that were left for later: those that cannot wait any longer, and others as the pace allows.
    pub(super) fn open_waiting(&mut self, table: &mut Table, cpu_budget: &CpuBudget, now_ns: u64) {
        let mut has_room = true;
        for late in &mut self.late {
            let Some(by_ns) = late.opens_by_ns else { continue };
            if by_ns > now_ns && table.opens_by_ns(late.key, now_ns).is_some() {
                has_room = has_room && cpu_budget.has_room();
                if !has_room {
                    continue;
                }
            }
            late.opens_by_ns = None;
            let comm = String::from_utf8_lossy(&late.comm);
            let seen = Sighting {
                key: late.key,
                proc_tgid: late.proc_tgid,
                image: late.image,
                cgroup_id: late.cgroup_id,
                time_ns: late.time_ns,
                kernel_thread: false,
                comm: &comm,
            };
            late.program = Some(table.program(&seen, now_ns).program);
            late.place = place_of_stop(&late.user, &late.walk, late.key, table, now_ns);
        }
    }

    /// True where programs are still to be opened.
    pub(super) fn has_unopened(&self) -> bool {
        self.late.iter().any(|late| late.opens_by_ns.is_some())
    }

    /// Whose stacks wait for tables, and where the code is at which they stopped.
    pub(super) fn late_places(&self) -> impl Iterator<Item = (ProgramKey, CodeLocation)> {
        self.late.iter().map(|late| (late.key, late.place))
    }

    /// Goes on with the walks for which `is_there` says that what they waited for has come. Those that end are samples like all others
    /// from now on; others may stop again, further on.
    pub(super) fn walk_late(
        &mut self,
        tables: &mut Tables,
        memory: &mut Memory,
        table: &mut Table,
        stats: &mut UnwindStats,
        is_there: impl Fn(CodeLocation) -> bool,
        now_ns: u64,
    ) {
        let mut waiting = Vec::with_capacity(self.late.len());
        for mut late in std::mem::take(&mut self.late) {
            let stop = if is_there(late.place) {
                late.walk_on(tables, &mut memory.copies, table, now_ns)
            } else {
                WalkStop::NoTable
            };
            if stop == WalkStop::NoTable {
                waiting.push(late);
            } else {
                self.finish_one(late, stop, memory, table, stats, now_ns);
            }
        }
        self.late = waiting;
    }

    /// Looks again for code that lay in no known mapping.
    pub(super) fn look_again(&mut self, table: &mut Table, now_ns: u64) -> Look {
        let mut look = Look::default();
        for late in self
            .late
            .iter_mut()
            .filter(|late| late.place.source == SourceId::UNKNOWN)
        {
            let Some((address, true)) = stopped_at(&late.user, &late.walk) else {
                continue;
            };
            late.place = table.place(late.key, address, true, now_ns);
            look.found |= late.place.source != SourceId::UNKNOWN;
            look.waits |= late.place.source == SourceId::UNKNOWN && table.may_read_after(late.key, late.time_ns);
        }
        look
    }

    fn put_off(
        &mut self,
        sample: &RawSample<'_>,
        late: &LateWalk<'_>,
        stack: Kept,
        key: ProgramKey,
        place: CodeLocation,
        opens_by_ns: Option<u64>,
    ) {
        self.late.push(LateSample {
            time_ns: sample.time_ns,
            cpu: sample.cpu,
            tid: sample.tid,
            key,
            proc_tgid: sample.proc_tgid,
            image: sample.image,
            cgroup_id: sample.cgroup_id,
            comm: sample.comm.into(),
            kernel: sample.kernel.into(),
            kernel_cut: sample.kernel_cut,
            user: sample.user.to_vec(),
            user_skipped: sample.user_skipped,
            walk: late.walk,
            place,
            stack,
            opens_by_ns,
            program: None,
        });
    }

    /// Where the code of its stacks is.
    pub(super) fn places(&self) -> impl Iterator<Item = &CodeLocation> {
        self.stacks.iter().flat_map(|stack| &stack.user)
    }

    /// Adds the places of stacks that wait, in files that are about to be given up, and what these are.
    pub(super) fn late_places_in(&self, leaving: &[Leaving], table: &mut Table, ahead: &mut Ahead, now_ns: u64) {
        for late in &self.late {
            for (index, address) in late.user.iter().enumerate() {
                let innermost = index == 0 || address & EXACT_ADDRESS != 0;
                let place = table.place(late.key, address_of(*address, innermost), false, now_ns);
                if let Some(source) = table.source(late.key, place.source, now_ns)
                    && is_of(leaving, &source)
                {
                    ahead.sources.entry(place.source).or_insert(source);
                    ahead.places.push(place);
                }
            }
        }
    }

    /// True where stacks still wait for tables.
    pub(super) fn has_late(&self) -> bool {
        !self.late.is_empty()
    }

    /// Walks the stacks that waited, with the tables that are there now.
    pub(super) fn finish_late(
        &mut self,
        tables: &mut Tables,
        memory: &mut Memory,
        table: &mut Table,
        stats: &mut UnwindStats,
        now_ns: u64,
    ) {
        for mut late in std::mem::take(&mut self.late) {
            let stop = late.walk_on(tables, &mut memory.copies, table, now_ns);
            self.finish_one(late, stop, memory, table, stats, now_ns);
        }
    }

    fn finish_one(
        &mut self,
        mut late: LateSample,
        stop: WalkStop,
        memory: &mut Memory,
        table: &mut Table,
        stats: &mut UnwindStats,
        now_ns: u64,
    ) {
        memory.copies.release(late.stack);
        stats.walked_late += 1;
        let walk_end = match stop {
            WalkStop::Root => WalkEnd::Root,
            WalkStop::Cut => WalkEnd::Cut,
            WalkStop::Broken => WalkEnd::Broken,
            WalkStop::NoTable => {
                stats.walked_without_table += 1;
                WalkEnd::Broken
            }
            WalkStop::NoMapping => {
                // What returns to where there is no code is no frame.
                if late.user.len() > 1 && late.user.last().is_some_and(|last| last & EXACT_ADDRESS == 0) {
                    late.user.pop();
                }
                WalkEnd::Broken
            }
        };
        let sample = RawSample {
            time_ns: late.time_ns,
            cpu: late.cpu,
            tgid: late.key.tgid,
            tid: late.tid,
            start_ticks: late.key.start_ticks,
            exec_id: late.key.exec_id,
            cgroup_id: late.cgroup_id,
            comm: &late.comm,
            kernel: &late.kernel,
            user: &late.user,
            user_skipped: late.user_skipped,
            walk_end,
            late: None,
            kernel_thread: false,
            kernel_cut: late.kernel_cut,
            proc_tgid: late.proc_tgid,
            image: late.image,
        };
        let known = late.program.take().filter(|_| !table.knows(late.key));
        self.push(&sample, late.key, known, memory, table, now_ns);
    }

    /// The number of a program with its labels. What is known better by now is so for all samples of it.
    fn program(&mut self, key: ProgramKey, cgroup_id: u64, moves: u32, program: Arc<Program>) -> u32 {
        let index = *self.program_index.entry((key, cgroup_id, moves)).or_insert_with(|| {
            self.programs.push(Arc::clone(&program));
            (self.programs.len() - 1) as u32
        });
        let known = &mut self.programs[index as usize];
        if known.command_line.is_empty() && !program.executable_path.is_empty() {
            *known = program;
        }
        index
    }

    /// `known` is the program where the table has forgotten it.
    fn push(
        &mut self,
        sample: &RawSample<'_>,
        key: ProgramKey,
        known: Option<Arc<Program>>,
        memory: &mut Memory,
        table: &mut Table,
        now_ns: u64,
    ) {
        let thread = memory.thread_name(sample.comm);
        let found = match known {
            Some(program) => Found {
                program,
                generation: 0,
                moves: 0,
            },
            None => table.program(&sighting(sample, &thread), now_ns),
        };
        let program = self.program(key, sample.cgroup_id, found.moves, found.program);
        let hash = memory.hash(sample, key, found.generation, table);
        let stack = match self.stack_index.get(&hash) {
            Some(stack) => *stack,
            None => {
                let located = match memory.get(hash) {
                    Some(located) => located,
                    None => {
                        let located = Arc::new(locate(sample, key, table, now_ns));
                        memory.put(hash, Arc::clone(&located));
                        located
                    }
                };
                self.stacks.push(located);
                let stack = (self.stacks.len() - 1) as u32;
                self.stack_index.insert(hash, stack);
                stack
            }
        };
        self.samples.push(GatheredSample {
            time_ns: sample.time_ns,
            cpu: sample.cpu,
            tid: sample.tid,
            thread,
            program,
            stack,
        });
    }
}

fn sighting<'a>(sample: &RawSample<'_>, comm: &'a str) -> Sighting<'a> {
    Sighting {
        key: key_of(sample),
        proc_tgid: sample.proc_tgid,
        image: sample.image,
        cgroup_id: sample.cgroup_id,
        time_ns: sample.time_ns,
        kernel_thread: sample.kernel_thread,
        comm,
    }
}

fn key_of(sample: &RawSample<'_>) -> ProgramKey {
    ProgramKey {
        tgid: sample.tgid,
        start_ticks: sample.start_ticks,
        exec_id: sample.exec_id,
    }
}

/// Where the code is: one byte before a return address lies the call, which may be a function's last instruction.
pub(super) fn address_of(address: u64, innermost: bool) -> u64 {
    if innermost {
        address & !EXACT_ADDRESS
    } else {
        address.wrapping_sub(1)
    }
}

fn place_of_stop(user: &[u64], walk: &so_walk, key: ProgramKey, table: &mut Table, now_ns: u64) -> CodeLocation {
    let (address, is_code) = stopped_at(user, walk).unwrap_or_default();
    table.place(key, address, is_code, now_ns)
}

/// Where a walk stopped that is to go on, and whether there is code for certain: it was interrupted, or tables led to it.
fn stopped_at(user: &[u64], walk: &so_walk) -> Option<(u64, bool)> {
    let last = *user.last()?;
    let innermost = user.len() == 1 || last & EXACT_ADDRESS != 0;
    Some((address_of(last, innermost), walk.guessed == 0))
}
