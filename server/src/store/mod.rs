//! The tables on disk: takes rows in, commits them in groups, and hands out consistent views.
//!
//! In: [`Rows`], record batches of every table that belong to one accepted batch. Out: [`Snapshot`]s, in which a row that was
//! appended stands exactly once: among the pending rows, or in a committed file. Times are nanoseconds since the Unix epoch.
//! Nothing is acknowledged before it is committed and synced to the disk. Knows nothing of HTTP or OTLP.

mod batch_row;
mod book;
mod checkpoint;
mod clock;
mod coded;
pub(crate) mod columns;
mod commit;
mod compact;
mod damage;
mod dedup;
mod error;
#[cfg(test)]
mod faults;
mod file;
mod fresh;
mod hour;
mod ids;
mod known;
mod ledger;
mod local;
mod log;
mod log_check;
mod log_schema;
mod memory_pool;
mod merge;
mod nodes;
mod notes;
mod packing;
mod provider;
mod retain;
mod rollup;
mod rows;
mod salvage;
mod samples;
mod schema;
mod snapshot;
mod txns;
mod unlogged;

pub use batch_row::BatchRow;
pub use clock::{Clock, Reading};
pub use commit::Ticket;
pub use damage::DamagedFile;
pub use error::StoreError;
pub use fresh::{Common, FreshSample, FreshSamples, MAX_TYPES, NO_CPU, Pending};
pub use ledger::Owner;
pub use nodes::NodeInfo;
pub use retain::Stale;
pub use schema::{SERIES_LABELS, Table, day, hour};
pub use snapshot::{ColumnRange, DataFile, Snapshot};

use crate::durations::Durations;
use arrow::array::RecordBatch;
use commit::Inbox;
use damage::Damage;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use ledger::Ledger;
use local::DurableStore;
use log::TableLog;
use memory_pool::QueryPool;
use nodes::Nodes;
use salvage::Place;
use std::collections::HashSet;
use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// The rows of one accepted batch. Every record batch has its table's whole schema (partition column included), and holds rows
/// of one partition only; of `samples` and `batches` there are none, their rows are [`Rows::samples`] and [`Rows::batch`].
#[derive(Debug, Clone, Default)]
pub struct Rows {
    pub samples: Vec<FreshSamples>,
    pub tables: [Vec<RecordBatch>; Table::COUNT],
    /// The sender's account of the batch, where there is one.
    pub batch: Option<BatchRow>,
    /// What [`Store::known_epoch`] was before rows were left out since [`Store::known_rows`] has them; none: all are there.
    pub relies_on: Option<u64>,
    /// Who sent it.
    pub sender: Sender,
    /// The time of samples that were sent without one: another when the batch is sent again.
    pub stand_in_ns: Option<i64>,
}

/// Who sends, as far as it is known.
#[derive(Debug, Clone, Default)]
pub struct Sender {
    pub owner: Owner,
    /// All tokens that are valid now, as in [`Owner::token`].
    pub tokens: Arc<[u32]>,
}

/// What makes a batch the same batch as another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BatchId {
    /// The sender's instance, a UUID.
    pub instance: String,
    /// From 1 up.
    pub number: i64,
}

/// It is tried to write so often at most, and given up after so long.
const PROBE_EVERY: Duration = Duration::from_secs(1);
const PROBE_WITHIN: Duration = Duration::from_secs(3);

/// Without a size in the configuration tables may take so many hundredths of what is free, with what they have, at the start.
pub const FREE_SHARE_PERCENT: u64 = 80;

/// How an accepted batch ended up on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ack {
    Stored,
    /// It was stored, or on its way, before.
    Duplicate,
    /// Its number was stored, or on its way, before, and held other samples: these are left out.
    Conflict,
}

