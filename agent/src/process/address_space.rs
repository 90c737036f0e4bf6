//! Where the code of a process comes from, as /proc tells it now.

use std::fs::File;
use std::sync::Arc;

use super::maps::{Backing, parse_maps};
use super::modules::{Module, ModuleTable};
use super::proc_files;

/// Names a source of code for the life of the agent; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(u32);

impl SourceId {
    pub const KERNEL: Self = Self(0);
    pub const VDSO: Self = Self(1);
    /// Nothing is mapped at the address, or its process is gone.
    pub const UNKNOWN: Self = Self(2);
    const FIRST_FREE: u32 = 16;
}

/// Where an address points: an offset in a file, or an address where there is no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    pub source: SourceId,
    pub offset: u64,
}

/// What a [`SourceId`] stands for, beyond the fixed ones.
#[derive(Debug, Clone)]
pub enum Source {
    Module(Arc<Module>),
    /// Code made at run time by one program; its perf map, if it writes one.
    Jit(Arc<JitCode>),
    /// A name in brackets from /proc/PID/maps.
    Special(Arc<str>),
}

/// Code that a program makes while it runs.
#[derive(Debug)]
pub struct JitCode {
    pub tgid: u32,
    /// `perf-PID.map` of the process, opened while it lived.
    pub perf_map: Option<File>,
}

/// One executable mapping of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) source: SourceId,
    /// Added to an address inside gives the place's offset (wrapping).
    pub(super) to_offset: u64,
}

/// Executable memory of a program, `end` exclusive. `offset` is what its first byte is in its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeRange {
    pub start: u64,
    pub end: u64,
    pub source: SourceId,
    pub offset: u64,
}

/// Executable mappings, ascending, and what their sources are.
pub(super) type AddressSpace = (Vec<Mapping>, Vec<(SourceId, Source)>);

/// Executable mappings looked at per process.
const MAX_MAPPINGS: usize = 4096;

/// All sources of code that were met.
#[derive(Debug)]
pub(super) struct Sources {
    modules: ModuleTable,
    next: u32,
}

impl Sources {
    pub(super) fn new(modules: ModuleTable) -> Self {
        Self {
            modules,
            next: SourceId::FIRST_FREE,
        }
    }

    /// Files held open.
    pub(super) fn open_files(&self) -> usize {
        self.modules.open_files()
    }

    /// Sources that were known before keep their ids.
    pub(super) fn read(&mut self, tgid: u32, known: &[(SourceId, Source)]) -> Option<AddressSpace> {
        let text = proc_files::maps(tgid)?;
        let mut mappings = Vec::new();
        let mut sources: Vec<(SourceId, Source)> = Vec::new();
        for line in parse_maps(&text, MAX_MAPPINGS) {
            let (source, to_offset) = match &line.backing {
                Backing::File { device, inode, path } => {
                    let next = &mut self.next;
                    let module = self
                        .modules
                        .find(tgid, &line, (*device, *inode), path, &mut || take_id(next));
                    let id = module.id;
                    if !sources.iter().any(|(known, _)| *known == id) {
                        sources.push((id, Source::Module(module)));
                    }
                    (id, line.file_offset.wrapping_sub(line.start))
                }
                // A 32-bit process has another vDSO than the one that names are known of.
                Backing::Vdso if line.start >= 1 << 32 => (SourceId::VDSO, 0u64.wrapping_sub(line.start)),
                Backing::Anonymous => {
                    let is_jit = |(_, source): &&(SourceId, Source)| matches!(source, Source::Jit(_));
                    let (id, source) = match sources.iter().find(is_jit).or_else(|| known.iter().find(is_jit)) {
                        Some(found) => found.clone(),
                        None => {
                            let code = JitCode {
                                tgid,
                                perf_map: open_perf_map(tgid),
                            };
                            (take_id(&mut self.next), Source::Jit(Arc::new(code)))
                        }
                    };
                    if !sources.iter().any(|(known, _)| *known == id) {
                        sources.push((id, source));
                    }
                    (id, 0)
                }
                Backing::Vdso | Backing::Special(_) => {
                    let name = match &line.backing {
                        Backing::Special(name) => name.as_str(),
                        _ => "[vdso]",
                    };
                    let is_same = |(_, source): &&(SourceId, Source)| matches!(source, Source::Special(known) if **known == *name);
                    let (id, source) = match sources.iter().find(is_same).or_else(|| known.iter().find(is_same)) {
                        Some(found) => found.clone(),
                        None => (take_id(&mut self.next), Source::Special(name.into())),
                    };
                    if !sources.iter().any(|(known, _)| *known == id) {
                        sources.push((id, source));
                    }
                    (id, 0)
                }
            };
            mappings.push(Mapping {
                start: line.start,
                end: line.end,
                source,
                to_offset,
            });
        }
        Some((mappings, sources))
    }
}

fn take_id(next: &mut u32) -> SourceId {
    let id = SourceId(*next);
    *next = next.wrapping_add(1).max(SourceId::FIRST_FREE);
    id
}

/// The perf map lies in the process's own /tmp under the id that the process itself sees.
pub(super) fn open_perf_map(tgid: u32) -> Option<File> {
    let inner = proc_files::namespaced_tgid(tgid).unwrap_or(tgid);
    proc_files::open_regular(&format!("/proc/{tgid}/root/tmp/perf-{inner}.map"))
}
