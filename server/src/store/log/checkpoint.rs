//! A checkpoint of one table's log, and what may go when it is there.

use crate::store::log::checksums::{HINT, Listed, checkpoint_name, entry_name, list_sums};
use crate::store::log::location::LogFolder;
use crate::store::root::waiting::waiting;
use crate::store::table::error::StoreError;
use crate::store::table::schema::Table;
use deltalake_core::DeltaTable;
use deltalake_core::checkpoints::create_checkpoint;
use deltalake_core::logstore::LogStoreRef;
use object_store::ObjectStoreExt;
use object_store::path::Path;

/// A checkpoint to be written.
pub(crate) struct Checkpoint {
    table: Table,
    log_store: LogStoreRef,
    log: LogFolder,
    version: u64,
}

impl Checkpoint {
    pub(crate) fn new(table: Table, log_store: LogStoreRef, log: LogFolder, version: u64) -> Self {
        Self {
            table,
            log_store,
            log,
            version,
        }
    }

    pub(crate) fn log(&self) -> &LogFolder {
        &self.log
    }

    /// Writes it, and removes what is superfluous, but for the newest entries.
    pub(crate) async fn write(self, keep_commits: u64) -> Result<(), StoreError> {
        let mut delta = DeltaTable::new(self.log_store.clone());
        delta
            .load_version(self.version)
            .await
            .map_err(StoreError::table(self.table, "read its log"))?;
        create_checkpoint(&delta, None)
            .await
            .map_err(StoreError::table(self.table, "write a checkpoint"))?;
        let written = vec![checkpoint_name(self.version), HINT.to_owned()];
        list_sums(self.table, &self.log, move |_| Ok(written)).await?;
        self.remove_older(keep_commits).await
    }

    /// Removes all that is older than the newest checkpoint beyond the commits that are kept. By number, since the
    /// library's way, by the times of files, keeps everything after a clock went back.
    async fn remove_older(&self, keep_commits: u64) -> Result<(), StoreError> {
        let log = self.log.clone();
        let listed = waiting(move || Listed::read(&log)).await;
        let listed = listed.map_err(StoreError::of_root(self.table, "remove old log entries"))?;
        let reaches = self.version.saturating_sub(keep_commits);
        let Some(first) = listed.checkpoints.range(..=reaches).next_back().copied() else {
            return Ok(());
        };
        let entries = listed.entries.range(..first).map(|version| entry_name(*version));
        let checkpoints = listed
            .checkpoints
            .range(..first)
            .map(|version| checkpoint_name(*version));
        let store = self.log_store.object_store(None);
        for name in entries.chain(checkpoints) {
            let path = Path::from("_delta_log").join(name);
            let deleted = store.delete(&path).await;
            deleted.map_err(StoreError::table(self.table, "remove old log entries"))?;
        }
        Ok(())
    }
}
