//! Python frames of a CPython process (3.8 to 3.14, with the lock of the interpreter), named from outside of it.
//!
//! In: the process' memory, the addresses of symbols of the executable or of libpython, and what the walk saw of a
//! frame (a code object, an offset in its bytecodes, a hash). Out: where a walker finds what it needs, and functions,
//! files and lines. Since 3.13 the interpreter says itself where its fields are; before, that goes by the version, and
//! is checked against what is there. Never: a write, a stop of the process, or trust in what it says. It runs on
//! meanwhile.

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

pub use frame::PythonFrame;
pub use layout::{Layout, LayoutError, SYMBOLS, Version};
pub use offsets::FrameForm;
pub use running::{NotReady, Python, Walked};

use thiserror::Error;

use super::jvm::ReadMemory;

/// Why a frame has no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unreadable {
    /// Nothing can be read there.
    #[error("the memory at {address:#x} can't be read")]
    Memory {
        /// Where.
        address: u64,
    },
    /// Something can be read, and is not what should be there.
    #[error("{what} at {address:#x} makes no sense")]
    Nonsense {
        /// What should be there.
        what: &'static str,
        /// Where.
        address: u64,
    },
    /// Something else stands there by now.
    #[error("the code was replaced")]
    Replaced,
}

/// What user programs can have as an address on x86-64.
const ADDRESSES: std::ops::Range<u64> = 0x1000..1 << 47;
/// How much of a name is kept.
const MAX_NAME_BYTES: usize = 4096;

fn read(memory: &dyn ReadMemory, address: u64, to: &mut [u8]) -> Result<(), Unreadable> {
    let last = address.checked_add(to.len() as u64);
    let is_sane = ADDRESSES.contains(&address) && last.is_some_and(|last| last <= ADDRESSES.end);
    if is_sane && memory.read(address, to) {
        Ok(())
    } else {
        Err(Unreadable::Memory { address })
    }
}

/// A number of eight bytes.
fn word(memory: &dyn ReadMemory, address: u64) -> Result<u64, Unreadable> {
    let mut value = [0; 8];
    read(memory, address, &mut value)?;
    Ok(u64::from_le_bytes(value))
}

/// A field of an object.
fn field(object: u64, offset: u16) -> u64 {
    object.saturating_add(u64::from(offset))
}

/// Can it be the address of an object?
fn is_object(address: u64) -> bool {
    ADDRESSES.contains(&address) && address.is_multiple_of(8)
}

/// An address that may be one of an object.
fn pointer(memory: &dyn ReadMemory, address: u64, what: &'static str) -> Result<u64, Unreadable> {
    let value = word(memory, address)?;
    if is_object(value) {
        Ok(value)
    } else {
        Err(Unreadable::Nonsense { what, address: value })
    }
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
