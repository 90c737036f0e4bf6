//! Damaged files: found before they are read, left out, and named.
//!
//! A data file's name ends in the hash of its content. Before a reader opens a file for the first time, the whole
//! file is compared with it; so it is again when its size or times are others than then, and once a day by
//! maintenance. In a bucket only maintenance compares, once a month. A damaged file is left out of answers and rewrites
//! and stays where it is; it is listed until it is intact again or older than the retention.

use crate::lock::lock_mutex;
use crate::store::root::contract::{Root, Stamp};
use crate::store::root::error::RootError;
use crate::store::root::reader::{Digest, RangeReader};
use crate::store::table::data_file::DataFile;
use crate::store::table::schema::Table;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
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

/// What was found of a file.
#[derive(Debug)]
struct Found {
    stamp: Stamp,
    at: Instant,
    fault: Option<Arc<str>>,
    rows: u64,
}

/// What is known of the files. One for a store.
#[derive(Debug)]
pub(crate) struct Corruption {
    root: Arc<dyn Root>,
    reader: Arc<dyn RangeReader>,
    /// By path below the table's folder. As many as there are files: maintenance forgets those that are gone.
    found: Mutex<[HashMap<String, Found>; Table::COUNT]>,
    logs: Mutex<Vec<DamagedFile>>,
}

impl Corruption {
    pub(crate) fn new(root: Arc<dyn Root>) -> Self {
        Self {
            reader: root.reader(),
            root,
            found: Mutex::default(),
            logs: Mutex::default(),
        }
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

    /// Which of the files can be read. Compares what has not been compared, on threads for blocking work.
    pub(crate) async fn intact(self: &Arc<Self>, table: Table, files: &[Arc<DataFile>]) -> Vec<bool> {
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        let parts = files.chunks(files.len().div_ceil(threads).max(1)).map(|part| {
            let (damage, part) = (self.clone(), part.to_vec());
            tokio::task::spawn_blocking(move || part.iter().map(|file| damage.is_intact(table, file)).collect())
        });
        let mut intact: Vec<bool> = Vec::with_capacity(files.len());
        for part in futures::future::join_all(parts).await {
            match part {
                Ok(part) => intact.extend::<Vec<bool>>(part),
                Err(error) => tracing::error!(%error, "cannot compare files with what was written"),
            }
        }
        // Of a part that was not compared nothing is read.
        intact.resize(files.len(), false);
        intact
    }

    fn is_intact(&self, table: Table, file: &DataFile) -> bool {
        if self.root.looks_cost() {
            // To compare it would be to fetch all of it for what may be a few pages: maintenance does that.
            let found = lock_mutex(&self.found);
            let found = found[table.index()].get(&file.path);
            return found.is_none_or(|found| found.fault.is_none());
        }
        let stamp = self.root.stamp(&table.path_of(&file.path));
        {
            let found = lock_mutex(&self.found);
            if let (Ok(stamp), Some(found)) = (&stamp, found[table.index()].get(&file.path))
                && found.stamp == *stamp
            {
                return found.fault.is_none();
            }
        }
        self.compare(table, file, stamp)
    }

    /// Reads the whole file, and notes what is found.
    fn compare(&self, table: Table, file: &DataFile, stamp: Result<Stamp, RootError>) -> bool {
        let path = table.path_of(&file.path);
        let fault = match &stamp {
            Ok(_) => fault(self.reader.as_ref(), &path, file.size_bytes),
            Err(error) => Ok(Some(reading_fault(error))),
        };
        let name = self.reader.name_of(&path);
        let fault: Option<Arc<str>> = match fault {
            Ok(fault) => fault.map(Into::into),
            // A want of ours: the reader will meet it too, and it is no property of the file.
            Err(error) => {
                tracing::warn!(error = %error.cause(), path = %name, "cannot compare a file with what was written");
                return true;
            }
        };
        let is_intact = fault.is_none();
        let found = Found {
            stamp: stamp.unwrap_or_default(),
            at: Instant::now(),
            fault: fault.clone(),
            rows: file.rows,
        };
        let before = lock_mutex(&self.found)[table.index()].insert(file.path.clone(), found);
        let was_intact = before.is_none_or(|before| before.fault.is_none());
        let (file, rows) = (name, file.rows);
        match fault {
            Some(fault) if was_intact => {
                tracing::error!(%file, fault = &*fault, rows, "a data file is damaged: it is left out")
            }
            None if !was_intact => tracing::info!(%file, rows, "a data file is intact again"),
            _ => {}
        }
        is_intact
    }

    /// Forgets files that are gone.
    pub(crate) fn forget<'f>(&self, files_of: impl Fn(Table) -> &'f [Arc<DataFile>]) {
        for table in Table::ALL {
            let named: HashSet<&str> = files_of(table).iter().map(|file| file.path.as_str()).collect();
            lock_mutex(&self.found)[table.index()].retain(|path, _| named.contains(path.as_str()));
        }
    }

    /// Compares files that have not been for a day, some at a time, and forgets those that are gone.
    pub(crate) fn scrub<'f>(&self, files_of: impl Fn(Table) -> &'f [Arc<DataFile>]) {
        let mut bytes = 0;
        self.forget(&files_of);
        let again = match self.root.looks_cost() {
            true => COMPARE_FAR_AGAIN,
            false => COMPARE_AGAIN,
        };
        for table in Table::ALL {
            for file in files_of(table) {
                let fresh = lock_mutex(&self.found)[table.index()]
                    .get(&file.path)
                    .is_some_and(|found| found.at.elapsed() < again);
                if fresh || bytes > BYTES_A_ROUND {
                    continue;
                }
                bytes += file.size_bytes;
                let stamp = self.root.stamp(&table.path_of(&file.path));
                self.compare(table, file, stamp);
            }
        }
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
