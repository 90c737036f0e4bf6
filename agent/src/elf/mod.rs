//! What lies where in an ELF file of x86-64 or arm64.
//!
//! In: a function that fills a buffer from an offset of the file. Out: [`Image`] (segments, sections, notes),
//! [`symbols::SymbolTable`], Go's [`pclntab::Pclntab`], what entries of the [`plt`] jump to. Addresses are the file's
//! own (SVMA), in bytes.
//!
//! Pure: no I/O of its own. Files are not trusted: sizes are capped before memory is allocated, and the work is bounded
//! by the file's size. A file may change while it is read, which is why nothing maps it.

mod blocks;
mod compressed;
mod coverage;
mod dynamic;
mod image;
pub(crate) mod pclntab;
pub(crate) mod plt;
mod read_turn;
pub(crate) mod reader;
pub(crate) mod symbols;

pub(crate) use blocks::Blocks;
pub(crate) use compressed::{decompressed, decompressed_bytes};
pub(crate) use coverage::Coverage;
pub(crate) use dynamic::{dynamic_symbols, static_symbols};
pub(crate) use image::{Arch, FileRange, Image, Registers, Section, address_of, field, read_from};
pub use image::{Segment, code_address};
pub use read_turn::ReadTurn;
