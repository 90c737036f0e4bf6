//! MiniDebugInfo: a small ELF file with the symbols that were stripped, packed with xz in the section .gnu_debugdata
//! (gdb's manual, "MiniDebugInfo"). Fedora and its relatives ship all their programs so.

use std::io::Read;

use crate::elf::Image;

/// What is unpacked; the C library's has half a megabyte.
const MAX_BYTES: u64 = 8 * 1024 * 1024;
const MAX_PACKED_BYTES: u64 = 2 * 1024 * 1024;
/// The dictionary of `xz -6` has 8 MiB.
const MAX_MEMORY_KIB: u32 = 12 * 1024;

/// The unpacked file. None where there is none, an error where it cannot be unpacked or is too large.
pub(super) fn unpack<R: Fn(u64, &mut [u8]) -> bool>(image: &Image<R>) -> Option<Result<Vec<u8>, &'static str>> {
    let section = image.section(&[b".gnu_debugdata"])?;
    if section.bytes > MAX_PACKED_BYTES {
        return Some(Err("the packed symbols are too large"));
    }
    let mut packed = vec![0; usize::try_from(section.bytes).ok()?];
    if image.read_offset(section.offset, &mut packed).is_none() {
        return Some(Err("the packed symbols lie outside the file"));
    }
    Some(unpack_bytes(&packed))
}

fn unpack_bytes(packed: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut unpacked = Vec::new();
    lzma_rust2::XzReader::new_mem_limit(packed, false, MAX_MEMORY_KIB)
        .take(MAX_BYTES + 1)
        .read_to_end(&mut unpacked)
        .map_err(|_| "the packed symbols are damaged, or need too much memory")?;
    if unpacked.len() as u64 > MAX_BYTES {
        return Err("the symbols are too large");
    }
    Ok(unpacked)
}
