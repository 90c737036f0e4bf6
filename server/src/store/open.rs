//! Opens a data directory.

use crate::memory::query_pool::QueryPool;
use crate::store::buffer::commit_queue::Inbox;
use crate::store::buffer::sender_window::Ledger;
use crate::store::commit;
use crate::store::log::location::{self, Place};
use crate::store::log::opening;
use crate::store::maintenance::retention;
use crate::store::root::durable::{self, DurableStore};
use crate::store::root::local::LocalReader;
use crate::store::root::reader::RangeReader;
use crate::store::state::{FREE_SHARE_PERCENT, Store, StoreConfig, StoreCounters};
use crate::store::table::error::StoreError;
use crate::store::table::integrity::Damage;
use crate::store::table::orphans;
use crate::store::table::schema::Table;
use crate::store::view::agents::Nodes;
use crate::store::view::relation;
use crate::store::view::snapshot::Snapshot;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, Mutex, RwLock};
use tokio::sync::Notify;

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
    durable::create_dir_durably(&absolute).map_err(|cause| data_dir(&absolute, cause))?;
    durable::make_private(&absolute);
    absolute.canonicalize().map_err(|cause| data_dir(&absolute, cause))
}

fn lock_dir(dir: &Path) -> Result<File, StoreError> {
    let path = dir.join("lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(durable::FILE_MODE)
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
    durable::create_dir_durably(staging)?;
    for entry in std::fs::read_dir(staging)? {
        std::fs::remove_file(entry?.path())?;
    }
    Ok(())
}

fn runtime(pool: Arc<QueryPool>, files: &DurableStore) -> Result<Arc<RuntimeEnv>, StoreError> {
    let failed = StoreError::table(Table::Samples, "set up queries");
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(pool)
        // What does not fit into the memory ends with an error: nothing is written outside of the data directory, and
        // nothing large there.
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled))
        .build_arc()
        .map_err(failed)?;
    let url = url::Url::parse(relation::STORE_URL).map_err(StoreError::table(Table::Samples, "set up queries"))?;
    runtime.register_object_store(&url, Arc::new(files.clone()));
    Ok(runtime)
}

impl Store {
    /// Opens the directory, creating what is missing, and starts committing and maintenance in the background.
    pub async fn open(config: StoreConfig) -> Result<Arc<Self>, StoreError> {
        Self::open_over(config, |_, store| store).await
    }

    /// As [`Store::open`], with something between the logs and their folders.
    pub(crate) async fn open_over(config: StoreConfig, over: location::Over) -> Result<Arc<Self>, StoreError> {
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
        let reader: Arc<dyn RangeReader> = Arc::new(LocalReader::new(&config.dir));
        let damage = Arc::new(Damage::new(&config.dir, reader.clone()));
        let mut view = Snapshot::new(runtime, reader.clone(), damage.clone());
        let mut logs = Vec::with_capacity(Table::COUNT);
        let mut txns = Vec::new();
        let mut garbage = Vec::new();
        let stop = tokio::sync::watch::Sender::new(false);
        for table in Table::ALL {
            let loaded = opening::open(Place {
                table,
                dir: config.dir.clone(),
                reader: reader.clone(),
                staging: staging.clone(),
                over,
                clock: config.clock.clone(),
                stop: stop.subscribe(),
            })
            .await?;
            for fault in &loaded.faults {
                damage.add_log(table, fault);
            }
            garbage.extend(orphans::unreferenced(table, &config.dir, &loaded.files));
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
        let floor_ns = retention::floor_ns(&view);
        config.clock.begin(retention::newest_ns(&view));
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
        tasks.push(tokio::spawn(retention::run(
            Arc::downgrade(&store),
            store.stop.subscribe(),
        )));
        drop(tasks);
        Ok(store)
    }
}
