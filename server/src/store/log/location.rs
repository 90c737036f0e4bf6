//! Where a table's log is, and what it is written through.

use crate::clock::Clock;
use crate::store::root::contract::Root;
use crate::store::root::error::RootError;
use crate::store::root::waiting::waiting;
use crate::store::table::error::StoreError;
use crate::store::table::schema::Table;
use bytes::Bytes;
use object_store::ObjectStore;
use std::sync::Arc;
use tokio::sync::watch;

/// Where a table's log is and what it is written through.
#[derive(Clone)]
pub(crate) struct TableLocation {
    pub(crate) table: Table,
    pub(crate) root: Arc<dyn Root>,
    /// Below the root, where the tables are; empty for the root itself.
    pub(crate) prefix: String,
    pub(crate) over: Over,
    pub(crate) clock: Arc<Clock>,
    pub(crate) stop: watch::Receiver<bool>,
}

impl TableLocation {
    /// The table's folder, below the root.
    pub(crate) fn table_path(&self) -> String {
        match self.prefix.is_empty() {
            true => self.table.name().to_owned(),
            false => format!("{}/{}", self.prefix, self.table.name()),
        }
    }

    /// Where a file is below the root, of its path below the table's folder.
    pub(crate) fn path_of(&self, file: &str) -> String {
        format!("{}/{file}", self.table_path())
    }

    pub(crate) fn log(&self) -> LogFolder {
        LogFolder {
            root: self.root.clone(),
            path: self.path_of("_delta_log"),
        }
    }

    /// The same table below another prefix.
    pub(crate) fn elsewhere(&self, prefix: String) -> Self {
        Self { prefix, ..self.clone() }
    }

    /// Does something that waits for the root, on a thread that may.
    pub(crate) async fn waiting<T: Send + 'static>(
        &self,
        work: impl FnOnce(&TableLocation) -> Result<T, RootError> + Send + 'static,
    ) -> Result<T, RootError> {
        let place = self.clone();
        waiting(move || work(&place)).await
    }

    pub(crate) fn failed<E: std::error::Error + 'static>(&self, what: &'static str) -> impl FnOnce(E) -> StoreError {
        StoreError::table(self.table, what)
    }

    /// As [`TableLocation::failed`], of the root.
    pub(crate) fn root_failed(&self, what: &'static str) -> impl FnOnce(RootError) -> StoreError {
        StoreError::of_root(self.table, what)
    }
}

/// The folder of a table's log. What reads it may wait.
#[derive(Debug, Clone)]
pub(crate) struct LogFolder {
    pub(crate) root: Arc<dyn Root>,
    /// Below the root.
    pub(crate) path: String,
}

impl LogFolder {
    /// Where a file of the log is, below the root.
    pub(crate) fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// All of a file.
    pub(crate) fn read(&self, name: &str) -> Result<Bytes, RootError> {
        self.root.reader().whole(&self.path_of(name))
    }

    /// All of each of some entries.
    pub(crate) fn read_each(&self, names: &[String]) -> Vec<Result<Bytes, RootError>> {
        let paths: Vec<String> = names.iter().map(|name| self.path_of(name)).collect();
        self.root.reader().each(&paths)
    }

    /// The names of all files.
    pub(crate) fn names(&self) -> Result<Vec<String>, RootError> {
        let listed = self.root.names(&self.path, &|_| true)?;
        Ok(listed.into_iter().map(|named| named.name).collect())
    }
}

/// What a table's log is read and written through: the store itself, or in tests one that fails.
pub(crate) type Over = fn(Table, Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore>;
