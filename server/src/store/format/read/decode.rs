//! The two encodings that the columns of `samples` have: codes of a dictionary, run-length encoded and bit-packed,
//! and differences of neighbours, bit-packed. As in
//! <https://parquet.apache.org/docs/file-format/data-pages/encodings/>. Pure; lengths are checked before anything is
//! allocated.

use crate::column::list::Code;
use crate::column::malformed::MalformedFile;

/// Reads bytes one after another.
struct Input<'a> {
    bytes: &'a [u8],
}

impl<'a> Input<'a> {
    fn byte(&mut self) -> Result<u8, MalformedFile> {
        let (first, rest) = self
            .bytes
            .split_first()
            .ok_or(MalformedFile::new("the page ends in the middle of a number"))?;
        self.bytes = rest;
        Ok(*first)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], MalformedFile> {
        if count > self.bytes.len() {
            return Err(MalformedFile::new("the page ends in the middle of a run"));
        }
        let (taken, rest) = self.bytes.split_at(count);
        self.bytes = rest;
        Ok(taken)
    }

    /// As many bytes, or what is left of them: writers may cut the padding of the last run.
    fn take_most(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.bytes.split_at(count.min(self.bytes.len()));
        self.bytes = rest;
        taken
    }

    /// ULEB128.
    fn varint(&mut self) -> Result<u64, MalformedFile> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(MalformedFile::new("a number has more than 64 bits"))
    }

    fn zigzag(&mut self) -> Result<i64, MalformedFile> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

/// Adds `count` numbers of `width` bits each, least significant bit first, as `each` makes them; bits behind the end
/// are zero. What follows the numbers may follow in `packed`: all but the last few are then read without a look at
/// where it ends.
fn unpack<T>(packed: &[u8], width: usize, count: usize, to: &mut Vec<T>, mut each: impl FnMut(u64) -> T) {
    let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
    // A number of up to 57 bits lies within the 8 bytes from the byte that it begins in.
    let wide = width > 57;
    let reach = if wide { 16 } else { 8 };
    // The numbers whose bytes can be read at once, without looking where the run ends: mostly all, which a division
    // need not find.
    let readable = packed.len().saturating_sub(reach) * 8;
    let safe = if count.saturating_mul(width) <= readable {
        count
    } else {
        readable.checked_div(width).map_or(count, |safe| safe.min(count))
    };
    let mut from = 0;
    if width == 0 {
        to.extend((0..count).map(|_| each(0)));
        from = count;
    } else if !wide {
        // An iterator that knows its length: the vector looks at its room once.
        to.extend((0..safe).map(|index| {
            let bit = index * width;
            let mut word = [0; 8];
            word.copy_from_slice(&packed[bit / 8..bit / 8 + 8]);
            each(u64::from_le_bytes(word) >> (bit % 8) & mask)
        }));
        from = safe;
    }
    to.extend((from..count).map(|index| {
        let bit = index * width;
        let mut word = [0; 16];
        let rest = packed.get(bit / 8..).unwrap_or_default();
        let have = rest.len().min(16);
        word[..have].copy_from_slice(&rest[..have]);
        each((u128::from_le_bytes(word) >> (bit % 8)) as u64 & mask)
    }));
}

/// Adds `count` codes of `WIDTH` bits each, at most eight: eight of them are as many bytes as one has bits.
fn unpack_eights<const WIDTH: usize, C: Code>(packed: &[u8], count: usize, to: &mut Vec<C>) {
    let begin = to.len();
    let whole = (count / 8).min(packed.len() / WIDTH);
    to.resize(begin + 8 * whole, C::default());
    let (eights, _) = to[begin..].as_chunks_mut::<8>();
    let (bytes, _) = packed.as_chunks::<WIDTH>();
    for (eight, bytes) in eights.iter_mut().zip(bytes) {
        let mut word = [0; 8];
        word[..WIDTH].copy_from_slice(bytes);
        let word = u64::from_le_bytes(word);
        for (index, code) in eight.iter_mut().enumerate() {
            *code = C::of((word >> (index * WIDTH)) as u32 & ((1 << WIDTH) - 1));
        }
    }
    let rest = &packed[whole * WIDTH..];
    unpack(rest, WIDTH, count - 8 * whole, to, |code| C::of(code as u32));
}

