//! Rewrites many small files of a partition into one sorted file; dictionaries to one row an id.
//!
//! Files of about the same size are merged when there are enough of them, so that a row is rewritten a few times only,
//! however often is committed. A partition whose time has passed ends as one file, or a few where it is large.

use super::commit::add_files;
use super::file::Effort;
use super::log::add_action;
use super::retain::Garbage;
use super::schema::Table;
use super::{DataFile, Store, StoreError, lock_mutex};
use arrow::array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray, new_null_array};
use arrow::datatypes::{Field, Schema};
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// Rows of one rewrite, which are in memory all at once. A file of half as many is not rewritten any more.
const MAX_ROWS: u64 = 4_000_000;

/// Files of a tier have up to this many times as many rows as those of the tier below.
const TIER_FACTOR: f64 = 16.0;

/// A partition is settled when it was not written to for this long after its time, milliseconds.
const SETTLE_MS: i64 = 10 * 60 * 1000;

/// Files of one partition to be rewritten together.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) table: Table,
    pub(super) partition: String,
    pub(super) files: Vec<Arc<DataFile>>,
}

/// The rewrites that are due. `now_partition` is the value of the partition column at this moment.
pub(super) fn due(table: Table, files: &[Arc<DataFile>], now_partition: &str, now_ms: i64, many: usize) -> Vec<Job> {
    let mut partitions: BTreeMap<&str, Vec<&Arc<DataFile>>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.rows < MAX_ROWS / 2) {
        partitions.entry(&file.partition).or_default().push(file);
    }
    let mut jobs = Vec::new();
    for (partition, mut files) in partitions {
        files.sort_by_key(|file| file.rows);
        let settled = partition < now_partition && files.iter().all(|file| file.modified_ms + SETTLE_MS <= now_ms);
        let chosen: Vec<_> = if settled {
            files
        } else {
            let mut tiers: BTreeMap<u32, Vec<&Arc<DataFile>>> = BTreeMap::new();
            for file in files {
                let tier = (file.rows.max(1) as f64).log(TIER_FACTOR) as u32;
                tiers.entry(tier).or_default().push(file);
            }
            match tiers.into_values().find(|files| files.len() >= many) {
                Some(files) => files,
                None => continue,
            }
        };
        let mut rows = 0;
        let chosen: Vec<_> = chosen
            .into_iter()
            .take_while(|file| {
                rows += file.rows;
                rows <= MAX_ROWS
            })
            .cloned()
            .collect();
        if chosen.len() >= 2 {
            jobs.push(Job {
                table,
                partition: partition.to_owned(),
                files: chosen,
            });
        }
    }
    jobs
}

