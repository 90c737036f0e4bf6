//! Java frames of a HotSpot process, named from outside of it.
//!
//! In: the process' memory, the addresses of libjvm's dynamic symbols, and what the walk saw of a frame (a `Method*`
//! and a bytecode index, or a code blob, its compile id and a pc). Out: where a walker finds what it needs, and
//! classes, methods, files and lines, leaf first. Everything about a version comes from the tables that libjvm exports
//! for its serviceability agent (vmStructs.cpp); only the interpreter's frame and the form of compressed numbers go by
//! the version's number. Never: a write, a stop of the process, or trust in what it says. It runs on meanwhile.

mod blob;
mod code;
mod error;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod layout;
mod lines;
#[cfg(any(test, fuzzing))]
mod made;
mod method;
mod numbers;
mod print;
mod scopes;
mod tables;
#[cfg(test)]
mod tests;

pub use blob::{Blob, BlobKind};
pub use code::{CodeHeap, InterpreterFrame, Jvm, NotReady, Walked};
pub use error::LayoutError;
pub use layout::{Layout, NumberField};
pub use numbers::Encoding;

use super::reading::{ADDRESSES, MAX_NAME_BYTES, ReadMemory, Unreadable, number, pointer, read};

/// A frame as Java's own stack traces have it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JavaFrame {
    /// With its package, which ends at the last dot: `java.util.HashMap`. A hidden class keeps its suffix, `/0x…`.
    pub class: String,
    /// Such as `get` or `<init>`.
    pub method: String,
    /// Descriptor: `(Ljava/lang/Object;)Ljava/lang/Object;`.
    pub signature: String,
    /// The source file's name without a folder.
    pub file: Option<String>,
    /// 1-based; 0 when unknown.
    pub line: u32,
    /// It was inlined into the next frame.
    pub inlined: bool,
}

/// A C string, cut at a number of bytes.
fn c_string(memory: &dyn ReadMemory, address: u64, max_bytes: usize) -> Result<String, Unreadable> {
    /// Divides pages, so that no piece lies on two of them: the next one may be missing.
    const PIECE_BYTES: u64 = 64;
    let mut bytes = Vec::new();
    while bytes.len() < max_bytes {
        let at = address.saturating_add(bytes.len() as u64);
        let mut piece = [0; PIECE_BYTES as usize];
        let piece = &mut piece[..(PIECE_BYTES - at % PIECE_BYTES) as usize];
        read(memory, at, piece)?;
        let end = piece.iter().position(|byte| *byte == 0);
        bytes.extend_from_slice(&piece[..end.unwrap_or(piece.len())]);
        if end.is_some() {
            break;
        }
    }
    bytes.truncate(max_bytes);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
