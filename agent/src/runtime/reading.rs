//! Reading what a process that is not trusted has in its memory.

use thiserror::Error;

/// A process' memory.
pub trait ReadMemory {
    /// Fills `to` from an address, or says that it can't.
    fn read(&self, address: u64, to: &mut [u8]) -> bool;
}

/// Why a frame has no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unreadable {
    /// Nothing can be read there.
    #[error("the memory at {address:#x} can't be read")]
    Memory {
        /// Where.
        address: u64,
    },
    /// Something can be read, and is not what should be there.
    #[error("{what} at {address:#x} makes no sense")]
    Nonsense {
        /// What should be there.
        what: &'static str,
        /// Where.
        address: u64,
    },
    /// Something else stands there by now.
    #[error("the code was replaced")]
    Replaced,
}

/// What user programs can have as an address on x86-64.
pub(super) const ADDRESSES: std::ops::Range<u64> = 0x1000..1 << 47;
/// How much of a name is kept.
pub(super) const MAX_NAME_BYTES: usize = 4096;

pub(super) fn read(memory: &dyn ReadMemory, address: u64, to: &mut [u8]) -> Result<(), Unreadable> {
    let last = address.checked_add(to.len() as u64);
    let is_sane = ADDRESSES.contains(&address) && last.is_some_and(|last| last <= ADDRESSES.end);
    if is_sane && memory.read(address, to) {
        Ok(())
    } else {
        Err(Unreadable::Memory { address })
    }
}

/// A little-endian number of at most 8 bytes.
pub(super) fn number(memory: &dyn ReadMemory, address: u64, bytes: u8) -> Result<u64, Unreadable> {
    let mut value = [0; 8];
    let part = value.get_mut(..usize::from(bytes));
    read(memory, address, part.ok_or(Unreadable::Memory { address })?)?;
    Ok(u64::from_le_bytes(value))
}

/// An address that may be one of an object.
pub(super) fn pointer(memory: &dyn ReadMemory, address: u64, what: &'static str) -> Result<u64, Unreadable> {
    let value = number(memory, address, 8)?;
    if is_object(value) {
        Ok(value)
    } else {
        Err(Unreadable::Nonsense { what, address: value })
    }
}

/// A number of eight bytes.
pub(super) fn word(memory: &dyn ReadMemory, address: u64) -> Result<u64, Unreadable> {
    number(memory, address, 8)
}

/// Can it be the address of an object?
pub(super) fn is_object(address: u64) -> bool {
    ADDRESSES.contains(&address) && address.is_multiple_of(8)
}

/// A memory that counts what is read of it.
#[cfg(any(test, fuzzing))]
pub(crate) struct Counted<'a> {
    pub(crate) memory: &'a dyn ReadMemory,
    pub(crate) reads: std::cell::Cell<usize>,
}

#[cfg(any(test, fuzzing))]
impl<'a> Counted<'a> {
    pub(crate) fn new(memory: &'a dyn ReadMemory) -> Self {
        let reads = std::cell::Cell::new(0);
        Self { memory, reads }
    }
}

#[cfg(any(test, fuzzing))]
impl ReadMemory for Counted<'_> {
    fn read(&self, address: u64, to: &mut [u8]) -> bool {
        self.reads.set(self.reads.get() + 1);
        self.memory.read(address, to)
    }
}