/// Runs of the hybrid of run-length encoding and bit-packing, `count` numbers of `width` bits.
fn hybrid<C: Code>(input: &mut Input<'_>, width: usize, count: usize, to: &mut Vec<C>) -> Result<(), MalformedFile> {
    if width > C::BITS {
        return Err(MalformedFile::new("codes have more than 32 bits"));
    }
    let end = to.len() + count;
    while to.len() < end {
        let header = input.varint()?;
        let left = end - to.len();
        if header & 1 == 0 {
            let run = usize::try_from(header >> 1).unwrap_or(usize::MAX).min(left);
            let mut word = [0; 4];
            let bytes = input.take(width.div_ceil(8))?;
            word[..bytes.len()].copy_from_slice(bytes);
            let number = u32::from_le_bytes(word);
            if run == 0 {
                return Err(MalformedFile::new("a run has no length"));
            }
            if width < 32 && number >> width != 0 {
                return Err(MalformedFile::new("a run's number has more bits than its page says"));
            }
            to.resize(to.len() + run, C::of(number));
        } else {
            let groups = usize::try_from(header >> 1).unwrap_or(usize::MAX);
            let rest = input.bytes;
            let packed = input.take_most(groups.saturating_mul(width));
            let run = groups.saturating_mul(8).min(left);
            if run == 0 || packed.len() < (run * width).div_ceil(8) {
                return Err(MalformedFile::new("the page ends in the middle of a run"));
            }
            match width {
                // Whole bytes, as our own files have wherever it pays: many at once.
                8 => to.extend(packed[..run].iter().map(|byte| C::of(u32::from(*byte)))),
                16 => to.extend(
                    packed[..2 * run]
                        .chunks_exact(2)
                        .map(|bytes| C::of(u32::from(u16::from_le_bytes([bytes[0], bytes[1]])))),
                ),
                // Few values, as of minutes and counts.
                1 => unpack_eights::<1, C>(packed, run, to),
                2 => unpack_eights::<2, C>(packed, run, to),
                3 => unpack_eights::<3, C>(packed, run, to),
                4 => unpack_eights::<4, C>(packed, run, to),
                5 => unpack_eights::<5, C>(packed, run, to),
                6 => unpack_eights::<6, C>(packed, run, to),
                7 => unpack_eights::<7, C>(packed, run, to),
                _ => unpack(rest, width, run, to, |code| C::of(code as u32)),
            }
        }
    }
    Ok(())
}

/// Levels of a column whose values may be absent: whether each row has one.
pub(crate) fn present(bytes: &[u8], rows: usize) -> Result<Vec<u32>, MalformedFile> {
    let mut levels = Vec::with_capacity(rows);
    hybrid(&mut Input { bytes }, 1, rows, &mut levels)?;
    Ok(levels)
}

/// Codes of a data page, each below `values`.
pub(crate) fn codes<C: Code>(bytes: &[u8], count: usize, values: usize, to: &mut Vec<C>) -> Result<(), MalformedFile> {
    if count == 0 {
        return Ok(());
    }
    let mut input = Input { bytes };
    let width = usize::from(input.byte()?);
    if width > C::BITS && C::BITS < u32::BITS as usize {
        // Written with more bits than its values need, as other programs do: they are looked at before they are cut.
        let mut wide: Vec<u32> = Vec::with_capacity(count);
        codes(bytes, count, values, &mut wide)?;
        to.extend(wide.into_iter().map(C::of));
        return Ok(());
    }
    let from = to.len();
    hybrid(&mut input, width, count, to)?;
    // Of so many bits none may be outside. Else all are looked at, without a stop at the first: so many at once.
    let all_fit = width < 32 && 1 << width <= values;
    let largest = || to[from..].iter().fold(C::default(), |largest, code| largest.max(*code));
    if !all_fit && largest().index() >= values {
        return Err(MalformedFile::new("a code is outside of its dictionary"));
    }
    Ok(())
}

