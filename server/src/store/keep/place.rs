//! A place that holds a store, or a backup of one among others.

use crate::clock::Clock;
use crate::store::keep::error::KeepError;
use crate::store::log::location::TableLocation;
use crate::store::root;
use crate::store::root::contract::{Lock, Root};
use crate::store::root::error::RootError;
use crate::store::table::format_version;
use crate::store::table::schema::Table;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

/// Below the root of backups: the logs and notes of each, by its name.
pub(super) const BACKUPS: &str = "backups";

/// Below the root of backups: the data files of all of them, each once.
const FILES: &str = "files";

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) root: Arc<dyn Root>,
    /// Below the root, where logs and notes are; empty for the root itself.
    logs: String,
    /// The same of data files.
    files: String,
}

fn below(prefix: &str, path: &str) -> String {
    match prefix.is_empty() {
        true => path.to_owned(),
        false => format!("{prefix}/{path}"),
    }
}

impl Place {
    /// A store that has the root for itself.
    pub(super) fn store(root: Arc<dyn Root>) -> Self {
        Self {
            root,
            logs: String::new(),
            files: String::new(),
        }
    }

    /// One of the backups in a root.
    pub(super) fn backup(root: Arc<dyn Root>, name: &str) -> Self {
        Self {
            root,
            logs: below(BACKUPS, name),
            files: FILES.to_owned(),
        }
    }

    /// Whether nobody changes it.
    pub(super) fn is_backup(&self) -> bool {
        !self.logs.is_empty()
    }

    /// What a person calls it.
    pub(super) fn name(&self) -> String {
        self.root.reader().name_of(&self.logs)
    }

    /// Where a data file is below the root, of its path below its table's folder.
    pub(super) fn file(&self, table: Table, path: &str) -> String {
        below(&self.files, &table.path_of(path))
    }

    /// Where notes and what is told of a backup are, below the root.
    pub(super) fn beside_logs(&self, path: &str) -> String {
        below(&self.logs, path)
    }

    /// Where a table's log is. Nobody writes through it.
    pub(super) fn location(&self, table: Table) -> TableLocation {
        TableLocation {
            table,
            root: self.root.clone(),
            prefix: self.logs.clone(),
            over: |_, store| store,
            clock: Arc::new(Clock::system()),
            stop: watch::Sender::new(false).subscribe(),
        }
    }

    /// Lengths of all data files that are there, by path below the root. Waits for the root.
    pub(super) fn data_files(&self) -> Result<HashMap<String, u64>, RootError> {
        let mut found = HashMap::new();
        for table in Table::ALL {
            let folder = below(&self.files, table.name());
            let is_partition = |name: &str| name.starts_with(table.partition_column());
            let named = self
                .root
                .names_below(&folder, &is_partition, &|path| path.ends_with(".parquet"))?;
            found.extend(
                named
                    .into_iter()
                    .map(|named| (below(&folder, &named.name), named.bytes)),
            );
        }
        Ok(found)
    }
}

/// Opens a place that is only read, with its format looked at. Nothing is made or changed.
pub(super) async fn open_to_read(place: &Path) -> Result<Arc<dyn Root>, KeepError> {
    let place = place.to_owned();
    waiting(move || {
        let root = root::open::open_to_read(&place).map_err(KeepError::of_opening)?;
        format_version::is_said(root.as_ref()).map_err(KeepError::of_format(root.as_ref()))?;
        Ok(root)
    })
    .await
}

/// Opens a place that is written to, made where it is missing, and has it alone until it is [released](release).
pub(super) async fn open_to_write(place: &Path) -> Result<(Arc<dyn Root>, Lock), KeepError> {
    let place = place.to_owned();
    waiting(move || {
        let root = root::open::open(&place).map_err(KeepError::of_opening)?;
        let lock = root.lock().map_err(|error| match error {
            RootError::Exists(_) => KeepError::refused(
                root.reader().name_of(""),
                "a stakeout-server has it, or another copy goes there; wait for its end, or give another place",
            ),
            error => KeepError::of_root(root.as_ref())(error),
        })?;
        format_version::is_said(root.as_ref()).map_err(KeepError::of_format(root.as_ref()))?;
        Ok((root, lock))
    })
    .await
}

/// Gives a place to whoever wants it next.
pub(super) async fn release(lock: Lock) {
    // To release a lease takes a request.
    let _ = tokio::task::spawn_blocking(move || drop(lock)).await;
}

/// Does something that may wait for a place, on a thread for that.
pub(super) async fn waiting<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, KeepError> + Send + 'static,
) -> Result<T, KeepError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(KeepError::Failed {
            object: "a thread".to_owned(),
            cause: error.to_string(),
        }),
    }
}
