//! Ruby frames of a CRuby process (2.7 to 3.4), named from outside of it.
//!
//! In: the process' memory, where the file with the interpreter lies in it, and what the walk saw of a frame (a
//! sequence of instructions, a method entry, an instruction's number, a hash). Out: where a walker finds what it
//! needs, and methods, files and lines. The interpreter says its version; where its fields are goes by that, and is
//! checked against what is there. What has no symbol is found by what it leads to. Never: a write, a stop of the
//! process, or trust in what it says. It runs on meanwhile.

mod class;
mod frame;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod layout;
mod lines;
#[cfg(any(test, fuzzing))]
mod made;
mod offsets;
mod running;
#[cfg(test)]
mod tests;
mod text;

pub use frame::RubyFrame;
pub use layout::{LayoutError, MappedInterpreter, SYMBOLS, Version};
pub use running::{Ruby, Walked};

use super::reading::{ADDRESSES, MAX_NAME_BYTES, ReadMemory, Unreadable, is_object, number, read, word};

/// A field of an object.
fn field(object: u64, offset: u16) -> u64 {
    object.saturating_add(u64::from(offset))
}

/// A word of what was read; zero where that is too short.
fn part(bytes: &[u8], offset: u16) -> u64 {
    let first = usize::from(offset);
    let word = bytes.get(first..first + 8).and_then(|bytes| bytes.try_into().ok());
    word.map_or(0, u64::from_le_bytes)
}
