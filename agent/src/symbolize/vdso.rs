//! The code page that the kernel maps into every process, the same for all of the machine's own width.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use crate::process::{Backing, parse_maps};

const MAX_BYTES: u64 = 1024 * 1024;

/// A copy of this process's vDSO in a file without a name: an ELF image that blazesym can read.
#[derive(Debug)]
pub(super) struct Vdso {
    file: File,
}

impl Vdso {
    /// None where it cannot be read or kept; its frames then have no names.
    pub(super) fn of_this_process() -> Option<Self> {
        let maps = parse_maps(&std::fs::read_to_string("/proc/self/maps").ok()?, 4096);
        let line = maps.into_iter().find(|line| line.backing == Backing::Vdso)?;
        let bytes = line.end.checked_sub(line.start).filter(|bytes| *bytes <= MAX_BYTES)?;
        let mut image = vec![0; bytes as usize];
        File::open("/proc/self/mem")
            .ok()?
            .read_exact_at(&mut image, line.start)
            .ok()?;
        let mut file = crate::kernel::memory_file("stakeout-vdso").ok()?;
        file.write_all(&image).ok()?;
        Some(Self { file })
    }

    pub(super) fn open_path(&self) -> Option<String> {
        Some(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}
