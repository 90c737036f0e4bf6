//! What tells an intact log from a damaged one.
//!
//! An entry that the server writes carries the hash of itself in its `commitInfo`. What the library writes (a table's
//! first entries, checkpoints, `_last_checkpoint`) is listed with its hashes in `_stakeout_sums` beside it, which
//! other readers of the table pass over.

use crate::store::log::location::LogFolder;
use crate::store::root::error::RootError;
use crate::store::root::waiting::waiting;
use crate::store::table::error::StoreError;
use crate::store::table::integrity::Fault;
use crate::store::table::schema::Table;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use xxhash_rust::xxh3::xxh3_64;

/// The field of `commitInfo`.
pub(crate) const CHECKSUM: &str = "stakeoutChecksum";

/// What stands there while the hash is taken.
pub(crate) const UNSEALED: &str = "0000000000000000";

/// Names of a log's files.
pub(crate) const SUMS: &str = "_stakeout_sums";

pub(crate) const HINT: &str = "_last_checkpoint";

fn fault(name: &str, what: impl Into<String>) -> Fault {
    Fault {
        name: name.to_owned(),
        what: what.into(),
    }
}

/// Puts the hash of an entry into it. The entry was made with [`UNSEALED`] in the place.
pub(crate) fn seal(entry: &Bytes) -> Bytes {
    let Some(at) = place(entry) else { return entry.clone() };
    let mut sealed = entry.to_vec();
    let hash = format!("{:016x}", xxh3_64(entry));
    sealed[at..at + hash.len()].copy_from_slice(hash.as_bytes());
    sealed.into()
}

/// Where an entry's hash stands.
fn place(entry: &[u8]) -> Option<usize> {
    let key = format!("\"{CHECKSUM}\":\"");
    let found = entry.windows(key.len()).position(|bytes| bytes == key.as_bytes())?;
    let at = found + key.len();
    (at + UNSEALED.len() <= entry.len()).then_some(at)
}

/// Whether a sealed entry is what was written; none for an entry without a hash.
pub(crate) fn is_as_sealed(entry: &[u8]) -> Option<bool> {
    let at = place(entry)?;
    let digits = at..at + UNSEALED.len();
    let mut unsealed = entry.to_vec();
    unsealed[digits.clone()].copy_from_slice(UNSEALED.as_bytes());
    Some(entry[digits] == *format!("{:016x}", xxh3_64(&unsealed)).as_bytes())
}

/// Entries that are read at a time.
const TOGETHER: usize = 256;

/// How a fault begins that is none of the file.
const NOT_NOW: &str = "it cannot be read now";

/// Names with hashes of their content.
#[derive(Debug, Default)]
pub(crate) struct Sums(BTreeMap<String, String>);

impl Sums {
    /// Those of a log's folder; none where there are none, a fault where they cannot be trusted.
    pub(crate) fn read(log: &LogFolder) -> Result<Option<Sums>, Fault> {
        let Ok(content) = log.read(SUMS) else {
            return Ok(None);
        };
        let damaged = || fault(SUMS, "its content is not what was written");
        let text = std::str::from_utf8(&content).map_err(|_| damaged())?;
        let (hash, json) = text.split_once('\n').ok_or_else(damaged)?;
        if hash != format!("{:016x}", xxh3_64(json.as_bytes())) {
            return Err(damaged());
        }
        serde_json::from_str(json)
            .map(|sums| Some(Sums(sums)))
            .map_err(|_| damaged())
    }

    /// Those of a folder as it is now: of the named files, which were just written, and of others what was known.
    pub(crate) fn of(log: &LogFolder, written: &[String]) -> Result<Bytes, RootError> {
        let known = Sums::read(log).ok().flatten().unwrap_or_default();
        let mut sums = BTreeMap::new();
        for name in Listed::read(log)?.all() {
            if written.contains(&name) {
                let hash = format!("{:016x}", xxh3_64(&log.read(&name)?));
                sums.insert(name, hash);
            } else if let Some(hash) = known.0.get(&name) {
                sums.insert(name, hash.clone());
            }
        }
        Sums(sums)
            .encode()
            .map_err(|error| RootError::new(&log.path_of(SUMS), error))
    }

