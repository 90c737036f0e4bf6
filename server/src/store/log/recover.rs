//! A log that cannot be trusted: what is left of it and the files in the table's folder become a new log.
//!
//! Up to the first damaged entry the log is believed. Of the rest each line counts that can be read. Files that
//! nothing names are part of the table, unless a line or another file says that they were replaced. The new log is
//! made beside the table and put into its place in one step; the old one stays in `damaged/` for whoever wants to
//! look at it.

use crate::store::format::provenance::Provenance;
use crate::store::format::read::rows::FileRows;
use crate::store::format::write::rows_file;
use crate::store::log::checksums::{self, Listed};
use crate::store::log::location::{LogFolder, TableLocation};
use crate::store::log::table_log::{TableLog, add_action, load};
use crate::store::root::error::RootError;
use crate::store::table::data_file::DataFile;
use crate::store::table::error::{StoreError, chain};
use crate::store::table::file_list::add_files;
use crate::store::table::integrity::{self, Fault};
use crate::store::table::schema::Table;
use crate::store::table::transaction::Txn;
use deltalake_core::kernel::Transaction;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Rows of a file that are read at a time.
const BATCH_ROWS: usize = 64 * 1024;

/// Where damaged logs are kept, below the data root.
const ASIDE: &str = "damaged";

/// What is wrong with a log. A folder with data files and without a log is a log that is missing.
pub(crate) fn faults(place: &TableLocation) -> Result<Vec<Fault>, RootError> {
    let listed = Listed::read(&place.log())?;
    if listed.entries.is_empty() && listed.checkpoints.is_empty() {
        let files = data_files(place)?;
        let missing = Fault {
            name: String::new(),
            what: "it is missing".to_owned(),
        };
        return Ok(if files.is_empty() { vec![] } else { vec![missing] });
    }
    checksums::faults(&place.log())
}

/// Makes a log intact again. A file that only names the newest checkpoint is put aside: the library does without it.
pub(crate) async fn mend(place: &TableLocation, faults: &[Fault]) -> Result<(), StoreError> {
    let is_side_file = |fault: &Fault| fault.name == checksums::HINT || fault.name == checksums::SUMS;
    let aside = place.waiting(aside).await;
    let aside = aside.map_err(place.root_failed("make a folder for its damaged log"))?;
    if !faults.iter().all(is_side_file) {
        return rebuild(place, &aside).await;
    }
    let names: Vec<String> = faults.iter().map(|fault| fault.name.clone()).collect();
    let put = place.waiting(move |place| {
        let log = place.log();
        names.iter().try_for_each(|name| {
            let moved = log.root.set_aside(&log.path_of(name), &format!("{aside}/{name}"));
            moved.and_then(|()| log.root.settle(&log.path))
        })
    });
    put.await.map_err(place.root_failed("put a damaged file aside"))
}

/// A new folder in `damaged/`.
fn aside(place: &TableLocation) -> Result<String, RootError> {
    let now = chrono::Utc::now().format("%Y%m%dT%H%M%S%.3fZ");
    let aside = format!("{ASIDE}/{}-{now}", place.table.name());
    place.root.prepare(&aside)?;
    Ok(aside)
}

/// Where the intact part of a damaged log is read.
fn trusted(aside: &str) -> String {
    format!("{aside}/trusted")
}

async fn rebuild(place: &TableLocation, aside: &str) -> Result<(), StoreError> {
    let believed = match believed(place, aside).await {
        Ok(believed) => believed,
        Err(error) => {
            tracing::warn!(%error, "nothing of a damaged log can be believed: its files are all that is left");
            Believed::default()
        }
    };
    let at = aside.to_owned();
    let whole = place.waiting(move |place| believed.and_the_rest(place, &at)).await;
    let whole = whole.map_err(place.root_failed("read its files"))?;
    let new = place.elsewhere(format!("{aside}/new"));
    let (mut log, _, _) = TableLog::over(&new).await?;
    let add = whole
        .files
        .iter()
        .map(|file| add_action(place.table, file, true))
        .collect();
    let txns: Vec<Txn> = whole.txns.into_values().collect();
    log.commit(add, &[], &txns, true).await.map_err(StoreError::from)?;
    let made = new.log().path;
    let exchanged = place.waiting(move |place| place.root.exchange(&made, &place.log().path));
    exchanged
        .await
        .map_err(place.root_failed("put a new log into its place"))?;
    let done_with = trusted(aside);
    let _ = place.waiting(move |place| place.root.discard(&done_with)).await;
    let (table, files, old) = (
        place.table.name(),
        whole.files.len(),
        place.root.reader().name_of(aside),
    );
    tracing::warn!(table, files, %old, "a damaged log was made anew from what is left of it and from the files");
    Ok(())
}

