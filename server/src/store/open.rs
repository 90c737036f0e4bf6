//! Opens a data directory.

use crate::memory::query_pool::QueryPool;
use crate::store::buffer::commit_queue::CommitQueue;
use crate::store::buffer::sender_window::SenderWindow;
use crate::store::commit;
use crate::store::keep::mark;
use crate::store::log::location::{self, TableLocation};
use crate::store::log::opening;
use crate::store::maintenance::retention;
use crate::store::members::Members;
use crate::store::notebook::{Bursts, Markers, Quotas, Views};
use crate::store::root;
use crate::store::root::contract::{Lock, Root};
use crate::store::root::error::RootError;
use crate::store::root::open::OpenError;
use crate::store::root::waiting::waiting;
use crate::store::shared::follow;
use crate::store::state::{FREE_SHARE_PERCENT, Store, StoreConfig, StoreCounters};
use crate::store::table::error::StoreError;
use crate::store::table::format_version::{self, FormatError};
use crate::store::table::integrity::Corruption;
use crate::store::table::orphans;
use crate::store::table::schema::Table;
use crate::store::view::agents::Nodes;
use crate::store::view::relation;
use crate::store::view::snapshot::Snapshot;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Instant;
use tokio::sync::Notify;

/// A sixth of the queries' memory, or a sixteenth of all, may hold what was read from a bucket.
const PAGES_SHARE: usize = 6;

fn data_dir(name: String, cause: Box<dyn Error + Send + Sync>) -> StoreError {
    let cause = cause.into();
    StoreError::DataDir { name, cause }
}

/// How much tables may take of the disk, where nobody said.
fn share_of_disk(config: &StoreConfig, root: &dyn Root, view: &Snapshot) -> Option<u64> {
    let free_bytes = root.free_bytes().ok().flatten().filter(|_| config.fits_disk)?;
    let free_bytes = free_bytes.saturating_sub(config.min_free_bytes);
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

/// Opens the place where the data is, and locks it for this server.
fn open_root(place: &Path, is_shared: bool) -> Result<(Arc<dyn Root>, Lock), StoreError> {
    let root = root::open::open_as(place, is_shared).map_err(|error| match error {
        OpenError::Unsupported { url } => StoreError::Unsupported { url },
        OpenError::Failed(error) => data_dir(error.object().to_owned(), error.into_cause()),
    })?;
    let name_of = |path: &str| root.reader().name_of(path);
    let locked = if root.is_shared() { root.join() } else { root.lock() };
    let lock = locked.map_err(|error| match error {
        RootError::Exists(_) => StoreError::Locked { name: name_of("") },
        error => data_dir(name_of(error.object()), error.into_cause()),
    })?;
    let admitted = mark::serve(root.as_ref()).and_then(|()| format_version::admit(root.as_ref()));
    admitted.map_err(|error| match error {
        FormatError::Refused(problem) => StoreError::Format {
            name: name_of(""),
            problem,
        },
        FormatError::Failed(error) => data_dir(name_of(error.object()), error.into_cause()),
    })?;
    Ok((root, lock))
}

/// What the root keeps in memory is taken from what queries may.
fn sharing(config: StoreConfig, root: &dyn Root) -> StoreConfig {
    let taken = root.keeps(config.query_memory_bytes / PAGES_SHARE);
    StoreConfig {
        query_memory_bytes: config.query_memory_bytes - taken,
        quiet_query_memory_bytes: config.quiet_query_memory_bytes.saturating_sub(taken),
        ..config
    }
}

fn runtime(pool: Arc<QueryPool>, root: &dyn Root) -> Result<Arc<RuntimeEnv>, StoreError> {
    let failed = StoreError::table(Table::Samples, "set up queries");
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(pool)
        // What does not fit into the memory ends with an error: nothing is written outside of the data directory, and
        // nothing large there.
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled))
        .build_arc()
        .map_err(failed)?;
    let url = url::Url::parse(relation::STORE_URL).map_err(StoreError::table(Table::Samples, "set up queries"))?;
    runtime.register_object_store(&url, root.objects());
    Ok(runtime)
}

impl Store {
    /// Opens the directory, creating what is missing, and starts committing and maintenance in the background.
    pub async fn open(config: StoreConfig) -> Result<Arc<Self>, StoreError> {
        Self::open_over(config, |_, store| store).await
    }

