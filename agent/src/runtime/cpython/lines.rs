//! Lines of instructions, in the three forms that code objects have had: steps (lnotab_notes.txt of 3.9), ranges (that
//! of 3.10, PEP 626) and locations (locations.md of 3.11, PEP 657).

use super::offsets::LineForm;

/// Until 3.10 tables count bytes.
const UNIT_BYTES: u64 = 2;

/// The line of an instruction, whose offset is in code units; 0 where it has none.
pub(super) fn line(table: &[u8], form: LineForm, first_line: u32, instruction: u32) -> u32 {
    let (first, at) = (i64::from(first_line), u64::from(instruction));
    let line = match form {
        LineForm::Steps => Some(by_steps(table, first, at * UNIT_BYTES)),
        LineForm::Ranges => by_ranges(table, first, at * UNIT_BYTES),
        LineForm::Locations => by_locations(table, first, at),
    };
    line.and_then(|line| u32::try_from(line).ok()).unwrap_or(0)
}

/// Pairs: bytes from one line's begin to the next one's, and lines between them.
fn by_steps(table: &[u8], first_line: i64, at: u64) -> i64 {
    let (mut begin, mut line) = (0, first_line);
    for pair in table.chunks_exact(2) {
        begin += u64::from(pair[0]);
        if begin > at {
            break;
        }
        line += i64::from(pair[1].cast_signed());
    }
    line
}

/// Pairs: bytes of a range, and lines from the last range with a line to this one.
fn by_ranges(table: &[u8], first_line: i64, at: u64) -> Option<i64> {
    /// The range has no line.
    const NONE: i8 = -128;
    let (mut end, mut line) = (0, first_line);
    for pair in table.chunks_exact(2) {
        let step = pair[1].cast_signed();
        if step != NONE {
            line += i64::from(step);
        }
        end += u64::from(pair[0]);
        if at < end {
            return (step != NONE).then_some(line);
        }
    }
    None
}

/// Entries, each for some instructions: the first byte has its highest bit set and says what follows.
fn by_locations(table: &[u8], first_line: i64, at: u64) -> Option<i64> {
    const BEGINS: u8 = 1 << 7;
    // Bits 3 to 6 of the first byte.
    const NEXT_LINE: u8 = 11;
    const LINE_AFTER: u8 = 12;
    const NO_COLUMNS: u8 = 13;
    const LONG: u8 = 14;
    const NONE: u8 = 15;
    let (mut end, mut line) = (0, first_line);
    let mut rest = table;
    while let Some((first, behind)) = rest.split_first() {
        if first & BEGINS == 0 {
            return None;
        }
        let kind = first >> 3 & 15;
        line += match kind {
            NO_COLUMNS | LONG => signed(behind)?,
            NEXT_LINE => 1,
            LINE_AFTER => 2,
            _ => 0,
        };
        end += u64::from(first & 7) + 1;
        if at < end {
            return (kind != NONE).then_some(line);
        }
        let next = behind.iter().position(|byte| byte & BEGINS != 0)?;
        rest = &behind[next..];
    }
    None
}

