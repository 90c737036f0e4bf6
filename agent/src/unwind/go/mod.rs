//! Go's table of functions, pclntab, to rules. Go programs have no .eh_frame, but their runtime needs to unwind stacks
//! as well, so this table is there in every one, stripped or not.
//!
//! In: an image. Out: functions with their rows, into the table builder. Formats of Go 1.16, 1.18 and 1.20 on
//! (runtime/symtab.go, cmd/link/internal/ld/pcln.go); older ones are passed over.
//!
//! What the table says of a pc is how far the stack pointer is below its place at the function's entry ("delta"). What
//! holds beside it was found by disassembling programs of Go 1.26 (`go tool objdump`); see [`rules`].

mod rules;

use std::ops::Range;

use self::rules::{Delta, Nature, nature};
use super::rule::{Rule, Unsupported};
use super::table_builder::TableBuilder;
use crate::elf::Image;
use crate::elf::pclntab::{self, Location, Pclntab, Version};
use crate::unwind::error::TableError;

/// What a change of the stack pointer counts for, of what may be read. Functions can share their changes.
const DELTA_BYTES: usize = 16;
/// Longer names belong to no function that is known by name.
const MAX_NAME_BYTES: usize = 48;

/// Compiles the functions of a Go program, whose table lies there, at some addresses.
pub(super) fn compile<R: Fn(u64, &mut [u8]) -> bool>(
    image: &Image<R>,
    location: Location,
    addresses: &Range<u64>,
    builder: &mut TableBuilder,
) -> Result<(), TableError> {
    let mut table = Table {
        image,
        pclntab: Pclntab::new(image, location),
        counted_bytes: 0,
    };
    let first = table.pclntab.last_from(addresses.start).unwrap_or(0);
    // Each has a byte at least; a list that is out of order has no end that one would meet.
    let most = addresses.end.saturating_sub(addresses.start).saturating_add(2);
    let last = first.saturating_add(most).min(table.pclntab.functions());
    let mut previous: Option<Function> = None;
    for index in first..last {
        let function = table.function(index);
        table.count(builder)?;
        let Some(mut function) = function else {
            builder.malformed(1);
            continue;
        };
        // One more than these addresses have: a signal's trampoline takes the byte before it.
        if function.begin > addresses.end {
            break;
        }
        // Ascending, so that all functions together have no more code than the file.
        if previous.is_some_and(|previous| function.begin < previous.end) {
            builder.malformed(1);
            continue;
        }
        // The return address of a signal handler is the trampoline's first byte, and callers are looked up one byte
        // before.
        if function.nature == Nature::Signal {
            function.begin = function.begin.saturating_sub(1);
            if let Some(previous) = &mut previous {
                previous.end = previous.end.min(function.begin);
            }
        }
        if let Some(complete) = previous.replace(function) {
            table.take(&complete, builder)?;
        }
    }
    match previous {
        Some(last) => table.take(&last, builder),
        None => Ok(()),
    }
}

/// One function; its range is where its rules hold.
#[derive(Debug, Clone, Copy)]
struct Function {
    begin: u64,
    end: u64,
    nature: Nature,
    listed: pclntab::Function,
}

struct Table<'a, R> {
    image: &'a Image<R>,
    pclntab: Pclntab<'a, R>,
    /// Of what was read.
    counted_bytes: u64,
}

