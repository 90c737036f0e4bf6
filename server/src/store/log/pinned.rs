//! A table's log as it is at one moment, for whoever only reads: nothing is mended, made or changed.

use crate::store::log::checksums::{Listed, checkpoint_name, entry_name};
use crate::store::log::location::TableLocation;
use crate::store::log::table_log::{data_file, open_log_store};
use crate::store::log::transactions::read_txns;
use crate::store::table::data_file::DataFile;
use crate::store::table::error::StoreError;
use crate::store::table::schema::Table;
use crate::store::table::transaction::Txn;
use deltalake_core::DeltaTable;
use std::sync::Arc;

/// A log whose files go while they are listed is listed again, so often at most. Each time it has got some hundred
/// entries longer meanwhile.
const TRIES: usize = 3;

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct PinnedLog {
    pub(crate) table: Table,
    /// What the table is called since it was made, wherever it lies.
    pub(crate) id: String,
    pub(crate) version: u64,
    /// In order of partition.
    pub(crate) files: Vec<Arc<DataFile>>,
    /// The files of the log that say all of this: a checkpoint, where there is one, and the entries behind it.
    pub(crate) names: Vec<String>,
}

/// A table at a version, or as it is now; none where there is no log.
pub(crate) async fn pin(place: &TableLocation, version: Option<u64>) -> Result<Option<PinnedLog>, StoreError> {
    let table = place.table;
    for _ in 0..TRIES {
        let before = listed(place).await?;
        if before.entries.is_empty() && before.checkpoints.is_empty() {
            return Ok(None);
        }
        let mut delta = DeltaTable::new(open_log_store(place).await?);
        let read = match version {
            Some(version) => delta.load_version(version).await,
            None => delta.load().await,
        };
        read.map_err(StoreError::table(table, "read its log"))?;
        let state = delta.snapshot().map_err(StoreError::table(table, "read its log"))?;
        let views = state.log_data();
        let mut files: Vec<_> = views
            .iter()
            .filter_map(|file| data_file(table, &file))
            .map(Arc::new)
            .collect();
        files.sort_by(|a, b| (&a.partition, &a.path).cmp(&(&b.partition, &b.path)));
        let (version, id) = (state.version(), state.metadata().id().to_owned());
        if let Some(names) = names(&listed(place).await?, version) {
            return Ok(Some(PinnedLog {
                table,
                id,
                version,
                files,
                names,
            }));
        }
    }
    Err(StoreError::Table {
        table: table.name(),
        what: "read its log",
        cause: "entries are missing in it".to_owned(),
    })
}

/// The transactions of a table at a version.
pub(crate) async fn txns(place: &TableLocation, version: u64) -> Result<Vec<Txn>, StoreError> {
    let log_store = open_log_store(place).await?;
    let read = read_txns(log_store.object_store(None), version).await;
    read.map_err(|cause| StoreError::Table {
        table: place.table.name(),
        what: "read its transactions",
        cause,
    })
}

async fn listed(place: &TableLocation) -> Result<Listed, StoreError> {
    let listed = place.waiting(|place| Listed::read(&place.log())).await;
    listed.map_err(place.root_failed("look for its log"))
}

/// What of a log says all up to a version; none where some of it is gone.
fn names(listed: &Listed, version: u64) -> Option<Vec<String>> {
    let checkpoint = listed.checkpoints.range(..=version).next_back().copied();
    let first = checkpoint.map_or(0, |checkpoint| checkpoint + 1);
    let are_there = (first..=version).all(|entry| listed.entries.contains(&entry));
    // The checkpoint's own entry too, where it is there: a log of a checkpoint alone looks like none to some readers.
    let entries = listed.entries.range(checkpoint.unwrap_or(0)..=version);
    let names = checkpoint.map(checkpoint_name).into_iter();
    are_there.then(|| names.chain(entries.map(|entry| entry_name(*entry))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_said_by_the_checkpoint_before_it_and_the_entries_behind_that() {
        let listed = |entries: &[u64], checkpoints: &[u64]| Listed {
            entries: entries.iter().copied().collect(),
            checkpoints: checkpoints.iter().copied().collect(),
            ..Listed::default()
        };
        let of = |listed: &Listed, version| names(listed, version);
        let young = listed(&[0, 1, 2, 3], &[]);
        assert_eq!(of(&young, 1).unwrap(), [entry_name(0), entry_name(1)]);
        let old = listed(&[5, 6, 7, 8, 9], &[3, 7, 9]);
        assert_eq!(of(&old, 8).unwrap(), [checkpoint_name(7), entry_name(7), entry_name(8)]);
        assert_eq!(of(&old, 9).unwrap(), [checkpoint_name(9), entry_name(9)]);
        assert_eq!(of(&old, 5), None, "entry 4 is gone");
        assert_eq!(of(&listed(&[1], &[]), 1), None, "the first one is gone");
    }
}
