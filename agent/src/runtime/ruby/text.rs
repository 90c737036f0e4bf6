//! Text, lists and the table of names as CRuby has them.

use super::offsets::{T_ARRAY, T_STRING, TYPE_MASK, USER_1, USER_SHIFT};
use super::{MAX_NAME_BYTES, ReadMemory, Unreadable, field, part, read, word};

/// No file of source text is as long.
const MAX_TEXT_BYTES: u64 = 1 << 31;
/// Of a list, in the list of lists: two objects for each of so many names.
const NAMES_OF_A_LIST: u64 = 512;
/// Bits of a name's number below its serial number.
const SCOPE_BITS: u32 = 4;
/// The lowest bits of what stands for a name as an object.
const SYMBOL: u64 = 0xc;
const SYMBOL_BITS: u32 = 8;

/// The table of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) table: u64,
    pub(super) last_operator: u64,
    pub(super) is_length_in_flags: bool,
}

impl Names {
    /// A name by its number.
    pub(super) fn name(&self, memory: &dyn ReadMemory, id: u64) -> Result<String, Unreadable> {
        let serial = if id > self.last_operator { id >> SCOPE_BITS } else { id };
        let (name, symbol) = self.entry(memory, serial)?;
        // Names that were made at run time have an object of their own.
        if symbol & ((1 << SYMBOL_BITS) - 1) == SYMBOL && symbol >> SYMBOL_BITS != id {
            let what = "a name's number";
            return Err(Unreadable::Nonsense { what, address: id });
        }
        text(memory, name, self.is_length_in_flags)
    }

    /// Does the table have a name with this serial number?
    pub(super) fn is_known(&self, memory: &dyn ReadMemory, serial: u64) -> bool {
        let Ok((name, symbol)) = self.entry(memory, serial) else {
            return false;
        };
        let is_symbol = symbol & ((1 << SYMBOL_BITS) - 1) == SYMBOL && symbol >> (SYMBOL_BITS + SCOPE_BITS) == serial;
        is_symbol && text(memory, name, self.is_length_in_flags).is_ok()
    }

    fn entry(&self, memory: &dyn ReadMemory, serial: u64) -> Result<(u64, u64), Unreadable> {
        let lists = word(memory, self.table.saturating_add(16))?;
        let list = element(memory, lists, serial / NAMES_OF_A_LIST)?;
        let at = serial % NAMES_OF_A_LIST * 2;
        Ok((element(memory, list, at)?, element(memory, list, at + 1)?))
    }
}

/// An element of a list.
pub(super) fn element(memory: &dyn ReadMemory, list: u64, index: u64) -> Result<u64, Unreadable> {
    let nonsense = Unreadable::Nonsense {
        what: "a list",
        address: list,
    };
    let flags = word(memory, list)?;
    if flags & TYPE_MASK != T_ARRAY {
        return Err(nonsense);
    }
    let (length, elements) = if flags & USER_1 != 0 {
        (flags >> (USER_SHIFT + 3) & 0x7f, field(list, 16))
    } else {
        (word(memory, field(list, 16))?, word(memory, field(list, 32))?)
    };
    if index >= length {
        return Err(nonsense);
    }
    word(memory, elements.saturating_add(index.saturating_mul(8)))
}

/// A text, cut at 4 KiB: what is no UTF-8 in it is replaced.
pub(super) fn text(memory: &dyn ReadMemory, address: u64, is_length_in_flags: bool) -> Result<String, Unreadable> {
    let nonsense = Unreadable::Nonsense {
        what: "a text",
        address,
    };
    let mut head = [0; 32];
    if !super::is_object(address) {
        return Err(nonsense);
    }
    read(memory, address, &mut head)?;
    let flags = part(&head, 0);
    if flags & TYPE_MASK != T_STRING {
        return Err(nonsense);
    }
    let (length, at) = match (flags & USER_1 != 0, is_length_in_flags) {
        (true, _) => (part(&head, 16), part(&head, 24)),
        (false, true) => (flags >> (USER_SHIFT + 2) & 0x1f, field(address, 16)),
        (false, false) => (part(&head, 16), field(address, 24)),
    };
    if length > MAX_TEXT_BYTES {
        return Err(nonsense);
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0).min(MAX_NAME_BYTES)];
    if !bytes.is_empty() {
        read(memory, at, &mut bytes)?;
    }
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    let end = text.floor_char_boundary(MAX_NAME_BYTES);
    text.truncate(end);
    Ok(text)
}
