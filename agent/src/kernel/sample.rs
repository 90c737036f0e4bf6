//! What the kernel side tells of a sample, and of all of them.

use super::skeletons::sampler::types::so_walk;
use crate::frames::{ProgramKey, SampleKind};

/// Frames of a user stack that are kept, those on the leaf's side among them (`SO_LEAF_FRAMES` of bpf/abi.h): of more
/// the middle is left out.
pub const MAX_USER_FRAMES: usize = 1024;
/// Of these, the frames on the leaf's side; the rest are on the root's.
pub const LEAF_FRAMES: usize = 768;
/// Frames that are walked, `SO_MAX_WALKED_FRAMES` of bpf/abi.h.
pub const MAX_WALKED_FRAMES: usize = 8192;
/// In user addresses: code was interrupted there by a signal, it is no return address.
pub const EXACT_ADDRESS: u64 = 1 << 63;

/// What a word of a user stack is: `enum so_frame_word` of bpf/abi.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrameWord {
    /// An address of code, which may be marked with [`EXACT_ADDRESS`].
    Address(u64),
    /// A frame that a language's runtime tells of: the next word is its detail.
    Runtime(RuntimeWord),
    /// Belongs to the word before it.
    Detail(u64),
}

/// What a runtime's frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuntimeWord {
    /// Compiled code of a JVM at this address; the detail is the compilation's number.
    JvmCompiled(u64),
    /// An interpreted method of a JVM; the detail is the bytecode's offset, all ones where unknown, and above these 16
    /// bits a hash of what stays the same of the method.
    JvmInterpreted(u64),
    /// A code object of CPython; the detail is the instruction's offset in code units, all ones where there is none,
    /// and above these 20 bits a hash of what stays the same of the object.
    Python(u64),
    /// A frame of CRuby: the sequence of instructions without its address' lowest three bits, 0 of a method in
    /// C, and above these 44 bits the instruction's number, all ones where there is none; the detail is the
    /// method entry in the same way, and above it a hash of what stays the same of both.
    Ruby(u64),
    /// A function of PHP; the detail is the instruction's number, all ones where there is none, above these 20 bits one
    /// that says whether the program began with it, and above that a hash of what it is called.
    Php(u64),
    /// A frame of V8: a place in 47 bits, above that 10 bits of a hash, and above that what the place is: 0 the offset
    /// of a bytecode, 1 an address in code that V8 made, 2 such an address of a frame that says what it is, 3 the same
    /// as 1, looked at later. The detail is the address of what the function shares with others of the same text,
    /// without its lowest three bits, or what the frame says, and above these 44 bits 16 bits more of the hash of what
    /// stays the same.
    V8(u64),
}

const FRAME_SHIFT: u32 = 60;
const FRAME_MASK: u64 = (1 << FRAME_SHIFT) - 1;

impl FrameWord {
    /// Of a word as it stands in a record.
    pub fn of(word: u64) -> Self {
        let value = word & FRAME_MASK;
        match word >> FRAME_SHIFT & 7 {
            1 => Self::Runtime(RuntimeWord::JvmCompiled(value)),
            2 => Self::Runtime(RuntimeWord::JvmInterpreted(value)),
            3 => Self::Runtime(RuntimeWord::Python(value)),
            4 => Self::Runtime(RuntimeWord::V8(value)),
            5 => Self::Runtime(RuntimeWord::Ruby(value)),
            6 => Self::Runtime(RuntimeWord::Php(value)),
            7 => Self::Detail(value),
            _ => Self::Address(word),
        }
    }
}

/// How the walk of a user stack ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WalkEnd {
    /// There is no user stack.
    None,
    /// The outermost frame was reached.
    Root,
    /// More frames than are walked.
    Cut,
    /// It led nowhere.
    Broken,
}

/// Why a walk in user space stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkStop {
    /// The outermost frame was reached.
    Root,
    /// There are more frames than are walked.
    Cut,
    /// It led nowhere.
    Broken,
    /// The last frame's code has no table yet.
    NoTable,
    /// The last frame is in no known mapping.
    NoMapping,
}

/// A walk that the kernel side could not end for want of tables: its state at the last frame, and the stack from
/// [`super::RED_ZONE_BYTES`] below there on.
#[derive(Debug, Clone, Copy)]
pub struct DeferredWalk<'a> {
    /// Registers and state of the unwinder at the last frame: `struct so_walk` of bpf/abi.h.
    pub walk: so_walk,
    /// The copied bytes, the lowest address first.
    pub stack: &'a [u8],
}

