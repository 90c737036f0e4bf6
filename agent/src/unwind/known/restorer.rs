//! The code through which a signal's handler returns to the kernel, where nobody describes it.
//!
//! glibc marks its `__restore_rt` as a signal frame. musl says nothing of it, but its bytes are always the same: set
//! the number of the system call, call.

use std::ops::Range;

use super::super::error::TableError;
use super::super::rule::Rule;
use super::super::table_builder::TableBuilder;
use crate::elf::{Arch, Image};

/// `mov $15, %rax; syscall`
const X86_64: &[u8] = b"\x48\xc7\xc0\x0f\0\0\0\x0f\x05";
/// `mov x8, #139; svc #0`
const ARM64: &[u8] = b"\x68\x11\x80\xd2\x01\0\0\xd4";
/// Code that is looked through in one file.
const MAX_BYTES: u64 = 16 << 20;
const BLOCK_BYTES: usize = 64 * 1024;
const DT_NEEDED: u64 = 1;

/// Looks for it at some addresses where a C library can be: in files that need no others, which are static programs and
/// C libraries.
pub(in crate::unwind) fn compile<R: Fn(u64, &mut [u8]) -> bool>(
    image: &Image<R>,
    addresses: &Range<u64>,
    builder: &mut TableBuilder,
) -> Result<(), TableError> {
    if builder.knows(Rule::SIGNAL) || image.dynamic(DT_NEEDED).is_some() {
        return Ok(());
    }
    let pattern = match image.arch {
        Arch::X86_64 => X86_64,
        Arch::Arm64 => ARM64,
    };
    if let Some(address) = find(image, addresses, pattern) {
        let end = address.saturating_add(pattern.len() as u64);
        // The handler's return address is the first byte, and callers are looked up one byte before.
        let begin = address.saturating_sub(1);
        builder.function(begin, end, |row| row(begin, Rule::SIGNAL, None))?;
    }
    Ok(())
}

fn find<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, addresses: &Range<u64>, pattern: &[u8]) -> Option<u64> {
    let mut left = MAX_BYTES;
    let mut block = vec![0; BLOCK_BYTES];
    for segment in image.segments.iter().filter(|segment| segment.executable) {
        // What begins at the last of the addresses ends behind them.
        let last = addresses.end.saturating_add(pattern.len() as u64 - 1);
        let end = last.saturating_sub(segment.address).min(segment.bytes);
        let mut at = addresses.start.saturating_sub(segment.address);
        while at < end && left > 0 {
            let count = usize::try_from(end - at).map_or(BLOCK_BYTES, |rest| rest.min(BLOCK_BYTES));
            let part = block.get_mut(..count)?;
            image.read_offset(segment.offset.checked_add(at)?, part)?;
            if let Some(found) = part.windows(pattern.len()).position(|bytes| bytes == pattern) {
                return segment.address.checked_add(at)?.checked_add(found as u64);
            }
            // What lies across two blocks is found in the second.
            let step = (count as u64).saturating_sub(pattern.len() as u64 - 1).max(1);
            if count < BLOCK_BYTES {
                break;
            }
            at += step;
            left = left.saturating_sub(step);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::super::{Cfa, compile};
    use super::*;

    /// A program of one segment, all of it code.
    fn program(bytes: usize) -> Vec<u8> {
        let mut file = vec![0; bytes];
        file[..20].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0");
        for (at, value) in [(32, 64u64), (64 + 16, 0x40_0000), (64 + 32, bytes as u64)] {
            file[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        (file[54], file[56], file[64], file[68]) = (56, 1, 1, 5);
        file
    }

    #[test]
    fn the_way_back_from_a_handler_is_found_where_nobody_describes_it_also_across_blocks() {
        for at in [
            200,
            BLOCK_BYTES - 4,
            3 * BLOCK_BYTES - 11,
            4 * BLOCK_BYTES - X86_64.len(),
        ] {
            let mut file = program(4 * BLOCK_BYTES);
            file[at..at + X86_64.len()].copy_from_slice(X86_64);
            let read = |offset: u64, into: &mut [u8]| {
                let from = usize::try_from(offset).unwrap();
                file.get(from..from + into.len())
                    .map(|part| into.copy_from_slice(part))
                    .is_some()
            };
            let table = compile(read, 100).unwrap();
            let address = 0x40_0000 + at as u64;
            // The return address, looked up one byte before, and the code itself.
            assert_eq!(table.rule_at(address - 1).cfa(), Cfa::Signal, "{at}");
            assert_eq!(table.rule_at(address + 7).cfa(), Cfa::Signal);
            assert_eq!(table.rule_at(address + 9).cfa(), Cfa::Unknown);
            assert_eq!(table.rule_at(address - 2).cfa(), Cfa::Unknown);
        }
    }
}
