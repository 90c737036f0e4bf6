//! Damaged files: found before they are read, left out, and named.
//!
//! A data file's name ends in the hash of its content. Before a reader opens a file for the first time, the whole
//! file is compared with it; so it is again when its size or times are others than then, and once a day by
//! maintenance. In a bucket only maintenance compares, once a month. A damaged file is left out of answers and rewrites
//! and stays where it is; it is listed until it is intact again or older than the retention.
//!
//! Where other servers write, a file that is not there may be one that they have replaced, and deleted minutes later:
//! it is damaged only if its table still has it, by a look at the log that began when it was missed.

use crate::lock::lock_mutex;
use crate::store::root::contract::{Root, Stamp};
use crate::store::root::error::RootError;
use crate::store::root::reader::{Digest, RangeReader};
use crate::store::table::data_file::DataFile;
use crate::store::table::error::StoreError;
use crate::store::table::schema::Table;
use async_trait::async_trait;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// What is wrong with a file that is not there.
pub(crate) const MISSING: &str = "it is missing";

/// What stands behind the hash in a data file's name.
const NAME_END: &str = ".zstd.parquet";

/// Maintenance compares a file again after this time.
const COMPARE_AGAIN: Duration = Duration::from_secs(24 * 3600);

/// The same in a bucket, whose store keeps hashes of its own: it costs requests and transfer.
const COMPARE_FAR_AGAIN: Duration = Duration::from_secs(30 * 24 * 3600);

/// Bytes that maintenance compares in one round: 6 MiB a second, or half a terabyte a day, at the usual interval.
const BYTES_A_ROUND: u64 = 64 << 20;

/// Damaged parts of logs that are listed; each start finds a few at most.
const MAX_LISTED: usize = 100;

/// A file that is not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedFile {
    /// Path below the data directory.
    pub file: String,
    /// What is wrong with it.
    pub fault: String,
    /// Rows that are left out; 0 for a part of a log.
    pub rows: u64,
}

/// A part of a log that is not what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// In the log's folder; empty for the folder itself.
    pub(crate) name: String,
    pub(crate) what: String,
}

/// What a reader may expect of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    Intact,
    Damaged,
    /// It is not there, and is none of its table's any more: another server has replaced or removed it.
    Gone,
}

/// Files of a table that were not there when they were looked for.
pub(crate) type Missed = (Table, Vec<Arc<DataFile>>);

/// Which files tables have, where other servers replace them.
#[async_trait]
pub(crate) trait CurrentFiles: std::fmt::Debug + Send + Sync {
    /// Those of a table, by a look at its log that begins now.
    async fn of_table(&self, table: Table) -> Result<Arc<Vec<Arc<DataFile>>>, StoreError>;
}

/// What was found of a file.
#[derive(Debug)]
struct Found {
    stamp: Stamp,
    at: Instant,
    fault: Option<Arc<str>>,
    rows: u64,
}

impl Found {
    fn condition(&self) -> Condition {
        match self.fault {
            None => Condition::Intact,
            Some(_) => Condition::Damaged,
        }
    }

    /// Whether a file of which a look says this is the one that was found.
    fn is_same(&self, stamp: &Result<Stamp, RootError>) -> bool {
        match stamp {
            Ok(stamp) => self.stamp == *stamp,
            Err(RootError::NotFound(_)) => self.fault.as_deref() == Some(MISSING),
            Err(_) => false,
        }
    }
}

/// What is known of the files. One for a store.
#[derive(Debug)]
pub(crate) struct Corruption {
    root: Arc<dyn Root>,
    reader: Arc<dyn RangeReader>,
    /// By path below the table's folder. As many as there are files: maintenance forgets those that are gone.
    found: Mutex<[HashMap<String, Found>; Table::COUNT]>,
    logs: Mutex<Vec<DamagedFile>>,
    /// None where no other server writes.
    current: OnceLock<Box<dyn CurrentFiles>>,
}

impl Corruption {
    pub(crate) fn new(root: Arc<dyn Root>) -> Self {
        Self {
            reader: root.reader(),
            root,
            found: Mutex::default(),
            logs: Mutex::default(),
            current: OnceLock::new(),
        }
    }

    /// Other servers write: a file that is not there is damaged only if these files have it.
    pub(crate) fn beside_others(&self, current: Box<dyn CurrentFiles>) {
        // Said once, at the start.
        let _ = self.current.set(current);
    }

    /// Lists a damaged part of a table's log until the next start.
    pub(crate) fn add_log(&self, table: Table, fault: &Fault) {
        let file = table.path_of(&format!("_delta_log/{}", fault.name));
        let file = file.trim_end_matches('/').to_owned();
        tracing::error!(file, fault = fault.what, "a part of a table's log is damaged");
        let mut logs = lock_mutex(&self.logs);
        if logs.len() < MAX_LISTED && logs.iter().all(|known| known.file != file) {
            logs.push(DamagedFile {
                file,
                fault: fault.what.clone(),
                rows: 0,
            });
        }
    }

