//! One table's Delta log: create, load, commit, checkpoint.
//!
//! Where one server has the data for itself, a commit is "write the next version": nothing is listed or read before
//! it, however many commits there are. Where several servers write, commits go through `shared_log`.

use crate::clock::Clock;
use crate::store::log::checkpoint::Checkpoint;
use crate::store::log::checksums::{self, CHECKSUM, UNSEALED, list_sums};
use crate::store::log::entries;
use crate::store::log::location::{LogFolder, TableLocation};
use crate::store::log::looked::Looked;
use crate::store::log::schema::{create, with_every_column};
use crate::store::log::transactions::read_txns;
use crate::store::root::contract::LogRoot;
use crate::store::table::data_file::DataFile;
use crate::store::table::error::StoreError;
use crate::store::table::schema::Table;
use crate::store::table::transaction::Txn;
use bytes::Bytes;
use deltalake_core::DeltaTable;
use deltalake_core::kernel::transaction::CommitData;
use deltalake_core::kernel::{Action, Add, LogicalFileView, Remove, Transaction};
use deltalake_core::logstore::{CommitOrBytes, LogStoreRef, StorageConfig, default_logstore};
use deltalake_core::protocol::{DeltaOperation, SaveMode};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The field of `commitInfo` that tells an entry from all others.
const WRITE: &str = "stakeoutWrite";

/// Pause between looks at a log that cannot be read.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A commit that did not end well.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// The log does not have it: its files are waste.
    NotWritten(StoreError),
    /// The log may have had it long ago: its files stay, and what is read next says whether it counts.
    Late(StoreError),
    /// The log may have it, and the server stopped before that was known: its files stay, and the next start reads
    /// the truth.
    Unknown,
}

impl From<CommitError> for StoreError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::NotWritten(error) | CommitError::Late(error) => error,
            CommitError::Unknown => Self::Stopping,
        }
    }
}

/// What an entry is to say.
#[derive(Debug)]
pub(crate) struct Change<'c> {
    pub(crate) add: Vec<Add>,
    pub(crate) remove: &'c [Arc<DataFile>],
    pub(crate) txns: &'c [Txn],
    /// False for a rewrite of the same rows.
    pub(crate) data_change: bool,
}

impl Change<'_> {
    /// Of an entry that only takes its place.
    pub(super) fn nothing() -> Self {
        Self {
            add: Vec::new(),
            remove: &[],
            txns: &[],
            data_change: false,
        }
    }
}

/// What the log has under a version.
pub(super) enum Entry {
    /// What was meant to be written.
    Ours,
    Absent,
    /// An entry of ours that says nothing, in its place: what was meant can come no more.
    Fenced,
    /// Something of a stranger in the directory.
    Foreign,
}

/// The writer's end of a table's log.
pub(crate) struct TableLog {
    pub(super) table: Table,
    pub(super) log_store: LogStoreRef,
    log: LogFolder,
    pub(super) place: TableLocation,
    pub(super) version: u64,
    pub(super) looked: Looked,
    /// What was read of it may not be what it says: the next look reads all of it.
    pub(super) is_lost: bool,
    /// Version of the last checkpoint that was begun; 0 at the start, so that a log that has grown long gets one at
    /// once.
    checkpointed: u64,
    clock: Arc<Clock>,
    /// Whether the server stops.
    pub(super) stop: watch::Receiver<bool>,
    /// A commit's end is not known: nothing more may be written.
    pub(super) in_doubt: bool,
}

