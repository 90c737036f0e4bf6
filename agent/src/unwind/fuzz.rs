//! What holds of tables, whatever file they come from.

use std::cell::Cell;

use super::{CHUNK_BYTES, FileTable, Rule, TableError, compile};
use crate::elf::read_from;
use crate::fuzz::{Input, made, with_section};

/// As many as the agent gives a large program.
const ROW_LIMIT: usize = 1_000_000;
/// Rows of one table that are looked up.
const LOOKED_UP: usize = 4096;
const COMPRESSED: u64 = 0x800;

/// A whole file.
pub(crate) fn table(bytes: &[u8]) {
    let read_bytes = Cell::new(0usize);
    let read = |offset: u64, into: &mut [u8]| {
        read_bytes.set(read_bytes.get().saturating_add(into.len()));
        read_from(bytes, offset, into)
    };
    let result = compile(read, ROW_LIMIT);
    let most = 64 * bytes.len() + (64 << 20);
    assert!(
        read_bytes.get() < most,
        "{} bytes read of {}",
        read_bytes.get(),
        bytes.len()
    );
    match result {
        Ok(table) => check(&table),
        Err(error) => assert_ne!(error, TableError::TooManyRows { limit: 0 }),
    }
}

/// The content of .eh_frame or .debug_frame behind one byte that says which, for which machine, and whether it is
/// compressed.
pub(crate) fn frames(bytes: &[u8]) {
    let mut input = Input(bytes);
    let kind = input.byte();
    let machine = if kind & 1 == 0 { made::X86_64 } else { made::ARM64 };
    let (name, flags) = match kind >> 1 & 3 {
        0 | 1 => (".eh_frame", 0),
        2 => (".debug_frame", 0),
        _ => (".debug_frame", COMPRESSED),
    };
    table(&with_section(machine, name, flags, input.0));
}

/// The content of Go's pclntab behind one byte that says for which machine.
pub(crate) fn pclntab(bytes: &[u8]) {
    let mut input = Input(bytes);
    let machine = if input.byte() & 1 == 0 {
        made::X86_64
    } else {
        made::ARM64
    };
    let file = with_section(machine, ".gopclntab", 0, input.0);
    table(&file);
    crate::symbolize::fuzz::go(&file);
}

/// What the kernel side relies on: rows that ascend in chunks that follow one another, and no number without its rule.
fn check(table: &FileTable) {
    assert_eq!(table.base % CHUNK_BYTES, 0);
    assert!(table.rows.len() <= ROW_LIMIT);
    assert_eq!(table.rules.first(), Some(&Rule::UNKNOWN));
    assert_eq!(table.chunks.first(), Some(&0));
    assert_eq!(table.chunks.last().copied(), u32::try_from(table.rows.len()).ok());
    let mut looked_up = 0;
    for (number, ends) in table.chunks.windows(2).enumerate() {
        let (first, last) = (ends[0] as usize, ends[1] as usize);
        let rows = table.rows.get(first..last).expect("chunks ascend");
        assert!(rows.is_sorted_by(|one, next| one.offset < next.offset));
        assert!(rows.first().is_none_or(|row| row.offset == 0));
        let base = table.base + number as u64 * CHUNK_BYTES;
        for (index, row) in rows.iter().enumerate() {
            let rule = table.rules[usize::from(row.rule)];
            looked_up += 1;
            if looked_up <= LOOKED_UP {
                let next = rows.get(index + 1).map_or(CHUNK_BYTES, |next| u64::from(next.offset));
                assert_eq!(table.rule_at(base + u64::from(row.offset)), rule);
                assert_eq!(table.rule_at(base + next - 1), rule);
            }
        }
    }
    for outside in [0, table.base.wrapping_sub(1), u64::MAX] {
        if !(table.base..table.base + table.chunks.len() as u64 * CHUNK_BYTES).contains(&outside) {
            assert_eq!(table.rule_at(outside), Rule::UNKNOWN);
        }
    }
}
