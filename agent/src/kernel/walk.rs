//! The walk of bpf/unwind.h in this process.

use std::marker::PhantomData;

pub use super::sampler::types::so_walk;
use super::{MAX_USER_FRAMES, Record, WalkStop};

impl Record for so_walk {}

impl so_walk {
    /// Where the copy of the stack began: at the stack pointer when the kernel side stopped.
    pub(super) fn stack_begin(&self) -> u64 {
        self.sp
    }
}

/// `struct so_memory` of bpf/walk_host.c.
#[repr(C)]
pub(super) struct Memory<'a> {
    slabs: *const *const u32,
    rules: *const u64,
    stack: *const u8,
    stack_address: u64,
    stack_bytes: u64,
    slab_count: u32,
    unused: u32,
    _lives: PhantomData<&'a u8>,
}

impl<'a> Memory<'a> {
    pub(super) fn new(slabs: &'a [*const u32], rules: *const u64, stack: &'a [u8], stack_address: u64) -> Self {
        Self {
            slabs: slabs.as_ptr(),
            rules,
            stack: stack.as_ptr(),
            stack_address,
            stack_bytes: stack.len() as u64,
            slab_count: slabs.len() as u32,
            unused: 0,
            _lives: PhantomData,
        }
    }
}

unsafe extern "C" {
    fn so_walk_on(walk: *mut so_walk, memory: *const Memory<'_>, frames: *mut u64, capacity: u32, count: *mut u32) -> u32;
}

/// Adds the addresses of the frames above `walk`'s own.
pub(super) fn walk_on(walk: &mut so_walk, memory: &Memory<'_>, frames: &mut Vec<u64>) -> WalkStop {
    let before = frames.len();
    let capacity = MAX_USER_FRAMES.saturating_sub(before);
    frames.resize(before + capacity, 0);
    let mut count = 0;
    // SAFETY: `frames` has `capacity` more words behind `before`; `memory` points to slabs and rules of the sizes that
    // bpf/abi.h says and to `stack_bytes` of stack, all of which outlive the call.
    let step = unsafe {
        so_walk_on(
            walk,
            memory,
            frames.as_mut_ptr().add(before),
            capacity as u32,
            &mut count,
        )
    };
    frames.truncate(before + (count as usize).min(capacity));
    match step {
        0 => WalkStop::Cut,
        1 => WalkStop::Root,
        3 => WalkStop::NoTable,
        4 => WalkStop::NoMapping,
        _ => WalkStop::Broken,
    }
}
