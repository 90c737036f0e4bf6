//! PHP frames of a PHP process (7.4 to 8.5, of builds with threads since 8.0), named from outside of it.
//!
//! In: the process' memory, the addresses of symbols of the executable or of libphp, and what the walk saw of a frame
//! (a function, the number of an instruction, a hash). Out: where a walker finds what it needs, and functions, files
//! and lines. Where the fields are goes by the number of PHP's own interface for extensions, which the module registry
//! says, and is checked against what is there. Never: a write, a stop of the process, or trust in what it says. It runs
//! on meanwhile.

mod frame;
mod functions;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod layout;
#[cfg(any(test, fuzzing))]
mod made;
mod running;
#[cfg(test)]
mod tests;
mod text;

pub use frame::PhpFrame;
pub use layout::{Layout, LayoutError, SYMBOLS, Version};
pub use running::{NotReady, Php, Walked};

use super::reading::{ADDRESSES, MAX_NAME_BYTES, ReadMemory, Unreadable, is_object, number, pointer, read, word};

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
