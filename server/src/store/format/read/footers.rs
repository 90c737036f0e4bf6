//! Footers of files, kept from one query to the next: a file never changes.

use crate::lock::lock_mutex;
use crate::store::format::read::groups::{ReadError, fetch, read_error};
use crate::store::root::reader::RangeReader;
use crate::store::table::data_file::DataFile;
use crate::store::table::schema::Table;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// The end of a file that is read first: with some thousand row groups and columns a footer is larger, and is read in
/// a second step.
const USUAL_BYTES: u64 = 64 * 1024;

/// The last bytes of a Parquet file: the footer's length and a mark.
const TAIL_BYTES: usize = 8;

#[derive(Debug, Default)]
struct Kept {
    young: HashMap<String, Arc<ParquetMetaData>>,
    old: HashMap<String, Arc<ParquetMetaData>>,
    young_bytes: usize,
}

/// Footers by path, in two generations: when the young one is full, it becomes the old one, and the old one goes.
#[derive(Debug)]
pub(crate) struct Footers {
    kept: Mutex<Kept>,
    limit_bytes: usize,
}

impl Footers {
    /// `limit_bytes` bounds both generations together.
    pub(crate) fn new(limit_bytes: usize) -> Footers {
        Footers {
            kept: Mutex::default(),
            limit_bytes,
        }
    }

    /// The footer of a file. One that is not kept is read on a thread for blocking work.
    pub(crate) async fn get(
        &self,
        reader: &Arc<dyn RangeReader>,
        table: Table,
        file: &Arc<DataFile>,
    ) -> Result<Arc<ParquetMetaData>, ReadError> {
        if let Some(footer) = self.known(&file.path) {
            return Ok(footer);
        }
        let (with, of) = (reader.clone(), file.clone());
        let read = tokio::task::spawn_blocking(move || read(with.as_ref(), table, &of)).await;
        let footer = Arc::new(read.map_err(|error| read_error(table, file)(error.to_string()))??);
        self.keep(&file.path, footer.clone());
        Ok(footer)
    }

    fn known(&self, path: &str) -> Option<Arc<ParquetMetaData>> {
        let mut kept = lock_mutex(&self.kept);
        if let Some(footer) = kept.young.get(path) {
            return Some(footer.clone());
        }
        let footer = kept.old.remove(path)?;
        drop(kept);
        self.keep(path, footer.clone());
        Some(footer)
    }

    fn keep(&self, path: &str, footer: Arc<ParquetMetaData>) {
        let mut kept = lock_mutex(&self.kept);
        let bytes = footer.memory_size() + path.len();
        if kept.young_bytes + bytes > self.limit_bytes / 2 {
            kept.old = std::mem::take(&mut kept.young);
            kept.young_bytes = 0;
        }
        if kept.young.insert(path.to_owned(), footer).is_none() {
            kept.young_bytes += bytes;
        }
    }
}

fn read(reader: &dyn RangeReader, table: Table, file: &DataFile) -> Result<ParquetMetaData, ReadError> {
    let failed = read_error(table, file);
    let size = file.size_bytes;
    let from = size.saturating_sub(USUAL_BYTES);
    let mut end = one(reader, table, file, from)?;
    let tail = end.len().checked_sub(TAIL_BYTES).map(|at| &end[at..]);
    let tail = tail.ok_or_else(|| failed("the file is too short for a footer".to_owned()))?;
    if &tail[4..] != b"PAR1" {
        return Err(failed("the file does not end as a Parquet file does".to_owned()));
    }
    let mut length = [0; 4];
    length.copy_from_slice(&tail[..4]);
    let length = u64::from(u32::from_le_bytes(length));
    let whole = length + TAIL_BYTES as u64;
    if whole > size {
        return Err(failed(format!(
            "its footer is said to have {length} bytes, the file has {size}"
        )));
    }
    if whole > end.len() as u64 {
        end = one(reader, table, file, size - whole)?;
    }
    let footer = &end[end.len() - whole as usize..end.len() - TAIL_BYTES];
    ParquetMetaDataReader::decode_metadata(footer).map_err(|error| failed(error.to_string()))
}

/// The bytes from `from` to the end.
fn one(reader: &dyn RangeReader, table: Table, file: &DataFile, from: u64) -> Result<bytes::Bytes, ReadError> {
    let mut bytes = fetch(reader, table, file, std::slice::from_ref(&(from..file.size_bytes)))?;
    bytes
        .pop()
        .ok_or_else(|| read_error(table, file)("the file has no bytes".to_owned()))
}
