//! The code page that the kernel maps into every process, the same for all of the machine's own width.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::file_symbols::read_from;
use crate::process::{Backing, parse_maps};

const MAX_BYTES: u64 = 1024 * 1024;

/// A copy of this process's vDSO, an ELF image.
#[derive(Debug)]
pub(super) struct Vdso {
    image: Vec<u8>,
}

impl Vdso {
    /// None where it cannot be read; its frames then have no names.
    pub(super) fn of_this_process() -> Option<Self> {
        let maps = parse_maps(&std::fs::read_to_string("/proc/self/maps").ok()?, 4096);
        let line = maps.into_iter().find(|line| line.backing == Backing::Vdso)?;
        let bytes = line.end.checked_sub(line.start).filter(|bytes| *bytes <= MAX_BYTES)?;
        let mut image = vec![0; bytes as usize];
        File::open("/proc/self/mem")
            .ok()?
            .read_exact_at(&mut image, line.start)
            .ok()?;
        Some(Self { image })
    }

    pub(super) fn read_at(&self, offset: u64, into: &mut [u8]) -> bool {
        read_from(&self.image, offset, into)
    }
}
