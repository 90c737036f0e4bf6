//! What the table is asked by, and what it answers.

use std::sync::Arc;

use crate::frames::ProgramKey;
use crate::metadata::Metadata;

/// What is known of a program.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    /// Which run of which process it is.
    pub key: ProgramKey,
    /// Base name; the thread name of kernel threads and of processes whose start nobody saw and that were gone too
    /// soon.
    pub executable: Arc<str>,
    /// Empty for kernel threads.
    pub executable_path: Arc<str>,
    /// Arguments without what looks like a secret, or as the configuration says; at most 1024 bytes.
    pub command_line: Arc<str>,
    /// GNU build id of the executable, in lower-case hex.
    pub build_id: Option<Arc<str>>,
    /// Labels: service, container, pod and the like.
    pub metadata: Arc<Metadata>,
}

/// What became of programs since it was last asked.
#[derive(Debug, Default)]
pub struct Changes {
    /// New, or their mappings are others now.
    pub changed: Vec<ProgramKey>,
    /// Forgotten.
    pub gone: Vec<ProgramKey>,
}

/// What the kernel side tells of a process at the moment of a sample.
#[derive(Debug, Clone, Copy)]
pub struct Sighting<'a> {
    /// Which run of which process it is.
    pub key: ProgramKey,
    /// The process in the /proc that is read; 0 where it is not seen there.
    pub proc_tgid: u32,
    /// Where the program's stack began; 0 where it has none.
    pub image: u64,
    /// Its control group of version 2 at that moment, by number; 0 where it is not known.
    pub cgroup_id: u64,
    /// The moment, `CLOCK_MONOTONIC`, nanoseconds.
    pub time_ns: u64,
    /// It is a thread of the kernel.
    pub kernel_thread: bool,
    /// Names the program where nothing else is known.
    pub comm: &'a str,
}

impl Sighting<'static> {
    /// Of a process of which nothing is known but who it is.
    pub fn of(key: ProgramKey, time_ns: u64) -> Self {
        Self {
            key,
            proc_tgid: key.tgid,
            image: 0,
            cgroup_id: 0,
            time_ns,
            kernel_thread: false,
            comm: "",
        }
    }
}

/// The program of a sample.
#[derive(Debug, Clone)]
pub struct Found {
    /// With the labels of the sample's moment.
    pub program: Arc<Program>,
    /// Changes whenever the meaning of the program's addresses may have changed.
    pub generation: u32,
    /// How often the process had been moved in control groups of version 1. Together with the number of that of version
    /// 2 it tells labels of one program apart.
    pub moves: u32,
}