/// What a table holds.
#[derive(Debug, Default)]
struct Believed {
    /// The last entry that is part of it; none if there is none.
    version: Option<u64>,
    files: Vec<Arc<DataFile>>,
    txns: HashMap<String, Txn>,
}

/// The log up to its first damaged entry, by the library, in a folder that has the intact files only.
async fn believed(place: &TableLocation, aside: &str) -> Result<Believed, StoreError> {
    let intact = place.waiting(|place| checksums::trusted(&place.log())).await;
    let (checkpoint, entries) = intact.map_err(place.root_failed("read its log"))?;
    let version = entries.last().copied().or(checkpoint);
    if version.is_none() {
        return Ok(Believed::default());
    }
    let trusted = place.elsewhere(trusted(aside));
    let names = checkpoint.map(checksums::checkpoint_name).into_iter();
    let prepared = trusted
        .waiting(|trusted| trusted.root.prepare(&trusted.log().path))
        .await;
    prepared.map_err(place.root_failed("read its log"))?;
    let names: Vec<String> = names.chain(entries.into_iter().map(checksums::entry_name)).collect();
    let (from, to) = (place.log(), trusted.log());
    let copied = place.waiting(move |place| {
        let copy = |name: &String| place.root.create(&to.path_of(name), from.read(name)?);
        names.iter().try_for_each(copy)
    });
    copied.await.map_err(place.root_failed("read its log"))?;
    let (_, files, txns) = load(&trusted).await?;
    Ok(Believed {
        version,
        files,
        txns: txns.into_iter().map(|txn| (txn.app_id.clone(), txn)).collect(),
    })
}

impl Believed {
    /// Adds what the lines of damaged entries and the folder say.
    fn and_the_rest(mut self, place: &TableLocation, aside: &str) -> Result<Believed, RootError> {
        let mut gone = self.read_lines(&place.log())?;
        let known: HashSet<String> = self.files.iter().map(|file| file.path.clone()).collect();
        let mut found: Vec<(Arc<DataFile>, Vec<String>)> = Vec::new();
        for path in data_files(place)? {
            if known.contains(&path) || gone.contains(&path) {
                continue;
            }
            match read_file(place, &path) {
                Ok((file, provenance)) => {
                    provenance.txns.into_iter().for_each(|txn| self.add_txn(txn));
                    found.push((Arc::new(file), provenance.replaces));
                }
                Err(fault) => {
                    is_readable(place, &path)?;
                    put_aside(place, aside, &path, &fault)?;
                }
            }
        }
        gone.extend(self.replaced(place, &found));
        let mut files = Arc::new(self.files);
        add_files(&mut files, found.into_iter().map(|(file, _)| file).collect());
        self.files = Arc::unwrap_or_clone(files);
        self.files.retain(|file| !gone.contains(&file.path));
        if Table::ROLLUPS.contains(&place.table) {
            one_a_partition(&mut self.files);
        }
        Ok(self)
    }

    /// Of found files and those that they replace the ones that are not part of the table: the old ones, or the new
    /// ones where the server ended before all of them were written.
    fn replaced(&self, place: &TableLocation, found: &[(Arc<DataFile>, Vec<String>)]) -> HashSet<String> {
        let known = self.files.iter().chain(found.iter().map(|(file, _)| file));
        let rows: HashMap<&str, u64> = known.map(|file| (file.path.as_str(), file.rows)).collect();
        let mut rewrites: BTreeMap<&[String], Vec<&DataFile>> = BTreeMap::new();
        for (file, replaces) in found.iter().filter(|(_, replaces)| !replaces.is_empty()) {
            rewrites.entry(replaces).or_default().push(file);
        }
        let mut gone = HashSet::new();
        for (old, new) in rewrites {
            // Where an old file is deleted already, the new ones have taken its place.
            let stamp = |path: &String| place.root.stamp(&place.path_of(path));
            let is_missing = |path: &String| matches!(stamp(path), Err(RootError::NotFound(_)));
            let are_there = !old.iter().any(is_missing);
            let before: Option<u64> = old.iter().map(|path| rows.get(path.as_str()).copied()).sum();
            let after: u64 = new.iter().map(|file| file.rows).sum();
            let is_whole = !place.table.key().is_empty() || !are_there || before.is_none_or(|before| before == after);
            if is_whole {
                gone.extend(old.iter().cloned());
            } else {
                gone.extend(new.into_iter().map(|file| file.path.clone()));
            }
        }
        gone
    }

