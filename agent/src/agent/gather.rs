//! One interval's samples, with each distinct stack and program once.

use std::collections::HashMap;
use std::sync::Arc;

use crate::kernel::{RawSample, WalkEnd};
use crate::process::{Place, Program, ProgramKey, Source, SourceId, Table};
use crate::unwind::{LeafRules, ReturnAddress};

/// Beyond it samples are counted as lost: five seconds of 256 busy CPUs at 99 Hz.
const MAX_SAMPLES: usize = 131_072;
/// Stacks remembered across intervals, in two generations.
const REMEMBERED_STACKS: usize = 8192;
/// Names of threads remembered.
const MAX_THREAD_NAMES: usize = 4096;

/// A stack whose addresses have been traced to their sources, leaf first.
#[derive(Debug)]
pub(super) struct LocatedStack {
    pub(super) kernel: Box<[Place]>,
    pub(super) user: Box<[Place]>,
    pub(super) walk_end: WalkEnd,
    pub(super) kernel_cut: bool,
    /// What the user places refer to.
    pub(super) sources: Box<[(SourceId, Source)]>,
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
    program_index: HashMap<ProgramKey, u32>,
    stack_index: HashMap<u128, u32>,
}

/// Outlives the intervals: what is the same on most samples is found by the hash of its addresses.
#[derive(Debug, Default)]
pub(super) struct Memory {
    young: HashMap<u128, Arc<LocatedStack>>,
    old: HashMap<u128, Arc<LocatedStack>>,
    thread_names: HashMap<Box<[u8]>, Arc<str>>,
    hashed: Vec<u8>,
    leaf_rules: LeafRules,
}

impl Memory {
    /// Forgets what was not seen since the last call but one. Remembered stacks hold their files open.
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

    /// Of everything that decides what the stack's addresses mean. Kernel addresses mean the same in every process.
    fn hash(&mut self, sample: &RawSample<'_>, key: ProgramKey, generation: u32, caller: Option<u64>) -> u128 {
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
        bytes.extend((sample.kernel.len() as u16).to_ne_bytes());
        bytes.extend(caller.unwrap_or(0).to_ne_bytes());
        for address in sample.kernel.iter().chain(sample.user) {
            bytes.extend(address.to_ne_bytes());
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
    /// False where the interval is full: the sample is lost.
    pub(super) fn add(&mut self, sample: &RawSample<'_>, memory: &mut Memory, table: &mut Table, now_ns: u64) -> bool {
        if self.samples.len() >= MAX_SAMPLES {
            return false;
        }
        let key = ProgramKey {
            tgid: sample.tgid,
            start_ticks: sample.start_ticks,
            exec_id: sample.exec_id,
        };
        let thread = memory.thread_name(sample.comm);
        let (program, generation) = table.program(key, sample.kernel_thread, &thread, now_ns);
        let program = *self.program_index.entry(key).or_insert_with(|| {
            self.programs.push(program);
            (self.programs.len() - 1) as u32
        });
        let caller = caller_of_leaf(sample, key, memory, table, now_ns);
        let hash = memory.hash(sample, key, generation, caller);
        let stack = match self.stack_index.get(&hash) {
            Some(stack) => *stack,
            None => {
                let located = match memory.get(hash) {
                    Some(located) => located,
                    None => {
                        let located = Arc::new(locate(sample, caller, key, table, now_ns));
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
        let (time_ns, cpu, tid) = (sample.time_ns, sample.cpu, sample.tid);
        self.samples.push(GatheredSample {
            time_ns,
            cpu,
            tid,
            thread,
            program,
            stack,
        });
        true
    }
}

/// All addresses but the first are return addresses: one byte before lies the call, which may be a function's last instruction.
fn call_site(index: usize, address: u64) -> u64 {
    if index == 0 { address } else { address.wrapping_sub(1) }
}

fn locate(
    sample: &RawSample<'_>,
    caller: Option<u64>,
    key: ProgramKey,
    table: &mut Table,
    now_ns: u64,
) -> LocatedStack {
    let kernel = sample.kernel.iter().enumerate();
    let kernel = kernel
        .map(|(i, address)| Place {
            source: SourceId::KERNEL,
            offset: call_site(i, *address),
        })
        .collect();
    let mut walk_end = sample.walk_end;
    let mut user: Vec<Place> = Vec::with_capacity(sample.user.len());
    let (leaf, callers) = sample.user.split_at(sample.user.len().min(1));
    for (index, address) in leaf.iter().chain(&caller).chain(callers).enumerate() {
        let place = table.place(key, call_site(index, *address), index == 0, now_ns);
        // What returns to where there is no code is no frame: here the chain had already led astray.
        if index > 0 && place.source == SourceId::UNKNOWN {
            walk_end = WalkEnd::Broken;
            break;
        }
        user.push(place);
    }
    let mut ids: Vec<SourceId> = user.iter().map(|place| place.source).collect();
    ids.sort_unstable();
    ids.dedup();
    let sources = ids
        .into_iter()
        .filter_map(|id| Some((id, table.source(key, id, now_ns)?)))
        .collect();
    LocatedStack {
        kernel,
        user: user.into(),
        walk_end,
        kernel_cut: sample.kernel_cut,
        sources,
    }
}

/// The return address of an innermost function that keeps no frame: the walk by frame pointers passes over its caller.
fn caller_of_leaf(
    sample: &RawSample<'_>,
    key: ProgramKey,
    memory: &mut Memory,
    table: &mut Table,
    now_ns: u64,
) -> Option<u64> {
    let place = table.place(key, *sample.user.first()?, true, now_ns);
    let rule = memory
        .leaf_rules
        .find(place, || match table.source(key, place.source, now_ns) {
            Some(Source::Module(module)) => Some(move |offset: u64, bytes: &mut [u8]| module.read_at(offset, bytes)),
            _ => None,
        });
    let ReturnAddress::StackWord(word) = rule else {
        return None;
    };
    let caller = sample.stack_top[usize::from(word)];
    // Some walks begin with it all the same, where the frame pointer is still this function's.
    let known = sample.user.get(1) == Some(&caller);
    let is_code =
        |table: &mut Table| table.place(key, caller.wrapping_sub(1), false, now_ns).source != SourceId::UNKNOWN;
    (caller != 0 && !known && is_code(table)).then_some(caller)
}
