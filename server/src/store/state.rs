//! The open store: what it is configured with, what it holds, what it counts.

use crate::clock::Clock;
use crate::durations::Durations;
use crate::lock::lock_mutex;
use crate::memory::query_pool::QueryPool;
use crate::store::buffer::commit_queue::CommitQueue;
use crate::store::log::table_log::TableLog;
use crate::store::members::Members;
use crate::store::notebook::{Bursts, Expected, Marker, Markers, Put, Quotas, Refused, View, Views};
use crate::store::root::contract::{Lock, Root};
use crate::store::root::traffic::Traffic;
use crate::store::root::waiting::waiting;
use crate::store::table::data_file::DataFile;
use crate::store::table::integrity::Corruption;
use crate::store::table::orphans::{self, Stale};
use crate::store::table::schema::Table;
use crate::store::view::agents::{NodeInfo, Nodes};
use crate::store::view::snapshot::Snapshot;
use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// It is tried to write so often at most, and given up after so long.
const PROBE_EVERY: Duration = Duration::from_secs(1);

const PROBE_WITHIN: Duration = Duration::from_secs(3);

/// Without a size in the configuration tables may take so many hundredths of what is free, with what they have, at
/// the start.
pub const FREE_SHARE_PERCENT: u64 = 80;

/// How the store behaves.
#[derive(Debug, Clone)]
pub struct StoreConfig {
    /// The data directory.
    pub dir: PathBuf,
    /// Time from one commit to the next.
    pub commit_interval: Duration,
    /// Memory that rows may take while they wait for their commit.
    pub max_pending_bytes: u64,
    /// Below this much free space nothing is taken in.
    pub min_free_bytes: u64,
    /// Memory for queries, all together.
    pub query_memory_bytes: usize,
    /// The same while nothing is taken in, where that is more.
    pub quiet_query_memory_bytes: usize,
    /// How long samples are kept.
    pub retention_samples: Duration,
    /// How long the roll-ups by minute and by ten seconds are kept.
    pub retention_minutes: Duration,
    /// How long the roll-up by hour is kept.
    pub retention_hours: Duration,
    /// Bytes of all tables, beyond which the oldest hours go; none: as many as there is space for.
    pub retention_bytes: Option<u64>,
    /// Where there is none: take the usual share of the disk, as it is at the start.
    pub fits_disk: bool,
    /// An hour or day that is over is rewritten, and rolled up, when nothing has come for this long.
    pub settle: Duration,
    /// How long files stay that a newer version of a table has replaced, for queries that still read them.
    pub vacuum_grace: Duration,
    /// Time from one round of compaction and retention to the next.
    pub maintenance_interval: Duration,
    /// Memory that the rows of a dictionary may take which are merged at a time.
    pub merge_bytes: usize,
    /// An hour or day that still changes is rewritten when it has this many files.
    pub compact_files: usize,
    /// Commits from one checkpoint of a table's log to the next.
    pub checkpoint_commits: u64,
    /// The newest entries of a table's log that stay, whatever checkpoints there are, for readers that are at an
    /// older version.
    pub log_commits: u64,
    /// Tells the time, and which times samples may have.
    pub clock: Arc<Clock>,
    /// Several servers have the directory or the bucket at once, each with this.
    pub is_shared: bool,
    /// Where other servers on the same data reach this one.
    pub address: String,
    /// Where it counts shares of questions for them; empty: nowhere.
    pub exchange: String,
    /// Time from one look at what they have committed to the next.
    pub look_interval: Duration,
    /// A file that no log names counts as one that nobody will name when it is older.
    pub orphan_age: Duration,
}