impl std::fmt::Debug for TableLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableLog")
            .field("table", &self.table)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl TableLog {
    /// Opens a log that is intact, creating it where there is none. Gives the table's files and transactions, too.
    pub(crate) async fn over(place: &TableLocation) -> Result<(Self, Vec<Arc<DataFile>>, Vec<Txn>), StoreError> {
        let (table, log) = (place.table, place.log());
        let prepared = place.waiting(|place| place.root.prepare(&place.table_path())).await;
        prepared.map_err(place.root_failed("create its folder"))?;
        let log_store = open_log_store(place).await?;
        let exists = log_store
            .is_delta_table_location()
            .await
            .map_err(StoreError::table(table, "look for its log"))?;
        if !exists && let Err(error) = create(table, log_store.clone()).await {
            // Another server may have been first.
            let is_there = place.root.is_shared() && log_store.is_delta_table_location().await.unwrap_or(false);
            if !is_there {
                return Err(error);
            }
        }
        let looked = Looked::now();
        let (delta, files, txns) = load(place).await?;
        if !place.root.is_shared() {
            list_sums(table, &log, checksums::unlisted_entries).await?;
        }
        let log = Self {
            table,
            version: delta.version().unwrap_or_default(),
            log_store,
            log,
            place: place.clone(),
            looked,
            is_lost: false,
            checkpointed: 0,
            clock: place.clock.clone(),
            stop: place.stop.clone(),
            in_doubt: false,
        };
        Ok((log, files, txns))
    }

    /// Commits. When this returns well, the commit is on the disk. `data_change` is false for a rewrite of the same
    /// rows.
    pub(crate) async fn commit(
        &mut self,
        add: Vec<Add>,
        remove: &[Arc<DataFile>],
        txns: &[Txn],
        data_change: bool,
    ) -> Result<(), CommitError> {
        if self.in_doubt {
            return Err(CommitError::Unknown);
        }
        let change = Change {
            add,
            remove,
            txns,
            data_change,
        };
        let bytes = self.encode(change).map_err(CommitError::NotWritten)?;
        let version = self.version + 1;
        let entry = CommitOrBytes::LogBytes(bytes.clone());
        let written = self
            .log_store
            .write_commit_entry(version, entry, uuid::Uuid::new_v4())
            .await;
        let Err(error) = written else {
            self.version = version;
            return Ok(());
        };
        let error = StoreError::table(self.table, "write a commit")(error);
        match self.settle(version, &bytes, &error).await? {
            Entry::Ours => {
                self.version = version;
                Ok(())
            }
            Entry::Absent => Err(CommitError::NotWritten(error)),
            Entry::Fenced => {
                self.version = version;
                Err(CommitError::NotWritten(error))
            }
            Entry::Foreign if self.log.root.looks_cost() => {
                // Of a server that had the bucket before, and whose last request took long: it may hold these rows,
                // and others that nobody here knows. A start reads it.
                let table = self.table.name();
                tracing::error!(
                    table,
                    version,
                    "a commit of another server came: this one commits no more; restart it"
                );
                self.in_doubt = true;
                Err(CommitError::Unknown)
            }
            Entry::Foreign => {
                self.version = version;
                Err(CommitError::NotWritten(error))
            }
        }
    }

    /// An entry's bytes. Where several servers write, no two are the same: an entry says which write it is.
    pub(super) fn encode(&self, change: Change<'_>) -> Result<Bytes, StoreError> {
        let Change {
            add,
            remove,
            txns,
            data_change,
        } = change;
        let now_ms = self.clock.wall_ns() / 1_000_000;
        let removes = remove.iter().map(|file| {
            Action::Remove(Remove {
                path: file.path.clone(),
                data_change,
                deletion_timestamp: Some(now_ms),
                extended_file_metadata: Some(true),
                partition_values: Some(partition_values(self.table, &file.partition)),
                size: Some(i64::try_from(file.size_bytes).unwrap_or(i64::MAX)),
                ..Remove::default()
            })
        });
        let actions: Vec<Action> = removes.chain(add.into_iter().map(Action::Add)).collect();
        let operation = DeltaOperation::Write {
            mode: SaveMode::Append,
            partition_by: Some(vec![self.table.partition_column().to_owned()]),
            predicate: None,
        };
        let txns = txns
            .iter()
            .map(|txn| Transaction::new_with_last_update(&txn.app_id, txn.version, Some(txn.updated_ms)))
            .collect();
        let mut more: HashMap<String, serde_json::Value> = HashMap::from([(CHECKSUM.to_owned(), UNSEALED.into())]);
        if self.place.root.is_shared() {
            more.insert(WRITE.to_owned(), uuid::Uuid::new_v4().to_string().into());
        }
        let bytes = CommitData::new(actions, operation, more, txns).get_bytes();
        let bytes = bytes.map_err(StoreError::table(self.table, "encode a commit"))?;
        Ok(checksums::seal(&bytes))
    }

    /// Finds out what a failed call left behind: the log may have the entry all the same. Returns only when that is
    /// known, since until then the rows may neither be answered for nor be stored again. A request to a bucket may
    /// arrive after its answer was given up: an entry without rows is put into its place, so that it is refused.
    async fn settle(&mut self, version: u64, bytes: &Bytes, error: &StoreError) -> Result<Entry, CommitError> {
        let fence = match self.log.root.looks_cost() {
            true => self.encode(Change::nothing()).ok(),
            false => None,
        };
        loop {
            let cause = match (self.entry(version, bytes, fence.as_ref()).await, &fence) {
                (Ok(Entry::Absent), Some(fence)) => match self.put_fence(version, fence).await {
                    Ok(()) => return Ok(Entry::Fenced),
                    // Also where the entry came just now: the next look finds it.
                    Err(cause) => cause,
                },
                (Ok(entry), _) => return Ok(entry),
                (Err(cause), _) => cause,
            };
            let (table, cause) = (self.table.name(), crate::store::table::error::chain(&cause));
            tracing::error!(table, version, %error, cause, "cannot see whether a commit was written; looking again");
            if *self.stop.borrow() {
                self.in_doubt = true;
                return Err(CommitError::Unknown);
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_AGAIN) => {}
                _ = self.stop.changed() => {}
            }
        }
    }

    /// What the log has under a version, compared to what was meant, and to what was put into its place. On a disk an
    /// entry of ours is written over by itself: whoever sees it does not know yet that it is synced.
    pub(super) async fn entry(
        &self,
        version: u64,
        bytes: &Bytes,
        fence: Option<&Bytes>,
    ) -> object_store::Result<Entry> {
        let (store, path) = (self.log_store.object_store(None), entry_path(version));
        let found = match store.get(&path).await {
            Ok(found) => found.bytes().await?,
            Err(object_store::Error::NotFound { .. }) => return Ok(Entry::Absent),
            Err(error) => return Err(error),
        };
        if fence == Some(&found) {
            return Ok(Entry::Fenced);
        }
        if found != *bytes {
            return Ok(Entry::Foreign);
        }
        if !self.place.root.is_shared() {
            store.put(&path, bytes.clone().into()).await?;
        }
        Ok(Entry::Ours)
    }

    async fn put_fence(&self, version: u64, fence: &Bytes) -> object_store::Result<()> {
        let (store, path) = (self.log_store.object_store(None), entry_path(version));
        let put = store.put_opts(&path, fence.clone().into(), PutMode::Create.into());
        put.await.map(drop)
    }

    /// What a checkpoint needs, so that it can be written while commits go on. None before there are so many commits
    /// since the last.
    pub(crate) fn due_checkpoint(&mut self, commits: u64) -> Option<Checkpoint> {
        if self.version < self.checkpointed + commits {
            return None;
        }
        self.checkpointed = self.version;
        let (log_store, log) = (self.log_store.clone(), self.log.clone());
        Some(Checkpoint::new(self.table, log_store, log, self.version))
    }
}