    /// Those of these files alone, for a log that has no others.
    pub(crate) fn only(&self, names: &[String]) -> serde_json::Result<Bytes> {
        let of = |name: &String| Some((name.clone(), self.0.get(name)?.clone()));
        Sums(names.iter().filter_map(of).collect()).encode()
    }

    fn encode(&self) -> serde_json::Result<Bytes> {
        let json = serde_json::to_string(&self.0)?;
        Ok(format!("{:016x}\n{json}", xxh3_64(json.as_bytes())).into())
    }
}

/// The files of a log's folder that count.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) entries: BTreeSet<u64>,
    pub(crate) checkpoints: BTreeSet<u64>,
    pub(super) has_hint: bool,
}

pub(crate) fn entry_name(version: u64) -> String {
    format!("{version:020}.json")
}

pub(crate) fn checkpoint_name(version: u64) -> String {
    format!("{version:020}.checkpoint.parquet")
}

/// Entries without a hash that are not listed either: the library's, since the last look.
pub(crate) fn unlisted_entries(log: &LogFolder) -> Result<Vec<String>, RootError> {
    let listed = Listed::read(log)?;
    let sums = Sums::read(log).ok().flatten().unwrap_or_default();
    let checkpoint = listed.checkpoints.last().copied().unwrap_or_default();
    let names = listed.entries.range(checkpoint..).map(|version| entry_name(*version));
    let names: Vec<String> = names.filter(|name| !sums.0.contains_key(name)).collect();
    let mut unlisted = Vec::new();
    for names in names.chunks(TOGETHER) {
        for (name, content) in names.iter().zip(log.read_each(names)) {
            if place(&content?).is_none() {
                unlisted.push(name.clone());
            }
        }
    }
    Ok(unlisted)
}

impl Listed {
    /// Nothing where there is no folder.
    pub(crate) fn read(log: &LogFolder) -> Result<Listed, RootError> {
        let mut listed = Listed::default();
        for name in log.names()? {
            listed.has_hint |= name == HINT;
            let Some((Ok(version), kind)) = name.split_once('.').map(|(digits, kind)| (digits.parse(), kind)) else {
                continue;
            };
            match kind {
                "json" => drop(listed.entries.insert(version)),
                "checkpoint.parquet" => drop(listed.checkpoints.insert(version)),
                _ => {}
            }
        }
        Ok(listed)
    }

    fn all(&self) -> Vec<String> {
        let entries = self.entries.iter().map(|version| entry_name(*version));
        let checkpoints = self.checkpoints.iter().map(|version| checkpoint_name(*version));
        let hint = self.has_hint.then(|| HINT.to_owned());
        entries.chain(checkpoints).chain(hint).collect()
    }
}

/// Looks at what a start reads: the newest checkpoint, the entries after it, and the file that names the checkpoint.
pub(crate) fn faults(log: &LogFolder) -> Result<Vec<Fault>, RootError> {
    let listed = Listed::read(log)?;
    let mut faults = Vec::new();
    let sums = Sums::read(log).unwrap_or_else(|fault| {
        faults.push(fault);
        None
    });
    let checkpoint = listed.checkpoints.last().copied();
    faults.extend(checkpoint.and_then(|version| checkpoint_fault(log, version, sums.as_ref())));
    let first = checkpoint.map_or(0, |version| version + 1);
    if let Some(last) = listed.entries.last() {
        let names: Vec<String> = (first..=*last).map(entry_name).collect();
        for names in names.chunks(TOGETHER) {
            for (name, content) in names.iter().zip(log.read_each(names)) {
                let content = content.map_err(|error| unread(name, &error));
                faults.extend(entry_fault_of(name, content, sums.as_ref()));
            }
        }
    }
    if listed.has_hint {
        faults.extend(hint_fault(log, &listed, sums.as_ref()));
    }
    // Of what cannot be read now nobody knows whether it is damaged.
    match faults.iter().find(|fault| fault.what.starts_with(NOT_NOW)) {
        Some(fault) => Err(RootError::ours(&log.path_of(&fault.name), fault.what.clone())),
        None => Ok(faults),
    }
}

