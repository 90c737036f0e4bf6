//! A committed file, as the log describes it.

/// Smallest and largest value of a column in a file, inclusive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnRange<T> {
    /// No value is smaller.
    pub min: T,
    /// No value is larger.
    pub max: T,
}

/// A committed Parquet file. It is never changed, and outlives every snapshot that names it by the vacuum's grace time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFile {
    /// Path below the table's folder, such as `hour=2026-11-21T08/part-….parquet`.
    pub path: String,
    /// Value of the partition column.
    pub partition: String,
    /// Length of the file.
    pub size_bytes: u64,
    /// How many rows it has.
    pub rows: u64,
    /// When it was written, Unix milliseconds.
    pub modified_ms: i64,
    /// Ranges of the 64-bit integer columns without nulls, by column name.
    pub int_ranges: Vec<(String, ColumnRange<i64>)>,
    /// Ranges of the low-cardinality string columns (`type`, `service`, `node`, …); values are whole, never cut.
    pub string_ranges: Vec<(String, ColumnRange<String>)>,
}

impl DataFile {
    /// Range of an integer column, where it is known.
    pub fn int_range(&self, column: &str) -> Option<&ColumnRange<i64>> {
        self.int_ranges
            .iter()
            .find(|(name, _)| name == column)
            .map(|(_, range)| range)
    }

    /// Range of a string column, where it is known.
    pub fn string_range(&self, column: &str) -> Option<&ColumnRange<String>> {
        self.string_ranges
            .iter()
            .find(|(name, _)| name == column)
            .map(|(_, range)| range)
    }
}