impl Store {
    /// Does one rewrite. Snapshots taken before go on reading the old files.
    pub(super) async fn compact(&self, job: Job) -> Result<(), StoreError> {
        let Job {
            table,
            partition,
            files,
        } = job;
        let dir = self.config.dir.join(table.name());
        let (read, name) = (files.clone(), partition.clone());
        let batches = tokio::task::spawn_blocking(move || {
            let mut batches = Vec::new();
            for file in &read {
                read_file(table, &dir.join(&file.path), &name, &mut batches)?;
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(batches)
        })
        .await
        .map_err(StoreError::table(table, "read a file"))?
        .map_err(|cause| StoreError::Table {
            table: table.name(),
            what: "read a file",
            cause: cause.to_string(),
        })?;
        let Some(new) = self.write_file(table, partition, batches, Effort::Compact).await? else {
            return Err(StoreError::Table {
                table: table.name(),
                what: "compact",
                cause: "the files are empty".to_owned(),
            });
        };
        let rows_before: u64 = files.iter().map(|file| file.rows).sum();
        if table.key().is_empty() && new.rows != rows_before {
            self.delete_now(table, &[new]).await;
            return Err(StoreError::Table {
                table: table.name(),
                what: "compact",
                cause: format!("{rows_before} rows went in and another number came out; the old files stay"),
            });
        }
        let mut log = self.logs[table.index()].lock().await;
        if let Err(error) = log
            .commit(vec![add_action(table, &new, false)], &files, &[], false)
            .await
        {
            drop(log);
            return Err(self.clear_up(table, &[new], error).await);
        }
        self.replace_files(table, &files, vec![new]);
        drop(log);
        self.counters
            .files_compacted
            .fetch_add(files.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// In the view: `old` out, `new` in, in one step. The old ones' content is deleted later.
    pub(super) fn replace_files(&self, table: Table, old: &[Arc<DataFile>], new: Vec<Arc<DataFile>>) {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let files = &mut view.files[table.index()];
        let gone: std::collections::HashSet<&str> = old.iter().map(|file| file.path.as_str()).collect();
        Arc::make_mut(files).retain(|file| !gone.contains(file.path.as_str()));
        add_files(files, new);
        drop(view);
        let garbage = old.iter().map(|file| Garbage::new(table, &file.path));
        lock_mutex(&self.garbage).extend(garbage);
    }
}

/// All rows of a file, with the partition column. A column that the table has got since the file was written is null.
fn read_file(
    table: Table,
    path: &Path,
    partition: &str,
    batches: &mut Vec<RecordBatch>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let file = std::fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let failed = |error| format!("{}: {error}", path.display());
    let found = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(failed)?;
    let whole = table.file_schema();
    let known = whole
        .fields()
        .iter()
        .filter(|f| found.schema().column_with_name(f.name()).is_some());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(known.cloned().collect::<Vec<_>>())));
    let metadata = ArrowReaderMetadata::try_new(found.metadata().clone(), options).map_err(failed)?;
    let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
        .with_batch_size(64 * 1024)
        .build()?;
    for batch in reader {
        let batch = batch.map_err(|error| format!("{}: {error}", path.display()))?;
        let keys = Int32Array::from_value(0, batch.num_rows());
        let values: ArrayRef = Arc::new(StringArray::from(vec![partition]));
        let column = |field: &Arc<Field>| match batch.column_by_name(field.name()) {
            Some(column) => column.clone(),
            None => new_null_array(field.data_type(), batch.num_rows()),
        };
        let mut columns: Vec<ArrayRef> = whole.fields().iter().map(column).collect();
        columns.push(Arc::new(DictionaryArray::try_new(keys, values)?));
        batches.push(RecordBatch::try_new(table.schema(), columns)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(partition: &str, rows: &[u64]) -> Vec<Arc<DataFile>> {
        let file = |(index, rows): (usize, &u64)| {
            Arc::new(DataFile {
                path: format!("{partition}/{index}"),
                partition: partition.to_owned(),
                size_bytes: 1,
                rows: *rows,
                modified_ms: 0,
                int_ranges: Vec::new(),
                string_ranges: Vec::new(),
            })
        };
        rows.iter().enumerate().map(file).collect()
    }

    #[test]
    fn an_open_partition_waits_for_many_of_one_size() {
        let due = |rows: &[u64]| due(Table::Samples, &files("2026-11-21T08", rows), "2026-11-21T08", 0, 4);
        assert_eq!(due(&[10, 10, 10]), []);
        assert_eq!(due(&[10, 10, 10, 1000]), []);
        let jobs = due(&[10, 10, 12, 11, 1000]);
        assert_eq!(jobs.len(), 1);
        assert_eq!(jobs[0].files.len(), 4);
    }

    #[test]
    fn a_settled_partition_becomes_one_file_and_large_files_stay() {
        let files = files("2026-11-21T08", &[10, 10, 1000, MAX_ROWS]);
        assert_eq!(due(Table::Samples, &files, "2026-11-21T09", SETTLE_MS - 1, 4), []);
        let jobs = due(Table::Samples, &files, "2026-11-21T09", SETTLE_MS, 4);
        assert_eq!(jobs.len(), 1);
        assert_eq!(jobs[0].files.len(), 3);
    }
}