/// How the store behaves.
#[derive(Debug, Clone)]
pub struct StoreConfig {
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
    /// The newest entries of a table's log that stay, whatever checkpoints there are, for readers that are at an older version.
    pub log_commits: u64,
    pub clock: Arc<Clock>,
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
        }
    }

    /// How long the rows of `samples` or a roll-up are kept.
    fn retention_of(&self, table: Table) -> Duration {
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
    pub samples_stored: AtomicU64,
    pub batches_stored: AtomicU64,
    pub batches_duplicate: AtomicU64,
    pub batches_conflicting: AtomicU64,
    pub commits: AtomicU64,
    pub commits_failed: AtomicU64,
    pub commit_seconds: Durations,
    pub bytes_written: AtomicU64,
    pub files_compacted: AtomicU64,
    pub files_expired: AtomicU64,
}

/// The open tables. One process at a time has a data directory open.
#[derive(Debug)]
pub struct Store {
    config: StoreConfig,
    view: RwLock<Snapshot>,
    inbox: Mutex<Inbox>,
    nodes: Mutex<Nodes>,
    logs: [tokio::sync::Mutex<TableLog>; Table::COUNT],
    files: DurableStore,
    query_pool: Arc<QueryPool>,
    damage: Arc<Damage>,
    garbage: Mutex<Vec<retain::Garbage>>,
    /// Files of dictionaries that are not merged for their size, by path below their table's folder.
    too_large: Mutex<HashSet<String>>,
    /// Wakes the committer before its time.
    wake: Arc<Notify>,
    /// Tells that pending rows have gone.
    committed: Notify,
    disk_full: AtomicBool,
    /// When it was last tried to write, and whether that went well.
    probed: tokio::sync::Mutex<Option<(Instant, bool)>>,
    /// Samples before this time are gone for want of space, and none are taken in any more.
    floor_ns: AtomicI64,
    pub counters: StoreCounters,
    /// Held by the one round of maintenance that runs.
    maintaining: tokio::sync::Mutex<()>,
    tasks: tokio::sync::Mutex<Vec<JoinHandle<()>>>,
    stop: tokio::sync::watch::Sender<bool>,
    /// Locked as long as the store is open.
    _lock: File,
}

impl Store {
    /// Opens the directory, creating what is missing, and starts committing and maintenance in the background.
    pub async fn open(config: StoreConfig) -> Result<Arc<Self>, StoreError> {
        Self::open_over(config, |_, store| store).await
    }

    /// As [`Store::open`], with something between the logs and their folders.
    async fn open_over(config: StoreConfig, over: log::Over) -> Result<Arc<Self>, StoreError> {
        let config = StoreConfig {
            dir: prepare_dir(&config.dir)?,
            ..config
        };
        let lock = lock_dir(&config.dir)?;
        let staging = config.dir.join("tmp");
        empty_staging(&staging).map_err(|cause| data_dir(&staging, cause))?;
        let opening = |cause: object_store::Error| data_dir(&config.dir, std::io::Error::other(cause));
        let files = DurableStore::new(Some(&config.dir), staging.clone()).map_err(opening)?;
        let query_pool = Arc::new(QueryPool::new(
            config.query_memory_bytes,
            config.quiet_query_memory_bytes,
        ));
        let runtime = runtime(query_pool.clone(), &files)?;
        let damage = Arc::new(Damage::new(&config.dir));
        let mut view = Snapshot::new(runtime, damage.clone());
        let mut logs = Vec::with_capacity(Table::COUNT);
        let mut txns = Vec::new();
        let mut garbage = Vec::new();
        let stop = tokio::sync::watch::Sender::new(false);
        for table in Table::ALL {
            let loaded = TableLog::open(Place {
                table,
                dir: config.dir.clone(),
                staging: staging.clone(),
                over,
                clock: config.clock.clone(),
                stop: stop.subscribe(),
            })
            .await?;
            for fault in &loaded.faults {
                damage.add_log(table, fault);
            }
            garbage.extend(retain::unreferenced(table, &config.dir, &loaded.files));
            view.files[table.index()] = Arc::new(loaded.files);
            txns.extend(loaded.txns);
            logs.push(tokio::sync::Mutex::new(loaded.log));
        }
        let config = StoreConfig {
            retention_bytes: config.retention_bytes.or_else(|| share_of_disk(&config, &view)),
            ..config
        };
        let nodes = Nodes::load(&view)
            .await
            .map_err(StoreError::table(Table::Batches, "read the agents' accounts"))?;
        let floor_ns = retain::floor_ns(&view);
        config.clock.begin(retain::newest_ns(&view));
        let logs = <[_; Table::COUNT]>::try_from(logs).map_err(|_| StoreError::Stopping)?;
        let store = Arc::new(Self {
            view: RwLock::new(view),
            inbox: Mutex::new(Inbox::new(Ledger::from_txns(&txns))),
            nodes: Mutex::new(nodes),
            logs,
            files,
            query_pool,
            damage,
            garbage: Mutex::new(garbage),
            too_large: Mutex::default(),
            wake: Arc::new(Notify::new()),
            committed: Notify::new(),
            disk_full: AtomicBool::new(false),
            probed: tokio::sync::Mutex::default(),
            floor_ns: AtomicI64::new(floor_ns),
            counters: StoreCounters::default(),
            maintaining: tokio::sync::Mutex::new(()),
            tasks: tokio::sync::Mutex::new(Vec::new()),
            stop,
            _lock: lock,
            config,
        });
        store.check_space();
        let mut tasks = store.tasks.lock().await;
        tasks.push(tokio::spawn(commit::run(
            Arc::downgrade(&store),
            store.stop.subscribe(),
        )));
        tasks.push(tokio::spawn(retain::run(
            Arc::downgrade(&store),
            store.stop.subscribe(),
        )));
        drop(tasks);
        Ok(store)
    }