/// Where an entry is, below its table's folder.
pub(super) fn entry_path(version: u64) -> Path {
    Path::from(format!("_delta_log/{}", checksums::entry_name(version)))
}

/// What the library reads and writes a table's log through.
pub(crate) async fn open_log_store(place: &TableLocation) -> Result<LogStoreRef, StoreError> {
    let opened = place.waiting(|place| place.root.table(&place.table_path())).await;
    let LogRoot { table, whole, url } = opened.map_err(place.root_failed("open its folder"))?;
    let table = (place.over)(place.table, table);
    Ok(default_logstore(table, whole, &url, &StorageConfig::default()))
}

/// Reads a table: with the columns that it lacks added, its files in order, and its transactions.
pub(crate) async fn load(place: &TableLocation) -> Result<(DeltaTable, Vec<Arc<DataFile>>, Vec<Txn>), StoreError> {
    let table = place.table;
    let log_store = open_log_store(place).await?;
    // A server that was killed may have written an entry and not have synced it: what is read now counts from now on.
    let settled = place.waiting(|place| place.root.settle(&place.log().path)).await;
    settled.map_err(place.root_failed("sync its log"))?;
    let mut delta = DeltaTable::new(log_store.clone());
    delta.load().await.map_err(StoreError::table(table, "read its log"))?;
    let delta = with_every_column(table, delta).await?;
    let state = delta.snapshot().map_err(StoreError::table(table, "read its log"))?;
    let mut files: Vec<_> = state
        .log_data()
        .iter()
        .filter_map(|file| data_file(table, &file))
        .map(Arc::new)
        .collect();
    files.sort_by(|a, b| (&a.partition, &a.path).cmp(&(&b.partition, &b.path)));
    let txns = match table {
        Table::Samples => read_txns(log_store.object_store(None), state.version())
            .await
            .map_err(|cause| StoreError::Table {
                table: table.name(),
                what: "read its transactions",
                cause,
            })?,
        _ => Vec::new(),
    };
    Ok((delta, files, txns))
}

