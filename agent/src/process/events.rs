//! What somebody must tell of a process, since /proc does not: what it executed, and memory that became executable.

/// A process became another program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    pub tgid: u32,
    pub start_ticks: u64,
    pub exec_id: u32,
    pub time_ns: u64,
    /// As in [`super::Sighting`].
    pub proc_tgid: u32,
    pub image: u64,
    pub cgroup_id: u64,
    /// Name of the executable's file.
    pub name: Box<str>,
    /// Under which it was executed: perhaps a link, or relative.
    pub path: Box<str>,
}

/// Memory of a process that is executable since then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewCode {
    pub start: u64,
    pub end: u64,
    /// No file on a disk is mapped there.
    pub is_made: bool,
    pub time_ns: u64,
}

/// Code that the kernel made at run time came or went: BPF programs and what leads to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeChange {
    pub start: u64,
    pub bytes: u32,
    pub name: Box<str>,
    pub time_ns: u64,
    pub is_gone: bool,
}