impl StoreConfig {
    /// The defaults, for a directory.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            commit_interval: Duration::from_secs(2),
            max_pending_bytes: 256 << 20,
            min_free_bytes: 256 << 20,
            query_memory_bytes: 2 << 30,
            quiet_query_memory_bytes: 0,
            retention_samples: Duration::from_secs(30 * 24 * 3600),
            retention_minutes: Duration::from_secs(30 * 24 * 3600),
            retention_hours: Duration::from_secs(400 * 24 * 3600),
            retention_bytes: None,
            fits_disk: false,
            settle: Duration::from_secs(600),
            vacuum_grace: Duration::from_secs(600),
            maintenance_interval: Duration::from_secs(10),
            merge_bytes: 128 << 20,
            compact_files: 16,
            checkpoint_commits: 100,
            log_commits: 300,
            clock: Arc::new(Clock::system()),
            is_shared: false,
            address: String::new(),
            exchange: String::new(),
            look_interval: Duration::from_secs(1),
            orphan_age: Duration::from_secs(2 * 3600),
        }
    }

    /// How long the rows of `samples` or a roll-up are kept.
    pub(crate) fn retention_of(&self, table: Table) -> Duration {
        match table {
            Table::SamplesMinute | Table::SamplesTenSeconds => self.retention_minutes,
            Table::SamplesHour => self.retention_hours,
            _ => self.retention_samples,
        }
    }
}

/// Counters since the start.
#[derive(Debug, Default)]
pub struct StoreCounters {
    /// Samples that were committed.
    pub samples_stored: AtomicU64,
    /// Batches that were committed.
    pub batches_stored: AtomicU64,
    /// Batches that had been stored, or were on their way, before.
    pub batches_duplicate: AtomicU64,
    /// Batches whose number had been stored with other samples.
    pub batches_conflicting: AtomicU64,
    /// Group commits that succeeded.
    pub commits: AtomicU64,
    /// Group commits that failed; the senders were asked to send again.
    pub commits_failed: AtomicU64,
    /// How long group commits took, failed ones too.
    pub commit_seconds: Durations,
    /// Entries that other servers put where one of this server's was to be.
    pub conflicts: AtomicU64,
    /// How long commits were kept by those of others, of commits that met any.
    pub conflict_seconds: Durations,
    /// Entries of logs that others wrote and this server read.
    pub entries_read: AtomicU64,
    /// Bytes of data files that were written, by commits and by maintenance.
    pub bytes_written: AtomicU64,
    /// Data files that maintenance replaced by others.
    pub files_compacted: AtomicU64,
    /// Data files that were older than the retention, or had to go for want of space.
    pub files_expired: AtomicU64,
}

/// The open tables. One process at a time has a data directory open, but where several servers share it.
#[derive(Debug)]
pub struct Store {
    pub(crate) config: StoreConfig,
    pub(crate) view: RwLock<Snapshot>,
    pub(crate) inbox: Mutex<CommitQueue>,
    pub(crate) nodes: Mutex<Nodes>,
    pub(crate) logs: [tokio::sync::Mutex<TableLog>; Table::COUNT],
    /// Where the data is.
    pub(crate) root: Arc<dyn Root>,
    /// What people keep beside samples.
    pub(crate) markers: Markers,
    pub(crate) views: Views,
    /// Closer looks that somebody asked for.
    pub(crate) bursts: Bursts,
    /// The servers on the same data; none where this one has it for itself.
    pub(crate) members: Option<Members>,
    /// When all was known last that others had committed.
    pub(crate) followed: Mutex<Instant>,
    /// Samples before this time were removed by another server.
    pub(crate) gone_ns: AtomicI64,
    /// Files of `batches` that others committed, whose agents' reports are not counted yet.
    pub(crate) uncounted_reports: Mutex<Vec<Arc<DataFile>>>,
    /// When files that no log names were looked for last.
    pub(crate) searched: Mutex<Option<Instant>>,
    /// What was taken today of quotas.
    pub(crate) quotas: Quotas,
    pub(crate) query_pool: Arc<QueryPool>,
    pub(crate) damage: Arc<Corruption>,
    pub(crate) garbage: Mutex<Vec<orphans::ObsoleteFile>>,
    /// Files of dictionaries that are not merged for their size, by path below their table's folder.
    pub(crate) too_large: Mutex<HashSet<String>>,
    /// Wakes the committer before its time.
    pub(crate) wake: Arc<Notify>,
    /// Tells that pending rows have gone.
    pub(crate) committed: Notify,
    pub(crate) disk_full: AtomicBool,
    /// As it was seen last; the largest number where nobody knows.
    pub(crate) free_bytes: AtomicU64,
    /// When it was last tried to write, and whether that went well.
    pub(crate) probed: tokio::sync::Mutex<Option<(Instant, bool)>>,
    /// Samples before this time are gone for want of space, and none are taken in any more.
    pub(crate) floor_ns: AtomicI64,
    /// What was stored, and what was written for it.
    pub counters: StoreCounters,
    /// Held by the one round of maintenance that runs.
    pub(crate) maintaining: tokio::sync::Mutex<()>,
    pub(crate) tasks: tokio::sync::Mutex<Vec<JoinHandle<()>>>,
    pub(crate) stop: tokio::sync::watch::Sender<bool>,
    /// Held until the store is closed.
    pub(crate) lock: Mutex<Option<Lock>>,
}

