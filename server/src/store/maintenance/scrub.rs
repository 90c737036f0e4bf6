//! Compares files with what was written, some at a time.

use crate::store::state::Store;
use crate::store::table::integrity::DamagedFile;

impl Store {
    /// Files that are damaged, in order of path: data files, and parts of the tables' logs that the start has mended.
    pub fn damaged_files(&self) -> Vec<DamagedFile> {
        self.damage.list()
    }

    /// One round of comparing what is on the disk with what was written.
    pub(crate) async fn scrub(&self) {
        let (damage, snapshot) = (self.damage.clone(), self.snapshot());
        match tokio::task::spawn_blocking(move || damage.scrub(|table| snapshot.files(table))).await {
            Ok(missed) => {
                for (table, files) in missed {
                    self.damage.judge_missed(table, &files).await;
                }
            }
            Err(error) => tracing::error!(%error, "cannot compare files with what was written"),
        }
    }
}
