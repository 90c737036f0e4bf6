//! Files that no log names: of commits that were given up, and of servers that ended before they deleted what they had
//! replaced.
//!
//! A file that another server has just written is named a moment later. So only files count that are older, by the
//! store's own clock, than any commit takes; and what counts is deleted as all that is replaced, after the time that
//! readers may need.

use crate::lock::lock_mutex;
use crate::store::state::Store;
use crate::store::table::data_file::DataFile;
use crate::store::table::file_list::of_partition;
use crate::store::table::orphans::{ObsoleteFile, Stale};
use crate::store::table::schema::Table;
use chrono::{DateTime, Utc};
use futures::TryStreamExt;
use object_store::path::Path;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the tables are listed.
const LOOK_EVERY: Duration = Duration::from_secs(3600);

impl Store {
    /// Where those of these files are that this server's view does not have.
    pub(crate) fn unnamed(&self, table: Table, files: &[Arc<DataFile>]) -> Vec<Path> {
        let snapshot = self.snapshot();
        let is_unnamed = |file: &&Arc<DataFile>| {
            let named = of_partition(snapshot.files(table), &file.partition);
            named.iter().all(|named| named.path != file.path)
        };
        let unnamed = files.iter().filter(is_unnamed);
        unnamed.map(|file| Path::from(table.path_of(&file.path))).collect()
    }

    /// Finds them, once an hour.
    pub(crate) async fn find_orphans(&self) {
        let Some(now) = self
            .members
            .as_ref()
            .and_then(|members| members.heartbeats.store_time())
        else {
            return;
        };
        {
            let mut searched = lock_mutex(&self.searched);
            if searched.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
                return;
            }
            *searched = Some(Instant::now());
        }
        for table in Table::ALL {
            if let Err(error) = self.find_orphans_of(table, now).await {
                tracing::warn!(%error, table = table.name(), "cannot look for files that no log names; trying again");
            }
        }
    }

    async fn find_orphans_of(&self, table: Table, now: DateTime<Utc>) -> object_store::Result<()> {
        let objects = self.root.objects();
        let mut listed = objects.list(Some(&Path::from(table.name())));
        let mut old = Vec::new();
        while let Some(object) = listed.try_next().await? {
            let path = object.location.as_ref();
            let below = path.strip_prefix(table.name()).map(|path| path.trim_start_matches('/'));
            let is_data = below.is_some_and(|path| path.starts_with(table.partition_column()));
            let age = (now - object.last_modified).to_std().unwrap_or_default();
            if is_data && path.ends_with(".parquet") && age > self.config.orphan_age {
                old.push((path.to_owned(), object.size));
            }
        }
        // Behind the list: what was committed meanwhile is younger than what counts.
        let snapshot = self.snapshot();
        let named: HashSet<String> = snapshot
            .files(table)
            .iter()
            .map(|file| table.path_of(&file.path))
            .collect();
        let mut garbage = lock_mutex(&self.garbage);
        let known: HashSet<String> = garbage.iter().map(|file| file.path().to_owned()).collect();
        let before = garbage.len();
        garbage.extend(
            old.into_iter()
                .filter(|(path, _)| !named.contains(path) && !known.contains(path))
                .map(|(path, bytes)| {
                    let below = path.strip_prefix(table.name()).unwrap_or(&path);
                    ObsoleteFile::new(table, Stale::Replaced, below.trim_start_matches('/'), bytes)
                }),
        );
        let found = garbage.len() - before;
        if found > 0 {
            tracing::info!(table = table.name(), found, "files that no log names are deleted soon");
        }
        Ok(())
    }
}
