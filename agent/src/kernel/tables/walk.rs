//! The walk of bpf/unwind.h in this process: for stacks whose tables came later than the sample, and for tests.

pub use crate::kernel::skeletons::sampler::types::{so_cpython, so_jvm, so_php, so_ruby, so_runtime, so_v8, so_walk};
use std::ffi::c_void;

use crate::kernel::records::Record;
use crate::kernel::sample::{LEAF_FRAMES, MAX_USER_FRAMES, MAX_WALKED_FRAMES, WalkStop};
use crate::unwind::{Memory, Published, RULES, Range, SLAB_WORDS};

/// Below the stack pointer a copy of a stack begins: `SO_RED_ZONE_BYTES` of bpf/abi.h.
pub const RED_ZONE_BYTES: u64 = 128;
/// Frames that are added at a time: a copied stack hardly has more.
const MAX_ADDED_FRAMES: usize = 4096;
/// Words of a stack that one walk may search, `SO_MAX_SCANNED_WORDS` of bpf/abi.h.
const MAX_SCANNED_WORDS: u32 = 4096;

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
    code: *const u8,
    code_address: u64,
    code_bytes: u64,
    read_memory: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, u32, u64) -> i32>,
    process: *mut c_void,
    runtime: *const so_runtime,
}

/// Reads memory of the process as it is now: false where it could not be read.
pub type ReadMemory<'a> = dyn Fn(u64, &mut [u8]) -> bool + 'a;

/// For the walk in C.
///
/// # Safety
/// `process` is what [`walk_on`] put beside this function, and `to` has room for `size` bytes.
unsafe extern "C" fn read_memory(process: *mut c_void, to: *mut c_void, size: u32, address: u64) -> i32 {
    // SAFETY: by the caller's promise; nothing else uses the function while the walk runs, and `to` is the walk's own.
    let (read, into) = unsafe {
        (
            &*process.cast::<&ReadMemory<'_>>(),
            std::slice::from_raw_parts_mut(to.cast::<u8>(), size as usize),
        )
    };
    // What is not read is zero in the kernel.
    into.fill(0);
    i32::from(!read(address, into))
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

type Walker = unsafe extern "C" fn(*mut so_walk, *const WalkMemory, *mut u64, u32, u32, *mut u32) -> u32;

unsafe extern "C" {
    fn so_walk_on_x86(
        walk: *mut so_walk,
        memory: *const WalkMemory,
        frames: *mut u64,
        before: u32,
        capacity: u32,
        count: *mut u32,
    ) -> u32;
    fn so_walk_on_arm64(
        walk: *mut so_walk,
        memory: *const WalkMemory,
        frames: *mut u64,
        before: u32,
        capacity: u32,
        count: *mut u32,
    ) -> u32;
}

/// Whose stacks are walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arch {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm.
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
    /// Where its first byte was, in the process.
    pub address: u64,
    /// What was there, the lowest address first.
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

/// What a walk reads of a process that nobody stops for it.
#[derive(Clone, Copy)]
pub(in crate::kernel) struct Copied<'a> {
    pub(in crate::kernel) stack: StackCopy<'a>,
    /// Empty where nobody copied it.
    pub(in crate::kernel) code: StackCopy<'a>,
    /// What is read as it is now.
    pub(in crate::kernel) live: Option<LiveMemory<'a>>,
}

impl<'a> Copied<'a> {
    pub(in crate::kernel) fn without_code(stack: StackCopy<'a>, live: LiveMemory<'a>) -> Self {
        let code = StackCopy { address: 0, bytes: &[] };
        let live = Some(live);
        Self { stack, code, live }
    }
}

/// The process as it is while the walk goes on.
#[derive(Clone, Copy)]
pub(in crate::kernel) struct LiveMemory<'a> {
    pub(in crate::kernel) read: &'a ReadMemory<'a>,
    /// A language's runtime, by which the walk goes on through code that it made.
    pub(in crate::kernel) runtime: Option<&'a so_runtime>,
}

/// Leaves out frames behind the first [`LEAF_FRAMES`] of a stack that has more than [`MAX_USER_FRAMES`]; gives how
/// many.
pub fn leave_out_middle(frames: &mut Vec<u64>) -> u32 {
    let out = frames.len().saturating_sub(MAX_USER_FRAMES);
    if out > 0 {
        frames.drain(LEAF_FRAMES..LEAF_FRAMES + out);
    }
    out as u32
}

