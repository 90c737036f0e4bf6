//! The only room that knows libbpf: what samples, and what is told of processes.
//!
//! In: a sampling rate. Out: samples with raw addresses ([`RawSample`]), news of processes ([`Event`]), counters
//! ([`Counters`]), samples of threads that wait. Times are nanoseconds of `CLOCK_MONOTONIC`, start times are clock
//! ticks since boot. It never names an address, and reads no file of another process.
#![allow(
    unsafe_code,
    reason = "this is the room for system calls and for the records that BPF programs write"
)]

mod error;
mod events;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod mappings;
mod perf;
pub mod preflight;
mod programs;
mod records;
mod sample;
mod sensor;
mod skeletons;
mod tables;
mod timers;
mod waits;

pub use error::KernelError;
pub use events::Event;
pub use mappings::Waker;
pub use perf::{format_cpu_list, has_pmu, online_cpus, parse_cpu_list};
pub use programs::{LoadedProgram, bpf_code, bpf_functions, loaded_programs};
pub use sample::{
    Counters, DeferredWalk, EXACT_ADDRESS, FrameWord, LEAF_FRAMES, MAX_USER_FRAMES, MAX_WALKED_FRAMES, RawSample,
    RuntimeWord, WaitCounters, WalkEnd, WalkStop, Woken,
};
pub use sensor::{Sensor, period_ns};
pub use tables::{
    Arch, HostMemory, RED_ZONE_BYTES, ReadMemory, Registers, StackCopy, Tables, leave_out_middle, so_cpython, so_jvm,
    so_php, so_ruby, so_runtime, so_v8, so_walk,
};
pub use timers::{Burst, Chosen, ChosenThreads, MAX_BURST_THREADS, NAME_BYTES, Unticked};
pub use waits::{AllQueued, Queued, Waits};
