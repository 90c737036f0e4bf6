//! The vDSO, as a file to read symbols from.

use crate::elf::read_from;
use crate::process::vdso_image;

/// A copy of this process's vDSO, an ELF image.
#[derive(Debug)]
pub(super) struct Vdso {
    image: Vec<u8>,
}

impl Vdso {
    /// None where it cannot be read; its frames then have no names.
    pub(super) fn of_this_process() -> Option<Self> {
        Some(Self { image: vdso_image()? })
    }

    pub(super) fn read_at(&self, offset: u64, into: &mut [u8]) -> bool {
        read_from(&self.image, offset, into)
    }
}
