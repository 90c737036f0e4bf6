//! Reads what other servers have committed, and makes it part of this one's view.
//!
//! Samples are never seen before what they refer to: their new entries are read first, then those of the tables that
//! were written before them, and only then samples come into the view. A look costs one request where nothing is new.

use crate::lock::lock_mutex;
use crate::store::log::entries::Written;
use crate::store::log::shared_log::News;
use crate::store::log::table_log::TableLog;
use crate::store::members::heartbeat::BEAT_EVERY;
use crate::store::root::error::RootError;
use crate::store::root::waiting::waiting;
use crate::store::state::Store;
use crate::store::table::data_file::DataFile;
use crate::store::table::error::StoreError;
use crate::store::table::file_list::{add_files, of_partition};
use crate::store::table::integrity::CurrentFiles;
use crate::store::table::partition::hour_end_ns;
use crate::store::table::schema::Table;
use crate::store::table::transaction::Txn;
use crate::store::view::agents::Nodes;
use async_trait::async_trait;
use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Instant;
use tokio::sync::watch;

/// One look of so many is at every table, not only at what came with samples: others rewrite files, and a file that
/// was replaced is deleted minutes later.
const ALL_EVERY: u32 = 5;

/// Files of agents' reports that are not counted yet; beyond them agents are counted at the next start.
const MOST_REPORT_FILES: usize = 10_000;

impl Store {
    /// Looks now what other servers have committed, and returns when it is part of the view, however much it is: who
    /// asks this server to count takes it that it knows all that was there when it was asked.
    pub async fn look(&self) -> Result<(), StoreError> {
        if !self.is_shared() {
            return Ok(());
        }
        let mut samples = self.logs[Table::Samples.index()].lock().await;
        self.catch_up(Table::Samples, &mut samples).await?;
        drop(samples);
        self.look_at_the_others(|_| true).await?;
        self.looked().await
    }

    async fn looked(&self) -> Result<(), StoreError> {
        *lock_mutex(&self.followed) = Instant::now();
        self.count_reports().await
    }

