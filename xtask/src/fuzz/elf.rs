//! Sections of this machine's ELF files, and a Go program's table of functions cut down to a few of them.

use anyhow::{Context, Result, ensure};

/// A little-endian number.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(size)?)?;
    let value = bytes
        .iter()
        .rev()
        .fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    usize::try_from(value).ok()
}

/// The content of a section of a 64-bit little-endian file.
pub(super) fn section<'a>(file: &'a [u8], name: &str) -> Option<&'a [u8]> {
    const HEADER_BYTES: usize = 64;
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, count, names) = (number(file, 40, 8)?, number(file, 60, 2)?, number(file, 62, 2)?);
    let content = |index: usize| {
        let header = file.get(table.checked_add(index * HEADER_BYTES)?..)?;
        let (at, bytes) = (number(header, 24, 8)?, number(header, 32, 8)?);
        file.get(at..at.checked_add(bytes)?)
    };
    let names = content(names)?;
    let is_wanted = |index: &usize| {
        let at = number(file, table + index * HEADER_BYTES, 4);
        let found = at.and_then(|at| names.get(at..));
        found.is_some_and(|found| found.split(|byte| *byte == 0).next() == Some(name.as_bytes()))
    };
    content((0..count).find(is_wanted)?)
}

/// Where each part begins in the header of Go 1.18 and newer, in words behind the first eight bytes: the number of
/// functions, where the code begins, and then the parts in the order in which they lie.
const FUNCTIONS: usize = 8;
const TEXT: usize = 24;
const PARTS: [usize; 5] = [32, 40, 48, 56, 64];
const HEADER_BYTES: usize = 72;
/// Of a function's record with what follows it.
const RECORD_BYTES: usize = 96;
/// Bytes of names and of each other part that the first few functions refer to.
const PART_BYTES: usize = 2048;

/// The first functions of pclntab, with its code said to begin at `text`. What they name further back is missing,
/// which a fuzzer's first step may well be.
pub(super) fn cut_pclntab(table: &[u8], functions: usize, text: u64) -> Result<Vec<u8>> {
    ensure!(
        table.get(..8).is_some_and(|magic| magic[1..4] == [0xff; 3]),
        "no table of Go 1.18 or newer"
    );
    let part = |index: usize| number(table, PARTS[index], 8).context("the table ends in its header");
    let functab = part(4)?;
    let mut cut = table
        .get(..HEADER_BYTES)
        .context("the table ends in its header")?
        .to_vec();
    cut[FUNCTIONS..FUNCTIONS + 8].copy_from_slice(&(functions as u64).to_le_bytes());
    cut[TEXT..TEXT + 8].copy_from_slice(&text.to_le_bytes());
    for index in 0..4 {
        let (begin, end) = (part(index)?, part(index + 1)?);
        let at = cut.len() as u64;
        cut[PARTS[index]..PARTS[index] + 8].copy_from_slice(&at.to_le_bytes());
        let bytes = table.get(begin..end).context("the table's parts are out of order")?;
        cut.extend(&bytes[..bytes.len().min(PART_BYTES)]);
        cut.resize(cut.len().next_multiple_of(8), 0);
    }
    let at = cut.len() as u64;
    cut[PARTS[4]..PARTS[4] + 8].copy_from_slice(&at.to_le_bytes());
    // For each function where its code begins and where its record stands, counted from this list's start; then the
    // end.
    let list_bytes = functions * 8 + 4;
    let mut records: Vec<u8> = vec![];
    for index in 0..=functions {
        let entry = functab + index * 8;
        cut.extend(table.get(entry..entry + 4).context("the table has fewer functions")?);
        if index < functions {
            let old = functab + number(table, entry + 4, 4).context("the table has fewer functions")?;
            let new = (list_bytes + records.len()) as u32;
            cut.extend(new.to_le_bytes());
            let record = table.get(old..).context("a record lies outside")?;
            records.extend(&record[..record.len().min(RECORD_BYTES)]);
        }
    }
    cut.extend(records);
    Ok(cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_its_sections() {
        let file = std::fs::read("/proc/self/exe").unwrap();
        assert!(section(&file, ".text").is_some_and(|text| text.len() > 4096));
        assert_eq!(section(&file, ".none"), None);
        assert_eq!(section(b"#!/bin/sh", ".text"), None);
    }

    #[test]
    fn a_cut_table_keeps_its_first_functions() {
        let mut table = vec![0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8];
        for word in [3, 1, 0x40_1000, 72, 80, 88, 96, 104u64] {
            table.extend(word.to_le_bytes());
        }
        table.extend(*b"a\0b\0c\0\0\0unitunitfilefiledeltadel");
        // Three functions, their records behind the list.
        for (begin, record) in [(0u32, 28u32), (16, 32), (32, 36)] {
            table.extend(begin.to_le_bytes());
            table.extend(record.to_le_bytes());
        }
        table.extend(48u32.to_le_bytes());
        table.extend(*b"rec0rec1rec2");
        let cut = cut_pclntab(&table, 2, 0x1_0200).unwrap();
        assert_eq!(
            (number(&cut, FUNCTIONS, 8), number(&cut, TEXT, 8)),
            (Some(2), Some(0x1_0200))
        );
        let functab = number(&cut, PARTS[4], 8).unwrap();
        assert_eq!(&cut[72..functab], &table[72..104]);
        assert_eq!(
            (number(&cut, functab + 8, 4), number(&cut, functab + 16, 4)),
            (Some(16), Some(32))
        );
        let record = |index: usize| functab + number(&cut, functab + index * 8 + 4, 4).unwrap();
        assert_eq!(
            (&cut[record(0)..record(0) + 4], &cut[record(1)..record(1) + 4]),
            (&b"rec0"[..], &b"rec1"[..])
        );
        assert!(cut_pclntab(&table, 4, 0).is_err());
    }
}
