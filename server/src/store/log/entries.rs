//! What an entry of a table's log says, whoever wrote it.

use crate::store::table::data_file::{ColumnRange, DataFile};
use crate::store::table::schema::Table;
use crate::store::table::transaction::Txn;
use deltalake_core::kernel::{Add, Remove, Transaction};
use std::collections::HashSet;
use std::sync::Arc;

/// An entry that was read.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) version: u64,
    pub(crate) added: Vec<Arc<DataFile>>,
    /// By path below the table's folder.
    pub(crate) removed: HashSet<String>,
    pub(crate) txns: Vec<Txn>,
    /// The files that were added hold rows of those that were removed, and no others.
    pub(crate) is_rewrite: bool,
}

/// What counts of an entry's line.
#[derive(serde::Deserialize)]
struct Line {
    add: Option<Add>,
    remove: Option<Remove>,
    txn: Option<Transaction>,
}

/// Reads an entry. An error says what is wrong, and does not name it.
pub(crate) fn parse(table: Table, version: u64, content: &[u8]) -> Result<Written, String> {
    let mut written = Written {
        version,
        is_rewrite: true,
        ..Written::default()
    };
    for line in content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let line: Line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        if let Some(add) = line.add {
            written.is_rewrite &= !add.data_change;
            written.added.extend(added(table, add).map(Arc::new));
        }
        written.removed.extend(line.remove.map(|removed| removed.path));
        written.txns.extend(line.txn.map(txn));
    }
    Ok(written)
}

fn txn(txn: Transaction) -> Txn {
    Txn {
        app_id: txn.app_id,
        version: txn.version,
        updated_ms: txn.last_updated.unwrap_or_default(),
    }
}

/// A file that an entry adds; none when it lacks what Stakeout always writes.
fn added(table: Table, mut add: Add) -> Option<DataFile> {
    let partition = add.partition_values.remove(table.partition_column())??;
    described(&add.stats?, |int_ranges, string_ranges, rows| {
        Some(DataFile {
            path: add.path,
            partition,
            size_bytes: u64::try_from(add.size).ok()?,
            rows,
            modified_ms: add.modification_time,
            int_ranges,
            string_ranges,
        })
    })
}

type Ranges<T> = Vec<(String, ColumnRange<T>)>;

/// Makes something of a file's statistics: ranges of its columns, and its number of rows.
pub(crate) fn described<T>(stats: &str, make: impl FnOnce(Ranges<i64>, Ranges<String>, u64) -> Option<T>) -> Option<T> {
    let stats: serde_json::Value = serde_json::from_str(stats).ok()?;
    let mut int_ranges = Vec::new();
    let mut string_ranges = Vec::new();
    if let (Some(min), Some(max)) = (stats["minValues"].as_object(), stats["maxValues"].as_object()) {
        for (column, min) in min {
            let Some(max) = max.get(column) else { continue };
            if let (Some(min), Some(max)) = (min.as_i64(), max.as_i64()) {
                int_ranges.push((column.clone(), ColumnRange { min, max }));
            } else if let (Some(min), Some(max)) = (min.as_str(), max.as_str()) {
                let (min, max) = (min.to_owned(), max.to_owned());
                string_ranges.push((column.clone(), ColumnRange { min, max }));
            }
        }
    }
    make(int_ranges, string_ranges, stats["numRecords"].as_u64()?)
}