/// A number of six bits a byte, lowest first, whose lowest bit is its sign.
fn signed(bytes: &[u8]) -> Option<i64> {
    const MORE: u8 = 1 << 6;
    /// As many hold all lines.
    const MAX_BYTES: usize = 6;
    let mut value = 0u64;
    for (index, byte) in bytes.iter().take(MAX_BYTES).enumerate() {
        value |= u64::from(byte & (MORE - 1)) << (6 * index);
        if byte & MORE == 0 {
            let size = (value >> 1).cast_signed();
            return Some(if value & 1 == 1 { -size } else { size });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    // What CPython 3.9.18, 3.10.13 and 3.11.7 made of one function, whose lines lie far from each other and go back. It
    // begins at line 1.
    const STEPS: [u8; 26] = [
        0, 1, 2, 1, 2, 255, 4, 127, 0, 15, 8, 2, 2, 1, 2, 254, 6, 3, 2, 1, 4, 2, 6, 254, 2, 2,
    ];
    const RANGES: [u8; 22] = [2, 1, 2, 1, 4, 255, 0, 127, 8, 15, 2, 2, 2, 1, 6, 254, 2, 3, 4, 1, 16, 2];
    const LOCATIONS: [u8; 76] = [
        128, 0, 216, 9, 10, 216, 9, 10, 241, 3, 1, 10, 11, 128, 65, 240, 92, 4, 0, 14, 15, 240, 0, 3, 5, 13, 240, 0, 3,
        5, 13, 136, 1, 224, 10, 11, 216, 10, 11, 240, 5, 2, 13, 13, 136, 1, 136, 1, 240, 6, 3, 5, 12, 216, 15, 16, 224,
        8, 9, 136, 1, 137, 3, 140, 3, 136, 3, 136, 3, 248, 136, 1, 136, 1, 137, 3,
    ];

    /// Each instruction from which on there is another line, and that.
    fn changes(table: &[u8], form: LineForm, instructions: u32) -> Vec<(u32, u32)> {
        let mut lines: Vec<(u32, u32)> = (0..instructions)
            .map(|instruction| (instruction, line(table, form, 1, instruction)))
            .collect();
        lines.dedup_by_key(|(_, line)| *line);
        lines
    }

    #[test]
    fn steps_lead_to_lines() {
        let expected = [
            (0, 2),
            (1, 3),
            (2, 2),
            (4, 144),
            (8, 146),
            (9, 147),
            (10, 145),
            (13, 148),
            (14, 149),
            (16, 151),
            (19, 149),
            (20, 151),
        ];
        assert_eq!(changes(&STEPS, LineForm::Steps, 26), expected);
    }

    #[test]
    fn ranges_have_lines() {
        let expected = [
            (0, 2),
            (1, 3),
            (2, 2),
            (4, 144),
            (8, 146),
            (9, 147),
            (10, 145),
            (13, 148),
            (14, 149),
            (16, 151),
            (24, 0),
        ];
        assert_eq!(changes(&RANGES, LineForm::Ranges, 26), expected);
    }

    #[test]
    fn a_range_may_have_no_line() {
        // Two instructions at line 5, one at none, one at line 6.
        let table = [4, 4, 2, 128, 2, 1];
        assert_eq!(changes(&table, LineForm::Ranges, 4), [(0, 5), (2, 0), (3, 6)]);
    }

    #[test]
    fn locations_have_lines() {
        let expected = [
            (0, 1),
            (1, 2),
            (2, 3),
            (3, 2),
            (6, 144),
            (10, 146),
            (11, 147),
            (12, 145),
            (15, 148),
            (16, 149),
            (17, 151),
            (28, 0),
            (29, 151),
        ];
        assert_eq!(changes(&LOCATIONS, LineForm::Locations, 31), expected);
    }

    #[test]
    fn numbers_of_locations_take_several_bytes() {
        // No columns, one instruction: 20,000 lines on, then 20,001 back.
        let table = [0xe8, 0x40, 0x71, 0x09, 0xe8, 0x43, 0x71, 0x09];
        assert_eq!(changes(&table, LineForm::Locations, 2), [(0, 20_001), (1, 0)]);
        // Without an end, or longer than any line needs.
        assert_eq!(line(&[0xe8, 0x40], LineForm::Locations, 1, 0), 0);
        assert_eq!(
            line(
                &[0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f],
                LineForm::Locations,
                1,
                0
            ),
            0
        );
    }

    #[test]
    fn tables_that_end_early_have_no_line() {
        assert_eq!(line(&[], LineForm::Steps, 7, 3), 7);
        assert_eq!(line(&[], LineForm::Ranges, 7, 3), 0);
        assert_eq!(line(&[], LineForm::Locations, 7, 3), 0);
        assert_eq!(line(&[0, 0, 0], LineForm::Locations, 7, 0), 0);
        // Far below line 0.
        assert_eq!(line(&[0, 128, 0, 128], LineForm::Steps, 7, 3), 0);
    }
}
