//! What a data file says of itself in its footer, for a start that finds the log damaged.

use crate::store::format::read::object::Pieces;
use crate::store::root::error::RootError;
use crate::store::root::reader::RangeReader;
use crate::store::table::data_file::DataFile;
use crate::store::table::error::StoreError;
use crate::store::table::schema::Table;
use crate::store::table::transaction::Txn;
use parquet::file::metadata::{KeyValue, ParquetMetaDataReader};
use std::collections::HashMap;
use std::sync::Arc;

/// See the module.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Provenance {
    /// The files whose rows these are, by path below the table's folder.
    pub(crate) replaces: Vec<String>,
    /// The transactions of its commit; of a rewrite the latest of the files' whose rows these are.
    pub(crate) txns: Vec<Txn>,
    /// The batches whose rows its commit holds, and the number of its files. Nothing of a rewrite.
    #[serde(default)]
    pub(crate) batches: Vec<(String, i64)>,
    #[serde(default)]
    pub(crate) parts: usize,
}

/// What is read of a file at least, of its end.
const TAIL_BYTES: usize = 64;

/// Under which they stand there.
const NOTES: &str = "stakeout.notes";

impl Provenance {
    /// Of a file that takes the place of these.
    pub(crate) fn of_rewrite(files: &[Arc<DataFile>]) -> Self {
        Self {
            replaces: files.iter().map(|file| file.path.clone()).collect(),
            ..Self::default()
        }
    }

    /// Takes over the transactions of files that go, so that their batches are known should all of the log be lost.
    /// The paths are below the data root.
    pub(crate) fn inherit(&mut self, reader: &dyn RangeReader, files: &[String]) -> Result<(), StoreError> {
        let mut latest: HashMap<String, Txn> = self.txns.drain(..).map(|txn| (txn.app_id.clone(), txn)).collect();
        for file in files {
            let provenance = Self::read(reader, file).map_err(|error| StoreError::Table {
                table: Table::Samples.name(),
                what: "read a file's notes",
                cause: format!("{}: {error}", reader.name_of(file)),
            })?;
            for txn in provenance.txns {
                match latest.get(&txn.app_id) {
                    Some(known) if known.updated_ms > txn.updated_ms => {}
                    _ => drop(latest.insert(txn.app_id.clone(), txn)),
                }
            }
        }
        self.txns = latest.into_values().collect();
        self.txns.sort_by(|a, b| a.app_id.cmp(&b.app_id));
        Ok(())
    }

    pub(crate) fn write(&self) -> Option<KeyValue> {
        let nothing = self.replaces.is_empty() && self.txns.is_empty();
        let json = serde_json::to_string(self).ok().filter(|_| !nothing)?;
        Some(KeyValue::new(NOTES.to_owned(), json))
    }

    /// Those of a file; empty ones where it has none. An error does not name the file.
    pub(crate) fn read(reader: &dyn RangeReader, path: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let file = Pieces::open(reader, path, TAIL_BYTES).map_err(RootError::into_cause)?;
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&file)?;
        let pairs = metadata.file_metadata().key_value_metadata().into_iter().flatten();
        let provenance = pairs
            .filter(|pair| pair.key == NOTES)
            .find_map(|pair| pair.value.as_ref());
        Ok(provenance
            .map(|provenance| serde_json::from_str(provenance))
            .transpose()?
            .unwrap_or_default())
    }
}
