//! Addresses to names: symbol tables and the kernel's list read by ourselves, lines and inlined functions by blazesym.
//!
//! In: [`crate::frames::CodeLocation`]s (a source of code and an offset in it) with what their sources are. Out:
//! frames, innermost inlined function first. Offsets are bytes in the file; kernel locations are addresses. It needs no
//! live process: what it reads are files that the process room holds open, so that deleted files are named too. What is
//! asked for before these are given up, some seconds after their last process ended, is remembered. Only separate debug
//! files are opened here, in the root of a process where one still lives.
//!
//! A [`Namer`] lives as long as the agent, on a thread of its own (blazesym's type cannot leave its thread). There are
//! two: one names intervals, and one what is about to be given up, which can't wait until the other has read a large
//! file. What they remember is common to both, and bounded.

mod cache;
mod config;
mod debug_file;
mod demangle;
mod file_symbols;
mod forms;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod kernel_modules;
mod kernel_symbols;
mod mini_debug;
mod namer;
mod native;
mod perf_map;
mod vdso;

pub use cache::Names;
pub use config::{DegradationLevel, NamerConfig, NamerStats};
pub use kernel_symbols::BpfFunctions;
pub use namer::Namer;

pub use crate::cpu_budget::{CpuBudget, NeededBy};
pub use crate::elf::ReadTurn;
