//! Numbers of one to five bytes, as in debug information and line tables (UNSIGNED5, compressedStream.hpp and, since
//! JDK 20, unsigned5.hpp).

/// Which of two forms a VM writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Until JDK 19: bytes below 192 end a number.
    Plain,
    /// Since JDK 20: the same with each byte one higher, so that none is zero.
    NoZero,
}

impl Encoding {
    /// The other one.
    pub(super) fn other(self) -> Self {
        match self {
            Encoding::Plain => Encoding::NoZero,
            Encoding::NoZero => Encoding::Plain,
        }
    }

    /// How much is taken off each byte.
    fn excluded(self) -> u8 {
        match self {
            Encoding::Plain => 0,
            Encoding::NoZero => 1,
        }
    }
}

/// The number that bytes begin with, and how many bytes it has. None where they end before it, or have a byte that
/// the form excludes.
pub(super) fn unsigned(bytes: &[u8], encoding: Encoding) -> Option<(u32, usize)> {
    const MAX_BYTES: usize = 5;
    /// Bits of each byte but the last.
    const BITS: usize = 6;
    /// Bytes from here on have others behind them.
    const HIGH: u8 = 192;
    let mut sum = 0u32;
    for (index, byte) in bytes.iter().enumerate().take(MAX_BYTES) {
        let digit = u32::from(byte.checked_sub(encoding.excluded())?);
        sum = sum.wrapping_add(digit << (BITS * index));
        if *byte < HIGH || index == MAX_BYTES - 1 {
            return Some((sum, index + 1));
        }
    }
    None
}

/// The same of a number whose lowest bit is its sign.
pub(super) fn signed(bytes: &[u8], encoding: Encoding) -> Option<(i32, usize)> {
    let (value, length) = unsigned(bytes, encoding)?;
    let magnitude = (value >> 1).cast_signed();
    Some((if value & 1 == 0 { magnitude } else { !magnitude }, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_numbers_end_below_192() {
        let plain = |bytes: &[u8]| unsigned(bytes, Encoding::Plain);
        assert_eq!(plain(&[0]), Some((0, 1)));
        assert_eq!(plain(&[191, 7]), Some((191, 1)));
        assert_eq!(plain(&[192, 0]), Some((192, 2)));
        assert_eq!(plain(&[193, 1]), Some((193 + 64, 2)));
        assert_eq!(plain(&[255, 191]), Some((255 + (191 << 6), 2)));
        // -1, which takes all five bytes whatever the last one is.
        assert_eq!(plain(&[255, 252, 252, 252, 252, 9]), Some((u32::MAX, 5)));
    }

    #[test]
    fn later_numbers_have_no_zero() {
        let later = |bytes: &[u8]| unsigned(bytes, Encoding::NoZero);
        assert_eq!(later(&[1]), Some((0, 1)));
        assert_eq!(later(&[191]), Some((190, 1)));
        assert_eq!(later(&[192, 1]), Some((191, 2)));
        // The largest of two bytes, as the format's description has it.
        assert_eq!(later(&[255, 191]), Some((0x307e, 2)));
        assert_eq!(later(&[0]), None);
        assert_eq!(later(&[192, 0]), None);
    }

    #[test]
    fn cut_numbers_are_none() {
        for encoding in [Encoding::Plain, Encoding::NoZero] {
            assert_eq!(unsigned(&[], encoding), None);
            assert_eq!(unsigned(&[200, 200, 200, 200], encoding), None);
        }
    }

    #[test]
    fn the_lowest_bit_is_the_sign() {
        let values = [0, 1, 2, 3, 4].map(|byte| signed(&[byte], Encoding::Plain));
        assert_eq!(values, [0, -1, 1, -2, 2].map(|value| Some((value, 1))));
        assert_eq!(signed(&[255, 252, 252, 252, 252], Encoding::Plain), Some((i32::MIN, 5)));
    }
}
