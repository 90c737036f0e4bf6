//! Who runs: lifetimes, executables, mappings, build ids.
//!
//! In: process events and (tgid, start time, exec id) of samples. Out: [`Program`]s, and for an address the
//! [`crate::frames::CodeLocation`] that it came from: a file and an offset in it, or code that the kernel had there at
//! the time. Start times are clock ticks since boot. It reads /proc and ELF headers, never names a symbol of a file,
//! and never takes a reused process id for the old process, nor a process's next program for the one before.

mod address_space;
mod command_line;
mod events;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod holding;
mod kernel_code;
mod made;
mod maps;
mod modules;
mod proc_files;
mod reading;
mod rescan;
mod table;
mod vdso;

pub use address_space::{CodeRange, Source};
pub use command_line::CommandLines;
pub use events::{CodeChange, Executed, NewCode};
pub use holding::Leaving;
pub use made::{JitCode, MadeFile, PerfMapFile};
pub use maps::{Backing, MapLine, is_memory_file, is_unnamed_memory, parse_maps};
pub use modules::{Module, ModuleTable};
pub use proc_files::{made_memory, shared_memory};
pub(crate) use reading::{SafeFile, open_in_root, open_regular};
pub use table::{Changes, Found, Program, Sighting, Table, TableStats};
pub use vdso::vdso_image;