fn partition_values(table: Table, partition: &str) -> HashMap<String, Option<String>> {
    HashMap::from([(table.partition_column().to_owned(), Some(partition.to_owned()))])
}

/// The log's action that adds a file.
pub(crate) fn add_action(table: Table, file: &DataFile, data_change: bool) -> Add {
    let mut min = serde_json::Map::new();
    let mut max = serde_json::Map::new();
    for (column, range) in &file.int_ranges {
        min.insert(column.clone(), range.min.into());
        max.insert(column.clone(), range.max.into());
    }
    for (column, range) in &file.string_ranges {
        min.insert(column.clone(), range.min.as_str().into());
        max.insert(column.clone(), range.max.as_str().into());
    }
    let nulls: serde_json::Map<_, _> = min.keys().map(|column| (column.clone(), 0.into())).collect();
    let stats = serde_json::json!({"numRecords": file.rows, "minValues": min, "maxValues": max, "nullCount": nulls});
    Add {
        path: file.path.clone(),
        partition_values: partition_values(table, &file.partition),
        size: i64::try_from(file.size_bytes).unwrap_or(i64::MAX),
        modification_time: file.modified_ms,
        data_change,
        stats: Some(stats.to_string()),
        ..Add::default()
    }
}

/// A file as the log has it; none when it lacks what Stakeout always writes.
pub(crate) fn data_file(table: Table, file: &LogicalFileView) -> Option<DataFile> {
    let partition = file.partition_values_map().remove(table.partition_column())??;
    entries::described(&file.stats()?, |int_ranges, string_ranges, rows| {
        Some(DataFile {
            path: file.path().into_owned(),
            partition,
            size_bytes: u64::try_from(file.size()).ok()?,
            rows,
            modified_ms: file.modification_time(),
            int_ranges,
            string_ranges,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::log::opening::open;
    use crate::store::root::bucket::BucketRoot;
    use crate::store::root::contract::Root;
    use crate::store::root::local::LocalRoot;
    use crate::store::table::data_file::ColumnRange;
    use deltalake_core::kernel::{DataType, PrimitiveType, StructField};
    use deltalake_core::operations::create::CreateBuilder;
    use object_store::memory::InMemory;
    use std::path::Path as FsPath;

    fn place(table: Table, dir: &FsPath, stop: &watch::Sender<bool>) -> TableLocation {
        TableLocation {
            table,
            root: Arc::new(LocalRoot::open(dir).unwrap()),
            prefix: String::new(),
            over: |_, store| store,
            clock: Arc::new(Clock::system()),
            stop: stop.subscribe(),
        }
    }

    fn file(table: Table, name: &str) -> DataFile {
        DataFile {
            path: format!("{}=2026-11-21T08/{name}.parquet", table.partition_column()),
            partition: "2026-11-21T08".to_owned(),
            size_bytes: 10,
            rows: 3,
            modified_ms: 1,
            int_ranges: vec![("ts_ns".to_owned(), ColumnRange { min: -5, max: i64::MAX })],
            string_ranges: vec![(
                "service".to_owned(),
                ColumnRange {
                    min: "a".to_owned(),
                    max: "ü".to_owned(),
                },
            )],
        }
    }

    #[tokio::test]
    async fn a_table_that_lacks_what_must_be_there_is_refused_with_a_reason() {
        let dir = tempfile::tempdir().unwrap();
        let (staging, folder) = (dir.path().join("tmp"), dir.path().join("batches"));
        std::fs::create_dir(&staging).unwrap();
        std::fs::create_dir(&folder).unwrap();
        let stop = watch::Sender::new(false);
        let place = place(Table::Batches, dir.path(), &stop);
        let log_store = open_log_store(&place).await.unwrap();
        let text = |name| StructField::new(name, DataType::Primitive(PrimitiveType::String), false);
        CreateBuilder::new()
            .with_log_store(log_store)
            .with_columns([text("node"), text("day")])
            .with_partition_columns(["day"])
            .await
            .unwrap();
        let message = open(place).await.unwrap_err().to_string();
        assert!(message.contains("column instance is missing"), "{message}");
    }

    #[tokio::test]
    async fn files_and_transactions_are_read_back_from_commits_and_from_a_checkpoint() {
        let dir = tempfile::tempdir().unwrap();
        let staging = dir.path().join("tmp");
        std::fs::create_dir(&staging).unwrap();
        let stop = watch::Sender::new(false);
        let open = || open(place(Table::Samples, dir.path(), &stop));
        let now_ms = chrono::Utc::now().timestamp_millis();
        let txn = |id: &str, version| Txn {
            app_id: id.to_owned(),
            version,
            updated_ms: now_ms,
        };
        let mut log = open().await.unwrap().log;
        let first = file(Table::Samples, "one");
        log.commit(
            vec![add_action(Table::Samples, &first, true)],
            &[],
            &[txn("a", 1), txn("b", 7)],
            true,
        )
        .await
        .unwrap();
        log.due_checkpoint(1).unwrap().write(1000).await.unwrap();
        let second = file(Table::Samples, "two");
        log.commit(
            vec![add_action(Table::Samples, &second, true)],
            &[],
            &[txn("a", 2)],
            true,
        )
        .await
        .unwrap();
        let loaded = open().await.unwrap();
        let files: Vec<_> = loaded.files.iter().map(|file| file.as_ref().clone()).collect();
        assert_eq!(files, [first.clone(), second.clone()]);
        let mut txns = loaded.txns;
        txns.sort_by(|a, b| a.app_id.cmp(&b.app_id));
        assert_eq!(txns, [txn("a", 2), txn("b", 7)]);
        let mut log = loaded.log;
        log.commit(vec![], &[Arc::new(first)], &[], true).await.unwrap();
        assert_eq!(open().await.unwrap().files.len(), 1);
    }

    #[tokio::test]
    async fn in_a_bucket_what_may_still_come_is_kept_out() {
        let root: Arc<dyn Root> = Arc::new(BucketRoot::of_store(Arc::new(InMemory::new())));
        let _lock = root.lock().unwrap();
        let stop = watch::Sender::new(false);
        let open = || {
            open(TableLocation {
                table: Table::Samples,
                root: root.clone(),
                prefix: String::new(),
                over: |_, store| store,
                clock: Arc::new(Clock::system()),
                stop: stop.subscribe(),
            })
        };
        let mut log = open().await.unwrap().log;
        let add = |name| add_action(Table::Samples, &file(Table::Samples, name), true);
        let (version, error) = (log.version + 1, StoreError::Stopping);
        let change = Change {
            add: vec![add("late")],
            remove: &[],
            txns: &[],
            data_change: true,
        };
        let late = log.encode(change).unwrap();
        let found = log.settle(version, &late, &error).await.unwrap();
        assert!(matches!(found, Entry::Fenced));
        let (store, path) = (log.log_store.object_store(None), entry_path(version));
        let came = store.put_opts(&path, late.clone().into(), PutMode::Create.into()).await;
        assert!(
            matches!(came, Err(object_store::Error::AlreadyExists { .. })),
            "{came:?}"
        );
        log.version = version;
        log.commit(vec![add("next")], &[], &[], true).await.unwrap();
        let loaded = open().await.unwrap();
        assert_eq!((loaded.files.len(), loaded.log.version), (1, version + 1));
        assert!(loaded.files[0].path.contains("next") && loaded.faults.is_empty());
        // An entry of another server, or what was meant, is found as it is.
        let mut log = loaded.log;
        let foreign = log.settle(version + 1, &late, &error).await.unwrap();
        assert!(matches!(foreign, Entry::Foreign));
        let ours = store
            .get(&entry_path(version + 1))
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap();
        let ours = log.settle(version + 1, &ours, &error).await.unwrap();
        assert!(matches!(ours, Entry::Ours));
    }
}