/// `DELTA_BINARY_PACKED`.
pub(crate) fn deltas(bytes: &[u8], count: usize, to: &mut Vec<i64>) -> Result<(), MalformedFile> {
    let mut input = Input { bytes };
    let block = usize::try_from(input.varint()?).unwrap_or(usize::MAX);
    let parts = usize::try_from(input.varint()?).unwrap_or(usize::MAX);
    let total = input.varint()?;
    if total != count as u64 {
        return Err(MalformedFile::new("the page has another number of values than it says"));
    }
    if parts == 0 || block % parts != 0 || block / parts % 32 != 0 || block == 0 || block > 1 << 20 {
        return Err(MalformedFile::new(
            "the page's blocks have a size that the format does not allow",
        ));
    }
    let part = block / parts;
    let mut value = input.zigzag()?;
    if count == 0 {
        return Ok(());
    }
    to.push(value);
    let mut left = count - 1;
    while left > 0 {
        let least = input.zigzag()?;
        let widths = input.take(parts)?;
        for width in widths {
            if left == 0 {
                break;
            }
            let width = usize::from(*width);
            if width > 64 {
                return Err(MalformedFile::new("differences have more than 64 bits"));
            }
            let values = part.min(left);
            let rest = input.bytes;
            let packed = input.take_most(part / 8 * width);
            if packed.len() < (values * width).div_ceil(8) {
                return Err(MalformedFile::new("the page ends in the middle of a block"));
            }
            unpack(rest, width, values, to, |delta| {
                // In this order: only one of both sums waits for the number before.
                value = value.wrapping_add(least.wrapping_add(delta as i64));
                value
            });
            left -= values;
        }
    }
    Ok(())
}

/// Numbers of a dictionary page of 8 or 4 bytes each.
pub(crate) fn plain_numbers(bytes: &[u8], size: usize) -> Result<Vec<i64>, MalformedFile> {
    if !bytes.len().is_multiple_of(size) {
        return Err(MalformedFile::new("the dictionary ends in the middle of a number"));
    }
    // Of a size that the compiler knows: most are ids, hundreds of thousands.
    fn each<const SIZE: usize>(bytes: &[u8], number: impl Fn([u8; SIZE]) -> i64) -> Vec<i64> {
        bytes.as_chunks().0.iter().map(|bytes| number(*bytes)).collect()
    }
    Ok(match size {
        4 => each(bytes, |bytes| i64::from(i32::from_le_bytes(bytes))),
        _ => each(bytes, i64::from_le_bytes),
    })
}