    /// As [`Store::open`], with something between the logs and their folders.
    pub(crate) async fn open_over(config: StoreConfig, over: location::Over) -> Result<Arc<Self>, StoreError> {
        let (place, is_shared) = (config.dir.clone(), config.is_shared);
        let opened = tokio::task::spawn_blocking(move || open_root(&place, is_shared)).await;
        let failed = |error| data_dir(config.dir.display().to_string(), Box::new(error));
        let (root, lock) = opened.map_err(failed)??;
        let config = sharing(config, root.as_ref());
        let query_pool = Arc::new(QueryPool::new(
            config.query_memory_bytes,
            config.quiet_query_memory_bytes,
        ));
        let runtime = runtime(query_pool.clone(), root.as_ref())?;
        let damage = Arc::new(Corruption::new(root.clone()));
        let mut view = Snapshot::new(runtime, root.reader(), damage.clone());
        let mut logs = Vec::with_capacity(Table::COUNT);
        let mut txns = Vec::new();
        let mut garbage = Vec::new();
        let stop = tokio::sync::watch::Sender::new(false);
        // Where others write, what a row refers to is there when its table's turn comes. Where nobody does, what is
        // taken in without an entry is committed as all else is: before what refers to it.
        let mut order = Table::REFERRERS_FIRST;
        if !root.is_shared() {
            order.reverse();
        }
        for table in order {
            let loaded = opening::open(TableLocation {
                table,
                root: root.clone(),
                prefix: String::new(),
                over,
                clock: config.clock.clone(),
                stop: stop.subscribe(),
            })
            .await?;
            for fault in &loaded.faults {
                damage.add_log(table, fault);
            }
            let files = Arc::new(loaded.files);
            view.files[table.index()] = files.clone();
            // What another server has just written is none of its table yet.
            if !root.is_shared() {
                let of = root.clone();
                let unreferenced = waiting(move || orphans::unreferenced(table, of.as_ref(), &files)).await;
                let failed = StoreError::of_root(table, "look for files that it does not have");
                garbage.extend(unreferenced.map_err(failed)?);
            }
            txns.extend(loaded.txns);
            logs.push((table, tokio::sync::Mutex::new(loaded.log)));
        }
        logs.sort_by_key(|(table, _)| table.index());
        let logs: Vec<_> = logs.into_iter().map(|(_, log)| log).collect();
        let config = StoreConfig {
            retention_bytes: config
                .retention_bytes
                .or_else(|| share_of_disk(&config, root.as_ref(), &view)),
            ..config
        };
        let mut nodes = Nodes::load(&view)
            .await
            .map_err(StoreError::table(Table::Batches, "read the agents' accounts"))?;
        let sender_window = SenderWindow::from_txns(&txns);
        nodes.know(sender_window.windows());
        let floor_ns = retention::floor_ns(&view);
        config.clock.begin(retention::newest_ns(&view));
        let logs = <[_; Table::COUNT]>::try_from(logs).map_err(|_| StoreError::Stopping)?;
        let failed = |error: RootError| data_dir(root.reader().name_of(error.object()), error.into_cause());
        let markers = Markers::open(&root).await.map_err(failed)?;
        let views = Views::open(&root).await.map_err(failed)?;
        let bursts = Bursts::open(&root).await.map_err(failed)?;
        let members = match root.is_shared() {
            true => {
                let addresses = [config.address.clone(), config.exchange.clone()];
                Some(Members::join(&root, addresses).await.map_err(failed)?)
            }
            false => None,
        };
        let quotas = Quotas::open(&root).await.map_err(failed)?;
        let store = Arc::new(Self {
            view: RwLock::new(view),
            inbox: Mutex::new(CommitQueue::new(sender_window, quotas.ledger())),
            nodes: Mutex::new(nodes),
            logs,
            root,
            markers,
            views,
            bursts,
            members,
            followed: Mutex::new(Instant::now()),
            gone_ns: AtomicI64::new(i64::MIN),
            uncounted_reports: Mutex::default(),
            searched: Mutex::default(),
            quotas,
            query_pool,
            damage,
            garbage: Mutex::new(garbage),
            too_large: Mutex::default(),
            wake: Arc::new(Notify::new()),
            committed: Notify::new(),
            disk_full: AtomicBool::new(false),
            free_bytes: AtomicU64::new(u64::MAX),
            probed: tokio::sync::Mutex::default(),
            floor_ns: AtomicI64::new(floor_ns),
            counters: StoreCounters::default(),
            maintaining: tokio::sync::Mutex::new(()),
            tasks: tokio::sync::Mutex::new(Vec::new()),
            stop,
            lock: Mutex::new(Some(lock)),
            config,
        });
        store.check_space();
        if store.is_shared() {
            let current = follow::Current::of(&store);
            store.damage.beside_others(Box::new(current));
        }
        let mut tasks = store.tasks.lock().await;
        tasks.push(tokio::spawn(commit::run(
            Arc::downgrade(&store),
            store.stop.subscribe(),
        )));
        tasks.push(tokio::spawn(retention::run(
            Arc::downgrade(&store),
            store.stop.subscribe(),
        )));
        if store.is_shared() {
            tasks.push(tokio::spawn(follow::run(
                Arc::downgrade(&store),
                store.stop.subscribe(),
            )));
            tasks.push(tokio::spawn(follow::beat(
                Arc::downgrade(&store),
                store.stop.subscribe(),
            )));
        }
        drop(tasks);
        Ok(store)
    }
}