    /// A cheap, consistent view: rows appended before this call are in it exactly once, later ones never.
    pub fn snapshot(&self) -> Snapshot {
        self.view.read().unwrap_or_else(PoisonError::into_inner).of_one_reader()
    }

    /// Every agent's latest account, newest first.
    pub fn nodes(&self) -> Vec<NodeInfo> {
        lock_mutex(&self.nodes).list()
    }

    /// Memory that queries may take, all together.
    pub fn query_memory_bytes(&self) -> usize {
        self.config.query_memory_bytes
    }

    /// Bytes that wait for their commit.
    pub fn pending_bytes(&self) -> u64 {
        lock_mutex(&self.inbox).pending_bytes()
    }

    /// Returns when there is room for more rows, which may be at once. What is made of a request when there is none was made in vain.
    pub async fn room(&self) {
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

    /// Whether [`Store::room`] would return at once.
    pub fn has_room(&self) -> bool {
        self.pending_bytes() <= self.config.max_pending_bytes
    }

    /// Whether ingest is stopped for want of disk space. Checked anew on every commit interval.
    pub fn is_disk_full(&self) -> bool {
        self.disk_full.load(Ordering::Relaxed)
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
        retain::stale(&lock_mutex(&self.garbage))
    }

    /// Commits what is pending now, and returns when that is done.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let waiter = lock_mutex(&self.inbox).waiter();
        self.wake.notify_one();
        match waiter {
            Some(waiter) => commit::outcome(waiter).await,
            None => Ok(()),
        }
    }