    async fn look_at_the_others(&self, is_wanted: impl Fn(Table) -> bool) -> Result<(), StoreError> {
        for table in Table::ALL {
            if table != Table::Samples && is_wanted(table) {
                let mut log = self.logs[table.index()].lock().await;
                loop {
                    let news = log.news().await?;
                    let is_a_part = news.is_a_part();
                    self.take_in(table, &mut log, news);
                    if !is_a_part {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes in what others wrote to a table whose log is locked; of samples first what they refer to. Nobody who has
    /// another table's log locked waits for that of samples.
    pub(crate) async fn catch_up(&self, table: Table, log: &mut TableLog) -> Result<(), StoreError> {
        loop {
            let news = log.news().await?;
            let is_a_part = news.is_a_part();
            if table == Table::Samples && !news.is_empty() {
                // Of an hour whose samples went for their age the roll-ups are all that is left: they were written
                // before.
                let removes = news.removes();
                self.look_at_the_others(|table| removes || !Table::ROLLUPS.contains(&table))
                    .await?;
            }
            self.take_in(table, log, news);
            if !is_a_part {
                return Ok(());
            }
        }
    }

    fn take_in(&self, table: Table, log: &mut TableLog, news: News) {
        match news {
            News::Entries(entries) => {
                for entry in entries {
                    let version = entry.version;
                    self.apply(table, entry);
                    log.read_to(version);
                }
            }
            News::Whole { version, files, txns } => {
                self.apply(table, self.since_then(table, version, files, txns));
                log.read_to(version);
            }
        }
    }

    /// What makes of this server's list of files another one.
    fn since_then(&self, table: Table, version: u64, files: Vec<Arc<DataFile>>, txns: Vec<Txn>) -> Written {
        let snapshot = self.snapshot();
        let before: HashSet<&str> = snapshot.files(table).iter().map(|file| file.path.as_str()).collect();
        let now: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let removed = before.difference(&now).map(|path| (*path).to_owned()).collect();
        let added = files.iter().filter(|file| !before.contains(file.path.as_str()));
        Written {
            version,
            added: added.cloned().collect(),
            removed,
            txns,
            is_rewrite: false,
        }
    }

    /// One entry, in one step. Batches that it stores and that wait here are not seen twice.
    fn apply(&self, table: Table, entry: Written) {
        let mut emptied = BTreeSet::new();
        let mut inbox = lock_mutex(&self.inbox);
        let repeats = inbox.sender_window.apply(&entry.txns);
        let samples = repeats.iter().filter_map(|batch| inbox.samples_of.get(batch));
        let stored: HashSet<u64> = samples.flatten().copied().collect();
        {
            let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
            let files = &mut view.files[table.index()];
            if !entry.removed.is_empty() {
                Arc::make_mut(files).retain(|file| {
                    let goes = entry.removed.contains(&file.path);
                    if goes {
                        emptied.insert(file.partition.clone());
                    }
                    !goes
                });
            }
            let is_new = |file: &&Arc<DataFile>| {
                let known = of_partition(&files[..], &file.partition);
                known.iter().all(|known| known.path != file.path)
            };
            let new: Vec<_> = entry.added.iter().filter(is_new).cloned().collect();
            add_files(files, new);
            emptied.retain(|partition| of_partition(&files[..], partition).is_empty());
            if !stored.is_empty() {
                let pending = &mut view.pending[Table::Samples.index()];
                Arc::make_mut(pending).retain(|rows| !rows.is_one_of(&stored));
            }
        }
        for partition in &emptied {
            inbox.known_mut().forget_day(table, partition);
        }
        drop(inbox);
        if table == Table::Samples {
            self.know_of_samples(&entry, &emptied);
        }
        if table == Table::Batches && !entry.is_rewrite {
            let mut reports = lock_mutex(&self.uncounted_reports);
            let room = MOST_REPORT_FILES.saturating_sub(reports.len());
            reports.extend(entry.added.into_iter().take(room));
        }
        self.counters.entries_read.fetch_add(1, Ordering::Relaxed);
    }

    /// Samples that came say what time it is; hours that others removed take in no more.
    fn know_of_samples(&self, entry: &Written, emptied: &BTreeSet<String>) {
        let newest = entry.added.iter().filter_map(|file| Some(file.int_range("ts_ns")?.max));
        if let Some(newest_ns) = newest.max() {
            self.config.clock.witness(newest_ns);
        }
        // Whoever removed an hour for its age or its bytes has rolled it up: more samples of it would take that
        // roll-up's place.
        if let Some(end_ns) = emptied.iter().filter_map(|hour| hour_end_ns(hour)).max() {
            self.gone_ns.fetch_max(end_ns, Ordering::SeqCst);
            self.floor_ns.fetch_max(end_ns, Ordering::SeqCst);
        }
    }

    /// Adds files that this server has committed itself.
    pub(crate) fn add_to_view(&self, table: Table, new: Vec<Arc<DataFile>>) {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        add_files(&mut view.files[table.index()], new);
    }

    /// What agents said of themselves in batches that others stored.
    async fn count_reports(&self) -> Result<(), StoreError> {
        let mut files = std::mem::take(&mut *lock_mutex(&self.uncounted_reports));
        if files.is_empty() {
            return Ok(());
        }
        files.sort_by(|a, b| (&a.partition, &a.path).cmp(&(&b.partition, &b.path)));
        let mut only = self.snapshot();
        only.files[Table::Batches.index()] = Arc::new(files);
        only.pending[Table::Batches.index()] = Arc::default();
        let rows = match Nodes::rows(&only).await {
            Ok(rows) => rows,
            Err(error) => {
                // The next look counts them.
                let files = only.files[Table::Batches.index()].to_vec();
                let files = self.still_there(Table::Batches, files).await;
                lock_mutex(&self.uncounted_reports).extend(files);
                return Err(StoreError::table(Table::Batches, "read the agents' reports")(error));
            }
        };
        let mut nodes = lock_mutex(&self.nodes);
        rows.iter().for_each(|row| nodes.add(row));
        Ok(())
    }

    /// Those of these files that are there. A server that was far behind reads of files that others have replaced and
    /// deleted since: what agents said in them is counted at the next start.
    async fn still_there(&self, table: Table, files: Vec<Arc<DataFile>>) -> Vec<Arc<DataFile>> {
        let (root, all) = (self.root.clone(), files.clone());
        let there = waiting(move || {
            let (reader, mut answers) = (root.reader(), true);
            // A root that gives no answer about one is not asked about all the others.
            let is_there = |file: &Arc<DataFile>| {
                let length = answers.then(|| reader.length(&table.path_of(&file.path)));
                answers = matches!(length, Some(Ok(_) | Err(RootError::NotFound(_))));
                !matches!(length, Some(Err(RootError::NotFound(_))))
            };
            Ok(files.into_iter().filter(is_there).collect::<Vec<_>>())
        });
        let there = there.await.unwrap_or_else(|_| all.clone());
        let gone = all.len() - there.len();
        if gone > 0 {
            let table = table.name();
            tracing::warn!(
                table,
                gone,
                "others have replaced files before this server has read them"
            );
        }
        there
    }

    async fn refresh_notes(&self, all: bool) -> Result<(), RootError> {
        self.bursts.refresh().await?;
        if all {
            self.markers.refresh().await?;
            self.views.refresh().await?;
            let has_quotas = !lock_mutex(&self.inbox).quotas.used.is_empty();
            if has_quotas && let Some(others) = self.quotas.others().await? {
                lock_mutex(&self.inbox).quotas.know_others(others);
            }
        }
        Ok(())
    }

    async fn follow_once(&self, all: bool) {
        let looked = match all {
            true => self.look().await,
            false => {
                let mut samples = self.logs[Table::Samples.index()].lock().await;
                let caught_up = self.catch_up(Table::Samples, &mut samples).await;
                drop(samples);
                match caught_up {
                    Ok(()) => self.looked().await,
                    Err(error) => Err(error),
                }
            }
        };
        if let Err(error) = looked {
            let behind_s = lock_mutex(&self.followed).elapsed().as_secs();
            tracing::warn!(%error, behind_s, "cannot read what other servers have committed; trying again");
        }
        if let Err(error) = self.refresh_notes(all).await {
            tracing::warn!(%error, "cannot read what other servers have noted; trying again");
        }
    }

    async fn beat_once(&self) {
        let Some(members) = &self.members else { return };
        let told = async {
            members.heartbeats.beat().await?;
            members.heartbeats.look().await
        };
        if let Err(error) = told.await {
            tracing::warn!(%error, "cannot tell other servers that this one is alive; trying again");
        }
        if let Err(error) = members.lease.tick().await {
            tracing::warn!(%error, "cannot see who does the maintenance; trying again");
        }
    }
}

/// The files of tables by a look at their logs, for who misses one.
#[derive(Debug)]
pub(crate) struct Current(Weak<Store>);

impl Current {
    pub(crate) fn of(store: &Arc<Store>) -> Self {
        Self(Arc::downgrade(store))
    }
}

#[async_trait]
impl CurrentFiles for Current {
    async fn of_table(&self, table: Table) -> Result<Arc<Vec<Arc<DataFile>>>, StoreError> {
        let store = self.0.upgrade().ok_or(StoreError::Stopping)?;
        let mut log = store.logs[table.index()].lock().await;
        store.catch_up(table, &mut log).await?;
        drop(log);
        Ok(store.snapshot().files[table.index()].clone())
    }
}

/// Follows the others until told to stop.
pub(crate) async fn run(store: Weak<Store>, mut stop: watch::Receiver<bool>) {
    let Some(interval) = store.upgrade().map(|store| store.config.look_interval) else {
        return;
    };
    let mut looks: u32 = 0;
    loop {
        let stopping = tokio::select! {
            () = tokio::time::sleep(interval) => false,
            _ = stop.wait_for(|stop| *stop) => true,
        };
        let Some(store) = store.upgrade().filter(|_| !stopping) else {
            return;
        };
        store.follow_once(looks.is_multiple_of(ALL_EVERY)).await;
        looks = looks.wrapping_add(1);
    }
}

/// Says that this server is alive until told to stop.
pub(crate) async fn beat(store: Weak<Store>, mut stop: watch::Receiver<bool>) {
    loop {
        let Some(held) = store.upgrade() else { return };
        held.beat_once().await;
        drop(held);
        let stopping = tokio::select! {
            () = tokio::time::sleep(BEAT_EVERY) => false,
            _ = stop.wait_for(|stop| *stop) => true,
        };
        if stopping {
            return;
        }
    }
}
