//! What holds of a process' memory, whatever it says.

use std::cell::{Cell, RefCell};
use std::sync::OnceLock;

use super::made::{ALL, HEAP, Sample, Vm};
use super::numbers::{signed, unsigned};
use super::{Encoding, JavaFrame, Jvm, Layout, MAX_NAME_BYTES, ReadMemory, Unreadable};
use crate::runtime::reading::Counted;

/// Where a made-up memory begins.
const BASE: u64 = 0x10_0000;
/// Reads of the tables, each a system call: five for each entry of four tables, and the pieces of its texts.
const MAX_TABLE_READS: usize = 4 * 8192 * 24;
/// Reads of one place's frames: 128 scopes at some 30 reads each, and the segment map's.
const MAX_READS: usize = 20_000;
const MAX_FRAMES: usize = 129;

/// A memory that is this, and that counts what is read.
struct Image<'a> {
    bytes: &'a [u8],
    reads: Cell<usize>,
}

impl ReadMemory for Image<'_> {
    fn read(&self, address: u64, to: &mut [u8]) -> bool {
        self.reads.set(self.reads.get() + 1);
        let first = address.checked_sub(BASE).and_then(|first| usize::try_from(first).ok());
        let piece = first.and_then(|first| self.bytes.get(first..first.checked_add(to.len())?));
        piece.map(|piece| to.copy_from_slice(piece)).is_some()
    }
}

/// A memory whose first words are the variables that symbols name, in the order they are asked for, and whose rest may
/// be tables.
pub(crate) fn tables(bytes: &[u8]) {
    let memory = Image {
        bytes,
        reads: Cell::new(0),
    };
    let names: RefCell<Vec<String>> = RefCell::default();
    let symbol = |name: &str| {
        let mut names = names.borrow_mut();
        let known = names.iter().position(|known| known == name);
        let index = known.unwrap_or_else(|| {
            names.push(name.to_owned());
            names.len() - 1
        });
        Some(BASE + 8 * index as u64)
    };
    let layout = Layout::read(&memory, &symbol);
    assert!(memory.reads.get() < MAX_TABLE_READS, "{} reads", memory.reads.get());
    if let Ok(layout) = layout {
        // Whatever it leads to.
        if let Ok(jvm) = Jvm::read(&memory, layout) {
            ask(&jvm, &memory, BASE);
        }
    }
}

/// Numbers and lines, behind one byte for their form.
pub(crate) fn numbers(bytes: &[u8]) {
    let (form, bytes) = bytes.split_first().unwrap_or((&0, bytes));
    let encoding = if form & 1 == 0 {
        Encoding::Plain
    } else {
        Encoding::NoZero
    };
    if let Some((_, length)) = unsigned(bytes, encoding) {
        assert!((1..=5).contains(&length) && length <= bytes.len());
        assert!(signed(bytes, encoding).is_some());
    }
    super::lines::line(bytes, encoding, u32::from(*form));
}

/// Changes of a VM that is whole, behind one byte for its release and for whether its tables are read again: three
/// bytes for a place in its memory, one for how many follow and are put there.
pub(crate) fn memory(bytes: &[u8]) {
    static SAMPLES: OnceLock<[(Vm, Sample); ALL.len()]> = OnceLock::new();
    let samples = SAMPLES.get_or_init(|| ALL.map(Vm::sample));
    let (release, mut rest) = bytes.split_first().unwrap_or((&0, bytes));
    let (vm, sample) = &samples[usize::from(*release & 0x7f) % samples.len()];
    let mut memory = vm.memory.clone();
    while let [a, b, c, length, behind @ ..] = rest {
        let at = usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16;
        let (put, behind) = behind.split_at(usize::from(*length % 17).min(behind.len()));
        rest = behind;
        let at = at % (memory.bytes.len() - 16);
        memory.bytes[at..at + put.len()].copy_from_slice(put);
    }
    let counted = Counted::new(&memory);
    let mut layout = vm.layout.clone();
    if *release & 0x80 != 0 {
        let read = Layout::read(&counted, &|name| vm.symbols.get(name).copied());
        assert!(counted.reads.replace(0) < MAX_TABLE_READS);
        layout = read.unwrap_or(layout);
    }
    let Ok(jvm) = Jvm::read(&memory, layout) else {
        return;
    };
    for address in [
        sample.get,
        sample.hash,
        sample.nmethod,
        sample.native,
        sample.stub,
        HEAP,
    ] {
        ask(&jvm, &counted, address);
        assert!(counted.reads.replace(0) < 20 * MAX_READS);
    }
}

/// Takes an address for each of the things that it may be.
fn ask(jvm: &Jvm, memory: &dyn ReadMemory, address: u64) {
    let walked = jvm.walked();
    assert!((1..=8).contains(&walked.heaps.len()));
    assert!(
        walked
            .heaps
            .iter()
            .all(|heap| heap.begin <= heap.first_segment && heap.first_segment < heap.end)
    );
    assert!(walked.interpreter_begin < walked.interpreter_end);
    check(jvm.interpreted(memory, address, 7));
    for distance in [0, 16, 48, 64, 300] {
        if let Some(blob) = jvm.blob_at(memory, address.saturating_add(distance)) {
            assert!(blob.address <= address + distance && blob.code_begin <= blob.code_end);
            for innermost in [false, true] {
                let pc = blob.code_begin + distance;
                check(jvm.compiled(memory, blob.address, blob.compile_id, pc, innermost));
            }
        }
    }
    let name = jvm.stub_name(memory, address);
    assert!(name.is_none_or(|name| name.len() <= MAX_NAME_BYTES));
}

fn check(frames: Result<Vec<JavaFrame>, Unreadable>) {
    let Ok(frames) = frames else {
        return;
    };
    assert!((1..=MAX_FRAMES).contains(&frames.len()));
    for (index, frame) in frames.iter().enumerate() {
        // Bytes that are no text become characters of three.
        let is_short = |text: &str| text.len() <= 3 * MAX_NAME_BYTES + 32;
        assert!(is_short(&frame.class) && is_short(&frame.method) && is_short(&frame.signature));
        assert!(!frame.class.is_empty() && !frame.method.is_empty());
        assert_eq!(frame.inlined, index + 1 < frames.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_takes_everything() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        for target in [tables, numbers, memory] {
            for bytes in [&[], &[0xff; 300][..], &[0; 70_000], &program[..65_536]] {
                target(bytes);
            }
        }
    }

    /// Some of the words that a VM has are changed, one at a time.
    #[test]
    fn changed_memory_is_borne() {
        for release in 0..ALL.len() as u8 {
            // Where the heap, its map and what lies behind begin.
            for at in (0x2_0000u32..0x2_1800)
                .chain(0x3_0000..0x3_0030)
                .chain(0x3_3000..0x3_6000)
                .step_by(56)
            {
                let [a, b, c, _] = at.to_le_bytes();
                for value in [[0; 8], [0xff; 8], [1, 0, 0, 0, 1, 0, 0, 0]] {
                    memory(&[&[release, a, b, c, 8][..], &value].concat());
                }
            }
        }
    }
}
