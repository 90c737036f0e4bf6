//! Code that V8 made: from an address in it to what is known of it.

use super::layout::Layout;
use super::{ReadMemory, Unreadable, field, number, object, read, type_of, word};
use crate::runtime::reading::is_object;

/// How far from its first instruction an address may be.
const MAX_CODE_BYTES: u64 = 1 << 20;
const PIECE_BYTES: u64 = 4096;
/// Instructions begin at multiples of this.
const ALIGNMENT: u64 = 32;
/// Objects whose kind is looked at, until it is known how those that hold code look.
const MAX_LOOKS: usize = 256;

/// Code of regular expressions, in every version.
const REGEXP: u64 = 3;

/// What kind of code it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeKind {
    /// Made of bytecodes, one by one.
    Baseline,
    /// Made of functions with what was inlined into them.
    Optimised,
    /// The interpreter's own code, copied for a function.
    Interpreter,
    /// Of a regular expression.
    RegExp,
    /// Anything else.
    Other,
}

/// A piece of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code {
    /// The object that tells of it.
    pub(super) address: u64,
    /// Its first instruction.
    pub(super) start: u64,
    pub(super) kind: CodeKind,
}

impl Code {
    /// The one that an address lies in. `map` is remembered: what objects that hold code begin with.
    pub(super) fn at(memory: &dyn ReadMemory, layout: &Layout, map: &mut u64, pc: u64) -> Result<Self, Unreadable> {
        let header = u64::from(layout.code.header);
        let missing = Unreadable::Nonsense {
            what: "code",
            address: pc,
        };
        let mut end = pc.checked_sub(header).map(|last| last - last % 8 + 8).ok_or(missing)?;
        let lowest = pc.saturating_sub(MAX_CODE_BYTES);
        let mut looks = 0;
        while end > lowest {
            let begin = (end - 1) / PIECE_BYTES * PIECE_BYTES;
            let mut piece = [0; PIECE_BYTES as usize];
            let piece = &mut piece[..(end - begin) as usize];
            read(memory, begin, piece)?;
            for (number, bytes) in piece.chunks_exact(8).enumerate().rev() {
                let address = begin + number as u64 * 8;
                let found = super::part(bytes, 0, 8);
                if !(address + header).is_multiple_of(ALIGNMENT) || found & 3 != 1 {
                    continue;
                }
                let is_known = found == *map;
                if !is_known {
                    if *map != 0 || looks >= MAX_LOOKS || object(found).is_none() {
                        continue;
                    }
                    looks += 1;
                    if !type_of(memory, address).is_ok_and(|kind| kind == layout.type_stream) {
                        continue;
                    }
                }
                if let Some(code) = Self::of(memory, layout, address, pc)? {
                    *map = found;
                    return Ok(code);
                }
            }
            end = begin;
        }
        Err(missing)
    }

    /// What an object holds that looks as if it held code; none where an address is not in it.
    fn of(memory: &dyn ReadMemory, layout: &Layout, stream: u64, pc: u64) -> Result<Option<Self>, Unreadable> {
        let form = &layout.code;
        let start = field(stream, form.header);
        let address = match form.code {
            None => stream,
            Some(offset) => {
                let Some(code) = object(word(memory, field(stream, offset))?).filter(|code| is_object(*code)) else {
                    return Ok(None);
                };
                // Each leads to the other.
                let is_it = type_of(memory, code).is_ok_and(|kind| kind == layout.type_code)
                    && word(memory, field(code, form.stream))? == stream | 1
                    && word(memory, field(code, form.start))? == start;
                if !is_it {
                    return Ok(None);
                }
                code
            }
        };
        let size = number(memory, field(address, form.size), 4)?;
        if pc < start || pc - start > size || size > MAX_CODE_BYTES {
            return Ok(None);
        }
        let kind = number(memory, field(address, form.flags), 4)? & u64::from(layout.kind_mask);
        let baseline = u64::from(layout.kind_baseline);
        let kind = match kind {
            // Behind the first compiler's come those that optimise.
            kind if kind == baseline => CodeKind::Baseline,
            kind if kind > baseline => CodeKind::Optimised,
            kind if kind + 1 == baseline => CodeKind::Interpreter,
            REGEXP => CodeKind::RegExp,
            _ => CodeKind::Other,
        };
        Ok(Some(Self { address, start, kind }))
    }
}
