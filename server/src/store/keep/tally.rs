//! What a copy or a check has done so far, told now and then.

use crate::lock::lock_mutex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Progress is told so often at most.
const TOLD_EVERY: Duration = Duration::from_secs(2);

/// Faults that are told by name; of more only the number.
pub(super) const MOST_FAULTS: usize = 1000;

/// Takes a line of progress.
pub type Tell = Arc<dyn Fn(&str) + Send + Sync>;

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// As a person names it.
    pub file: String,
    /// What is wrong, and where in the file.
    pub what: String,
}

/// What a copy came to.
#[derive(Debug, Clone, Default)]
pub struct Copied {
    /// What was copied to, as a person names it; of a backup its own folder.
    pub to: String,
    /// Data files that were copied.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Data files that were there already.
    pub skipped_files: u64,
    /// Their bytes.
    pub skipped_bytes: u64,
    /// Data files that were removed there, since nothing refers to them any more.
    pub removed_files: u64,
    /// Samples that the copy has.
    pub samples: u64,
    /// How often what is copied was looked at anew, since files of it went meanwhile.
    pub rounds: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Files of the source that are not what was written: they were copied as they are, where they could be read.
    pub faults: Vec<Fault>,
}

/// See the module.
pub(super) struct Tally {
    tell: Tell,
    begun: Instant,
    told: Mutex<Instant>,
    /// What there is to do.
    all_files: AtomicU64,
    all_bytes: AtomicU64,
    /// What went through, of files too that are not through yet.
    moved_bytes: AtomicU64,
    files: AtomicU64,
    bytes: AtomicU64,
    skipped_files: AtomicU64,
    skipped_bytes: AtomicU64,
    /// By path below the source's root.
    faults: Mutex<BTreeMap<String, String>>,
}

/// Bytes as a person reads them.
pub(super) fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

impl Tally {
    pub(super) fn new(tell: Tell) -> Self {
        Self {
            tell,
            begun: Instant::now(),
            told: Mutex::new(Instant::now()),
            all_files: AtomicU64::new(0),
            all_bytes: AtomicU64::new(0),
            moved_bytes: AtomicU64::new(0),
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            skipped_files: AtomicU64::new(0),
            skipped_bytes: AtomicU64::new(0),
            faults: Mutex::default(),
        }
    }

    pub(super) fn tell(&self, line: &str) {
        (self.tell)(line);
    }

    /// There are so many more files to do.
    pub(super) fn begin(&self, files: u64, bytes: u64) {
        self.all_files.fetch_add(files, Ordering::Relaxed);
        self.all_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes of a file went through.
    pub(super) fn moved(&self, bytes: u64) {
        self.moved_bytes.fetch_add(bytes, Ordering::Relaxed);
        {
            let mut told = lock_mutex(&self.told);
            if told.elapsed() < TOLD_EVERY {
                return;
            }
            *told = Instant::now();
        }
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let there = match of(&self.skipped_files) {
            0 => String::new(),
            there => format!(", {there} were there already"),
        };
        self.tell(&format!(
            "{} of {} files, {} of {}{there}; {:.0} s",
            of(&self.files) + of(&self.skipped_files),
            of(&self.all_files),
            mib(of(&self.moved_bytes)),
            mib(of(&self.all_bytes)),
            self.begun.elapsed().as_secs_f64()
        ));
    }

    /// A file is through.
    pub(super) fn done(&self, bytes: u64) {
        self.files.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A file was there.
    pub(super) fn skipped(&self, bytes: u64) {
        self.skipped_files.fetch_add(1, Ordering::Relaxed);
        self.skipped_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.moved(bytes);
    }

    /// `path` is below the source's root.
    pub(super) fn fault(&self, path: &str, what: impl Into<String>) {
        lock_mutex(&self.faults).insert(path.to_owned(), what.into());
    }

    /// What it came to. Of faults those count whose path does, each named as `name_of` has it.
    pub(super) fn copied(&self, counts: impl Fn(&str) -> bool, name_of: impl Fn(&str) -> String) -> Copied {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let faults = lock_mutex(&self.faults);
        let faults = faults.iter().filter(|(path, _)| counts(path));
        Copied {
            files: of(&self.files),
            bytes: of(&self.bytes),
            skipped_files: of(&self.skipped_files),
            skipped_bytes: of(&self.skipped_bytes),
            seconds: self.begun.elapsed().as_secs_f64(),
            faults: faults
                .map(|(path, what)| Fault {
                    file: name_of(path),
                    what: what.clone(),
                })
                .collect(),
            ..Copied::default()
        }
    }
}

impl std::fmt::Display for Copied {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}: {} samples; {} files copied ({}), {} there already ({}), {} removed; {:.1} s",
            self.to,
            self.samples,
            self.files,
            mib(self.bytes),
            self.skipped_files,
            mib(self.skipped_bytes),
            self.removed_files,
            self.seconds
        )?;
        match self.rounds {
            0 | 1 => Ok(()),
            rounds => write!(f, "; looked at {rounds} times, since files were replaced meanwhile"),
        }
    }
}
