//! The log of a table to which several servers write.
//!
//! An entry is put where none is, behind all that was read before: whoever comes second reads what the first wrote and
//! looks whether its own still holds. A put whose end is not known is repeated until something stands in its place,
//! since one that is still under way may be carried out later.

use crate::store::log::checksums::{self, Listed};
use crate::store::log::entries::{self, Written};
use crate::store::log::looked::Looked;
use crate::store::log::table_log::{Change, CommitError, Entry, TableLog, entry_path, load};
use crate::store::root::backoff::Backoff;
use crate::store::table::data_file::DataFile;
use crate::store::table::error::{StoreError, chain};
use crate::store::table::transaction::Txn;
use bytes::Bytes;
use deltalake_core::kernel::transaction::TransactionError;
use deltalake_core::logstore::CommitOrBytes;
use object_store::ObjectStoreExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Entries that are read at a time.
const MOST_ENTRIES: usize = 1_000;

/// Whoever has not looked for so long looks first whether the entries that it lacks are there still.
const LOOKED_LONG_AGO: Duration = Duration::from_secs(60);

/// A commit is given up after this time, also where others are always first: files that are no part of a table go
/// only when they are older.
pub(crate) const MOST_COMMIT: Duration = Duration::from_secs(30 * 60);

/// What is under way is tried so long while the server stops.
const MOST_STOPPING: Duration = Duration::from_secs(5);

/// How a try ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Appended {
    Written,
    /// Another server was first: there is news.
    Behind,
}

/// What others wrote since the log was read.
#[derive(Debug)]
pub(crate) enum News {
    /// Entry by entry; none where there is nothing new.
    Entries(Vec<Written>),
    /// Entries are gone already: the whole table as it is.
    Whole {
        version: u64,
        files: Vec<Arc<DataFile>>,
        txns: Vec<Txn>,
    },
}

impl News {
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, News::Entries(entries) if entries.is_empty())
    }

    /// There may be more behind it.
    pub(crate) fn is_a_part(&self) -> bool {
        matches!(self, News::Entries(entries) if entries.len() >= MOST_ENTRIES)
    }
}

/// Whether what comes behind an entry comes behind the end of the log.
enum Place {
    /// No checkpoint has the version.
    AtTheEnd,
    /// A checkpoint has it, and so it has what was put behind the entry before, which is there still.
    Counted,
    /// Entries up to a checkpoint were removed: what is put there is read by nobody.
    Gap,
}

/// Why a put did not succeed.
enum Failed {
    /// Something is there, perhaps the very same.
    Taken(StoreError),
    /// It was not carried out, and will not be.
    Refused(StoreError),
    /// Nobody knows.
    Unknown(StoreError),
}

impl TableLog {
    /// What others wrote. It counts as read once [`TableLog::read_to`] says so.
    pub(crate) async fn news(&mut self) -> Result<News, StoreError> {
        let mut entries = Vec::new();
        let mut version = self.version;
        let mut begun = Looked::now();
        while entries.len() < MOST_ENTRIES
            && let Some(entry) = self.read(version + 1).await?
        {
            version += 1;
            entries.push(entry);
            begun = Looked::now();
        }
        // Of more entries than are read at a time nobody knows how old they are.
        if entries.len() == MOST_ENTRIES && !self.is_lost {
            return Ok(News::Entries(entries));
        }
        // Also behind entries that were found: the next ones may have been removed just now.
        let is_behind = self.looked.is_long_ago(LOOKED_LONG_AGO) && self.is_behind(version + 1).await?;
        if is_behind || self.is_lost {
            let table = self.table.name();
            tracing::warn!(
                table,
                version,
                "entries of a table's log are gone that were not read: reading all of it"
            );
            let begun = Looked::now();
            let (delta, files, txns) = load(&self.place).await?;
            let version = delta.version().unwrap_or_default();
            (self.looked, self.is_lost) = (begun, false);
            return Ok(News::Whole { version, files, txns });
        }
        self.looked = begun;
        Ok(News::Entries(entries))
    }