    /// Takes nothing more in, commits what is pending, and ends the background tasks.
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
    }

    /// Whether anything can be stored: by trying, at most once a second.
    pub async fn is_writable(&self) -> bool {
        let mut probed = self.probed.lock().await;
        if let Some((at, is_writable)) = *probed
            && at.elapsed() < PROBE_EVERY
        {
            return is_writable;
        }
        let staging = self.config.dir.join("tmp");
        let dirs = Table::ALL.map(|table| self.config.dir.join(table.name()));
        let probe = tokio::task::spawn_blocking(move || local::probe(&staging, &dirs));
        // A disk that hangs cannot be written to either.
        let is_writable = match tokio::time::timeout(PROBE_WITHIN, probe).await {
            Ok(Ok(Ok(()))) => true,
            Ok(Ok(Err(error))) => {
                tracing::warn!(%error, dir = %self.config.dir.display(), "the data directory cannot be written to");
                false
            }
            Ok(Err(_)) | Err(_) => false,
        };
        *probed = Some((Instant::now(), is_writable));
        is_writable
    }

    /// Looks at the free space and sets whether ingest is stopped.
    fn check_space(&self) {
        let free = match rustix::fs::statvfs(&self.config.dir) {
            Ok(stat) => stat.f_bavail.saturating_mul(stat.f_frsize),
            Err(error) => {
                tracing::warn!(%error, dir = %self.config.dir.display(), "cannot read the free space");
                return;
            }
        };
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

/// A poisoned lock only says that a thread panicked elsewhere; what it guards is changed in single steps.
fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn data_dir(path: &Path, cause: std::io::Error) -> StoreError {
    StoreError::DataDir {
        path: path.to_owned(),
        cause: Arc::new(cause),
    }
}

/// How much tables may take of the disk, where nobody said.
fn share_of_disk(config: &StoreConfig, view: &Snapshot) -> Option<u64> {
    let stat = rustix::fs::statvfs(&config.dir).ok().filter(|_| config.fits_disk)?;
    let free_bytes = stat
        .f_bavail
        .saturating_mul(stat.f_frsize)
        .saturating_sub(config.min_free_bytes);
    let files = Table::ALL.into_iter().flat_map(|table| view.files(table));
    let table_bytes: u64 = files.map(|file| file.size_bytes).sum();
    let retention_bytes = (free_bytes.saturating_add(table_bytes) / 100).saturating_mul(FREE_SHARE_PERCENT);
    tracing::info!(
        retention_bytes,
        free_bytes,
        table_bytes,
        "tables may take {FREE_SHARE_PERCENT} % of the disk's free space; --retention-bytes says another size"
    );
    Some(retention_bytes)
}

fn prepare_dir(dir: &Path) -> Result<PathBuf, StoreError> {
    let text = dir.to_string_lossy();
    if let Some((scheme, _)) = text.split_once("://") {
        if scheme != "file" {
            return Err(StoreError::Unsupported { url: text.into_owned() });
        }
        let path = url::Url::parse(&text).ok().and_then(|url| url.to_file_path().ok());
        return match path {
            Some(path) => prepare_dir(&path),
            None => Err(StoreError::Unsupported { url: text.into_owned() }),
        };
    }
    let absolute = std::path::absolute(dir).map_err(|cause| data_dir(dir, cause))?;
    local::create_dir_durably(&absolute).map_err(|cause| data_dir(&absolute, cause))?;
    local::make_private(&absolute);
    absolute.canonicalize().map_err(|cause| data_dir(&absolute, cause))
}

fn lock_dir(dir: &Path) -> Result<File, StoreError> {
    let path = dir.join("lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(local::FILE_MODE)
        .open(&path)
        .map_err(|cause| data_dir(&path, cause))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Locked { path: dir.to_owned() }),
        Err(TryLockError::Error(cause)) => Err(data_dir(&path, cause)),
    }
}

/// Unfinished files of a run that was killed.
fn empty_staging(staging: &Path) -> std::io::Result<()> {
    local::create_dir_durably(staging)?;
    for entry in std::fs::read_dir(staging)? {
        std::fs::remove_file(entry?.path())?;
    }
    Ok(())
}

fn runtime(pool: Arc<QueryPool>, files: &DurableStore) -> Result<Arc<RuntimeEnv>, StoreError> {
    let failed = StoreError::table(Table::Samples, "set up queries");
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(pool)
        // What does not fit into the memory ends with an error: nothing is written outside of the data directory, and nothing large there.
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled))
        .build_arc()
        .map_err(failed)?;
    let url = url::Url::parse(provider::STORE_URL).map_err(StoreError::table(Table::Samples, "set up queries"))?;
    runtime.register_object_store(&url, Arc::new(files.clone()));
    Ok(runtime)
}
