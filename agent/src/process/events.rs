//! What somebody must tell of a process, since /proc does not: what it executed, and memory that became executable.

/// A process became another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// Its process id, as the machine's first process id namespace has it.
    pub tgid: u32,
    /// Its start, in clock ticks since boot.
    pub start_ticks: u64,
    /// The kernel's count of its execs, this one included.
    pub exec_id: u32,
    /// When, `CLOCK_MONOTONIC`, nanoseconds.
    pub time_ns: u64,
    /// As in [`super::Sighting`].
    pub proc_tgid: u32,
    /// Where the new program's stack begins; 0 where it has none.
    pub image: u64,
    /// Its control group of version 2, by number.
    pub cgroup_id: u64,
    /// Name of the executable's file.
    pub name: Box<str>,
    /// Under which it was executed: perhaps a link, or relative.
    pub path: Box<str>,
}

/// Memory of a process that is executable since then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewCode {
    /// Address of the first byte.
    pub start: u64,
    /// Address behind the last byte.
    pub end: u64,
    /// No file on a disk is mapped there.
    pub is_made: bool,
    /// When, `CLOCK_MONOTONIC`, nanoseconds.
    pub time_ns: u64,
}

/// Code that the kernel made at run time came or went: BPF programs and what leads to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeChange {
    /// Kernel address of its first byte.
    pub start: u64,
    /// Its length.
    pub bytes: u32,
    /// What the kernel calls it, such as `bpf_prog_TAG_NAME`.
    pub name: Box<str>,
    /// When it came or went, `CLOCK_MONOTONIC`, nanoseconds.
    pub time_ns: u64,
    /// It went; otherwise it came.
    pub is_gone: bool,
}