    /// All up to this version is part of what this server knows.
    pub(crate) fn read_to(&mut self, version: u64) {
        self.version = self.version.max(version);
    }

    /// Whether there is a checkpoint of that version or a later one.
    async fn is_behind(&self, version: u64) -> Result<bool, StoreError> {
        Ok(!matches!(self.place_of(version).await?, Place::AtTheEnd))
    }

    /// What an entry of this version would be behind. Entries are removed oldest first, so one that is there says that
    /// those behind it are, too.
    async fn place_of(&self, version: u64) -> Result<Place, StoreError> {
        let listed = self.place.waiting(|place| Listed::read(&place.log())).await;
        let listed = listed.map_err(self.place.root_failed("read which checkpoints its log has"))?;
        if listed.checkpoints.last().is_none_or(|checkpoint| *checkpoint < version) {
            return Ok(Place::AtTheEnd);
        }
        let before = version.checked_sub(1);
        Ok(match before.is_none_or(|before| listed.entries.contains(&before)) {
            true => Place::Counted,
            false => Place::Gap,
        })
    }

    async fn read(&self, version: u64) -> Result<Option<Written>, StoreError> {
        const WHAT: &str = "read an entry of its log";
        let path = entry_path(version);
        let found = match self.log_store.object_store(None).get(&path).await {
            Ok(found) => found.bytes().await.map_err(StoreError::table(self.table, WHAT))?,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(StoreError::table(self.table, WHAT)(error)),
        };
        let damaged = |cause: &str| StoreError::Table {
            table: self.table.name(),
            what: WHAT,
            cause: format!("{path}: {cause}"),
        };
        if checksums::is_as_sealed(&found) == Some(false) {
            return Err(damaged("its content is not what was written"));
        }
        let entry = entries::parse(self.table, version, &found);
        entry.map(Some).map_err(|cause| damaged(&cause))
    }

    /// Puts an entry behind the last one that was read. Returns only when it is known what became of it.
    pub(crate) async fn append(&mut self, change: Change<'_>) -> Result<Appended, CommitError> {
        if self.in_doubt {
            return Err(CommitError::Unknown);
        }
        if self.is_lost {
            return Ok(Appended::Behind);
        }
        let bytes = self.encode(change).map_err(CommitError::NotWritten)?;
        let version = self.version + 1;
        let (begun, mut backoff, mut is_under_way) = (Instant::now(), Backoff::default(), false);
        loop {
            // What may still be under way cannot be carried out any more once something else has its place.
            let is_late = begun.elapsed() > MOST_COMMIT;
            let put = match is_late {
                true => self.put_nothing(version).await,
                false => self.put(version, &bytes).await,
            };
            let error = match put {
                Ok(()) => {
                    let written = self.wrote(version).await?;
                    return match is_late {
                        true => Err(CommitError::NotWritten(self.gave_up())),
                        false => Ok(written),
                    };
                }
                Err(Failed::Refused(error)) if !is_under_way => return Err(CommitError::NotWritten(error)),
                Err(Failed::Taken(error) | Failed::Refused(error)) => error,
                Err(Failed::Unknown(error)) => {
                    is_under_way = true;
                    error
                }
            };
            match self.entry(version, &bytes, None).await {
                Ok(Entry::Ours) => return self.wrote(version).await,
                Ok(Entry::Foreign | Entry::Fenced) => return Ok(Appended::Behind),
                Ok(Entry::Absent) => {}
                Err(cause) => {
                    let (table, cause) = (self.table.name(), chain(&cause));
                    tracing::error!(
                        table,
                        version,
                        %error,
                        cause,
                        "cannot see whether a commit was written; looking again"
                    );
                }
            }
            if *self.stop.borrow() && begun.elapsed() > MOST_STOPPING {
                self.in_doubt = is_under_way;
                return Err(match is_under_way {
                    true => CommitError::Unknown,
                    false => CommitError::NotWritten(error),
                });
            }
            backoff.pause().await;
        }
    }

