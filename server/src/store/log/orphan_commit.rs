//! Files of a commit that has no entry in the log: the server was killed before it wrote it, or the entry is gone.
//!
//! Nobody can tell which, and in the second case the senders have their answers. So the rows are taken in, as long as
//! no batch among them is stored: whoever had no answer and sends again is told that they are stored. Of samples all
//! files of the commit must be there. Of other tables it does not matter: they may hold a row more than once.

use crate::store::buffer::sender_window::{Seen, SenderWindow};
use crate::store::format::provenance::Provenance;
use crate::store::format::write::rows_file;
use crate::store::log::location::TableLocation;
use crate::store::log::recover;
use crate::store::root::error::RootError;
use crate::store::table::data_file::DataFile;
use crate::store::table::schema::Table;
use crate::store::table::transaction::Txn;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct OrphanCommits {
    pub(crate) files: Vec<Arc<DataFile>>,
    /// What the log has to say of their batches.
    pub(crate) txns: Vec<Txn>,
}

/// By the batches of a commit and the number of its files: their paths.
type Commits = BTreeMap<(Vec<(String, i64)>, usize), Vec<String>>;

/// Looks in a table's folder for files that its log, which names `files` and has `txns`, knows nothing of. Reads what
/// it finds: call it on a blocking thread.
pub(crate) fn find(place: &TableLocation, files: &[Arc<DataFile>], txns: &[Txn]) -> Result<OrphanCommits, RootError> {
    let mut found = OrphanCommits::default();
    if Table::ROLLUPS.contains(&place.table) {
        return Ok(found);
    }
    let mut paths = recover::paths(place, files)?;
    // What compaction writes begins as the fresh files do where the hour is not over; provenance tells them apart.
    paths.retain(|path| {
        path.rsplit('/')
            .next()
            .is_some_and(|name| name.starts_with(rows_file::PART))
    });
    if paths.is_empty() {
        return Ok(found);
    }
    let removed = recover::removed(&place.log())?;
    paths.retain(|path| !removed.contains(path));
    let mut commits = Commits::new();
    for path in paths {
        // What cannot be read is no file of ours, or was not written to its end.
        let Ok(provenance) = Provenance::read(place.root.reader().as_ref(), &place.path_of(&path)) else {
            recover::is_readable(place, &path)?;
            continue;
        };
        if provenance.replaces.is_empty() {
            commits
                .entry((provenance.batches, provenance.parts))
                .or_default()
                .push(path);
        }
    }
    let mut sender_window: SenderWindow<()> = SenderWindow::from_txns(txns);
    let now_ms = place.clock.possible_ns() / 1_000_000;
    for ((batches, parts), paths) in commits {
        if place.table == Table::Samples {
            let is_new = |(instance, number): &(String, i64)| sender_window.check(instance, *number) == Seen::New;
            if batches.is_empty() || paths.len() != parts || !batches.iter().all(is_new) {
                continue;
            }
        }
        let read = paths.iter().map(|path| recover::read_file(place, path));
        let Ok(of_commit) = read.collect::<Result<Vec<_>, _>>() else {
            paths.iter().try_for_each(|path| recover::is_readable(place, path))?;
            continue;
        };
        found
            .files
            .extend(of_commit.into_iter().map(|(file, _)| Arc::new(file)));
        found.txns.extend(sender_window.transactions(&batches, now_ms));
        sender_window.committed(&batches, now_ms);
    }
    Ok(found)
}
