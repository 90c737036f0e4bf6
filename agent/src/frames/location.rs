//! Where code is, whoever runs it, and which program runs it.

/// Names a source of code for the life of the agent; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(u32);

impl SourceId {
    /// The kernel and its modules: offsets are kernel addresses.
    pub const KERNEL: Self = Self(0);
    /// The image that the kernel maps into each process: offsets are those in it.
    pub const VDSO: Self = Self(1);
    /// Nothing is mapped at the address, or its process is gone.
    pub const UNKNOWN: Self = Self(2);
    /// Something else was mapped at the address between the sample and the look.
    pub const REPLACED: Self = Self(3);
    /// A language's runtime tells of the frame: its names stand with the stack.
    pub const RUNTIME: Self = Self(4);
    pub(crate) const FIRST_FREE: u32 = 16;

    /// For comparing.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The next one that nobody has.
    pub(crate) fn take(next: &mut u32) -> Self {
        let id = Self(*next);
        *next = next.wrapping_add(1).max(Self::FIRST_FREE);
        id
    }

    #[cfg(test)]
    pub(crate) fn numbered(number: u32) -> Self {
        Self(Self::FIRST_FREE + number)
    }
}

/// Where an address points, its code location: an offset in a file, or an address where there is no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CodeLocation {
    /// What the code is part of.
    pub source: SourceId,
    /// Bytes from the file's begin, or an address.
    pub offset: u64,
}

/// One program run by one process: execve makes another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProgramKey {
    /// Process id, as the machine's first process id namespace has it.
    pub tgid: u32,
    /// Start of the process, in clock ticks since boot.
    pub start_ticks: u64,
    /// The kernel's count of the execs that led to this program.
    pub exec_id: u32,
}