/// One sample as the kernel side took it. Addresses are leaf first; all but the first of each stack, and those marked
/// with [`EXACT_ADDRESS`], are return addresses.
#[derive(Debug)]
pub struct RawSample<'a> {
    /// Whether the thread ran or waited.
    pub kind: SampleKind,
    /// Nanoseconds that the sample stands for, where it is of a wait, or of a burst; else 0: the usual period.
    pub value_ns: u64,
    /// How long the wait itself was when it was counted, in nanoseconds, as far as it was observed; 0 where that is not
    /// known, and of a thread that ran.
    pub wait_ns: u64,
    /// `CLOCK_MONOTONIC`.
    pub time_ns: u64,
    /// Logical number of the CPU that was interrupted.
    pub cpu: u32,
    /// 0 is the idle task: work of interrupts on a CPU that is otherwise idle.
    pub tgid: u32,
    /// Thread id, as the machine's first process id namespace has it.
    pub tid: u32,
    /// Start of the process in clock ticks since boot, as in /proc/PID/stat.
    pub start_ticks: u64,
    /// The kernel's count of the execs that led to this program.
    pub exec_id: u32,
    /// The thread's control group of version 2, by number.
    pub cgroup_id: u64,
    /// The thread's name, without its padding.
    pub comm: &'a [u8],
    /// Addresses of the kernel stack; empty where user code was interrupted.
    pub kernel: &'a [u64],
    /// Addresses of the user stack; empty where there is none.
    pub user: &'a [u64],
    /// Frames that are left out of `user` behind the first [`LEAF_FRAMES`].
    pub user_skipped: u32,
    /// How the walk of the user stack ended.
    pub walk_end: WalkEnd,
    /// Where the user stack goes on, if its tables were not there yet.
    pub deferred: Option<DeferredWalk<'a>>,
    /// It is a thread of the kernel.
    pub kernel_thread: bool,
    /// The kernel stack was longer than the kernel gives.
    pub kernel_cut: bool,
    /// The process in the agent's /proc; 0 where it is not seen there.
    pub proc_tgid: u32,
    /// Where the stack of the executed program began, which is drawn anew with each execve; 0 without user memory.
    pub image: u64,
    /// Whose wait the thread ended.
    pub woken: Option<Woken>,
}

/// A thread whose wait another one ended.
#[derive(Debug, Clone, Copy)]
pub struct Woken {
    /// Which run of which process it is.
    pub key: ProgramKey,
    /// Thread id, as the machine's first process id namespace has it.
    pub tid: u32,
    /// The thread's control group of version 2, by number.
    pub cgroup_id: u64,
    /// Where the stack of the executed program began; 0 without user memory.
    pub image: u64,
    /// The process in the agent's /proc; 0 where it is not seen there.
    pub proc_tgid: u32,
    /// It is a thread of the kernel.
    pub kernel_thread: bool,
    /// The thread's name, padded with zeros.
    pub comm: [u8; 16],
}

impl Woken {
    /// The thread's name, without its padding.
    pub fn name(&self) -> &[u8] {
        self.comm.split(|byte| *byte == 0).next().unwrap_or_default()
    }
}

impl RawSample<'_> {
    /// The program that was sampled.
    pub fn key(&self) -> ProgramKey {
        ProgramKey {
            tgid: self.tgid,
            start_ticks: self.start_ticks,
            exec_id: self.exec_id,
        }
    }
}

/// The same of waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitCounters {
    /// Switches of CPUs from one thread to another.
    pub switches: u64,
    /// Samples, with those that were lost after that.
    pub taken: u64,
    /// Samples that found their ring buffer full.
    pub lost_ring_full: u64,
    /// Samples that have no more of their user stack than the first frame, since the thread had gone on.
    pub stacks_moved: u64,
    /// Wake-ups whose thread's stack could not be taken.
    pub wakers_left_out: u64,
    /// Waits whose thread could not be asked for its stack on its way back.
    pub stacks_refused: u64,
    /// How often a thread was not observed, since too many are.
    pub threads_left_out: u64,
    /// Waits for a CPU that were not counted by their length, since too many groups and CPUs are.
    pub queues_left_out: u64,
    /// Waits for a CPU that were counted with their program, but not by CPU, since too many of both are.
    pub queues_without_cpu: u64,
    /// Threads that slept since the visit before, of all visits.
    pub sleepers: u64,
    /// Samples of threads that slept on, of all visits.
    pub sleepers_told: u64,
    /// CPU time of the BPF programs.
    pub bpf_ns: u64,
}

/// Sums over all CPUs, cumulative since the programs were loaded. `ticks` + `burst_taken` = `idle_ticks` +
/// `left_to_burst` + `taken`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// How often a CPU's usual timer ran the sampler.
    pub ticks: u64,
    /// Those that found the CPU idle: not samples.
    pub idle_ticks: u64,
    /// Those that found a thread whose time a burst tells: not samples.
    pub left_to_burst: u64,
    /// Those that became samples, and those of bursts, with the ones that were lost after that.
    pub taken: u64,
    /// Samples of bursts.
    pub burst_taken: u64,
    /// Samples that found the ring buffer full.
    pub lost_ring_full: u64,
    /// Process events that found theirs full.
    pub events_lost: u64,
    /// New mappings that found theirs full.
    pub mappings_lost: u64,
    /// CPUs whose new mappings the kernel did not want to tell.
    pub mappings_refused: u64,
    /// CPU time of the BPF programs.
    pub bpf_ns: u64,
    /// Walks handed over with a copy of the stack.
    pub stacks_copied: u64,
    /// Walks that were left broken since too many stacks had been copied in that second.
    pub stacks_not_copied: u64,
    /// Frames of user stacks that were walked.
    pub frames: u64,
    /// Of waits, which the figures above leave out but for `bpf_ns`, `frames` and the stacks.
    pub waits: WaitCounters,
}

impl Counters {
    /// Samples of all kinds, with those that were lost after that.
    pub fn all_taken(&self) -> u64 {
        self.taken + self.waits.taken
    }

    /// Those of them that found their ring buffer full.
    pub fn all_lost_ring_full(&self) -> u64 {
        self.lost_ring_full + self.waits.lost_ring_full
    }
}
