//! Damaged files: no panic, and no more work than the file's size asks for.

use std::cell::Cell;

use stakeout_agent::unwind::compile;

use super::oracle::Elf;
use crate::damage::Numbers;

/// Compiles damaged bytes; fails where more is read than a few times the file.
fn compile_bounded(bytes: &[u8], what: &str) {
    let read = Cell::new(0usize);
    let result = compile(
        |offset, into| {
            read.set(read.get() + into.len());
            let begin = usize::try_from(offset).unwrap_or(usize::MAX);
            let part = begin.checked_add(into.len()).and_then(|end| bytes.get(begin..end));
            part.is_some_and(|part| {
                into.copy_from_slice(part);
                true
            })
        },
        1_000_000,
    );
    let most = 64 * bytes.len() + (64 << 20);
    assert!(read.get() < most, "{what}: {} bytes read", read.get());
    if let Ok(table) = result {
        assert_eq!(
            table.chunks.last().copied(),
            u32::try_from(table.rows.len()).ok(),
            "{what}"
        );
        assert!(table.chunks.is_sorted(), "{what}");
        assert!(
            table.rows.iter().all(|row| usize::from(row.rule) < table.rules.len()),
            "{what}"
        );
        table.rule_at(u64::MAX);
        table.rule_at(table.base);
    }
}

/// Damages some bytes in a range of the file and compiles it, some times.
fn damage(original: &[u8], range: std::ops::Range<usize>, rounds: usize, what: &str) {
    let mut numbers = Numbers::new(original.len());
    for round in 0..rounds {
        compile_bounded(&numbers.damage(original, &range, 40), &format!("{what}, round {round}"));
    }
}

fn position_of(bytes: &[u8], name: &str) -> Option<std::ops::Range<usize>> {
    let section = Elf::new(bytes).section(name)?;
    let begin = bytes
        .windows(section.bytes.len())
        .position(|part| part == section.bytes)?;
    Some(begin..begin + section.bytes.len())
}

/// The loader is small and has everything: segments, sections, expressions.
fn loader() -> Option<Vec<u8>> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    std::fs::read(paths.find(|path| path.contains("ld-linux"))?).ok()
}

#[test]
fn damaged_frames_do_no_harm() {
    let Some(bytes) = loader() else { return };
    let range = position_of(&bytes, ".eh_frame").unwrap();
    damage(&bytes, range, 300, ".eh_frame of the loader");
}

#[test]
fn damaged_files_do_no_harm() {
    let Some(bytes) = loader() else { return };
    damage(&bytes, 0..1024, 200, "headers of the loader");
    let sections = bytes.len() - 64 * 30..bytes.len();
    damage(&bytes, sections, 100, "section headers of the loader");
    damage(&bytes, 0..bytes.len(), 100, "the loader");
    for cut in (0..bytes.len()).step_by(bytes.len() / 50) {
        compile_bounded(&bytes[..cut], "a part of the loader");
    }
}

#[test]
fn a_damaged_pclntab_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let Some(bytes) = super::go::build_small(folder.path()) else {
        return;
    };
    let range = position_of(&bytes, ".gopclntab").unwrap();
    damage(&bytes, range.clone(), 30, "pclntab");
    damage(&bytes, range.start..range.start + 128, 60, "pclntab's header");
    let record = position_of(&bytes, ".go.module").unwrap_or(0..4096);
    damage(&bytes, record, 20, "the module's record");
    damage(&bytes, 0..1024, 20, "headers of a Go program");
}