    /// All that is known to be damaged, in order of path.
    pub(crate) fn list(&self) -> Vec<DamagedFile> {
        let mut list = lock_mutex(&self.logs).clone();
        let found = lock_mutex(&self.found);
        for (table, found) in Table::ALL.into_iter().zip(found.iter()) {
            list.extend(found.iter().filter_map(|(path, found)| {
                Some(DamagedFile {
                    file: format!("{}/{path}", table.name()),
                    fault: found.fault.as_deref()?.to_owned(),
                    rows: found.rows,
                })
            }));
        }
        list.sort_by(|a, b| a.file.cmp(&b.file));
        list
    }

    /// Data files that were found to be damaged, by path below their table's folder.
    pub(crate) fn paths(&self) -> HashSet<String> {
        let found = lock_mutex(&self.found);
        let damaged = found.iter().flatten().filter(|(_, found)| found.fault.is_some());
        damaged.map(|(path, _)| path.clone()).collect()
    }

    /// What files are, in their order. Compares what has not been compared, on threads for blocking work.
    pub(crate) async fn conditions(self: &Arc<Self>, table: Table, files: &[Arc<DataFile>]) -> Vec<Condition> {
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        let parts = files.chunks(files.len().div_ceil(threads).max(1));
        let compared = parts.clone().map(|part| {
            let (damage, part) = (self.clone(), part.to_vec());
            tokio::task::spawn_blocking(move || part.iter().map(|file| damage.condition(table, file)).collect())
        });
        let mut conditions: Vec<Condition> = Vec::with_capacity(files.len());
        for (part, compared) in parts.zip(futures::future::join_all(compared).await) {
            let compared = compared.unwrap_or_else(|error| {
                tracing::error!(%error, "cannot compare files with what was written");
                // Of a part that was not compared nothing is read.
                vec![Condition::Damaged; part.len()]
            });
            conditions.extend(compared);
        }
        let missed = files.iter().zip(&conditions);
        let missed = missed.filter(|(_, condition)| **condition == Condition::Gone);
        let missed: Vec<Arc<DataFile>> = missed.map(|(file, _)| file.clone()).collect();
        if !missed.is_empty() {
            let damaged = self.judge_missed(table, &missed).await;
            for (file, condition) in files.iter().zip(&mut conditions) {
                if damaged.contains(&file.path) {
                    *condition = Condition::Damaged;
                }
            }
        }
        conditions
    }

    /// Of files that were missed those are damaged that their table still has: they are noted, and their paths given.
    pub(crate) async fn judge_missed(&self, table: Table, missed: &[Arc<DataFile>]) -> HashSet<String> {
        let Some(current) = self.current.get() else {
            return HashSet::new();
        };
        let files = match current.of_table(table).await {
            Ok(files) => files,
            Err(error) => {
                let (table, files) = (table.name(), missed.len());
                tracing::warn!(%error, table, files, "files are missing; cannot see whether others replaced them");
                return HashSet::new();
            }
        };
        let named: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let damaged = missed.iter().filter(|file| named.contains(file.path.as_str()));
        damaged
            .map(|file| {
                self.note(table, file, Stamp::default(), Some(MISSING.into()));
                file.path.clone()
            })
            .collect()
    }

    /// As far as this file says: one that is gone has to be judged.
    fn condition(&self, table: Table, file: &DataFile) -> Condition {
        if self.root.looks_cost() {
            // To compare it would be to fetch all of it for what may be a few pages: maintenance does that.
            let found = lock_mutex(&self.found);
            let found = found[table.index()].get(&file.path);
            return found.map_or(Condition::Intact, Found::condition);
        }
        let stamp = self.root.stamp(&table.path_of(&file.path));
        {
            let found = lock_mutex(&self.found);
            let found = found[table.index()].get(&file.path);
            if let Some(found) = found.filter(|found| found.is_same(&stamp)) {
                return found.condition();
            }
        }
        self.compare(table, file, stamp)
    }

    /// Reads the whole file, and notes what is found; not that it is missing where others may have replaced it.
    fn compare(&self, table: Table, file: &DataFile, stamp: Result<Stamp, RootError>) -> Condition {
        let path = table.path_of(&file.path);
        let fault = match &stamp {
            Ok(_) => fault(self.reader.as_ref(), &path, file.size_bytes),
            Err(error) => Ok(Some(reading_fault(error))),
        };
        match fault {
            Ok(Some(fault)) if fault == MISSING && self.current.get().is_some() => Condition::Gone,
            Ok(fault) => self.note(table, file, stamp.unwrap_or_default(), fault.map(Into::into)),
            // A want of ours: the reader will meet it too, and it is no property of the file.
            Err(error) => {
                let name = self.reader.name_of(&path);
                tracing::warn!(error = %error.cause(), path = %name, "cannot compare a file with what was written");
                Condition::Intact
            }
        }
    }