    /// Every line that can be read: files that some entry removed, and transactions of entries that are not part of
    /// this yet.
    fn read_lines(&mut self, log: &LogFolder) -> Result<HashSet<String>, RootError> {
        let mut gone = HashSet::new();
        for version in Listed::read(log)?.entries {
            let is_new = self.version.is_none_or(|last| version > last);
            for line in lines(log, version) {
                gone.extend(line.remove.map(|removed| removed.path));
                if let Some(txn) = line.txn.filter(|_| is_new) {
                    let txn = Txn {
                        app_id: txn.app_id,
                        version: txn.version,
                        updated_ms: txn.last_updated.unwrap_or_default(),
                    };
                    self.add_txn(txn);
                }
            }
        }
        Ok(gone)
    }

    /// The latest of an application's counts.
    fn add_txn(&mut self, txn: Txn) {
        match self.txns.get(&txn.app_id) {
            Some(known) if known.updated_ms > txn.updated_ms => {}
            _ => drop(self.txns.insert(txn.app_id.clone(), txn)),
        }
    }
}

#[derive(serde::Deserialize)]
struct Removed {
    path: String,
}

/// What counts of an entry's line.
#[derive(serde::Deserialize)]
struct Line {
    remove: Option<Removed>,
    txn: Option<Transaction>,
}

/// The lines of an entry that can be read.
fn lines(log: &LogFolder, version: u64) -> Vec<Line> {
    let content = log.read(&checksums::entry_name(version)).unwrap_or_default();
    let lines = content.split(|byte| *byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// Files that some entry removed.
pub(crate) fn removed(log: &LogFolder) -> Result<HashSet<String>, RootError> {
    let versions = Listed::read(log)?.entries;
    let lines = versions.into_iter().flat_map(|version| lines(log, version));
    Ok(lines.filter_map(|line| Some(line.remove?.path)).collect())
}

/// An hour has one roll-up of each kind: the newest.
fn one_a_partition(files: &mut Vec<Arc<DataFile>>) {
    files.sort_by(|a, b| (&a.partition, b.modified_ms).cmp(&(&b.partition, a.modified_ms)));
    files.dedup_by(|later, first| later.partition == first.partition);
}

/// The Parquet files in a table's partitions, by path below its folder.
fn data_files(place: &TableLocation) -> Result<Vec<String>, RootError> {
    paths(place, &[])
}

/// Those of them that are none of these.
pub(crate) fn paths(place: &TableLocation, but: &[Arc<DataFile>]) -> Result<Vec<String>, RootError> {
    let unnamed = crate::store::table::orphans::unreferenced(place.table, place.root.as_ref(), but)?;
    let prefix = format!("{}/", place.table.name());
    let mut paths: Vec<String> = unnamed
        .into_iter()
        .filter_map(|file| file.path().strip_prefix(&prefix).map(str::to_owned))
        .collect();
    paths.sort();
    Ok(paths)
}

/// What the log would say of a file, and what it says itself.
pub(crate) fn read_file(place: &TableLocation, path: &str) -> Result<(DataFile, Provenance), String> {
    let (reader, below) = (place.root.reader(), place.path_of(path));
    let stamp = place.root.stamp(&below).map_err(|error| error.cause().to_string())?;
    let fault = integrity::fault(reader.as_ref(), &below, stamp.bytes);
    if let Some(fault) = fault.map_err(|error| error.cause().to_string())? {
        return Err(fault);
    }
    let folder = path.split_once('/').map_or("", |(folder, _)| folder);
    let partition = folder.split_once('=').map_or("", |(_, value)| value).to_owned();
    let rows = FileRows::open(reader.as_ref(), place.table, &below, BATCH_ROWS).map_err(|error| error.to_string())?;
    let batches: Vec<_> = rows.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let provenance = Provenance::read(reader.as_ref(), &below).map_err(|error| chain(error.as_ref()))?;
    let modified = stamp.modified.map(chrono::DateTime::<chrono::Utc>::from);
    let described = rows_file::describe(place.table, &batches).map_err(|error| error.to_string())?;
    let described = DataFile {
        path: path.to_owned(),
        partition,
        size_bytes: stamp.bytes,
        modified_ms: modified.map(|time| time.timestamp_millis()).unwrap_or_default(),
        ..described
    };
    Ok((described, provenance))
}

/// An error where a store that does not answer is the reason why a file could not be read: it may be intact.
pub(crate) fn is_readable(place: &TableLocation, path: &str) -> Result<(), RootError> {
    match place.root.reader().digest(&place.path_of(path)) {
        Err(error @ RootError::Ours(_)) => Err(error),
        _ => Ok(()),
    }
}

/// A file that cannot be part of the table, kept from being deleted as one that nobody names.
fn put_aside(place: &TableLocation, aside: &str, path: &str, fault: &str) -> Result<(), RootError> {
    let (file, named) = (place.table.path_of(path), place.root.reader().name_of(aside));
    tracing::error!(file, fault, aside = %named, "a data file that the damaged log may have named is damaged too");
    let to = format!("{aside}/{}", path.replace('/', "_"));
    place.root.set_aside(&place.path_of(path), &to)
}
