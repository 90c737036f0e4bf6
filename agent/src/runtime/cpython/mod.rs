//! Python frames of a CPython process (3.8 to 3.15, since 3.13 also without the interpreter's lock), named from outside
//! of it.
//!
//! In: the process' memory, the addresses of symbols of the executable or of libpython, and what the walk saw of a
//! frame (a code object, an offset in its bytecodes, a hash). Out: where a walker finds what it needs, and functions,
//! modules, files and lines. Since 3.13 the interpreter says itself where its fields are; before, that goes by the
//! version, and is checked against what is there. Never: a write, a stop of the process, or trust in what it says. It
//! runs on meanwhile.

mod frame;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod layout;
mod lines;
#[cfg(any(test, fuzzing))]
mod made;
mod modules;
mod offsets;
mod running;
#[cfg(test)]
mod tests;
mod text;

pub use frame::PythonFrame;
pub use layout::{Layout, LayoutError, SYMBOLS, Version};
pub use modules::{Late, Modules};
pub use offsets::FrameForm;
pub use running::{NotReady, Python, Walked};

use super::reading::{ADDRESSES, MAX_NAME_BYTES, ReadMemory, Unreadable, is_object, pointer, read, word};

/// A field of an object.
fn field(object: u64, offset: u16) -> u64 {
    object.saturating_add(u64::from(offset))
}

/// A number of at most eight bytes in what was read; zero where that is too short.
fn part(bytes: &[u8], offset: u16, width: usize) -> u64 {
    let first = usize::from(offset);
    let mut value = [0; 8];
    match bytes.get(first..first + width.min(8)) {
        Some(found) => value[..found.len()].copy_from_slice(found),
        None => return 0,
    }
    u64::from_le_bytes(value)
}
