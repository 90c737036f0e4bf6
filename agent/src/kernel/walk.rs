//! The walk of bpf/unwind.h in this process: for stacks whose tables came later than the sample, and for tests.

pub use super::sampler::types::so_walk;
use std::ffi::c_void;

use super::{MAX_USER_FRAMES, Record, WalkStop};
use crate::unwind::{Memory, Published, RULES, Range, SLAB_WORDS};

/// Below the stack pointer a copy of a stack begins: `SO_RED_ZONE_BYTES` of bpf/abi.h.
pub const RED_ZONE_BYTES: u64 = 128;

impl Record for so_walk {}

/// `struct so_memory` of bpf/walk_host.c.
#[repr(C)]
struct WalkMemory {
    slab_at: unsafe extern "C" fn(*mut c_void, u32) -> *const u32,
    slabs: *mut c_void,
    rules: *const u64,
    stack: *const u8,
    stack_address: u64,
    stack_bytes: u64,
}

/// Gives the words of a slab by its number, or null. They must be good until the next one is asked for.
type SlabAt<'a> = dyn FnMut(usize) -> *const u32 + 'a;

/// For the walk in C.
///
/// # Safety
/// `slabs` is what [`walk_on`] put beside this function.
unsafe extern "C" fn slab_at(slabs: *mut c_void, number: u32) -> *const u32 {
    // SAFETY: by the caller's promise; nothing else uses the function while the walk runs.
    let slabs = unsafe { &mut *slabs.cast::<&mut SlabAt<'_>>() };
    slabs(number as usize)
}

type Walker = unsafe extern "C" fn(*mut so_walk, *const WalkMemory, *mut u64, u32, *mut u32) -> u32;

unsafe extern "C" {
    fn so_walk_on_x86(
        walk: *mut so_walk,
        memory: *const WalkMemory,
        frames: *mut u64,
        capacity: u32,
        count: *mut u32,
    ) -> u32;
    fn so_walk_on_arm64(
        walk: *mut so_walk,
        memory: *const WalkMemory,
        frames: *mut u64,
        capacity: u32,
        count: *mut u32,
    ) -> u32;
}

/// Whose stacks are walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arch {
    X86_64,
    Arm64,
}

impl Arch {
    /// This machine's.
    pub const HOST: Self = if cfg!(target_arch = "aarch64") {
        Self::Arm64
    } else {
        Self::X86_64
    };

    fn walker(self) -> Walker {
        match self {
            Self::X86_64 => so_walk_on_x86,
            Self::Arm64 => so_walk_on_arm64,
        }
    }
}

/// A copied part of a stack, and where it was.
#[derive(Debug, Clone, Copy)]
pub struct StackCopy<'a> {
    pub address: u64,
    pub bytes: &'a [u8],
}

impl<'a> StackCopy<'a> {
    /// What was copied for a walk that stands where it did then: it begins [`RED_ZONE_BYTES`] below the stack pointer.
    pub fn of(walk: &so_walk, bytes: &'a [u8]) -> Self {
        Self {
            address: walk.sp.wrapping_sub(RED_ZONE_BYTES),
            bytes,
        }
    }
}

