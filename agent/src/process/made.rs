//! Code that programs make while they run, and the perf maps in which they say what it is.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

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

/// The perf map of one process, `/tmp/perf-PID.map` in its own root under the id that it has there itself; where there
/// is none, the jitdump that it maps.
#[derive(Debug)]
pub struct PerfMapFile {
    /// The source whose code it names.
    pub id: SourceId,
    tgid: u32,
    /// Whose map it is, also when the id was given to another.
    start_ticks: Option<u64>,
    held: Arc<Held>,
    looked_ns: AtomicU64,
    /// Where its jitdump is, as it sees it.
    dump: OnceLock<Box<str>>,
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
            dump: OnceLock::new(),
        };
        map.open();
        map
    }

    /// Takes note of a file that the process maps, if it is the jitdump that a compiler maps for being found.
    pub(super) fn note_mapped(&self, path: &str) {
        let name = path.rsplit('/').next().unwrap_or_default();
        let number = name.strip_prefix("jit-").and_then(|rest| rest.strip_suffix(".dump"));
        let is_dump =
            number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
        if is_dump && self.dump.set(path.into()).is_ok() && self.held.get().is_none() {
            self.open();
        }
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
        let dump = self.dump.get().cloned();
        let opened = guarded_for(tgid, move || {
            let (inner, user) = proc_files::id_and_user(tgid)?;
            let map = open_own(tgid, &format!("/tmp/perf-{inner}.map"), user);
            let file = map.or_else(|| open_own(tgid, &dump?, user))?;
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