/// Texts of a dictionary page.
pub(crate) fn plain_texts(bytes: &[u8]) -> Result<Vec<String>, MalformedFile> {
    let mut input = Input { bytes };
    let mut texts = Vec::new();
    while !input.bytes.is_empty() {
        let mut length = [0; 4];
        length.copy_from_slice(input.take(4)?);
        let text = input.take(u32::from_le_bytes(length) as usize)?;
        let text = std::str::from_utf8(text).map_err(|_| MalformedFile::new("a text is not UTF-8"))?;
        texts.push(text.to_owned());
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::format::write::bits::{self, Blocks};

    #[test]
    fn numbers_of_every_width_come_back() {
        for width in 0..=64_usize {
            let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
            let numbers: Vec<u64> = (0..77_u64)
                .map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask)
                .collect();
            let mut packed = vec![0_u8; (numbers.len() * width).div_ceil(8)];
            for (index, number) in numbers.iter().enumerate() {
                for bit in 0..width {
                    packed[(index * width + bit) / 8] |= ((number >> bit & 1) as u8) << ((index * width + bit) % 8);
                }
            }
            let mut back = Vec::new();
            unpack(&packed, width, numbers.len(), &mut back, |number| number);
            assert_eq!(back, numbers, "width {width}");
        }
    }

    #[test]
    fn runs_and_packed_groups_follow_each_other() {
        // 5 times 3; then eight codes of two bits; then 3 more than are wanted.
        let bytes = [2, 5 << 1, 3, 3, 0b11_10_01_00, 0b00_01_10_11, 4 << 1, 1];
        let mut back: Vec<u32> = Vec::new();
        codes(&bytes, 14, 4, &mut back).unwrap();
        assert_eq!(back, [3, 3, 3, 3, 3, 0, 1, 2, 3, 3, 2, 1, 0, 1]);
        let refused = |bytes: &[u8], values: usize| codes::<u8>(bytes, 14, values, &mut Vec::new()).is_err();
        assert!(refused(&bytes, 3), "a code beyond the dictionary");
        assert!(refused(&bytes[..4], 4), "cut short");
    }

    #[test]
    fn codes_of_whole_bytes_are_as_those_of_other_widths() {
        type Back = fn(&[u8], usize, usize) -> Option<Vec<u32>>;
        fn back<C: Code>(bytes: &[u8], count: usize, values: usize) -> Option<Vec<u32>> {
            let mut back: Vec<C> = Vec::new();
            codes(bytes, count, values, &mut back).ok()?;
            Some(back.into_iter().map(|code| code.index() as u32).collect())
        }
        for width in (1..=9_usize).chain([15, 16, 17, 24]) {
            // Also with more bits than the numbers have.
            for bits in [width.min(7), width] {
                let mask = (1_u64 << bits) - 1;
                let numbers: Vec<u32> = (0..80_u64)
                    .map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 & mask) as u32)
                    .collect();
                let mut bytes = vec![width as u8, (10 << 1) | 1];
                bytes.resize(2 + 10 * width, 0);
                for (index, number) in numbers.iter().enumerate() {
                    for bit in 0..width {
                        bytes[2 + (index * width + bit) / 8] |=
                            ((number >> bit & 1) as u8) << ((index * width + bit) % 8);
                    }
                }
                let largest = *numbers.iter().max().unwrap() as usize;
                let mut of_widths: Vec<Back> = vec![back::<u32>];
                if bits <= 16 {
                    of_widths.push(back::<u16>);
                }
                if bits <= 8 {
                    of_widths.push(back::<u8>);
                }
                for back in of_widths {
                    for count in [80, 79, 1] {
                        assert_eq!(
                            back(&bytes, count, 1 << bits).unwrap(),
                            numbers[..count],
                            "width {width}"
                        );
                    }
                    assert!(back(&bytes, 80, largest + 1).is_some());
                    assert!(back(&bytes, 80, largest).is_none(), "width {width}");
                    assert!(back(&bytes[..bytes.len() - 1], 80, 1 << width).is_none());
                }
            }
        }
        // A run of a number that has more bits than the page says, and a number that would be another one in a byte.
        assert!(back::<u8>(&[1, 5 << 1, 2], 5, 8).is_none());
        assert_eq!(back::<u8>(&[16, 5 << 1, 3, 0], 5, 8).unwrap(), [3; 5]);
        assert!(back::<u8>(&[16, 5 << 1, 3, 1], 5, 8).is_none());
    }

    #[test]
    fn any_bytes_are_an_error_or_numbers_but_never_more_than_asked_for() {
        let mut state = 0x5eed_u64;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u8
        };
        for length in 0..400 {
            let bytes: Vec<u8> = (0..length)
                .map(|_| if next() % 3 == 0 { next() } else { next() % 5 })
                .collect();
            let (mut a, mut b): (Vec<u8>, _) = (Vec::new(), Vec::new());
            if codes(&bytes, 100, 7, &mut a).is_ok() {
                assert_eq!(a.len(), 100);
            }
            if deltas(&bytes, 100, &mut b).is_ok() {
                assert_eq!(b.len(), 100);
            }
            assert!(a.len() <= 100 && b.len() <= 100);
            let _ = (plain_texts(&bytes), present(&bytes, 50));
        }
    }

    #[test]
    fn differences_of_all_widths_are_read_back_and_stand_in_the_smaller_blocks() {
        let mut state = 7_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state ^ state >> 33
        };
        let mut seen = [0; 2];
        for bits in 0..=u64::BITS {
            for count in [0, 1, 2, 33, 129, 1025, 5000] {
                // In every second page now and then a number is far from all others.
                let is_even = count % 2 == 0;
                let numbers = (0..count).map(|at| match random().checked_shr(u64::BITS - bits) {
                    Some(number) if is_even || at % 700 != 0 => number as i64,
                    Some(number) => (number as i64).wrapping_add(1 << 50),
                    None => at,
                });
                let numbers: Vec<i64> = numbers.collect();
                let lengths = [Blocks::Small, Blocks::Large].map(|blocks| {
                    let (mut bytes, mut read) = (Vec::new(), Vec::new());
                    bits::deltas(&numbers, blocks, &mut bytes);
                    deltas(&bytes, numbers.len(), &mut read).unwrap();
                    assert_eq!(read, numbers, "{bits} bits, {count} numbers");
                    bytes.len()
                });
                let large = Blocks::smallest(&numbers) == Blocks::Large;
                assert_eq!(
                    large,
                    lengths[1] < lengths[0],
                    "{bits} bits, {count} numbers: {lengths:?}"
                );
                seen[usize::from(large)] += 1;
            }
        }
        assert!(seen.iter().all(|seen| *seen > 20), "{seen:?}");
    }
}