/// Adds the addresses of the frames above `walk`'s own, which is the last of `frames`.
///
/// # Safety
/// Each slab that is not null has [`SLAB_WORDS`] words until the next one is asked for, and there are [`RULES`] rules.
pub(in crate::kernel) unsafe fn walk_on(
    arch: Arch,
    walk: &mut so_walk,
    program: Published,
    mut slabs: &mut SlabAt<'_>,
    rules: *const u64,
    Copied { stack, code, live }: Copied<'_>,
    frames: &mut Vec<u64>,
) -> WalkStop {
    walk.mappings = program.mappings.place;
    walk.mapping_count = program.count;
    let runtime = live.and_then(|live| live.runtime);
    walk.runtime = u32::from(runtime.is_some());
    let mut read = live.map(|live| live.read);
    let memory = WalkMemory {
        slab_at,
        slabs: (&raw mut slabs).cast(),
        rules,
        stack: stack.bytes.as_ptr(),
        stack_address: stack.address,
        stack_bytes: stack.bytes.len() as u64,
        code: code.bytes.as_ptr(),
        code_address: code.address,
        code_bytes: code.bytes.len() as u64,
        read_memory: live.map(|_| read_memory as unsafe extern "C" fn(_, _, _, _) -> _),
        process: read
            .as_mut()
            .map_or(std::ptr::null_mut(), |read| std::ptr::from_mut(read).cast()),
        runtime: runtime.map_or(std::ptr::null(), std::ptr::from_ref),
    };
    let before = frames.len();
    let capacity = MAX_WALKED_FRAMES.saturating_sub(before).min(MAX_ADDED_FRAMES);
    frames.resize(before + capacity, 0);
    let mut count = 0;
    let room = frames.as_mut_ptr();
    // SAFETY: `room` has `before` and `capacity` words; slabs and rules are as long as the caller says, and masks keep
    // the walk inside; the stack and the code are read within their lengths.
    let step = unsafe { arch.walker()(walk, &memory, room, before as u32, capacity as u32, &mut count) };
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
    /// The program counter.
    pub pc: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The frame pointer: rbp of x86-64, x29 of arm64.
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
    /// Code that can be read, and its address.
    pub code: (u64, Vec<u8>),
}

impl HostMemory {
    /// Empty tables that may have at most so many slabs.
    pub fn new(max_slabs: usize) -> Self {
        Self {
            slabs: Vec::new(),
            rules: vec![0; RULES],
            max_slabs,
            code: (0, Vec::new()),
        }
    }

    /// Walks a stack, of which `stack` is what lies [`RED_ZONE_BYTES`] below the stack pointer `sp` and above: the code
    /// that was interrupted at the program counter first, its callers after it, as in
    /// [`crate::kernel::sample::RawSample::user`].
    pub fn walk(&self, arch: Arch, program: Published, at: &Registers, stack: &[u8]) -> (Vec<u64>, WalkStop) {
        self.walk_beside(arch, program, at, stack, None)
    }

    /// The same beside the process, whose memory can be read as it is now.
    pub fn walk_beside(
        &self,
        arch: Arch,
        program: Published,
        at: &Registers,
        stack: &[u8],
        read: Option<&ReadMemory<'_>>,
    ) -> (Vec<u64>, WalkStop) {
        let live = read.map(|read| LiveMemory { read, runtime: None });
        let mut walk = so_walk {
            pc: at.pc,
            sp: at.sp,
            fp: at.fp,
            lr: at.lr,
            innermost: 1,
            has_registers: 1,
            registers: at.general,
            scan_left: MAX_SCANNED_WORDS,
            ..so_walk::default()
        };
        let mut frames = vec![at.pc];
        let stop = self.walk_on(arch, &mut walk, program, stack, live, &mut frames);
        (frames, stop)
    }

    /// Goes on with a walk; adds the frames' addresses.
    pub(in crate::kernel) fn walk_on(
        &self,
        arch: Arch,
        walk: &mut so_walk,
        program: Published,
        stack: &[u8],
        live: Option<LiveMemory<'_>>,
        frames: &mut Vec<u64>,
    ) -> WalkStop {
        let copied = Copied {
            stack: StackCopy::of(walk, stack),
            code: StackCopy {
                address: self.code.0,
                bytes: &self.code.1,
            },
            live,
        };
        let mut slab_at = |number: usize| self.slabs.get(number).map_or(std::ptr::null(), |slab| slab.as_ptr());
        // SAFETY: slabs and rules have their full lengths from the beginning.
        unsafe { walk_on(arch, walk, program, &mut slab_at, self.rules.as_ptr(), copied, frames) }
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
