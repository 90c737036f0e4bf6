//! Code that programs make while they run, and the perf maps in which they say what it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::proc_files;
use super::reading::{Held, SafeFile, open_own};
use crate::frames::SourceId;
use crate::sys::guarded_for;

/// How often a perf map that is not there is looked for.
const LOOK_NS: u64 = 1_000_000_000;

/// Code that a program makes while it runs, in memory of any kind.
#[derive(Debug)]
pub struct JitCode {
    /// Whose code it is, by its id in the agent's /proc.
    pub tgid: u32,
    /// Where the program may say what the code is.
    pub perf_map: Arc<PerfMapFile>,
    /// The file that it lies in, where that has a name.
    pub file: Option<MadeFile>,
}

/// A file that holds code without being a program.
#[derive(Debug, PartialEq, Eq)]
pub struct MadeFile {
    /// As the process sees it.
    pub path: Arc<str>,
    /// Added to an address gives the offset in the file (wrapping).
    pub to_offset: u64,
}

/// The perf map of one process, `/tmp/perf-PID.map` in its own root under the id that it has there itself.
#[derive(Debug)]
pub struct PerfMapFile {
    /// The source whose code it names.
    pub id: SourceId,
    tgid: u32,
    /// Whose map it is, also when the id was given to another.
    start_ticks: Option<u64>,
    held: Arc<Held>,
    looked_ns: AtomicU64,
}

impl PerfMapFile {
    /// Looks for it at once.
    pub(super) fn new(id: SourceId, tgid: u32, open_files: Arc<AtomicUsize>) -> Self {
        let map = Self {
            id,
            tgid,
            start_ticks: proc_files::start_ticks(tgid),
            held: Arc::new(Held::new(None, open_files)),
            looked_ns: AtomicU64::new(0),
        };
        map.open();
        map
    }

    /// Looks for it where it was not there, or was deleted: a program may begin to write it long after its first code,
    /// or a tool may put another in its place.
    pub fn look(&self, now_ns: u64) {
        let is_there = |file: SafeFile| file.present_state().is_some_and(|state| state.links > 0);
        let looked_ns = self.looked_ns.load(Ordering::Relaxed);
        if self.held.is_leaving() || now_ns.saturating_sub(looked_ns) < LOOK_NS || self.held.get().is_some_and(is_there)
        {
            return;
        }
        self.looked_ns.store(now_ns, Ordering::Relaxed);
        self.open();
    }

    fn open(&self) {
        let (tgid, started) = (self.tgid, self.start_ticks);
        let opened = guarded_for(tgid, move || {
            let (inner, user) = proc_files::id_and_user(tgid)?;
            let file = open_own(tgid, &format!("/tmp/perf-{inner}.map"), user)?;
            // Who has the id now had it all the while.
            (started.is_some() && proc_files::start_ticks(tgid) == started).then_some(file)
        });
        if let Some(file) = opened.flatten() {
            self.held.set(Some(file));
        }
    }

    /// The file as it was found last; none where there is none, or its process has ended a while ago.
    pub(crate) fn get(&self) -> Option<SafeFile> {
        self.held.get()
    }

    pub(super) fn held(&self) -> &Arc<Held> {
        &self.held
    }
}
