//! The tables on disk: takes rows in, commits them in groups, and hands out consistent views.
//!
//! In: [`Rows`], record batches of every table that belong to one accepted request. Out: [`Snapshot`]s, in which a row that
//! was appended stands exactly once: among the pending rows, or in a committed file. Times are nanoseconds since the Unix
//! epoch. Knows nothing of HTTP or OTLP.

mod schema;
mod snapshot;

pub use schema::{SERIES_LABELS, Table};
pub use snapshot::{ColumnRange, DataFile, Snapshot};

use arrow::array::RecordBatch;

/// The rows of one accepted request, with each table's whole schema (partition column included). Every batch holds the rows
/// of one partition only.
#[derive(Debug, Clone, Default)]
pub struct Rows {
    pub tables: [Vec<RecordBatch>; Table::COUNT],
}

/// The open tables.
#[derive(Debug)]
pub struct Store {
    state: std::sync::RwLock<Snapshot>,
}

impl Store {
    /// A cheap, consistent view: rows appended before this call are in it exactly once, later ones never.
    pub fn snapshot(&self) -> Snapshot {
        self.state
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }
}
