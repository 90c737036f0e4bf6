//! Who runs: lifetimes, executables, mappings, build ids.
//!
//! In: process events and (tgid, start time, exec id) of samples. Out: [`Program`]s, and for a user address the [`Place`]
//! that it came from: a file and an offset in it. Start times are clock ticks since boot. It reads /proc and ELF headers,
//! never names a symbol, and never takes a reused process id for the old process.

mod address_space;
mod elf;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod looks;
mod maps;
mod modules;
mod proc_files;
mod table;
mod vdso;

pub use address_space::{CodeRange, JitCode, Place, Source, SourceId};
pub use elf::gnu_build_id;
pub use maps::{Backing, MapLine, parse_maps};
pub use modules::{Module, ModuleTable};
pub(crate) use proc_files::open_regular;
pub use table::{Changes, Labeller, Program, ProgramKey, Table, TableStats};
pub use vdso::vdso_image;