    fn gave_up(&self) -> StoreError {
        StoreError::Table {
            table: self.table.name(),
            what: "write a commit",
            cause: format!("it was given up after {} minutes", MOST_COMMIT.as_secs() / 60),
        }
    }

    async fn put(&self, version: u64, bytes: &Bytes) -> Result<(), Failed> {
        let entry = CommitOrBytes::LogBytes(bytes.clone());
        let written = self
            .log_store
            .write_commit_entry(version, entry, uuid::Uuid::new_v4())
            .await;
        let Err(error) = written else { return Ok(()) };
        let kind = match &error {
            TransactionError::VersionAlreadyExists(_) => Failed::Taken,
            TransactionError::ObjectStore { source } if is_refusal(source) => Failed::Refused,
            _ => Failed::Unknown,
        };
        Err(kind(StoreError::table(self.table, "write a commit")(error)))
    }

    /// An entry that says nothing.
    async fn put_nothing(&self, version: u64) -> Result<(), Failed> {
        let bytes = self.encode(Change::nothing()).map_err(Failed::Unknown)?;
        self.put(version, &bytes).await
    }

    /// The entry is there. Of a server that slept since it last looked it may be there in vain: where entries up to a
    /// checkpoint were removed, what comes into their place is read by nobody. It may also have been there before, and
    /// count since long: then it is the files' only name. So they stay, and the next look reads the whole log.
    async fn wrote(&mut self, version: u64) -> Result<Appended, CommitError> {
        let mut backoff = Backoff::default();
        while self.looked.is_long_ago(LOOKED_LONG_AGO) {
            let begun = Looked::now();
            match self.place_of(version).await {
                Ok(Place::AtTheEnd | Place::Counted) => self.looked = begun,
                Ok(Place::Gap) => {
                    self.is_lost = true;
                    let path = entry_path(version);
                    if let Err(error) = self.log_store.object_store(None).delete(&path).await {
                        tracing::warn!(%error, %path, "cannot remove an entry of the log that nobody reads");
                    }
                    let cause = "this server slept: others went on without it meanwhile".to_owned();
                    let (table, what) = (self.table.name(), "write a commit");
                    return Err(CommitError::Late(StoreError::Table { table, what, cause }));
                }
                Err(error) if *self.stop.borrow() => {
                    tracing::error!(%error, version, "cannot see whether a commit counts");
                    self.in_doubt = true;
                    return Err(CommitError::Unknown);
                }
                Err(error) => {
                    tracing::error!(%error, version, "cannot see whether a commit counts; looking again");
                    backoff.pause().await;
                }
            }
        }
        self.version = version;
        Ok(Appended::Written)
    }
}

