//! JavaScript frames of a process with V8 (Node.js, versions 18 to 26), named from outside of it.
//!
//! In: the process' memory, the addresses of the dynamic symbols by which V8 tells debuggers of its layout (`v8dbg_…`),
//! and what the walk saw of a frame (what a function shares with others of the same text, the place in its bytecodes or
//! in the code that was made of them, a hash). Out: where a walker finds what it needs, and functions, files and lines,
//! leaf first, of optimised code also the functions that were inlined there. What those symbols do not tell goes by the
//! form that the others have. Never: a write, a stop of the process, or trust in what it says. It runs on meanwhile.

mod code;
mod frame;
mod function;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod known_functions;
mod layout;
mod lines;
#[cfg(any(test, fuzzing))]
mod made;
mod positions;
mod running;
mod scope;
mod sizes;
#[cfg(test)]
mod tests;
mod text;

pub use frame::{FrameSort, ScriptFrame};
pub use layout::{Layout, LayoutError, SYMBOLS, Version};
pub use running::{V8, Walked};

use super::reading::{ADDRESSES, MAX_NAME_BYTES, ReadMemory, Unreadable, number, read, word};

/// Where all objects have their map, and a map what kind of objects it is of.
const MAP: u16 = 0;
const MAP_TYPE: u16 = 12;
/// Arrays: how many elements, as a small integer, and the first of them.
const ARRAY_LENGTH: u16 = 8;
const ARRAY_DATA: u16 = 16;

/// A field of an object, which is given by its address without the tag.
fn field(object: u64, offset: u16) -> u64 {
    object.saturating_add(u64::from(offset))
}

/// The object that a word leads to, perhaps weakly; none of a small integer, and of what can be no address.
fn object(word: u64) -> Option<u64> {
    let address = word & !3;
    let is_object = word & 1 == 1 && ADDRESSES.contains(&address) && address.is_multiple_of(8);
    is_object.then_some(address)
}

/// A small integer.
fn small(word: u64) -> Option<i32> {
    (word & 0xffff_ffff == 0).then_some((word >> 32) as u32 as i32)
}

/// The object that a field leads to.
fn object_at(memory: &dyn ReadMemory, of: u64, offset: u16, what: &'static str) -> Result<u64, Unreadable> {
    let found = word(memory, field(of, offset))?;
    object(found).ok_or(Unreadable::Nonsense { what, address: found })
}

/// What kind of object it is.
fn type_of(memory: &dyn ReadMemory, object: u64) -> Result<u16, Unreadable> {
    let map = object_at(memory, object, MAP, "a map")?;
    Ok((number(memory, field(map, MAP_TYPE), 2)? & 0xffff) as u16)
}

/// A word of what was read; zero where that is too short.
fn part(bytes: &[u8], offset: u16, width: u16) -> u64 {
    let first = usize::from(offset);
    let part = bytes.get(first..first + usize::from(width)).unwrap_or_default();
    part.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// The bytes of an array of them, of which there are at most `limit`.
fn byte_array(memory: &dyn ReadMemory, array: u64, limit: usize) -> Result<Vec<u8>, Unreadable> {
    let length = small(word(memory, field(array, ARRAY_LENGTH))?).and_then(|length| usize::try_from(length).ok());
    let length = length.filter(|length| *length <= limit);
    let nonsense = Unreadable::Nonsense {
        what: "an array's length",
        address: array,
    };
    read_long(memory, field(array, ARRAY_DATA), length.ok_or(nonsense)?)
}

/// Reads in pieces, the last of which may be missing in the process.
fn read_long(memory: &dyn ReadMemory, address: u64, length: usize) -> Result<Vec<u8>, Unreadable> {
    const PIECE_BYTES: usize = 1 << 15;
    let mut bytes = vec![0; length];
    for (number, piece) in bytes.chunks_mut(PIECE_BYTES).enumerate() {
        read(memory, address.saturating_add((number * PIECE_BYTES) as u64), piece)?;
    }
    Ok(bytes)
}
