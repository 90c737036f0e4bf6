//! Keeps the kernel side's tables in step with what runs.
//!
//! In: programs and their mappings, the code at which walks stopped. Out: tables and mappings in the kernel side's
//! memory.
//!
//! A thread of its own compiles the tables of files, one after the other; each is installed once, for all programs that
//! map the file. A program's mappings are published when it is met, and again whenever they or their tables change. Of
//! large files only those parts are compiled whose code runs; they are filled in and given up in place. Where room is
//! short, `eviction` says which tables go.

mod compiler;
mod eviction;
mod files;
mod fit;
mod stats;
mod unwinding;

pub use stats::UnwindStats;
pub(super) use unwinding::Unwinding;
