//! Opens a table: mends its log where that is corrupt, and takes in files of commits without an entry.

use crate::store::log::location::TableLocation;
use crate::store::log::table_log::{TableLog, add_action};
use crate::store::log::{orphan_commit, recover};
use crate::store::table::data_file::DataFile;
use crate::store::table::error::StoreError;
use crate::store::table::integrity::Fault;
use crate::store::table::transaction::Txn;
use std::sync::Arc;

/// What a table holds when it is opened.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) log: TableLog,
    pub(crate) files: Vec<Arc<DataFile>>,
    pub(crate) txns: Vec<Txn>,
    /// What was wrong with the log, and is not any more.
    pub(crate) faults: Vec<Fault>,
}

impl Loaded {
    /// Commits what lies in the table's folder and should be part of it.
    async fn take_unlogged(&mut self, place: TableLocation) -> Result<(), StoreError> {
        let table = place.table;
        let (files, txns) = (self.files.clone(), self.txns.clone());
        let found = place
            .waiting(move |place| orphan_commit::find(place, &files, &txns))
            .await
            .map_err(place.root_failed("look for files without an entry in its log"))?;
        if found.files.is_empty() {
            return Ok(());
        }
        let add = found.files.iter().map(|file| add_action(table, file, true)).collect();
        self.log.commit(add, &[], &found.txns, true).await?;
        let (table, files) = (table.name(), found.files.len());
        tracing::info!(table, files, "took in files of a commit that has no entry in the log");
        self.txns.extend(found.txns);
        self.files.extend(found.files);
        self.files
            .sort_by(|a, b| (&a.partition, &a.path).cmp(&(&b.partition, &b.path)));
        Ok(())
    }
}

/// Opens a table, creating it where there is none. A damaged log is mended first. Where several servers write, what
/// lies there without an entry may be another's that is about to get one, and a log that is made anew would lose what
/// others write meanwhile: neither is done there.
pub(crate) async fn open(place: TableLocation) -> Result<Loaded, StoreError> {
    let table = place.table;
    if place.root.is_shared() {
        let (log, files, txns) = TableLog::over(&place).await?;
        return Ok(Loaded {
            log,
            files,
            txns,
            faults: Vec::new(),
        });
    }
    let prepared = place.waiting(|place| place.root.prepare(&place.table_path())).await;
    prepared.map_err(place.root_failed("create its folder"))?;
    let faults = place.waiting(recover::faults).await;
    let faults = faults.map_err(place.root_failed("look at its log"))?;
    if !faults.is_empty() {
        let (table, first) = (table.name(), &faults[0]);
        tracing::error!(
            table,
            count = faults.len(),
            file = first.name,
            fault = first.what,
            "the log is damaged: mending it"
        );
        recover::mend(&place, &faults).await?;
    }
    let (log, files, txns) = TableLog::over(&place).await?;
    let mut loaded = Loaded {
        log,
        files,
        txns,
        faults,
    };
    loaded.take_unlogged(place).await?;
    Ok(loaded)
}
