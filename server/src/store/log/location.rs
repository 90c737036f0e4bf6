//! Where a table's log is, and what it is written through.

use crate::clock::Clock;
use crate::store::root::reader::RangeReader;
use crate::store::table::error::StoreError;
use crate::store::table::schema::Table;
use object_store::ObjectStore;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// Where a table's log is and what it is written through.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) table: Table,
    /// The data directory.
    pub(crate) dir: PathBuf,
    pub(crate) reader: Arc<dyn RangeReader>,
    pub(crate) staging: PathBuf,
    pub(crate) over: Over,
    pub(crate) clock: Arc<Clock>,
    pub(crate) stop: watch::Receiver<bool>,
}

impl Place {
    pub(crate) fn table_dir(&self) -> PathBuf {
        self.dir.join(self.table.name())
    }

    pub(crate) fn log_dir(&self) -> PathBuf {
        self.table_dir().join("_delta_log")
    }

    /// The same table in another data directory.
    pub(crate) fn elsewhere(&self, dir: PathBuf) -> Self {
        Self { dir, ..self.clone() }
    }

    pub(crate) fn failed<E: std::error::Error + 'static>(&self, what: &'static str) -> impl FnOnce(E) -> StoreError {
        StoreError::table(self.table, what)
    }
}

/// What a table's log is read and written through: the store itself, or in tests one that fails.
pub(crate) type Over = fn(Table, Arc<dyn ObjectStore>) -> Arc<dyn ObjectStore>;