fn read(log: &LogFolder, name: &str) -> Result<Bytes, Fault> {
    log.read(name).map_err(|error| unread(name, &error))
}

fn unread(name: &str, error: &RootError) -> Fault {
    match error {
        RootError::NotFound(_) => fault(name, "it is missing"),
        RootError::Ours(_) => fault(name, format!("{NOT_NOW}: {}", error.cause())),
        _ => fault(name, format!("it cannot be read: {}", error.cause())),
    }
}

/// Whether content has the hash that is listed; none where none is.
fn is_as_listed(sums: Option<&Sums>, name: &str, content: &[u8]) -> Option<bool> {
    let hash = sums?.0.get(name)?;
    Some(*hash == format!("{:016x}", xxh3_64(content)))
}

/// What is wrong with a checkpoint. One that is not listed was written just before the server ended: it must be
/// readable.
pub(crate) fn checkpoint_fault(log: &LogFolder, version: u64, sums: Option<&Sums>) -> Option<Fault> {
    let name = checkpoint_name(version);
    let content = match read(log, &name) {
        Ok(content) => content,
        Err(fault) => return Some(fault),
    };
    checkpoint_fault_of(&name, content, sums)
}

fn checkpoint_fault_of(name: &str, content: Bytes, sums: Option<&Sums>) -> Option<Fault> {
    let intact = is_as_listed(sums, name, &content)
        .unwrap_or_else(|| crate::store::log::transactions::checkpoint_txns(content).is_ok());
    (!intact).then(|| fault(name, "its content is not what was written"))
}

/// What is wrong with the content of an entry or of a checkpoint.
pub(crate) fn content_fault(name: &str, content: &Bytes, sums: Option<&Sums>) -> Option<Fault> {
    match name.ends_with(".json") {
        true => entry_fault_of(name, Ok(content.clone()), sums),
        false => checkpoint_fault_of(name, content.clone(), sums),
    }
}

/// What is wrong with an entry. One without a hash is the library's, which writes entries that change the table
/// itself: only in a table of an older server are there others.
pub(crate) fn entry_fault(log: &LogFolder, version: u64, sums: Option<&Sums>) -> Option<Fault> {
    let name = entry_name(version);
    entry_fault_of(&name, read(log, &name), sums)
}

fn entry_fault_of(name: &str, content: Result<Bytes, Fault>, sums: Option<&Sums>) -> Option<Fault> {
    let content = match content {
        Ok(content) => content,
        Err(fault) => return Some(fault),
    };
    let sealed = is_as_sealed(&content).or_else(|| is_as_listed(sums, name, &content));
    let intact = sealed.unwrap_or_else(|| {
        let mut lines = content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let read = lines
            .clone()
            .all(|line| serde_json::from_slice::<serde_json::Value>(line).is_ok());
        !content.is_empty() && read && (sums.is_none() || lines.any(|line| line.starts_with(b"{\"metaData\"")))
    });
    (!intact).then(|| fault(name, "its content is not what was written"))
}

fn hint_fault(log: &LogFolder, listed: &Listed, sums: Option<&Sums>) -> Option<Fault> {
    let content = match read(log, HINT) {
        Ok(content) => content,
        Err(fault) => return Some(fault),
    };
    let hint: Option<serde_json::Value> = serde_json::from_slice(&content).ok();
    let version = hint.and_then(|hint| hint["version"].as_u64());
    // The library replaces the file before the sums are: then it names a checkpoint that they don't have.
    let is_newer = version.is_some_and(|version| {
        listed.checkpoints.contains(&version) && sums.is_none_or(|sums| !sums.0.contains_key(&checkpoint_name(version)))
    });
    if !is_newer && is_as_listed(sums, HINT, &content) != Some(true) {
        return Some(fault(HINT, "its content is not what was written"));
    }
    let named = version.filter(|version| !listed.checkpoints.contains(version))?;
    Some(fault(&checkpoint_name(named), "it is missing"))
}

