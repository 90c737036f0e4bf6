//! System calls and clocks that need neither BPF nor a kernel side: what rooms above and below `kernel` share.
//!
//! In: paths, open files, this process. Out: times in nanoseconds, sizes in bytes, open files and what the kernel says
//! of them. It knows nothing of samples, and of other processes only how to open and read their files without being
//! held up or led astray.
#![allow(unsafe_code, reason = "beside kernel, this is the room for system calls")]

mod clocks;
mod files;
mod groups;
mod guard;
mod memory;
mod remote;

pub use clocks::{
    clock_ticks_per_second, monotonic_ns, monotonic_of_file_time, process_cpu_ns, slept_ns, thread_cpu_ns, wall_ns,
};
pub use files::{FileState, file_state, find_place, find_place_in, open_place, path_state, raise_descriptor_limit};
pub use groups::GroupFolder;
pub(crate) use guard::{Owner, guarded, guarded_for, stuck_reads};
pub use memory::{
    MemoryFile, mapped_map_bytes, memory_file_bytes, page_bytes, release_memory, resident_bytes, tune_allocator,
};
pub use remote::read_process;