impl<R: Fn(u64, &mut [u8]) -> bool> Table<'_, R> {
    fn function(&mut self, index: u64) -> Option<Function> {
        let listed = self.pclntab.function(index)?;
        // Only assembly code needs names, and all of it has flags since they exist.
        let nature = if listed.flags == 0 && self.pclntab.version() != Version::Go116 {
            Nature::Compiled
        } else {
            let mut bytes = [0; MAX_NAME_BYTES];
            nature(self.pclntab.name(&listed, &mut bytes)?, listed.flags)
        };
        Some(Function {
            begin: listed.begin,
            end: listed.end,
            nature,
            listed,
        })
    }

    /// Counts what was read since the last call. Where each function's record lies is the file's choice: two million of
    /// them can lead to two million places.
    fn count(&mut self, builder: &mut TableBuilder) -> Result<(), TableError> {
        let read = self.pclntab.read_bytes();
        let new = read.saturating_sub(self.counted_bytes);
        self.counted_bytes = read;
        builder.read(usize::try_from(new).unwrap_or(usize::MAX))
    }

    fn take(&mut self, function: &Function, builder: &mut TableBuilder) -> Result<(), TableError> {
        let fixed = match function.nature {
            Nature::End => Some(Rule::END),
            Nature::Signal => Some(Rule::SIGNAL),
            _ => None,
        };
        let mut deltas = Vec::new();
        let whole = fixed.is_some() || self.deltas(function, &mut deltas).is_some();
        if !whole {
            builder.malformed(1);
        }
        // However often the same bytes are read: each costs as much as some bytes that are read from the file.
        builder.read(deltas.len() * DELTA_BYTES)?;
        if !whole {
            deltas.clear();
        }
        // C code that Go's own linker put in is listed too, but without deltas: another source may know it.
        if fixed.is_none() && deltas.is_empty() {
            return Ok(());
        }
        let frame = rules::frame(self.image, function.nature, &deltas);
        let arch = self.image.arch;
        builder.function(
            function.begin,
            function.end,
            |row: &mut dyn FnMut(u64, Rule, Option<Unsupported>)| {
                if let Some(rule) = fixed {
                    return row(function.begin, rule, None);
                }
                for delta in &deltas {
                    match rules::rule(arch, frame, delta.bytes) {
                        Ok(rule) => row(delta.begin, rule, None),
                        Err(reason) => row(delta.begin, Rule::UNKNOWN, Some(reason)),
                    }
                }
            },
        )?;
        let first = u64::from(builder.is_first_pass());
        builder.stats.go_functions = builder.stats.go_functions.saturating_add(first);
        Ok(())
    }

    /// The deltas of a function in the order of their addresses. None where they make no sense.
    fn deltas(&mut self, function: &Function, deltas: &mut Vec<Delta>) -> Option<()> {
        let mut listed = function.listed;
        (listed.begin, listed.end) = (function.begin, function.end);
        self.pclntab.values(&listed, listed.pcsp, |begin, _, bytes| {
            deltas.push(Delta { begin, bytes });
            true
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::{CallerFp, CallerPc, Cfa};
    use super::*;
    use crate::elf::Arch;

    #[test]
    fn rules_of_both_machines() {
        let amd64 = rules::rule(Arch::X86_64, rules::Frame::Kept, 0x50).unwrap();
        assert_eq!(
            (amd64.cfa(), amd64.fp(), amd64.pc()),
            (Cfa::Sp(0x58), CallerFp::AtCfa(-2), CallerPc::BelowCfa)
        );
        let entry = rules::rule(Arch::X86_64, rules::Frame::Kept, 0).unwrap();
        assert_eq!((entry.cfa(), entry.fp()), (Cfa::Sp(8), CallerFp::Same));
        let arm64 = rules::rule(Arch::Arm64, rules::Frame::Kept, 0x50).unwrap();
        assert_eq!(
            (arm64.cfa(), arm64.fp(), arm64.pc()),
            (Cfa::Sp(0x50), CallerFp::AtCfa(-11), CallerPc::AtCfa(-10))
        );
        let entry = rules::rule(Arch::Arm64, rules::Frame::Kept, 0).unwrap();
        assert_eq!((entry.cfa(), entry.pc()), (Cfa::Sp(0), CallerPc::LinkRegister));
        assert!(rules::rule(Arch::X86_64, rules::Frame::Kept, -8).is_err());
        assert!(rules::rule(Arch::X86_64, rules::Frame::Kept, i64::MAX).is_err());
    }

    #[test]
    fn functions_are_known_by_name_not_by_number() {
        assert_eq!(nature(b"runtime.goexit", 5), Nature::End);
        assert_eq!(nature(b"runtime.mstart", 0), Nature::End);
        assert_eq!(nature(b"runtime.sigreturn__sigaction", 4), Nature::Signal);
        assert_eq!(nature(b"runtime.systemstack", 6), Nature::ChangesStack);
        assert_eq!(nature(b"runtime.nanotime1", 6), Nature::ChangesStack, "by its flag");
        assert_eq!(
            nature(b"runtime.sigtramp", 5),
            Nature::Assembly,
            "its caller is the signal frame"
        );
        assert_eq!(nature(b"runtime.memmove", 4), Nature::Assembly);
        assert_eq!(nature(b"main.main", 0), Nature::Compiled);
    }
}