impl Store {
    /// A cheap, consistent view: rows appended before this call are in it exactly once, later ones never.
    pub fn snapshot(&self) -> Snapshot {
        self.view.read().unwrap_or_else(PoisonError::into_inner).of_one_reader()
    }

    /// Whether other servers may write to the same data.
    pub fn is_shared(&self) -> bool {
        self.members.is_some()
    }

    /// Every agent's latest report, newest first.
    pub fn nodes(&self) -> Vec<NodeInfo> {
        lock_mutex(&self.nodes).list()
    }

    /// Markers of `[from_ms, until_ms)` that are wanted, with their ids, in the order of time.
    pub(crate) fn markers(&self, window_ms: (i64, i64), is_wanted: impl Fn(&Marker) -> bool) -> Vec<(String, Marker)> {
        self.markers.within(window_ms, is_wanted)
    }

    /// Keeps a marker as long as any roll-up.
    pub(crate) async fn put_marker(&self, id: String, marker: Marker, now_ms: i64) -> Result<Put, Refused> {
        let keeps = [self.config.retention_samples, self.config.retention_hours];
        let kept = keeps.into_iter().max().unwrap_or_default();
        let kept_ms = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
        self.markers.put(id, marker, now_ms.saturating_sub(kept_ms)).await
    }

    /// Closer looks that somebody asked for.
    pub(crate) fn bursts(&self) -> &Bursts {
        &self.bursts
    }

    /// What was taken today of a quota by its name, bytes and series, and how many batches it refused since the start.
    pub(crate) fn quota_used(&self, name: &str) -> (u64, u64, u64) {
        let inbox = lock_mutex(&self.inbox);
        let (bytes, series) = inbox.quotas.used(name, self.config.clock.wall_ns());
        (bytes, series, inbox.quotas.refused.get(name).copied().unwrap_or(0))
    }

    /// Keeps what was taken of quotas, where that is due; all that is new where the store ends.
    pub(crate) async fn keep_quotas(&self, at_end: bool) {
        let now_ns = self.config.clock.wall_ns();
        let due = self.quotas.due(&mut lock_mutex(&self.inbox).quotas, now_ns, at_end);
        self.quotas.keep(due).await;
    }

    /// Addresses by their names.
    pub(crate) fn views(&self) -> Arc<BTreeMap<String, View>> {
        self.views.all()
    }

    /// See [`Views::put`].
    pub(crate) async fn put_view(
        &self,
        name: String,
        address: String,
        expected: Expected,
        now_ms: i64,
    ) -> Result<(View, bool), Refused> {
        self.views.put(name, address, expected, now_ms).await
    }

    /// See [`Views::remove`].
    pub(crate) async fn remove_view(&self, name: String, expected: Expected) -> Result<(), Refused> {
        self.views.remove(name, expected).await
    }

    /// Memory that queries may take, all together.
    pub fn query_memory_bytes(&self) -> usize {
        self.config.query_memory_bytes
    }

    /// Bytes that wait for their commit.
    pub fn pending_bytes(&self) -> u64 {
        lock_mutex(&self.inbox).pending_bytes()
    }

    /// Returns when there is room for more rows, which may be at once. What is made of a request when there is none
    /// was made in vain.
    pub async fn wait_for_room(&self) {
        loop {
            let committed = self.committed.notified();
            tokio::pin!(committed);
            // From here on no commit is missed.
            committed.as_mut().enable();
            if self.has_room() {
                return;
            }
            committed.await;
        }
    }

