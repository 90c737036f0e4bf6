//! Tables that lead from a place in code to one in its source, or in its bytecodes.

/// Numbers that a table may have.
const MAX_ENTRIES: usize = 1 << 18;
const OFFSET_BITS: u32 = 30;
const INLINING_BITS: u32 = 16;

/// A place in a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    /// Number of the character; none where it is in no script.
    pub(super) offset: Option<u32>,
    /// Which of the functions that were inlined it is in, if it is in one.
    pub(super) inlining: Option<u16>,
}

impl Position {
    pub(super) fn of(value: u64) -> Self {
        let is_external = value & 1 == 1;
        // Both are one more than the number.
        let offset = (value >> 1 & ((1 << OFFSET_BITS) - 1)).checked_sub(1);
        let inlining = (value >> (1 + OFFSET_BITS) & ((1 << INLINING_BITS) - 1)).checked_sub(1);
        Self {
            offset: offset.filter(|_| !is_external).map(|offset| offset as u32),
            inlining: inlining.map(|number| number as u16),
        }
    }
}

/// A number in groups of seven bits, the lowest first.
fn unsigned(bytes: &mut std::slice::Iter<'_, u8>) -> Option<u64> {
    let (mut value, mut shift) = (0_u64, 0);
    loop {
        let byte = *bytes.next()?;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        shift += 7;
    }
}

/// The same with its sign in the lowest bit.
fn signed(bytes: &mut std::slice::Iter<'_, u8>) -> Option<i64> {
    let value = unsigned(bytes)?;
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}

/// How a table tells steps of statements from those of expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Steps {
    /// By the sign.
    Signed,
    /// By the lowest bit.
    Flagged,
}

/// The last position that a table has for an offset, or for one before it.
pub(super) fn position_at(table: &[u8], steps: Steps, offset: u64) -> Option<Position> {
    let mut bytes = table.iter();
    let (mut at, mut position, mut found) = (-1_i64, 0_i64, None);
    for _ in 0..MAX_ENTRIES {
        let (Some(step), Some(change)) = (signed(&mut bytes), signed(&mut bytes)) else {
            break;
        };
        let step = match steps {
            Steps::Flagged => step >> 1,
            // Of an expression: the number without its sign, less one.
            Steps::Signed if step < 0 => -1 - step,
            Steps::Signed => step,
        };
        at = at.checked_add(step)?;
        position = position.checked_add(change)?;
        if u64::try_from(at).is_ok_and(|at| at > offset) {
            break;
        }
        found = Some(Position::of(position.cast_unsigned()));
    }
    found
}

/// How long bytecodes are: of each, as it is, behind a prefix that makes its operands twice, and four times as large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) of_scales: [Vec<u8>; 3],
}

/// What makes the operands of the next bytecode larger.
const PREFIXES: [(u8, usize); 4] = [(0, 1), (1, 2), (2, 1), (3, 2)];

impl Sizes {
    /// Of the bytecode that begins there, with its prefix.
    fn of(&self, bytecodes: &[u8], at: usize) -> Option<usize> {
        let first = *bytecodes.get(at)?;
        let prefix = PREFIXES.iter().find(|(prefix, _)| *prefix == first);
        let (code, scale, before) = match prefix {
            Some((_, scale)) => (*bytecodes.get(at + 1)?, *scale, 1),
            None => (first, 0, 0),
        };
        let size = *self.of_scales[scale].get(usize::from(code))?;
        (size > 0).then_some(before + usize::from(size))
    }
}

/// Which bytecode an offset belongs to in code that was made of them one by one: the table has how many bytes each was
/// made into, behind those of the function's begin.
pub(super) fn bytecode_at(table: &[u8], bytecodes: &[u8], sizes: &Sizes, offset: u64) -> Option<u64> {
    let mut bytes = table.iter();
    let mut end = unsigned(&mut bytes)?;
    let (mut current, mut next) = (0, 0);
    while end < offset {
        current = next;
        end = end.checked_add(unsigned(&mut bytes)?)?;
        next += sizes.of(bytecodes, current)?;
    }
    Some(current as u64)
}

#[cfg(any(test, fuzzing))]
fn put(to: &mut Vec<u8>, value: i64) {
    let mut rest = (value << 1 ^ value >> 63).cast_unsigned();
    while rest > 0x7f {
        to.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    to.push(rest as u8);
}

/// A table of offsets and positions.
#[cfg(any(test, fuzzing))]
pub(super) fn made(steps: Steps, entries: &[(i64, i64)]) -> Vec<u8> {
    let (mut table, mut before) = (Vec::new(), (-1, 0));
    for (number_of, (at, position)) in entries.iter().enumerate() {
        let step = at - before.0;
        let is_statement = number_of % 2 == 0;
        let step = match steps {
            Steps::Flagged => step << 1 | i64::from(is_statement),
            Steps::Signed if !is_statement => -1 - step,
            Steps::Signed => step,
        };
        put(&mut table, step);
        put(&mut table, position - before.1);
        before = (*at, *position);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_hold_until_the_next_one() {
        let value = |offset: i64, inlining: i64| (offset + 1) << 1 | (inlining + 1) << 31;
        let entries = [(0, value(458, -1)), (10, value(460, -1)), (300, value(44, 1)), (301, 1)];
        for steps in [Steps::Signed, Steps::Flagged] {
            let table = made(steps, &entries);
            let at = |offset| position_at(&table, steps, offset).map(|found| (found.offset, found.inlining));
            assert_eq!([0, 9].map(at), [Some((Some(458), None)); 2]);
            assert_eq!([10, 299].map(at), [Some((Some(460), None)); 2]);
            assert_eq!(at(300), Some((Some(44), Some(1))));
            // External.
            assert_eq!(at(301), Some((None, None)));
            assert_eq!(position_at(&table[..1], steps, 3), None);
            for nothing in [&[][..], &[0xff; 40]] {
                assert_eq!(position_at(nothing, steps, 3), None);
            }
        }
    }

    /// As V8 10.2 made it of `return helper(n) + sh.area(2)`.
    #[test]
    fn a_table_of_v8_begins_at_the_function() {
        let found = position_at(&[0x03, 0xac, 0x0e], Steps::Signed, 0).unwrap();
        assert_eq!((found.offset, found.inlining), (Some(458), None));
    }

    #[test]
    fn bytes_belong_to_the_bytecode_that_they_were_made_of() {
        let sizes = Sizes {
            of_scales: [
                vec![1, 1, 1, 1, 1, 2, 3],
                vec![1, 1, 1, 1, 1, 3, 5],
                vec![1, 1, 1, 1, 1, 5, 9],
            ],
        };
        let bytecodes = [5, 0, 0, 6, 0, 0, 0, 0, 4];
        let table = [17, 47, 0x80 | 5, 1, 9];
        let at = |offset| bytecode_at(&table, &bytecodes, &sizes, offset);
        assert_eq!([0, 17, 18, 64].map(at), [Some(0); 4]);
        assert_eq!([65, 197].map(at), [Some(2); 2]);
        assert_eq!([198, 206].map(at), [Some(8); 2]);
        assert_eq!(at(207), None);
    }
}
