//! What holds of a process' memory, whatever it says.

use std::sync::OnceLock;

use super::made::{CODE, INTERFACES, Made, function};
use super::{Layout, MAX_NAME_BYTES, Php, PhpFrame, Unreadable};
use crate::runtime::reading::Counted;

/// Reads of a layout, of checks of what is there (eight times some frames), and of a frame's names.
const MAX_LAYOUT_READS: usize = 16;
const MAX_CHECK_READS: usize = 8 * 48;
const MAX_READS: usize = 32;

/// Changes of a PHP that is whole, behind one byte for its version and for whether its layout is read again: two bytes
/// for a place in its memory, one for how many follow and are put there.
pub(crate) fn memory(bytes: &[u8]) {
    let (version, mut rest) = bytes.split_first().unwrap_or((&0, bytes));
    let &(ref made, functions) = sample(usize::from(*version & 0x7f) % INTERFACES.len());
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
    let code = || vec![(CODE, true)];
    let whole = Php::read(&made.memory, layout.clone(), &function, code());
    let read = Php::read(&counted, layout, &function, code());
    assert!(counted.reads.replace(0) < MAX_CHECK_READS);
    for php in [whole, read].into_iter().flatten() {
        for function in functions {
            for low in [0, 1, 70, 0xf_ffff, 1 << 20] {
                let hash = php.hash_of(&counted, function);
                let frame = php.frame(&counted, function, hash.unwrap_or(0) << 21 | low);
                check(frame);
                assert!(counted.reads.replace(0) < MAX_READS);
            }
        }
    }
}

fn sample(number: usize) -> &'static (Made, [u64; 2]) {
    static SAMPLES: OnceLock<[(Made, [u64; 2]); INTERFACES.len()]> = OnceLock::new();
    &SAMPLES.get_or_init(|| INTERFACES.map(Made::sample))[number % INTERFACES.len()]
}

fn check(frame: Result<PhpFrame, Unreadable>) {
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
    fn every_input_is_taken() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        for first in (0..8).chain(0x80..0x88) {
            for bytes in [
                &[][..],
                &[0xff; 300],
                &[0; 7000],
                &program[..9000],
                &program[70_000..71_000],
            ] {
                memory(&[&[first], bytes].concat());
            }
        }
    }

    /// Some of the words that PHP has are changed, one at a time.
    #[test]
    fn changed_memory_is_borne() {
        for version in (0..INTERFACES.len() as u8).flat_map(|version| [version, version | 0x80]) {
            let places = (0x100_u16..0x130)
                .chain(0x400..0x4b0)
                .chain(0x11d0..0x1200)
                .chain(0x9000..0x9400);
            for [a, b] in places.step_by(8).map(u16::to_le_bytes) {
                for value in [[0xff; 8], [1, 0, 0, 0, 1, 0, 0, 0], [0, 0x90, 0, 0, 0, 0x7f, 0, 0]] {
                    memory(&[&[version, a, b, 8][..], &value].concat());
                }
            }
        }
    }
}
