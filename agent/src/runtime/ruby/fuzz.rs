//! What holds of a process' memory, whatever it says.

use std::sync::OnceLock;

use super::MAX_NAME_BYTES;
use super::lines::LineTable;
use super::made::{BASE, HOLE, Made, Memory, Sample, VERSIONS};
use crate::runtime::reading::Counted;

/// Reads of a layout: a page of data, each of whose words may lead to what looks like a machine or a table of names.
const MAX_LAYOUT_READS: usize = 16_384;
/// Reads of a frame's names: 64 variables of a class and of what it belongs to, each of whose names takes some fifteen.
const MAX_READS: usize = 4_096;

/// A table of lines, behind two bytes for the instruction, one for the form and one for the number of entries.
pub(crate) fn lines(bytes: &[u8]) {
    let [low, high, form, count, table @ ..] = bytes else {
        return;
    };
    let mut body = [0; 32];
    let at = |offset: u64| (BASE + offset).to_le_bytes();
    body[..8].copy_from_slice(&at(0));
    body[8..16].copy_from_slice(&at(64));
    body[16..18].copy_from_slice(&[*count, form >> 4]);
    if form & 1 == 1 {
        body[24..].copy_from_slice(&at(128));
    }
    let memory = Memory::with_hole(table.to_vec(), HOLE);
    let counted = Counted::new(&memory);
    let table = LineTable {
        body: &body,
        at: 0,
        entry_bytes: if form & 2 == 0 { 8 } else { 12 },
    };
    let position = u64::from(*low) | u64::from(*high) << 8;
    if let Ok(Some(line)) = table.line(&counted, position) {
        assert!(i32::try_from(line).is_ok());
    }
    assert!(counted.reads.get() < 24);
}

/// Changes of an interpreter that is whole, behind one byte for its version and for whether its layout is read again:
/// three bytes for a place in its memory, one for how many follow and are put there.
pub(crate) fn memory(bytes: &[u8]) {
    let (version, mut rest) = bytes.split_first().unwrap_or((&0, bytes));
    let (made, sample) = sample(*version & 0x7f);
    let mut changed = made.clone();
    while let [a, b, c, length, behind @ ..] = rest {
        let (put, behind) = behind.split_at(usize::from(*length % 17).min(behind.len()));
        rest = behind;
        let at = (usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16) % (changed.memory.bytes.len() - 16);
        changed.memory.bytes[at..at + put.len()].copy_from_slice(put);
    }
    let counted = Counted::new(&changed.memory);
    let mut ruby = made.ruby().ok();
    if *version & 0x80 != 0 {
        ruby = changed.ruby_in(&counted).ok().or(ruby);
        assert!(counted.reads.replace(0) < MAX_LAYOUT_READS);
    }
    let Some(ruby) = ruby else {
        return;
    };
    for (iseq, method, instruction) in [
        (sample.iseq, sample.method, 1),
        (sample.iseq, 0, 0xffff),
        (0, sample.method, 0),
        (sample.class, sample.iseq, 70),
    ] {
        let word = ruby.word_of(&counted, iseq, method, instruction);
        let (value, detail) = word.unwrap_or((iseq >> 3, method >> 3));
        if let Ok(frame) = ruby.frame(&counted, value, detail) {
            assert!(!frame.function.is_empty() || frame.file.is_some());
            assert!(frame.function.len() <= 3 * MAX_NAME_BYTES);
            assert!(frame.file.is_none_or(|file| file.len() <= MAX_NAME_BYTES));
        }
        assert!(counted.reads.replace(0) < MAX_READS);
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
        for target in [lines, memory] {
            for first in (0..8).chain(0x80..0x88) {
                for bytes in [&[][..], &[0xff; 300], &[0; 7000], &program[..9000]] {
                    target(&[&[first], bytes].concat());
                }
            }
        }
    }

    /// Some of the words that an interpreter has are changed, one at a time.
    #[test]
    fn changed_memory_is_borne() {
        for version in (0..VERSIONS.len() as u8).flat_map(|version| [version, version | 0x80]) {
            let places = (0x4100_u32..0x4220).chain(0xa000..0xa200).chain(0xa800..0xa880);
            let places = places.chain(0xb800..0xb840).chain(0xd000..0xf800);
            for [a, b, c, _] in places.step_by(24).map(u32::to_le_bytes) {
                for value in [[0xff; 8], [1, 0, 0, 0, 1, 0, 0, 0], [0, 0xd0, 0, 0, 0, 0x7f, 0, 0]] {
                    memory(&[&[version, a, b, c, 8][..], &value].concat());
                }
            }
        }
    }
}