/// Adds the addresses of the frames above `walk`'s own.
///
/// # Safety
/// Each slab that is not null has [`SLAB_WORDS`] words until the next one is asked for, and there are [`RULES`] rules.
pub(super) unsafe fn walk_on(
    arch: Arch,
    walk: &mut so_walk,
    program: Published,
    mut slabs: &mut SlabAt<'_>,
    rules: *const u64,
    stack: StackCopy<'_>,
    frames: &mut Vec<u64>,
) -> WalkStop {
    walk.mappings = program.mappings.place;
    walk.mapping_count = program.count;
    let memory = WalkMemory {
        slab_at,
        slabs: (&raw mut slabs).cast(),
        rules,
        stack: stack.bytes.as_ptr(),
        stack_address: stack.address,
        stack_bytes: stack.bytes.len() as u64,
    };
    let before = frames.len();
    let capacity = MAX_USER_FRAMES.saturating_sub(before);
    frames.resize(before + capacity, 0);
    let mut count = 0;
    let room = frames[before..].as_mut_ptr();
    // SAFETY: `room` has `capacity` words; slabs and rules are as long as the caller says, and masks keep the walk inside;
    // the stack is read within its length.
    let step = unsafe { arch.walker()(walk, &memory, room, capacity as u32, &mut count) };
    frames.truncate(before + (count as usize).min(capacity));
    match step {
        0 => WalkStop::Cut,
        1 => WalkStop::Root,
        3 => WalkStop::NoTable,
        4 => WalkStop::NoMapping,
        _ => WalkStop::Broken,
    }
}

/// Where code was interrupted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Registers {
    pub pc: u64,
    pub sp: u64,
    pub fp: u64,
    /// arm64's.
    pub lr: u64,
    /// x86-64's, by DWARF's numbers.
    pub general: [u64; 16],
}

/// Tables in ordinary memory: the walk without a kernel.
#[derive(Debug)]
pub struct HostMemory {
    slabs: Vec<Vec<u32>>,
    rules: Vec<u64>,
    max_slabs: usize,
}

impl HostMemory {
    pub fn new(max_slabs: usize) -> Self {
        Self {
            slabs: Vec::new(),
            rules: vec![0; RULES],
            max_slabs,
        }
    }

    /// Walks a stack, of which `stack` is what lies [`RED_ZONE_BYTES`] below the stack pointer `sp` and above: the code that was interrupted at
    /// the program counter first, its callers after it, as in [`super::RawSample::user`].
    pub fn walk(&self, arch: Arch, program: Published, at: &Registers, stack: &[u8]) -> (Vec<u64>, WalkStop) {
        let mut walk = so_walk {
            pc: at.pc,
            sp: at.sp,
            fp: at.fp,
            lr: at.lr,
            innermost: 1,
            has_registers: 1,
            registers: at.general,
            ..so_walk::default()
        };
        let mut frames = vec![at.pc];
        let stop = self.walk_on(arch, &mut walk, program, stack, &mut frames);
        (frames, stop)
    }

    /// Goes on with a walk; adds the frames' addresses.
    pub(super) fn walk_on(
        &self,
        arch: Arch,
        walk: &mut so_walk,
        program: Published,
        stack: &[u8],
        frames: &mut Vec<u64>,
    ) -> WalkStop {
        let stack = StackCopy::of(walk, stack);
        let mut slab_at = |number: usize| self.slabs.get(number).map_or(std::ptr::null(), |slab| slab.as_ptr());
        // SAFETY: slabs and rules have their full lengths from the beginning.
        unsafe { walk_on(arch, walk, program, &mut slab_at, self.rules.as_ptr(), stack, frames) }
    }
}

impl Memory for HostMemory {
    fn add_slab(&mut self) -> bool {
        if self.slabs.len() >= self.max_slabs {
            return false;
        }
        self.slabs.push(vec![0; SLAB_WORDS as usize]);
        true
    }

    fn write(&mut self, range: Range, words: &mut dyn Iterator<Item = u32>) {
        if let Some(slab) = self.slabs.get_mut(range.slab()) {
            let room = slab.iter_mut().skip(range.first_word()).take(range.words as usize);
            room.zip(words).for_each(|(to, word)| *to = word);
        }
    }

    fn write_pairs(&mut self, range: Range, pairs: &mut dyn Iterator<Item = u64>) {
        let words = pairs.flat_map(|pair| [pair as u32, (pair >> 32) as u32]);
        self.write(range, &mut { words });
    }

    fn write_rule(&mut self, number: usize, bits: u64) {
        if let Some(rule) = self.rules.get_mut(number) {
            *rule = bits;
        }
    }
}