    /// Whether [`Store::wait_for_room`] would return at once.
    pub fn has_room(&self) -> bool {
        self.pending_bytes() <= self.config.max_pending_bytes
    }

    /// Whether ingest is stopped for want of disk space. Checked anew on every commit interval.
    pub fn is_disk_full(&self) -> bool {
        self.disk_full.load(Ordering::Relaxed)
    }

    /// Free space for the data, as of the last commit interval, and below how much nothing is taken in; none where
    /// nobody knows.
    pub fn free_bytes(&self) -> Option<(u64, u64)> {
        let free_bytes = self.free_bytes.load(Ordering::Relaxed);
        (free_bytes != u64::MAX).then_some((free_bytes, self.config.min_free_bytes))
    }

    /// What time it is.
    pub fn clock(&self) -> &Clock {
        &self.config.clock
    }

    /// Samples before this time are not taken in: they are older than the retention, or than what there is room for.
    pub fn earliest_ns(&self, now_ns: i64) -> i64 {
        let age = i64::try_from(self.config.retention_samples.as_nanos()).unwrap_or(i64::MAX);
        now_ns.saturating_sub(age).max(self.floor_ns.load(Ordering::SeqCst))
    }

    /// Files on the disk that no table has any more, by table and reason: number and bytes.
    pub fn stale_files(&self) -> Vec<(Table, Stale, usize, u64)> {
        orphans::stale(&lock_mutex(&self.garbage))
    }

    /// Takes nothing more in, commits what is pending, ends the background tasks, and lets another process have the
    /// data.
    pub async fn close(&self) {
        lock_mutex(&self.inbox).stop();
        self.stop.send_replace(true);
        // A second caller waits for the first: whoever returns may rely on the commit.
        let mut tasks = self.tasks.lock().await;
        for task in tasks.drain(..) {
            if let Err(error) = task.await {
                tracing::error!(%error, "a background task of the store failed");
            }
        }
        if let Some(members) = &self.members {
            members.leave().await;
        }
        let lock = lock_mutex(&self.lock).take();
        // That a lease is released may take a while.
        if let Err(error) = tokio::task::spawn_blocking(move || drop(lock)).await {
            tracing::error!(%error, "the data could not be let go");
        }
    }

    /// What was asked of a bucket; none where the data is on a disk.
    pub(crate) fn traffic(&self) -> Option<Arc<Traffic>> {
        self.root.traffic()
    }

    /// Whether anything can be stored: by trying, at most once a second.
    pub async fn is_writable(&self) -> bool {
        let mut probed = self.probed.lock().await;
        if let Some((at, is_writable)) = *probed
            && at.elapsed() < PROBE_EVERY
        {
            return is_writable;
        }
        let root = self.root.clone();
        let probe = waiting(move || root.probe(&Table::ALL.map(Table::name)));
        // A disk that hangs cannot be written to either.
        let is_writable = match tokio::time::timeout(PROBE_WITHIN, probe).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                let (error, dir) = (error.cause(), self.root.reader().name_of(""));
                tracing::warn!(%error, %dir, "the data directory cannot be written to");
                false
            }
            Err(_) => false,
        };
        *probed = Some((Instant::now(), is_writable));
        is_writable
    }

    /// Looks at the free space and sets whether ingest is stopped.
    pub(crate) fn check_space(&self) {
        let free = match self.root.free_bytes() {
            Ok(free) => free.unwrap_or(u64::MAX),
            Err(error) => {
                let (error, dir) = (error.cause(), self.root.reader().name_of(""));
                tracing::warn!(%error, %dir, "cannot read the free space");
                return;
            }
        };
        self.free_bytes.store(free, Ordering::Relaxed);
        let full = free < self.config.min_free_bytes;
        if full != self.disk_full.swap(full, Ordering::Relaxed) {
            let (free_bytes, min_free_bytes) = (free, self.config.min_free_bytes);
            if full {
                tracing::error!(
                    free_bytes,
                    min_free_bytes,
                    "disk full: taking nothing in until there is space"
                );
            } else {
                tracing::info!(free_bytes, min_free_bytes, "there is space again: taking batches in");
            }
        }
    }
}
