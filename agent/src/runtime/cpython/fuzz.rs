//! What holds of a process' memory, whatever it says.

use std::sync::OnceLock;

use super::lines::line;
use super::made::{LOOP, Made, RUNTIME, VERSIONS, function};
use super::offsets::{LineForm, TABLE_BYTES, by_table};
use super::{Layout, MAX_NAME_BYTES, Modules, Python, PythonFrame, Unreadable};
use crate::runtime::reading::Counted;

/// Reads of a layout, and of checks of what is there: eight times 64 threads, with frames each.
const MAX_LAYOUT_READS: usize = 64;
const MAX_CHECK_READS: usize = 8 * 64 * 40;
/// Reads of a frame's names.
const MAX_READS: usize = 16;
/// Reads of a module's name: eight tables of 4,096 modules, with a file and some keys each.
const MAX_MODULE_READS: usize = 8 * 4096 * 40;

/// Line tables, behind one byte for the form and two for the instruction.
pub(crate) fn lines(bytes: &[u8]) {
    let [form, low, high, table @ ..] = bytes else {
        return;
    };
    let form = match form % 3 {
        0 => LineForm::Steps,
        1 => LineForm::Ranges,
        _ => LineForm::Locations,
    };
    let instruction = u32::from(*low) | u32::from(*high) << 8;
    let found = line(table, form, 1, instruction);
    // No table of so many bytes tells of more.
    assert!(found <= i32::MAX.unsigned_abs() || table.len() >= 6);
}

/// An interpreter's own table, behind one byte for its version.
pub(crate) fn table(bytes: &[u8]) {
    let (minor, rest) = bytes.split_first().unwrap_or((&0, bytes));
    let mut table = [0; TABLE_BYTES];
    let count = rest.len().min(TABLE_BYTES);
    table[..count].copy_from_slice(&rest[..count]);
    let known = by_table(&table, 12 + minor % 4);
    assert_eq!(known.is_some(), minor % 4 != 0);
    // The same as an interpreter would have it.
    let mut made = sample(12 + (minor % 4).max(1)).0.clone();
    made.memory.put(RUNTIME, &table);
    if let Ok(layout) = made.layout() {
        let read = Python::read(&made.memory, layout, &function);
        assert!(read.is_err() || read.is_ok_and(|python| python.walked().loops[0] == LOOP));
    }
}

/// Changes of an interpreter that is whole, behind one byte for its version and for whether its layout is read again:
/// two bytes for a place in its memory, one for how many follow and are put there.
pub(crate) fn memory(bytes: &[u8]) {
    let (version, mut rest) = bytes.split_first().unwrap_or((&0, bytes));
    let minor = VERSIONS[usize::from(*version & 0x7f) % VERSIONS.len()];
    let &(ref made, code) = sample(minor);
    let mut changed = made.clone();
    while let [a, b, length, behind @ ..] = rest {
        let (put, behind) = behind.split_at(usize::from(*length % 17).min(behind.len()));
        rest = behind;
        let at = (usize::from(*a) | usize::from(*b) << 8) % (changed.memory.bytes.len() - 16);
        changed.memory.bytes[at..at + put.len()].copy_from_slice(put);
    }
    let counted = Counted::new(&changed.memory);
    let mut layout = made.layout().ok();
    if *version & 0x80 != 0 {
        layout = Layout::read(&counted, &|name| made.symbols.get(name).copied())
            .ok()
            .or(layout);
        assert!(counted.reads.replace(0) < MAX_LAYOUT_READS);
    }
    let Some(layout) = layout else {
        return;
    };
    let whole = Python::read(&made.memory, layout.clone(), &function);
    let read = Python::read(&counted, layout, &function);
    assert!(counted.reads.replace(0) < MAX_CHECK_READS);
    for python in [whole, read].into_iter().flatten() {
        for instruction in [0, 1, 70, 0xf_ffff] {
            let hash = python.hash_of(&counted, code);
            let frame = python.frame(&counted, code, instruction, hash.unwrap_or(0));
            check(frame);
            assert!(counted.reads.replace(0) < MAX_READS);
        }
        let mut modules = Modules::default();
        for file in ["/usr/lib/queue.py", "/usr/lib/other.py"] {
            let module = python.module(&counted, &mut modules, file);
            let module = module.ok().flatten();
            assert!(module.is_none_or(|module| !module.is_empty() && module.len() <= MAX_NAME_BYTES));
            assert!(counted.reads.replace(0) < MAX_MODULE_READS);
        }
    }
}

fn sample(minor: u8) -> &'static (Made, u64) {
    static SAMPLES: OnceLock<[(Made, u64); VERSIONS.len()]> = OnceLock::new();
    let samples = SAMPLES.get_or_init(|| {
        VERSIONS.map(|minor| {
            let (mut made, code) = Made::sample(minor);
            let modules = [("queue", "/usr/lib/queue.py"), ("__main__", "/srv/main.py")];
            let modules = modules.map(|(name, file)| made.module(name, Some(file)));
            made.modules(&modules);
            (made, code)
        })
    });
    &samples[usize::from(minor.saturating_sub(VERSIONS[0])) % VERSIONS.len()]
}

fn check(frame: Result<PythonFrame, Unreadable>) {
    let Ok(frame) = frame else {
        return;
    };
    assert!(!frame.function.is_empty());
    assert!(frame.function.len() <= MAX_NAME_BYTES && frame.file.len() <= MAX_NAME_BYTES);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_takes_everything() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        for target in [lines, table, memory] {
            for first in (0..8).chain(0x80..0x88) {
                for bytes in [
                    &[][..],
                    &[0xff; 300],
                    &[0; 7000],
                    &program[..9000],
                    &program[70_000..71_000],
                ] {
                    target(&[&[first], bytes].concat());
                }
            }
        }
    }

    /// Some of the words that an interpreter has are changed, one at a time.
    #[test]
    fn changed_memory_is_borne() {
        for version in (0..VERSIONS.len() as u8).flat_map(|version| [version, version | 0x80]) {
            let places = (0x1000_u16..0x1400)
                .chain(0x5000..0x5100)
                .chain(0x8000..0x8100)
                .chain(0x9000..0x9300);
            for [a, b] in places.step_by(24).map(u16::to_le_bytes) {
                for value in [[0xff; 8], [1, 0, 0, 0, 1, 0, 0, 0], [0, 0x90, 0, 0, 0, 0x7f, 0, 0]] {
                    memory(&[&[version, a, b, 8][..], &value].concat());
                }
            }
        }
    }
}
