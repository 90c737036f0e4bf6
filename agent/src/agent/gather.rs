//! One interval's samples, with each distinct stack and program once.

use std::sync::Arc;

use super::deferred::{DeferredStacks, StackPool, Stop, location_of_stop};
use super::locate::{LocatedStack, kernel_addresses, left_out, locate};
use super::runtimes::Runtimes;
use crate::cpu_budget::CpuBudget;
use crate::frames::{CodeLocation, ProgramKey, SampleKind, SourceId};
use crate::hash::FastMap;
use crate::kernel::RawSample;
use crate::kernel::Woken;
use crate::process::{Found, Program, Sighting, Table};

/// Beyond it samples are counted as lost: five seconds of 256 busy CPUs at 99 Hz.
const MAX_SAMPLES: usize = 131_072;
/// How long a stack that lacks names is left alone: those of an interval are told as its last look told them.
const LOCATE_AGAIN_NS: u64 = 100_000_000;
/// Stacks remembered across intervals, in two generations.
const REMEMBERED_STACKS: usize = 8192;
/// Names of threads remembered.
const MAX_THREAD_NAMES: usize = 4096;

/// One sample, referring to its program and stack.
#[derive(Debug)]
pub(super) struct GatheredSample {
    pub(super) kind: SampleKind,
    /// 0 of a thread that ran, unless it is of a burst.
    pub(super) value_ns: u64,
    /// How long the wait itself was; 0 of a thread that ran.
    pub(super) wait_ns: u64,
    pub(super) time_ns: u64,
    pub(super) cpu: u32,
    pub(super) tid: u32,
    pub(super) thread: Arc<str>,
    pub(super) program: u32,
    pub(super) stack: u32,
    /// Whose wait it ended.
    pub(super) woken: Option<GatheredWoken>,
}

/// A thread whose wait another one ended.
#[derive(Debug)]
pub(super) struct GatheredWoken {
    pub(super) program: u32,
    pub(super) tid: u32,
    pub(super) thread: Arc<str>,
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
    /// Stacks of which more may be known by now, with the time from which they are looked at again.
    unsettled: FastMap<u128, u64>,
    pub(super) deferred: DeferredStacks,
}

/// Outlives the intervals: what is the same on most samples is found by the hash of its addresses.
#[derive(Debug, Default)]
pub(super) struct Memory {
    young: FastMap<u128, Arc<LocatedStack>>,
    old: FastMap<u128, Arc<LocatedStack>>,
    thread_names: FastMap<Box<[u8]>, Arc<str>>,
    hashed: Vec<u8>,
    pub(super) runtimes: Runtimes,
    /// Of stacks in all intervals that have not been handed over.
    pub(super) stack_pool: StackPool,
    /// Copies for which there was no room.
    pub(super) stacks_left: u64,
}

