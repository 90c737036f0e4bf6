//! Little-endian data and the encodings of DWARF, bounds checked.

/// Reads from front to back and knows the address of what comes next. Every method gives none past the end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    address: u64,
}

/// What relative pointers are relative to, beside their own place.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bases {
    /// The global offset table, or .eh_frame_hdr for what stands in it.
    pub(crate) data: Option<u64>,
}

/// `DW_EH_PE_omit`.
const OMITTED: u8 = 0xff;

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self::at(bytes, 0)
    }

    /// `address` is where the first byte lies.
    pub(crate) fn at(bytes: &'a [u8], address: u64) -> Self {
        Self { bytes, address }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn skip(&mut self, count: u64) -> Option<&'a [u8]> {
        let (head, tail) = self.bytes.split_at_checked(usize::try_from(count).ok()?)?;
        self.bytes = tail;
        self.address = self.address.wrapping_add(count);
        Some(head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.skip(1)?.first().copied()
    }

    /// An unsigned number of at most 8 bytes.
    pub(crate) fn unsigned(&mut self, bytes: u64) -> Option<u64> {
        let bytes = self.skip(bytes)?;
        Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    pub(crate) fn signed(&mut self, bytes: u64) -> Option<i64> {
        let value = self.unsigned(bytes)?.cast_signed();
        let unused = 64 - 8 * i64::try_from(bytes).ok().filter(|bytes| (1..=8).contains(bytes))?;
        Some(value << unused >> unused)
    }

    pub(crate) fn uleb(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0u64, 0u32);
        loop {
            let byte = self.u8()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            shift = shift.saturating_add(7);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
    }

    pub(crate) fn sleb(&mut self) -> Option<i64> {
        let (mut value, mut shift) = (0i64, 0u32);
        loop {
            let byte = self.u8()?;
            if shift < 64 {
                value |= i64::from(byte & 0x7f) << shift;
            }
            shift = shift.saturating_add(7);
            if byte & 0x80 == 0 {
                if shift < 64 && byte & 0x40 != 0 {
                    value |= -1 << shift;
                }
                return Some(value);
            }
        }
    }

    /// The bytes up to a zero, which is consumed.
    pub(crate) fn text(&mut self) -> Option<&'a [u8]> {
        let end = self.bytes.iter().position(|byte| *byte == 0)?;
        let text = self.skip(u64::try_from(end).ok()?)?;
        self.skip(1)?;
        Some(text)
    }

    /// A number in one of the formats of `DW_EH_PE_*` (the lower four bits), sign-extended. LSB 5.0, chapter 10.5.
    pub(crate) fn encoded(&mut self, encoding: u8) -> Option<u64> {
        match encoding & 0x0f {
            0x00 | 0x04 | 0x0c => self.unsigned(8),
            0x01 => self.uleb(),
            0x02 => self.unsigned(2),
            0x03 => self.unsigned(4),
            0x09 => self.sleb().map(i64::cast_unsigned),
            0x0a => self.signed(2).map(i64::cast_unsigned),
            0x0b => self.signed(4).map(i64::cast_unsigned),
            _ => None,
        }
    }

    /// A pointer in the encoding `DW_EH_PE_*`. None for indirect ones and for bases that are not known.
    pub(crate) fn pointer(&mut self, encoding: u8, bases: Bases) -> Option<u64> {
        if encoding == OMITTED {
            return None;
        }
        let base = match encoding & 0xf0 {
            0x00 => 0,
            0x10 => self.address,
            0x30 => bases.data?,
            _ => return None,
        };
        Some(base.wrapping_add(self.encoded(encoding)?))
    }

    /// Passes over a pointer whose value does not matter.
    pub(crate) fn skip_pointer(&mut self, encoding: u8) -> Option<()> {
        match encoding {
            OMITTED => Some(()),
            // DW_EH_PE_aligned: an absolute pointer at a multiple of its size.
            0x50 => {
                let padding = self.address.wrapping_neg() % 8;
                self.skip(padding.checked_add(8)?).map(|_| ())
            }
            _ => self.encoded(encoding).map(|_| ()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_size_and_sign() {
        let bytes = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        assert_eq!(Reader::new(&bytes).signed(2), Some(-1));
        assert_eq!(Reader::new(&bytes).signed(8), Some(i64::MAX));
        assert_eq!(Reader::new(&bytes).unsigned(4), Some(u64::from(u32::MAX)));
        assert_eq!(Reader::new(&bytes).signed(9), None);
        assert_eq!(Reader::new(&[0x80, 0x7f]).sleb(), Some(-128));
        assert_eq!(Reader::new(&[0xe5, 0x8e, 0x26]).uleb(), Some(624_485));
        assert_eq!(Reader::new(&[0x80; 40]).uleb(), None);
        let mut long = [0x80; 40];
        long[39] = 1;
        assert_eq!(Reader::new(&long).uleb(), Some(0));
    }

    #[test]
    fn pointers_know_where_they_stand() {
        let relative = |encoding| {
            let mut reader = Reader::at(&[9, 0xfc, 0xff, 0xff, 0xff, 0, 0, 0, 0], 0x1000);
            reader.skip(1).unwrap();
            reader.pointer(encoding, Bases { data: Some(0x500) })
        };
        assert_eq!(relative(0x1b), Some(0x0ffd));
        assert_eq!(relative(0x3b), Some(0x4fc));
        assert_eq!(relative(0x03), Some(0xffff_fffc));
        assert_eq!(relative(0x9b), None, "indirect");
        assert_eq!(relative(0xff), None, "omitted");
    }
}