/// The newest checkpoint that can be trusted, and the entries after it without a gap (from the first on, where there
/// is none).
pub(crate) fn trusted(log: &LogFolder) -> Result<(Option<u64>, Vec<u64>), RootError> {
    let listed = Listed::read(log)?;
    let sums = Sums::read(log).ok().flatten();
    let intact = |version: &&u64| checkpoint_fault(log, **version, sums.as_ref()).is_none();
    let checkpoint = listed.checkpoints.iter().rev().find(intact).copied();
    let first = checkpoint.map_or(0, |version| version + 1);
    let entries = (first..)
        .take_while(|version| listed.entries.contains(version) && entry_fault(log, *version, sums.as_ref()).is_none())
        .collect();
    Ok((checkpoint, entries))
}

/// Lists the hashes of what the library has just written: of the files that `written` names.
pub(crate) async fn list_sums(
    table: Table,
    log: &LogFolder,
    written: impl FnOnce(&LogFolder) -> Result<Vec<String>, RootError> + Send + 'static,
) -> Result<(), StoreError> {
    let log = log.clone();
    let listed = waiting(move || {
        let written = written(&log)?;
        if written.is_empty() {
            return Ok(());
        }
        let sums = Sums::of(&log, &written)?;
        log.root.replace(&log.path_of(SUMS), sums)
    });
    listed
        .await
        .map_err(StoreError::of_root(table, "list its log's hashes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::root::local::LocalRoot;
    use std::sync::Arc;

    fn entry() -> Bytes {
        let info = format!("{{\"commitInfo\":{{\"a\":1,\"{CHECKSUM}\":\"{UNSEALED}\"}}}}");
        seal(&format!("{info}\n{{\"add\":{{\"path\":\"x\"}}}}").into())
    }

    #[test]
    fn a_sealed_entry_shows_every_flipped_byte() {
        let sealed = entry();
        assert_eq!(is_as_sealed(&sealed), Some(true));
        assert!(sealed.starts_with(b"{\"commitInfo\""));
        for at in 0..sealed.len() {
            let mut flipped = sealed.to_vec();
            flipped[at] ^= 0x04;
            assert_ne!(is_as_sealed(&flipped), Some(true), "byte {at}");
        }
    }

    #[test]
    fn entries_without_a_hash_are_those_that_are_listed_or_change_the_table() {
        let dir = tempfile::tempdir().unwrap();
        let (root, path) = (Arc::new(LocalRoot::open(dir.path()).unwrap()), "log".to_owned());
        let (log, dir) = (LogFolder { root, path }, dir.path().join("log"));
        std::fs::create_dir(&dir).unwrap();
        let write = |version, content: &[u8]| std::fs::write(dir.join(entry_name(version)), content).unwrap();
        let first = b"{\"protocol\":{}}\n{\"metaData\":{}}\n";
        write(0, first);
        write(1, &entry());
        assert_eq!(unlisted_entries(&log).unwrap(), [entry_name(0)]);
        let sums = Sums::of(&log, &[entry_name(0)]).unwrap();
        std::fs::write(dir.join(SUMS), &sums).unwrap();
        assert_eq!(faults(&log).unwrap(), []);
        // In the name of the hash's field, so that the entry looks like one without a hash.
        let mut flipped = entry().to_vec();
        let at = place(&flipped).unwrap() - 6;
        flipped[at] ^= 0x01;
        write(1, &flipped);
        assert_eq!(faults(&log).unwrap()[0].name, entry_name(1));
        write(1, &entry());
        let mut flipped = first.to_vec();
        flipped[5] ^= 0x01;
        write(0, &flipped);
        assert_eq!(faults(&log).unwrap()[0].name, entry_name(0));
        write(0, first);
        write(3, &entry());
        assert_eq!(faults(&log).unwrap()[0], fault(&entry_name(2), "it is missing"));
        assert_eq!(trusted(&log).unwrap(), (None, vec![0, 1]));
    }
}
