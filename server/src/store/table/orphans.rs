//! Files in the data root that no table has any more.

use crate::store::root::contract::{Named, Root};
use crate::store::root::error::RootError;
use crate::store::table::data_file::DataFile;
use crate::store::table::schema::Table;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

/// Why a file is not part of its table any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stale {
    /// Others have its rows, or it never became part of the table.
    Replaced,
    /// Its rows are gone by retention.
    Expired,
}

/// A file that no newer snapshot names.
#[derive(Debug)]
pub(crate) struct ObsoleteFile {
    pub(crate) table: Table,
    pub(crate) stale: Stale,
    pub(crate) bytes: u64,
    /// Path below the data directory.
    pub(crate) path: String,
    pub(crate) since: Instant,
}

impl ObsoleteFile {
    pub(crate) fn new(table: Table, stale: Stale, path: &str, bytes: u64) -> Self {
        Self {
            table,
            stale,
            bytes,
            path: format!("{}/{path}", table.name()),
            since: Instant::now(),
        }
    }

    /// Below the data directory.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

/// Number and bytes of these files by table and reason.
pub(crate) fn stale(garbage: &[ObsoleteFile]) -> Vec<(Table, Stale, usize, u64)> {
    let mut sums: BTreeMap<(Table, Stale), (usize, u64)> = BTreeMap::new();
    for file in garbage {
        let sum = sums.entry((file.table, file.stale)).or_default();
        sum.0 += 1;
        sum.1 += file.bytes;
    }
    let row = |((table, stale), (files, bytes))| (table, stale, files, bytes);
    sums.into_iter().map(row).collect()
}

/// Data files in a table's folder that are not part of the table: replaced ones, and those of a commit that did not
/// end. Waits for the root.
pub(crate) fn unreferenced(
    table: Table,
    root: &dyn Root,
    files: &[Arc<DataFile>],
) -> Result<Vec<ObsoleteFile>, RootError> {
    let named: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let is_partition = |name: &str| name.starts_with(table.partition_column());
    let is_unnamed = |path: &str| path.ends_with(".parquet") && !named.contains(path);
    let found = root.names_below(table.name(), &is_partition, &is_unnamed)?;
    let obsolete = |file: Named| ObsoleteFile::new(table, Stale::Replaced, &file.name, file.bytes);
    Ok(found.into_iter().map(obsolete).collect())
}