/// Whether a store has refused a request for good. All else may have been carried out, or be so later.
fn is_refusal(error: &object_store::Error) -> bool {
    use object_store::Error::{InvalidPath, NotImplemented, NotSupported, PermissionDenied, Unauthenticated};
    matches!(
        error,
        InvalidPath { .. }
            | NotImplemented { .. }
            | NotSupported { .. }
            | PermissionDenied { .. }
            | Unauthenticated { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::store::log::location::TableLocation;
    use crate::store::log::opening;
    use crate::store::log::table_log::add_action;
    use crate::store::root::contract::{Lock, Root};
    use crate::store::root::local::LocalRoot;
    use crate::store::table::schema::Table;
    use std::path::{Path, PathBuf};
    use tokio::sync::watch;

    /// Two servers' logs of one table, and what holds the folder for them.
    async fn two(dir: &Path) -> ([TableLog; 2], Lock) {
        let root: Arc<dyn Root> = Arc::new(LocalRoot::open(dir).unwrap().shared());
        let lock = root.join().unwrap();
        let open = || {
            opening::open(TableLocation {
                table: Table::Batches,
                root: root.clone(),
                prefix: String::new(),
                over: |_, store| store,
                clock: Arc::new(Clock::system()),
                stop: watch::Sender::new(false).subscribe(),
            })
        };
        ([open().await.unwrap().log, open().await.unwrap().log], lock)
    }

    fn change(name: &str) -> Change<'static> {
        let file = DataFile {
            path: format!("day=2026-11-21/{name}.parquet"),
            partition: "2026-11-21".to_owned(),
            size_bytes: 10,
            rows: 3,
            modified_ms: 1,
            int_ranges: Vec::new(),
            string_ranges: Vec::new(),
        };
        Change {
            add: vec![add_action(Table::Batches, &file, true)],
            ..Change::nothing()
        }
    }

    /// Three commits, and a checkpoint of the last of them.
    async fn three(log: &mut TableLog) {
        for name in ["one", "two", "three"] {
            assert_eq!(log.append(change(name)).await.unwrap(), Appended::Written);
        }
        log.due_checkpoint(1).unwrap().write(1_000).await.unwrap();
    }

    /// Whether the whole table was read, and of how many files was told.
    async fn read(log: &mut TableLog) -> (bool, usize) {
        match log.news().await.unwrap() {
            News::Entries(entries) => {
                entries.iter().for_each(|entry| log.read_to(entry.version));
                (false, entries.iter().map(|entry| entry.added.len()).sum())
            }
            News::Whole { version, files, .. } => {
                log.read_to(version);
                (true, files.len())
            }
        }
    }

    fn entry(dir: &Path, version: u64) -> PathBuf {
        dir.join("batches/_delta_log").join(checksums::entry_name(version))
    }

    #[tokio::test]
    async fn an_entry_that_others_went_on_behind_counts_however_late_that_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let ([mut slept, mut other], _lock) = two(dir.path()).await;
        let (version, bytes) = (slept.version + 1, slept.encode(change("first")).unwrap());
        assert!(slept.put(version, &bytes).await.is_ok());
        assert_eq!(read(&mut other).await, (false, 1));
        three(&mut other).await;
        slept.looked = Looked::long_ago();
        assert_eq!(slept.wrote(version).await.unwrap(), Appended::Written);
        assert!(entry(dir.path(), version).exists());
        assert_eq!(read(&mut slept).await, (false, 3));
    }

    #[tokio::test]
    async fn what_comes_where_entries_were_removed_does_not_count_and_all_is_read_anew() {
        let dir = tempfile::tempdir().unwrap();
        let ([mut slept, mut other], _lock) = two(dir.path()).await;
        three(&mut other).await;
        for version in 0..other.version {
            std::fs::remove_file(entry(dir.path(), version)).unwrap();
        }
        slept.looked = Looked::long_ago();
        let late = slept.append(change("vain")).await.unwrap_err();
        assert!(matches!(late, CommitError::Late(_)), "{late:?}");
        assert!(!entry(dir.path(), slept.version + 1).exists());
        assert_eq!(slept.append(change("vain")).await.unwrap(), Appended::Behind);
        assert_eq!(read(&mut slept).await, (true, 3));
        assert_eq!(slept.append(change("four")).await.unwrap(), Appended::Written);
        assert_eq!(read(&mut other).await, (false, 1));
    }

    #[tokio::test]
    async fn a_log_whose_entries_are_removed_while_it_is_read_is_read_anew() {
        let dir = tempfile::tempdir().unwrap();
        let ([mut lags, mut other], _lock) = two(dir.path()).await;
        three(&mut other).await;
        std::fs::remove_file(entry(dir.path(), other.version - 1)).unwrap();
        lags.looked = Looked::long_ago();
        assert_eq!(read(&mut lags).await, (true, 3));
        assert_eq!(read(&mut lags).await, (false, 0));
        assert_eq!(lags.append(change("four")).await.unwrap(), Appended::Written);
    }
}
