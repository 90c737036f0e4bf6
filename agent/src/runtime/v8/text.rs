//! Texts, which V8 keeps in several ways.

use super::{MAX_NAME_BYTES, ReadMemory, Unreadable, field, number, object_at, read_long, small, type_of, word};

/// Of a text's kind: what is no text has one of these bits; how it is kept; whether a character has one byte.
const NOT_TEXT: u16 = !0x7f;
const KEPT: u16 = 7;
const ONE_BYTE: u16 = 8;
/// How texts are kept: here, as two others, outside of V8's memory, as a part of another one, as another one.
const SEQUENTIAL: u16 = 0;
const CONS: u16 = 1;
const EXTERNAL: u16 = 2;
const SLICED: u16 = 3;
const THIN: u16 = 5;
/// Number of characters; the characters, or the text that it leads to.
const LENGTH: u16 = 12;
const CHARACTERS: u16 = 16;
/// The second of two texts; where a part begins; the address of characters that are outside.
const SECOND: u16 = 24;
/// Texts that one leads to.
const MAX_STEPS: usize = 8;
/// Texts that one consists of.
const MAX_PARTS: usize = 64;

/// A text whose characters follow each other in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Text {
    /// Of the first one.
    pub(super) address: u64,
    pub(super) length: u32,
    /// Bytes of a character: one (Latin-1) or two.
    pub(super) width: u8,
}

enum Kept {
    Flat(Text),
    Two(u64, u64),
}

impl Text {
    /// Of an object; an error where it is no text, or one that consists of others.
    pub(super) fn read(memory: &dyn ReadMemory, object: u64) -> Result<Self, Unreadable> {
        match kept(memory, object)? {
            Kept::Flat(text) => Ok(text),
            Kept::Two(..) => Err(nonsense(object)),
        }
    }

    /// Its characters from one on, at most `count`.
    pub(super) fn characters(&self, memory: &dyn ReadMemory, from: u32, count: u32) -> Result<Vec<u16>, Unreadable> {
        let count = count.min(self.length.saturating_sub(from));
        let width = u64::from(self.width);
        let address = self.address.saturating_add(u64::from(from) * width);
        let bytes = read_long(memory, address, count as usize * usize::from(self.width))?;
        Ok(if self.width == 1 {
            bytes.into_iter().map(u16::from).collect()
        } else {
            let pairs = bytes.chunks_exact(2);
            pairs.map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
        })
    }
}

fn nonsense(address: u64) -> Unreadable {
    Unreadable::Nonsense {
        what: "a text",
        address,
    }
}

fn kept(memory: &dyn ReadMemory, object: u64) -> Result<Kept, Unreadable> {
    let (mut at, mut skipped, mut length) = (object, 0_u32, None);
    for _ in 0..MAX_STEPS {
        let kind = type_of(memory, at)?;
        if kind & NOT_TEXT != 0 {
            return Err(nonsense(object));
        }
        let own = u32::try_from(number(memory, field(at, LENGTH), 4)?).map_err(|_| nonsense(object))?;
        let whole = *length.get_or_insert(own);
        let width = if kind & ONE_BYTE == 0 { 2 } else { 1 };
        let flat = |first: u64| {
            let fits = skipped.checked_add(whole).is_some_and(|end| end <= own);
            let address = first.saturating_add(u64::from(skipped) * u64::from(width));
            let (length, text) = (whole, fits);
            text.then_some(Kept::Flat(Text { address, length, width }))
                .ok_or(nonsense(object))
        };
        match kind & KEPT {
            SEQUENTIAL => return flat(field(at, CHARACTERS)),
            EXTERNAL => return flat(word(memory, field(at, SECOND))?),
            THIN => at = object_at(memory, at, CHARACTERS, "a text")?,
            SLICED => {
                let offset = small(word(memory, field(at, SECOND))?).and_then(|offset| u32::try_from(offset).ok());
                skipped = offset
                    .and_then(|offset| skipped.checked_add(offset))
                    .ok_or(nonsense(object))?;
                at = object_at(memory, at, CHARACTERS, "a text")?;
            }
            CONS => {
                let first = object_at(memory, at, CHARACTERS, "a text")?;
                let second = object_at(memory, at, SECOND, "a text")?;
                // One that was made whole keeps nothing in its second part.
                if number(memory, field(second, LENGTH), 4)? != 0 {
                    return if skipped == 0 && whole == own {
                        Ok(Kept::Two(first, second))
                    } else {
                        Err(nonsense(object))
                    };
                }
                at = first;
            }
            _ => break,
        }
    }
    Err(nonsense(object))
}

/// A name, cut at a number of bytes.
pub(super) fn name(memory: &dyn ReadMemory, object: u64) -> Result<String, Unreadable> {
    let (mut todo, mut characters) = (vec![object], Vec::new());
    for _ in 0..MAX_PARTS {
        let Some(next) = todo.pop() else { break };
        let room = MAX_NAME_BYTES - characters.len();
        match kept(memory, next)? {
            Kept::Flat(text) => characters.extend(text.characters(memory, 0, room as u32)?),
            Kept::Two(first, second) => todo.extend([second, first]),
        }
    }
    let mut name = String::from_utf16_lossy(&characters);
    name.truncate(name.floor_char_boundary(MAX_NAME_BYTES));
    Ok(name)
}
