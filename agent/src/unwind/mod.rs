//! From a file's unwind information to tables that the kernel side walks.
//!
//! In: an ELF file of x86-64 or arm64, read through a function that the caller gives. Out: [`compile`] makes a
//! [`FileTable`], which has for each address (the file's own, in bytes) the [`Rule`] that leads from a frame there to
//! its caller's; it comes from .eh_frame, from .debug_frame where that is all there is, and from Go's pclntab.
//! [`Layout`] lays tables and mappings out for the walk of bpf/unwind.h, in a [`Memory`] that somebody else owns.
//!
//! Pure: no I/O of its own, no state but a bounded cache. Files are not trusted: sizes are capped before memory is
//! allocated, what makes no sense is passed over and counted, and the work is bounded by the file's size.

mod cfi;
mod entry;
mod error;
mod expression;
mod frames;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod go;
mod known;
mod layout;
mod parts;
mod rule;
mod space;
mod table;
mod table_builder;

use crate::elf::pclntab::Location;
pub use crate::elf::{Segment, code_address};
pub use error::TableError;
pub use frames::function_limits;
pub use layout::{
    Code, CodeMapping, Filled, Installed, Layout, MAX_MAPPINGS, Memory, NoRoom, Published, RETIRE_NS, RULES, SLAB_WORDS,
};
pub use parts::{Outline, PART_CHUNKS, compile_part, outline};
pub use rule::{CallerFp, CallerPc, Cfa, Rule, Unsupported};
pub use space::Range;
pub use table::{CHUNK_BYTES, FileTable, Row, Stats};

/// Compiles a file's table. `read_file` fills a buffer from an offset of the file, or says that it cannot; `row_limit`
/// is how many rows the table may have. Beside the table itself, at 4 bytes a row, it takes some 5 MiB at most.
pub fn compile(read_file: impl Fn(u64, &mut [u8]) -> bool, row_limit: usize) -> Result<FileTable, TableError> {
    compile_within(read_file, row_limit, table_builder::ROOM_BYTES)
}

/// The same with other room for the functions that are sorted at a time.
pub fn compile_within(
    read_file: impl Fn(u64, &mut [u8]) -> bool,
    row_limit: usize,
    room_bytes: usize,
) -> Result<FileTable, TableError> {
    let image = crate::elf::Image::open(read_file).ok_or(TableError::NotElf)?;
    let everywhere = 0..u64::MAX;
    let go = Location::find(&image);
    let sources = |builder: &mut table_builder::TableBuilder| {
        known::greenlets::compile(&image, builder)?;
        builder.settle();
        if let Some(location) = go {
            go::compile(&image, location, &everywhere, builder)?;
            builder.settle();
        }
        frames::compile_eh_frame(&image, builder)?;
        builder.settle();
        frames::compile_debug_frame(&image, builder)?;
        builder.settle();
        known::restorer::compile(&image, &everywhere, builder)?;
        builder.settle();
        Ok(())
    };
    table_builder::TableBuilder::new(everywhere.clone(), row_limit, room_bytes).compile(sources, &image.segments)
}
