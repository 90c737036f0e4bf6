//! Text as PHP has it: its hash, its length, its bytes.

use super::{MAX_NAME_BYTES, ReadMemory, Unreadable, part, read};

/// `zend_string`: behind the count of its users.
const HASH: u16 = 8;
const LENGTH: u16 = 16;
const HEAD_BYTES: u64 = 24;
/// No name is as long.
const MAX_BYTES: u64 = 1 << 31;

/// A text, or none where there is no address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    /// Where it lies, or 0.
    pub(super) address: u64,
    /// 0 where it was never asked for.
    pub(super) hash: u64,
    /// Cut at 4 KiB.
    pub(super) bytes: Vec<u8>,
}

impl Text {
    pub(super) fn none() -> Self {
        let bytes = Vec::new();
        Self {
            address: 0,
            hash: 0,
            bytes,
        }
    }

    /// A text whose bytes have the hash that it says.
    pub(super) fn read(memory: &dyn ReadMemory, address: u64) -> Result<Self, Unreadable> {
        if address == 0 {
            return Ok(Self::none());
        }
        let nonsense = Unreadable::Nonsense {
            what: "a text",
            address,
        };
        let mut head = [0; HEAD_BYTES as usize];
        read(memory, address, &mut head)?;
        let (hash, length) = (part(&head, HASH, 8), part(&head, LENGTH, 8));
        if length > MAX_BYTES {
            return Err(nonsense);
        }
        let kept = length.min(MAX_NAME_BYTES as u64);
        let mut bytes = vec![0; usize::try_from(kept).unwrap_or(0)];
        if !bytes.is_empty() {
            read(memory, address + HEAD_BYTES, &mut bytes)?;
        }
        if hash != 0 && kept == length && hash_of(&bytes) != hash {
            return Err(nonsense);
        }
        Ok(Self { address, hash, bytes })
    }

    /// Up to a zero byte: behind it, classes without a name have where they were declared.
    pub(super) fn shown(&self) -> String {
        let bytes = self.bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        let end = text.floor_char_boundary(MAX_NAME_BYTES);
        text.truncate(end);
        text
    }
}

/// PHP's own: times 33, by D. J. Bernstein; the highest bit is always set.
pub(super) fn hash_of(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| hash.wrapping_mul(33).wrapping_add(u64::from(*byte));
    bytes.iter().fold(5381, step) | 1 << 63
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_php() {
        assert_eq!(hash_of(b""), 5381 | 1 << 63);
        assert_eq!(hash_of(b"a"), (5381 * 33 + 97) | 1 << 63);
        assert_eq!(hash_of(b"strlen"), 0x8000_0653_1c93_bb9d);
    }

    #[test]
    fn a_class_without_a_name_is_cut() {
        let mut text = Text::none();
        text.bytes = b"class@anonymous\0/srv/a.php:3$0".to_vec();
        assert_eq!(text.shown(), "class@anonymous");
        text.bytes = b"caf\xe9".to_vec();
        assert_eq!(text.shown(), "caf\u{fffd}");
    }
}
