//! A checkpoint of one table's log, and what may go when it is there.

use crate::store::log::checksums::{HINT, Listed, checkpoint_name, entry_name, list_sums};
use crate::store::log::location::LogFolder;
use crate::store::root::waiting::waiting;
use crate::store::table::error::StoreError;
use crate::store::table::schema::Table;
use chrono::{DateTime, Utc};
use deltalake_core::DeltaTable;
use deltalake_core::checkpoints::create_checkpoint;
use deltalake_core::logstore::LogStoreRef;
use futures::TryStreamExt;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use std::collections::HashMap;
use std::time::Duration;

/// Where several servers write, an entry stays at least for so long, by the store's own clock: one that slept must not
/// find a gap where its next entry would go.
const KEPT: Duration = Duration::from_secs(2 * 3600);

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
        if !self.log.root.is_shared() {
            let written = vec![checkpoint_name(self.version), HINT.to_owned()];
            list_sums(self.table, &self.log, move |_| Ok(written)).await?;
        }
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
        let ages = match self.log.root.is_shared() {
            true => Some(self.modified().await?),
            false => None,
        };
        for name in entries.chain(checkpoints) {
            if let Some(ages) = &ages
                && !is_old(ages, &name)
            {
                continue;
            }
            let path = Path::from("_delta_log").join(name);
            let deleted = store.delete(&path).await;
            deleted.map_err(StoreError::table(self.table, "remove old log entries"))?;
        }
        Ok(())
    }

    /// When each of the log's files was written, by the store's clock.
    async fn modified(&self) -> Result<HashMap<String, DateTime<Utc>>, StoreError> {
        let store = self.log_store.object_store(None);
        let mut modified = HashMap::new();
        let mut listed = store.list(Some(&Path::from("_delta_log")));
        let failed = || StoreError::table(self.table, "remove old log entries");
        while let Some(file) = listed.try_next().await.map_err(failed())? {
            if let Some(name) = file.location.filename() {
                modified.insert(name.to_owned(), file.last_modified);
            }
        }
        Ok(modified)
    }
}

/// Whether a file is that much older than the newest of all, which is the checkpoint that was just written.
fn is_old(modified: &HashMap<String, DateTime<Utc>>, name: &str) -> bool {
    let (Some(newest), Some(own)) = (modified.values().max(), modified.get(name)) else {
        return false;
    };
    (*newest - *own).to_std().is_ok_and(|age| age > KEPT)
}
