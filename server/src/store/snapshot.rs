//! A consistent view of all tables.

use super::schema::Table;
use arrow::array::RecordBatch;
use std::sync::Arc;

/// Smallest and largest value of a column in a file, inclusive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnRange<T> {
    pub min: T,
    pub max: T,
}

/// A committed Parquet file. It is never changed, and outlives every snapshot that names it by the vacuum's grace time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFile {
    /// Path below the table's folder, such as `hour=2026-11-21T08/part-….parquet`.
    pub path: String,
    /// Value of the partition column.
    pub partition: String,
    pub size_bytes: u64,
    pub rows: u64,
    /// Modification time, Unix milliseconds.
    pub modified_ms: i64,
    /// Ranges of the integer columns that have statistics, by column name.
    pub int_ranges: Vec<(String, ColumnRange<i64>)>,
    /// Ranges of the string columns that have statistics (`type`, `service`, `node`); long values are never cut.
    pub string_ranges: Vec<(String, ColumnRange<String>)>,
}

/// See [`super::Store::snapshot`].
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    pub(super) files: [Arc<Vec<Arc<DataFile>>>; Table::COUNT],
    pub(super) pending: [Arc<Vec<RecordBatch>>; Table::COUNT],
}

impl Snapshot {
    /// The committed files of a table, in order of partition.
    pub fn files(&self, table: Table) -> &[Arc<DataFile>] {
        &self.files[table.index()]
    }

    /// Rows that wait for their commit, in the table's whole schema, each batch of one partition.
    pub fn pending(&self, table: Table) -> &[RecordBatch] {
        &self.pending[table.index()]
    }
}