    /// Notes what was found of a file, and says in the log what is new of it.
    fn note(&self, table: Table, file: &DataFile, stamp: Stamp, fault: Option<Arc<str>>) -> Condition {
        let found = Found {
            stamp,
            at: Instant::now(),
            fault: fault.clone(),
            rows: file.rows,
        };
        let condition = found.condition();
        let before = lock_mutex(&self.found)[table.index()].insert(file.path.clone(), found);
        let was_intact = before.is_none_or(|before| before.fault.is_none());
        let (file, rows) = (self.reader.name_of(&table.path_of(&file.path)), file.rows);
        match fault {
            Some(fault) if was_intact => {
                tracing::error!(%file, fault = &*fault, rows, "a data file is damaged: it is left out")
            }
            None if !was_intact => tracing::info!(%file, rows, "a data file is intact again"),
            _ => {}
        }
        condition
    }

    /// Forgets files that are gone.
    pub(crate) fn forget<'f>(&self, files_of: impl Fn(Table) -> &'f [Arc<DataFile>]) {
        for table in Table::ALL {
            let named: HashSet<&str> = files_of(table).iter().map(|file| file.path.as_str()).collect();
            lock_mutex(&self.found)[table.index()].retain(|path, _| named.contains(path.as_str()));
        }
    }

    /// Compares files that have not been for a day, some at a time, and forgets those that are gone. Gives those that
    /// were missed and have to be judged.
    pub(crate) fn scrub<'f>(&self, files_of: impl Fn(Table) -> &'f [Arc<DataFile>]) -> Vec<Missed> {
        let (mut bytes, mut missed) = (0, Vec::new());
        self.forget(&files_of);
        let again = match self.root.looks_cost() {
            true => COMPARE_FAR_AGAIN,
            false => COMPARE_AGAIN,
        };
        for table in Table::ALL {
            let mut of_table = Vec::new();
            for file in files_of(table) {
                let fresh = lock_mutex(&self.found)[table.index()]
                    .get(&file.path)
                    .is_some_and(|found| found.at.elapsed() < again);
                if fresh || bytes > BYTES_A_ROUND {
                    continue;
                }
                bytes += file.size_bytes;
                let stamp = self.root.stamp(&table.path_of(&file.path));
                if self.compare(table, file, stamp) == Condition::Gone {
                    of_table.push(file.clone());
                }
            }
            if !of_table.is_empty() {
                missed.push((table, of_table));
            }
        }
        missed
    }
}

/// The end of a data file's name.
pub(crate) fn name_end(content: &[u8]) -> String {
    format!(".{:016x}{NAME_END}", xxhash_rust::xxh3::xxh3_64(content))
}

/// The hash in a file's name; files of servers that did not write it have none.
pub(crate) fn hash_in(path: &str) -> Option<u64> {
    let name = path.rsplit('/').next()?.strip_suffix(NAME_END)?;
    let (_, digits) = name.rsplit_once('.')?;
    (digits.len() == 16).then(|| u64::from_str_radix(digits, 16).ok())?
}

/// What is wrong with a file, if anything, of which this is the path below the data root. An error says that it could
/// not be found out.
pub(crate) fn fault(reader: &dyn RangeReader, path: &str, size_bytes: u64) -> Result<Option<String>, RootError> {
    let Digest { bytes, hash } = match reader.digest(path) {
        Ok(digest) => digest,
        Err(error @ RootError::Ours(_)) => return Err(error),
        Err(error) => return Ok(Some(reading_fault(&error))),
    };
    if bytes != size_bytes {
        return Ok(Some(format!("it has {bytes} bytes, {size_bytes} were written")));
    }
    let written = hash_in(path);
    Ok(written
        .filter(|written| *written != hash)
        .map(|_| "its content is not what was written".to_owned()))
}

fn reading_fault(error: &RootError) -> String {
    match error {
        RootError::NotFound(_) => MISSING.to_owned(),
        error => format!("it cannot be read: {}", error.cause()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::root::local_reader::LocalReader;

    #[test]
    fn every_flipped_byte_is_found_and_so_is_what_is_cut_or_gone() {
        let dir = tempfile::tempdir().unwrap();
        let content: Vec<u8> = (0..1000_u32).map(|n| (n * 7) as u8).collect();
        let name = format!("part-x{}", name_end(&content));
        let (path, reader) = (dir.path().join(&name), LocalReader::new(dir.path()));
        let fault = |size| fault(&reader, &name, size);
        let size = content.len() as u64;
        std::fs::write(&path, &content).unwrap();
        assert_eq!(fault(size).unwrap(), None);
        for at in 0..content.len() {
            let mut flipped = content.clone();
            flipped[at] ^= 1 << (at % 8);
            std::fs::write(&path, &flipped).unwrap();
            let said = fault(size).unwrap();
            assert_eq!(
                said.as_deref(),
                Some("its content is not what was written"),
                "byte {at}"
            );
        }
        std::fs::write(&path, &content[..999]).unwrap();
        let said = fault(size).unwrap().unwrap();
        assert!(said.contains("999 bytes, 1000 were written"), "{said}");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(fault(size).unwrap().as_deref(), Some("it is missing"));
    }

    #[test]
    fn a_name_without_a_hash_is_one_of_an_older_server() {
        assert_eq!(hash_in("a/part-1f3c.zstd.parquet"), None);
        assert_eq!(hash_in("a/part-1f3c.00000000000000ff.zstd.parquet"), Some(255));
    }
}
