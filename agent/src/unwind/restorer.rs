//! The code through which a signal's handler returns to the kernel, where nobody describes it.
//!
//! glibc marks its `__restore_rt` as a signal frame. musl says nothing of it, but its bytes are always the same: set the
//! number of the system call, call.

use super::TableError;
use super::collect::Collector;
use super::rule::Rule;
use crate::elf::{Arch, Image};

/// `mov $15, %rax; syscall`
const X86_64: &[u8] = b"\x48\xc7\xc0\x0f\0\0\0\x0f\x05";
/// `mov x8, #139; svc #0`
const ARM64: &[u8] = b"\x68\x11\x80\xd2\x01\0\0\xd4";
/// Code that is looked through in one file.
const MAX_BYTES: u64 = 16 << 20;
const BLOCK_BYTES: usize = 64 * 1024;
const DT_NEEDED: u64 = 1;

/// Looks for it where a C library can be: in files that need no others, which are static programs and C libraries.
pub(super) fn compile<R: Fn(u64, &mut [u8]) -> bool>(
    image: &Image<R>,
    collector: &mut Collector,
) -> Result<(), TableError> {
    if collector.knows(Rule::SIGNAL) || image.dynamic(DT_NEEDED).is_some() {
        return Ok(());
    }
    let pattern = match image.arch {
        Arch::X86_64 => X86_64,
        Arch::Arm64 => ARM64,
    };
    if let Some(address) = find(image, pattern) {
        let end = address.saturating_add(pattern.len() as u64);
        // The handler's return address is the first byte, and callers are looked up one byte before.
        let begin = address.saturating_sub(1);
        collector.function(begin, end, |row| row(begin, Rule::SIGNAL, None))?;
    }
    Ok(())
}

fn find<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>, pattern: &[u8]) -> Option<u64> {
    let mut left = MAX_BYTES;
    let mut block = vec![0; BLOCK_BYTES];
    for segment in image.segments.iter().filter(|segment| segment.executable) {
        let mut at = 0;
        while at < segment.bytes && left > 0 {
            let count = usize::try_from(segment.bytes - at).map_or(BLOCK_BYTES, |rest| rest.min(BLOCK_BYTES));
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
