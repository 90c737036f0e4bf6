//! The code page that the kernel maps into every process, the same for all of the machine's own width.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::maps::{Backing, parse_maps};

const MAX_BYTES: u64 = 1024 * 1024;

/// A copy of this process's vDSO, an ELF image; none where it cannot be read.
pub fn vdso_image() -> Option<Vec<u8>> {
    let maps = parse_maps(&std::fs::read_to_string("/proc/self/maps").ok()?, 4096);
    let line = maps.into_iter().find(|line| line.backing == Backing::Vdso)?;
    let bytes = line.end.checked_sub(line.start).filter(|bytes| *bytes <= MAX_BYTES)?;
    let mut image = vec![0; bytes as usize];
    File::open("/proc/self/mem")
        .ok()?
        .read_exact_at(&mut image, line.start)
        .ok()?;
    Some(image)
}
