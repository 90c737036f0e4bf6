//! What holds of a process' memory, whatever it says.

use std::sync::OnceLock;

use super::frame::word_of;
use super::layout::Version;
use super::made::{CODE, Made, Sample, VERSIONS};
use super::positions::{Steps, bytecode_at, position_at};
use super::sizes::sizes_of;
use crate::runtime::reading::{Counted, MAX_NAME_BYTES};

/// Reads of a layout: its constants.
const MAX_LAYOUT_READS: usize = 128;
/// Reads of a frame's names: 128 functions that are inlined into each other, each of whose names, files and lines takes
/// some hundred.
const MAX_READS: usize = 1 << 15;

/// A table of positions behind one byte for its form and two for the offset, and the same as one of bytecodes.
pub(crate) fn positions(bytes: &[u8]) {
    let [form, low, high, table @ ..] = bytes else {
        return;
    };
    let steps = if form & 1 == 0 { Steps::Signed } else { Steps::Flagged };
    let offset = u64::from(*low) | u64::from(*high) << 8;
    if let Some(found) = position_at(table, steps, offset) {
        assert!(found.offset.is_none_or(|offset| offset < 1 << 30));
    }
    let versions = [(10, 2), (11, 3), (12, 4), (13, 6), (14, 6)];
    let (major, minor) = versions[usize::from(form >> 1) % versions.len()];
    let sizes = sizes_of(Version { major, minor }).expect("it is known");
    let (table, bytecodes) = table.split_at(table.len() / 2);
    if let Some(at) = bytecode_at(table, bytecodes, &sizes, offset) {
        assert!(at < bytecodes.len().max(1) as u64 + 32);
    }
}

/// Changes of a process that is whole, behind one byte for its version and for whether its layout is read again: two
/// bytes for a place in its memory, one for how many follow and are put there.
pub(crate) fn memory(bytes: &[u8]) {
    let (version, mut rest) = bytes.split_first().unwrap_or((&0, bytes));
    let (made, sample) = sample(*version & 0x7f);
    let mut changed = made.clone();
    while let [a, b, length, behind @ ..] = rest {
        let (put, behind) = behind.split_at(usize::from(*length % 17).min(behind.len()));
        rest = behind;
        let at = (usize::from(*a) | usize::from(*b) << 8) % (changed.memory.bytes.len() - 16);
        changed.memory.bytes[at..at + put.len()].copy_from_slice(put);
    }
    let counted = Counted::new(&changed.memory);
    if *version & 0x80 != 0 {
        if let Ok(layout) = changed.layout_in(&counted) {
            changed.layout = layout;
        }
        assert!(counted.reads.replace(0) < MAX_LAYOUT_READS);
    }
    let v8 = changed.v8();
    for (kind, place, shared, innermost) in [
        (0, 3, sample.pop, false),
        (0, 0, sample.take, false),
        (1, sample.baseline + 31, sample.pop, false),
        (1, sample.optimised + 15, sample.pop, true),
        (1, sample.optimised + 15, 0, true),
        (1, CODE + 0x900, 0, true),
        (2, CODE, sample.nameless & 0xff, false),
    ] {
        let at = if innermost { place } else { place.saturating_sub(8) };
        let code = crate::runtime::reading::word(&counted, at).unwrap_or(0);
        let (value, detail) = word_of(kind, place, shared, changed.hash_in(&counted, shared), code);
        counted.reads.set(0);
        if let Ok(frames) = v8.frames(&counted, value, detail, innermost) {
            assert!((1..=129).contains(&frames.len()));
            for frame in frames {
                assert!(frame.function.len() <= 3 * MAX_NAME_BYTES);
                assert!(frame.file.is_none_or(|file| file.len() <= MAX_NAME_BYTES + 16));
            }
        }
        assert!(counted.reads.get() < MAX_READS, "{} reads", counted.reads.get());
    }
}

fn sample(version: u8) -> &'static (Made, Sample) {
    static SAMPLES: OnceLock<[(Made, Sample); VERSIONS.len()]> = OnceLock::new();
    let samples = SAMPLES.get_or_init(|| VERSIONS.map(Made::new));
    &samples[usize::from(version) % VERSIONS.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_takes_everything() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        for target in [positions, memory] {
            for first in (0..8).chain(0x80..0x88) {
                for bytes in [&[][..], &[0xff; 300], &[0; 7000], &program[..9000]] {
                    target(&[&[first], bytes].concat());
                }
            }
        }
    }

    /// Some of the words that a process has are changed, one at a time.
    #[test]
    fn changed_memory_is_borne() {
        for version in (0..VERSIONS.len() as u8).flat_map(|version| [version, version | 0x80]) {
            let places = (0x100_u16..0x1c0)
                .chain(0x800..0x900)
                .chain(0x2000..0x2500)
                .chain(0x4000..0x4c00);
            for [a, b] in places.step_by(24).map(u16::to_le_bytes) {
                for value in [[0xff; 8], [1, 0, 0, 0, 1, 0, 0, 0], [1, 0x40, 0, 0, 0, 0x7f, 0, 0]] {
                    memory(&[&[version, a, b, 8][..], &value].concat());
                }
            }
        }
    }
}
