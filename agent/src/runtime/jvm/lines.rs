//! Lines of bytecodes, as a VM keeps them behind each method's bytecodes (`CompressedLineNumberReadStream` of
//! method.cpp).

use super::numbers::{Encoding, signed};

/// What a piece of a table's begin tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// The line of the bytecode; None where no line begins at it or before.
    Line(Option<u32>),
    /// The answer lies behind the piece.
    Cut,
}

/// The line of the bytecode at an index.
pub(super) fn line(table: &[u8], encoding: Encoding, bci: u32) -> Answer {
    /// Two numbers follow where a byte can't hold the steps.
    const LONG: u8 = 0xff;
    /// Bits of a byte that are its step of lines.
    const LINE_BITS: u32 = 3;
    let mut rest = table;
    let (mut at, mut line) = (0i64, 0i64);
    // The lines need not come in the order of the bytecodes.
    let mut best: Option<(i64, i64)> = None;
    let bci = i64::from(bci);
    loop {
        let Some((first, behind)) = rest.split_first() else {
            return Answer::Cut;
        };
        rest = behind;
        match *first {
            0 => return Answer::Line(best.and_then(|(_, line)| u32::try_from(line).ok())),
            LONG => {
                let mut step = || {
                    let (value, length) = signed(rest, encoding)?;
                    rest = rest.get(length..)?;
                    Some(i64::from(value))
                };
                let (Some(bytecodes), Some(lines)) = (step(), step()) else {
                    return if rest.len() < 10 {
                        Answer::Cut
                    } else {
                        Answer::Line(None)
                    };
                };
                at = at.saturating_add(bytecodes);
                line = line.saturating_add(lines);
            }
            short => {
                at = at.saturating_add(i64::from(short >> LINE_BITS));
                line = line.saturating_add(i64::from(short & ((1 << LINE_BITS) - 1)));
            }
        }
        if at == bci {
            return Answer::Line(u32::try_from(line).ok());
        }
        if at < bci && best.is_none_or(|(best, _)| best <= at) {
            best = Some((at, line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytecode 0 at line 12, 5 at 13, 8 at 300, 20 at 299.
    fn table(encoding: Encoding) -> Vec<u8> {
        let long = |bytes: &[u8]| {
            let of = |byte: &u8| byte + u8::from(encoding == Encoding::NoZero);
            bytes.iter().map(of).collect::<Vec<u8>>()
        };
        let mut table = vec![0xff];
        // 0 and 24: signs are the lowest bits.
        table.extend(long(&[0, 24]));
        table.push(5 << 3 | 1);
        table.push(0xff);
        // 3 and 287 doubled: 574 is 192 + 62 with (574 - 254) / 64 = 5 in the next byte; in the form without zeros each
        // byte holds one less, so that 191 + 63 is followed by the same.
        table.extend(long(&[6]));
        table.extend(match encoding {
            Encoding::Plain => [254, 5],
            Encoding::NoZero => [255, 6],
        });
        table.push(0xff);
        table.extend(long(&[24, 1]));
        table.push(0);
        table
    }

    #[test]
    fn lines_begin_at_bytecodes() {
        for encoding in [Encoding::Plain, Encoding::NoZero] {
            let table = table(encoding);
            let line = |bci| line(&table, encoding, bci);
            let lines = [0, 4, 5, 7, 8, 19, 20, 1000].map(line);
            let expected = [12, 12, 13, 13, 300, 300, 299, 299];
            assert_eq!(lines, expected.map(|line| Answer::Line(Some(line))), "{encoding:?}");
        }
    }

    #[test]
    fn what_lies_before_the_first_line_has_none() {
        // Bytecode 2 at line 3.
        assert_eq!(line(&[2 << 3 | 3, 0], Encoding::Plain, 1), Answer::Line(None));
        assert_eq!(line(&[0], Encoding::Plain, 0), Answer::Line(None));
    }

    #[test]
    fn lines_out_of_order_take_the_nearest_before() {
        // Bytecode 10 at line 4, then 2 at line 9.
        let table = [10 << 3 | 4, 0xff, 15, 10, 0];
        let line = |bci| line(&table, Encoding::Plain, bci);
        assert_eq!(
            [2, 5, 10, 11].map(line),
            [9, 9, 4, 4].map(|line| Answer::Line(Some(line)))
        );
    }

    #[test]
    fn a_cut_table_says_so() {
        let whole = table(Encoding::Plain);
        for end in 0..whole.len() {
            assert_eq!(line(&whole[..end], Encoding::Plain, 1000), Answer::Cut, "{end}");
        }
        assert_eq!(line(&[0x08; 5000], Encoding::Plain, 60_000), Answer::Cut);
    }

    #[test]
    fn lines_below_zero_are_none() {
        assert_eq!(line(&[0xff, 0, 1, 0], Encoding::Plain, 0), Answer::Line(None));
    }
}
