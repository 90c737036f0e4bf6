//! What holds of each decoder whatever it is given: targets for `cargo xtask fuzz`, which is the only build that has
//! them beside unit tests.
//!
//! In: bytes, as a file, a program's memory or a person could make them up. Out: nothing, or a panic where a decoder
//! does more work, takes more room or says more than it may. No I/O.

pub(crate) mod made;

use crate::elf::field;
use crate::{kernel, metadata, process, runtime, ship, symbolize, unwind};

/// One decoder, or some that read the same thing.
#[derive(Debug)]
pub struct Target {
    /// As the command line has it.
    pub name: &'static str,
    /// Bytes that it may hold at a time, the input not counted.
    pub memory_bytes: usize,
    /// Panics where something does not hold.
    pub run: fn(&[u8]),
}

const MIB: usize = 1 << 20;

const fn target(name: &'static str, memory_bytes: usize, run: fn(&[u8])) -> Target {
    Target {
        name,
        memory_bytes,
        run,
    }
}

/// All of them.
pub const TARGETS: &[Target] = &[
    // A debug file's packed symbols are unpacked to 16 MiB, with room that doubles, and a dictionary of 12 MiB.
    target("elf", 64 * MIB, symbolize::fuzz::elf),
    target("mini-debug", 64 * MIB, symbolize::fuzz::mini_debug),
    target("perf-map", 4 * MIB, symbolize::fuzz::perf_map),
    target("demangle", 4 * MIB, symbolize::fuzz::demangle),
    target("table", 32 * MIB, unwind::fuzz::table),
    target("frames", 32 * MIB, unwind::fuzz::frames),
    target("pclntab", 32 * MIB, unwind::fuzz::pclntab),
    target("proc", 4 * MIB, process::fuzz::proc),
    target("metadata", 4 * MIB, metadata::fuzz::metadata),
    target("records", 4 * MIB, kernel::fuzz::records),
    target("mappings", 4 * MIB, kernel::fuzz::mappings),
    target("walk", 4 * MIB, kernel::fuzz::walk),
    target("walk-runtime", 4 * MIB, kernel::fuzz::runtime),
    target("jvm-tables", 4 * MIB, runtime::jvm::fuzz::tables),
    target("jvm-numbers", MIB, runtime::jvm::fuzz::numbers),
    target("jvm-memory", 16 * MIB, runtime::jvm::fuzz::memory),
    target("python-table", 4 * MIB, runtime::cpython::fuzz::table),
    target("python-lines", 4 * MIB, runtime::cpython::fuzz::lines),
    target("python-memory", 16 * MIB, runtime::cpython::fuzz::memory),
    target("ruby-lines", 4 * MIB, runtime::ruby::fuzz::lines),
    target("ruby-memory", 16 * MIB, runtime::ruby::fuzz::memory),
    target("php-memory", 16 * MIB, runtime::php::fuzz::memory),
    target("v8-positions", 4 * MIB, runtime::v8::fuzz::positions),
    target("v8-memory", 16 * MIB, runtime::v8::fuzz::memory),
    // A request has at most 256 MiB.
    target("spool", 260 * MIB, ship::fuzz::spool),
    target("answer", 4 * MIB, ship::fuzz::answer),
];

/// A file with one section. Unlike [`made::elf`]'s, all addresses below 2 GiB are code, though the file has no bytes
/// for most of them, and the section lies in their middle: what a real file's section says of places near to it leads
/// to code here too.
pub(crate) fn with_section(machine: u16, name: &str, flags: u64, content: &[u8]) -> Vec<u8> {
    const SEGMENT: usize = 64;
    let mut file = made::elf(machine, name, flags, content);
    let mut put = |at: usize, value: u64| file[at..at + 8].copy_from_slice(&value.to_le_bytes());
    put(SEGMENT + 16, 0);
    put(SEGMENT + 32, 1 << 31);
    let sections = field(&file, 40, 8).and_then(|at| usize::try_from(at).ok());
    let section = sections.expect("it was just made") + 64;
    file[section + 16..section + 24].copy_from_slice(&(1u64 << 30).to_le_bytes());
    file
}

/// Takes an input apart from front to back; zeros come after its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn number<const BYTES: usize>(&mut self) -> u64 {
        let head = self.bytes(BYTES);
        head.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    /// At most `count`.
    pub(crate) fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (head, tail) = self.0.split_at(count.min(self.0.len()));
        self.0 = tail;
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So that a change which breaks a target is not seen by the fuzzer first.
    #[test]
    fn every_target_takes_everything() {
        let mut names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TARGETS.len());
        let program = std::fs::read("/proc/self/exe").unwrap();
        let maps = std::fs::read("/proc/self/maps").unwrap();
        for target in TARGETS {
            for bytes in [&[], &[0xff; 300][..], &program[..4096], &maps] {
                (target.run)(bytes);
            }
        }
    }
}
