//! The user stacks of threads that sleep on, read while they sleep.
//!
//! In: samples of the visit ([`Asleep`]), which have the registers with which a thread entered the kernel. Out: the
//! same with their user stacks. The stack stays what it is for as long as the wait goes on: what was whole once is
//! told again at later visits.

use crate::frames::ProgramKey;
use crate::hash::FastMap;
use crate::kernel::records::{Asleep, Drained, WALK_NO_TABLE, parts_of};
use crate::kernel::sample::{LEAF_FRAMES, MAX_USER_FRAMES, WalkStop};
use crate::kernel::tables::{RED_ZONE_BYTES, StackCopy, Tables, leave_out_middle};
use crate::runtime::PagedMemory;
use crate::sys::{self, clock_ticks_per_second, page_bytes};

/// Waits whose stacks are remembered, in each of two generations.
const MAX_KNOWN: usize = 4096;
/// Of a stack that is read: `SO_MAX_STACK_BYTES` of bpf/abi.h, less what the first page lacks.
const MAX_STACK_BYTES: usize = 28_672;
/// Ends of a walk, `enum so_walk_end` of bpf/abi.h.
const WALK_ROOT: u8 = 1;
const WALK_CUT: u8 = 2;
const WALK_BROKEN: u8 = 3;

/// A thread in one of its waits: how often it had been given a CPU tells which.
type Wait = (u32, u64);

/// Whole user stacks by their waits.
#[derive(Debug, Default)]
pub(in crate::kernel) struct Sleepers {
    young: FastMap<Wait, Box<[u64]>>,
    old: FastMap<Wait, Box<[u64]>>,
    /// Threads that had gone on when their stack was to be read, or that are not seen in /proc; cumulative.
    pub(in crate::kernel) moved: u64,
}

impl Sleepers {
    /// Completes the samples of a visit.
    pub(in crate::kernel) fn complete(&mut self, drained: &mut Drained, tables: &mut Tables) {
        // A process's threads come one after the other. They sleep since before it was read.
        let mut memory = PagedMemory::of(0);
        for asleep in std::mem::take(&mut drained.asleep) {
            if memory.tgid() != asleep.header.proc_tgid {
                memory = PagedMemory::of(asleep.header.proc_tgid);
            }
            self.complete_one(asleep, &memory, drained, tables);
        }
    }

    fn complete_one(&mut self, asleep: Asleep, memory: &PagedMemory, drained: &mut Drained, tables: &mut Tables) {
        let wait = (asleep.header.tid, asleep.waited.run_count);
        let kernel = usize::from(asleep.header.kernel_frames);
        if let Some(user) = self.young.get(&wait) {
            return tell(&asleep, &asleep.words[..kernel], user, WALK_ROOT, None, drained);
        }
        if let Some(user) = self.old.remove(&wait) {
            tell(&asleep, &asleep.words[..kernel], &user, WALK_ROOT, None, drained);
            return self.remember(wait, user);
        }
        let first = &asleep.words[kernel..];
        let Some(stack) = stack_of(&asleep) else {
            self.moved += 1;
            return tell(&asleep, &asleep.words[..kernel], first, WALK_BROKEN, None, drained);
        };
        let (mut walk, mut user) = (asleep.walk, first.to_vec());
        let read = |address: u64, into: &mut [u8]| memory.read(address, into);
        let copy = StackCopy::of(&asleep.walk, &stack);
        let walk_end = match tables.walk_asleep(key_of(&asleep), &mut walk, copy, &read, &mut user) {
            WalkStop::Root => WALK_ROOT,
            WalkStop::Cut => WALK_CUT,
            WalkStop::Broken => WALK_BROKEN,
            WalkStop::NoMapping if walk.guessed != 0 => WALK_BROKEN,
            WalkStop::NoTable | WalkStop::NoMapping => {
                return tell(
                    &asleep,
                    &asleep.words[..kernel],
                    first,
                    WALK_NO_TABLE,
                    Some(&stack),
                    drained,
                );
            }
        };
        // Frames of an interpreter were read meanwhile, which goes on with the thread.
        if !sleeps_on(&asleep) {
            self.moved += 1;
            return tell(&asleep, &asleep.words[..kernel], first, WALK_BROKEN, None, drained);
        }
        // Deeper ones are rare, and are walked anew.
        if leave_out_middle(&mut user) > 0 {
            user.truncate(LEAF_FRAMES.min(MAX_USER_FRAMES));
            return tell(&asleep, &asleep.words[..kernel], &user, WALK_CUT, None, drained);
        }
        tell(&asleep, &asleep.words[..kernel], &user, walk_end, None, drained);
        if walk_end == WALK_ROOT {
            self.remember(wait, user.into());
        }
    }

    fn remember(&mut self, wait: Wait, user: Box<[u64]>) {
        if self.young.len() >= MAX_KNOWN {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(wait, user);
    }
}

fn tell(asleep: &Asleep, kernel: &[u64], user: &[u64], walk_end: u8, stack: Option<&[u8]>, drained: &mut Drained) {
    let mut header = asleep.header;
    header.user_frames = user.len() as u16;
    header.walk_end = walk_end;
    header.stack_bytes = stack.map_or(0, |stack| stack.len() as u16);
    for part in parts_of(&asleep.waited) {
        let words = kernel.iter().chain(user).copied();
        drained.push_walked(part, header, words, stack.map(|stack| (asleep.walk, stack)));
    }
}

fn key_of(asleep: &Asleep) -> ProgramKey {
    ProgramKey {
        tgid: asleep.header.tgid,
        start_ticks: asleep.header.start_boottime_ns / (1_000_000_000 / clock_ticks_per_second()),
        exec_id: asleep.header.exec_id,
    }
}

/// What lies on the thread's stack, from [`RED_ZONE_BYTES`] below its stack pointer on. None where it has gone on.
fn stack_of(asleep: &Asleep) -> Option<Vec<u8>> {
    let tgid = asleep.header.tgid;
    // Only with the same ids in /proc can be asked whether it sleeps still.
    if asleep.header.proc_tgid != tgid || asleep.waited.run_count == 0 {
        return None;
    }
    let begin = asleep.walk.sp.checked_sub(RED_ZONE_BYTES)?;
    let stack = sys::guarded_for(tgid, move || read_stack(tgid, begin))?;
    (sleeps_on(asleep) && !stack.is_empty()).then_some(stack)
}

/// True while it has not been given a CPU since the visit.
fn sleeps_on(asleep: &Asleep) -> bool {
    let path = format!("/proc/{}/task/{}/schedstat", asleep.header.tgid, asleep.header.tid);
    let runs = std::fs::read_to_string(path).ok();
    runs.and_then(|text| text.split_whitespace().nth(2)?.parse().ok()) == Some(asleep.waited.run_count)
}

/// Up to a page that cannot be read, which is where the stack ends.
fn read_stack(tgid: u32, begin: u64) -> Vec<u8> {
    let mut stack = vec![0; MAX_STACK_BYTES];
    let mut filled = 0;
    while filled < MAX_STACK_BYTES {
        let address = begin + filled as u64;
        let bytes = (page_bytes() - address % page_bytes()) as usize;
        let bytes = bytes.min(MAX_STACK_BYTES - filled);
        if !sys::read_process(tgid, address, &mut stack[filled..filled + bytes]) {
            break;
        }
        filled += bytes;
    }
    stack.truncate(filled);
    stack
}