impl Memory {
    pub(super) fn within(memory_limit_bytes: u64) -> Self {
        Self {
            runtimes: Runtimes::within(memory_limit_bytes),
            stack_pool: StackPool::within(memory_limit_bytes),
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

    /// Of everything that decides what the stack's addresses mean. Kernel addresses mean the same in every process, but
    /// where its code comes and goes, not at every time.
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
        for (location, _) in
            kernel_addresses(sample).filter_map(|address| table.kernel_location(address, sample.time_ns))
        {
            bytes.extend(location.source.number().to_ne_bytes());
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

impl Interval {
    /// True where it is to end before its time, so that none is lost.
    pub(super) fn is_crowded(&self) -> bool {
        self.samples.len() + self.deferred.len() >= MAX_SAMPLES / 2
    }

    /// False where the interval is full: the sample is lost.
    pub(super) fn add(
        &mut self,
        sample: &RawSample<'_>,
        memory: &mut Memory,
        table: &mut Table,
        cpu_budget: &CpuBudget,
        now_ns: u64,
    ) -> bool {
        if self.samples.len() + self.deferred.len() >= MAX_SAMPLES {
            return false;
        }
        let key = sample.key();
        let Some(walk) = &sample.deferred else {
            self.push(sample, None, memory, table, now_ns);
            return true;
        };
        // Met here, so that its files are opened while it lives, and its mappings read again where one is missing;
        // unless it is sure to live on, and there is too much to open just now. All that are unopened share one part of
        // the room for copies: where that is full it is opened all the same, since its file has a part of its own.
        let opens_by_ns = table.opens_by_ns(key, now_ns);
        let opens_by_ns = opens_by_ns.filter(|by_ns| *by_ns > now_ns && !cpu_budget.has_room());
        let unopened = CodeLocation {
            source: SourceId::UNKNOWN,
            offset: 0,
        };
        if opens_by_ns.is_some() {
            let stop = Stop {
                location: unopened,
                opens_by_ns,
                program: None,
            };
            if self.deferred.keep(sample, walk, stop, &mut memory.stack_pool).is_ok() {
                return true;
            }
        }
        let thread = memory.thread_name(sample.comm);
        let found = table.program(&sighting(sample, &thread), now_ns);
        let stop = Stop {
            location: location_of_stop(sample.user, &walk.walk, key, table, now_ns),
            opens_by_ns: None,
            program: Some(found.program),
        };
        if self.deferred.keep(sample, walk, stop, &mut memory.stack_pool).is_err() {
            memory.stacks_left += 1;
            self.push(sample, None, memory, table, now_ns);
        }
        true
    }

    /// Where the code of its stacks is.
    pub(super) fn locations(&self) -> impl Iterator<Item = &CodeLocation> {
        self.stacks.iter().flat_map(|stack| &stack.user)
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
    pub(super) fn push(
        &mut self,
        sample: &RawSample<'_>,
        known: Option<Arc<Program>>,
        memory: &mut Memory,
        table: &mut Table,
        now_ns: u64,
    ) {
        let key = sample.key();
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
        let is_unsettled = self.unsettled.get(&hash).is_some_and(|again_ns| now_ns >= *again_ns);
        let stack = match self.stack_index.get(&hash) {
            Some(stack) if !is_unsettled => *stack,
            Some(stack) => {
                let stack = *stack;
                self.stacks[stack as usize] = self.located(sample, hash, memory, table, now_ns);
                stack
            }
            None => {
                let located = self.located(sample, hash, memory, table, now_ns);
                self.stacks.push(located);
                let stack = (self.stacks.len() - 1) as u32;
                self.stack_index.insert(hash, stack);
                stack
            }
        };
        let woken = sample.woken.map(|woken| {
            let thread = memory.thread_name(woken.name());
            let found = table.program(&sighting_of(&woken, &thread, sample.time_ns), now_ns);
            GatheredWoken {
                program: self.program(woken.key, woken.cgroup_id, found.moves, found.program),
                tid: woken.tid,
                thread,
            }
        });
        self.samples.push(GatheredSample {
            woken,
            kind: sample.kind,
            value_ns: sample.value_ns,
            wait_ns: sample.wait_ns,
            time_ns: sample.time_ns,
            cpu: sample.cpu,
            tid: sample.tid,
            thread,
            program,
            stack,
        });
    }

    /// What is known of a stack, which may be more later.
    fn located(
        &mut self,
        sample: &RawSample<'_>,
        hash: u128,
        memory: &mut Memory,
        table: &mut Table,
        now_ns: u64,
    ) -> Arc<LocatedStack> {
        if let Some(located) = memory.get(hash) {
            return located;
        }
        let (located, is_final) = locate(sample, sample.key(), table, &mut memory.runtimes, now_ns);
        let located = Arc::new(located);
        if is_final {
            memory.put(hash, Arc::clone(&located));
            self.unsettled.remove(&hash);
        } else {
            self.unsettled.insert(hash, now_ns + LOCATE_AGAIN_NS);
        }
        located
    }
}

fn sighting_of<'a>(woken: &Woken, comm: &'a str, time_ns: u64) -> Sighting<'a> {
    Sighting {
        key: woken.key,
        proc_tgid: woken.proc_tgid,
        image: woken.image,
        cgroup_id: woken.cgroup_id,
        time_ns,
        kernel_thread: woken.kernel_thread,
        comm,
    }
}

fn sighting<'a>(sample: &RawSample<'_>, comm: &'a str) -> Sighting<'a> {
    Sighting {
        key: sample.key(),
        proc_tgid: sample.proc_tgid,
        image: sample.image,
        cgroup_id: sample.cgroup_id,
        time_ns: sample.time_ns,
        kernel_thread: sample.kernel_thread,
        comm,
    }
}
