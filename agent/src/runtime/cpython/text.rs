//! Text as CPython has it (PEP 393): one, two or four bytes for each character, as many as its widest one needs.

use super::offsets::FREE_HEADER_BYTES;
use super::{MAX_NAME_BYTES, Python, ReadMemory, Unreadable, field, part, read, word};

/// No file of source text is as long.
const MAX_CHARACTERS: u64 = 1 << 31;
/// `Py_TPFLAGS_UNICODE_SUBCLASS`.
const IS_TEXT: u64 = 1 << 28;
/// What lies before the characters, at most: of the oldest form, with a pointer to them.
const HEAD_BYTES: usize = 80;

/// Bits of a text's state, from the lowest: two that say whether it is interned, three for the width, then these.
const KIND_SHIFT: u32 = 2;
/// Without the interpreter's lock a whole byte says whether it is interned, since 3.14.
const FREE_KIND_SHIFT: u32 = 8;
const KINDS: u64 = 7;
const IS_COMPACT: u64 = 1 << 3;
const IS_ASCII: u64 = 1 << 4;

impl Python {
    /// A text, cut at 4 KiB.
    pub(super) fn text(&self, memory: &dyn ReadMemory, address: u64) -> Result<String, Unreadable> {
        let nonsense = Unreadable::Nonsense {
            what: "a text",
            address,
        };
        let mut head = [0; HEAD_BYTES];
        // Behind a short text may be nothing.
        let offsets = &self.layout.offsets;
        let ascii_bytes = offsets.ascii_bytes;
        let first = head.get_mut(..usize::from(ascii_bytes)).ok_or(nonsense)?;
        read(memory, address, first)?;
        let kind = part(&head, offsets.object_type(), 8);
        if kind != self.layout.text_type && word(memory, field(kind, offsets.type_flags()))? & IS_TEXT == 0 {
            return Err(nonsense);
        }
        let (length, state) = (
            part(&head, offsets.text_length(), 8),
            part(&head, offsets.text_state(), 4),
        );
        // No text has the width zero: it is in the other place then.
        let is_apart = offsets.header_bytes == FREE_HEADER_BYTES && state >> KIND_SHIFT & KINDS == 0;
        let state = state >> if is_apart { FREE_KIND_SHIFT } else { KIND_SHIFT };
        let width = state & KINDS;
        let is_sane = length <= MAX_CHARACTERS && matches!(width, 1 | 2 | 4);
        if !is_sane || (state & IS_ASCII != 0 && width != 1) {
            return Err(nonsense);
        }
        let compact_bytes = offsets.compact_bytes();
        let at = match (state & IS_COMPACT != 0, state & IS_ASCII != 0) {
            (true, true) => field(address, ascii_bytes),
            (true, false) => field(address, compact_bytes),
            // Subclasses of str have their characters elsewhere.
            (false, _) => word(memory, field(address, compact_bytes))?,
        };
        let bytes = length.saturating_mul(width).min(MAX_NAME_BYTES as u64);
        let mut bytes = vec![0; usize::try_from(bytes).unwrap_or(0)];
        if !bytes.is_empty() {
            read(memory, at, &mut bytes)?;
        }
        Ok(decoded(&bytes, width))
    }
}

/// Half of a pair of surrogates, which stands for a byte of a name that is no text, becomes the replacement character.
fn decoded(bytes: &[u8], width: u64) -> String {
    let character = |number| char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
    let mut text: String = match width {
        1 => bytes.iter().map(|byte| char::from(*byte)).collect(),
        2 => bytes
            .chunks_exact(2)
            .map(|two| character(u32::from(u16::from_le_bytes([two[0], two[1]]))))
            .collect(),
        _ => bytes
            .chunks_exact(4)
            .map(|four| character(u32::from_le_bytes([four[0], four[1], four[2], four[3]])))
            .collect(),
    };
    let end = text.floor_char_boundary(MAX_NAME_BYTES);
    text.truncate(end);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_of_each_width_are_decoded() {
        assert_eq!(decoded(b"main.py", 1), "main.py");
        assert_eq!(decoded(&[0x67, 0xe9, 0xff], 1), "g\u{e9}\u{ff}");
        assert_eq!(decoded(&[0x67, 0, 0x94, 0x03, 0x2c, 0x67], 2), "g\u{394}\u{672c}");
        assert_eq!(decoded(&[0x40, 0xf6, 0x01, 0, 0x61, 0, 0, 0], 4), "\u{1f640}a");
    }

    #[test]
    fn what_is_no_character_is_replaced() {
        assert_eq!(decoded(&[0x80, 0xdc, 0x61, 0], 2), "\u{fffd}a");
        assert_eq!(decoded(&[0, 0, 0x11, 0, 0xff, 0xff, 0xff, 0xff], 4), "\u{fffd}\u{fffd}");
    }

    #[test]
    fn text_is_cut_at_a_character() {
        let text = decoded(&[0xe9; MAX_NAME_BYTES], 1);
        assert_eq!(text.len(), MAX_NAME_BYTES);
        let text = decoded(&[&b"a"[..], &[0xe9; MAX_NAME_BYTES - 1]].concat(), 1);
        assert_eq!(text.len(), MAX_NAME_BYTES - 1);
    }
}
