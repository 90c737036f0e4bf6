//! Rewrites many small files of a partition into one sorted file; dictionaries to one row an id.
//!
//! Files of about the same size are merged when there are enough of them, so that a row is rewritten a few times only,
//! however often is committed. A partition whose time has passed ends as one file, or a few where it is large.

use crate::lock::lock_mutex;
use crate::store::buffer::arriving::Pending;
use crate::store::format::provenance::Provenance;
use crate::store::format::read::rows::FileRows;
use crate::store::format::write::rows_file::WriteProfile;
use crate::store::log::table_log::{TableLog, add_action};
use crate::store::maintenance::plan::Rewrite;
use crate::store::maintenance::rewrite_hour::Hour;
use crate::store::root::reader::RangeReader;
use crate::store::state::Store;
use crate::store::table::data_file::DataFile;
use crate::store::table::error::StoreError;
use crate::store::table::file_list::{self, add_files};
use crate::store::table::orphans::{ObsoleteFile, Stale};
use crate::store::table::schema::Table;
use arrow::array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use arrow::error::ArrowError;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use tokio::sync::MutexGuard;

/// Rows of a dictionary that are read at a time: a row may have a command line of kilobytes.
const DAY_BATCH_ROWS: usize = 1024;

impl Store {
    /// Does one rewrite. Snapshots taken before go on reading the old files.
    pub(crate) async fn compact(&self, job: Rewrite) -> Result<(), StoreError> {
        // What is damaged must not become a part of a file that looks intact.
        let intact = self.damage.intact(job.table, &job.files).await;
        if let Some((file, _)) = job.files.iter().zip(intact).find(|(_, intact)| !intact) {
            return Err(failed(job.table, format!("{} is damaged", file.path)));
        }
        if job.table == Table::Samples {
            return self.merge_hour(job).await;
        }
        let Rewrite {
            table,
            partition,
            mut files,
            ..
        } = job;
        let reader = self.root.reader();
        let (read, name, limit_bytes) = (files.clone(), partition.clone(), self.config.merge_bytes);
        let gathered = tokio::task::spawn_blocking(move || gather(reader.as_ref(), table, &name, &read, limit_bytes))
            .await
            .map_err(StoreError::table(table, "read a file"))??;
        files.truncate(gathered.files);
        let Some(rows) = gathered.rows else {
            self.leave(table, gathered.too_large);
            return Ok(());
        };
        let batches = vec![Pending::Rows(rows)];
        let provenance = Provenance::of_rewrite(&files);
        let Some(new) = self
            .write_file(table, partition, batches, WriteProfile::Compact, provenance)
            .await?
        else {
            return Err(failed(table, "the files are empty".to_owned()));
        };
        self.replace(table, &files, vec![new], false).await
    }

    /// These files are not merged any more. Found anew by each server.
    fn leave(&self, table: Table, path: String) {
        tracing::debug!(
            table = table.name(),
            path,
            "rows too large to be merged: the file stays as it is"
        );
        let snapshot = self.snapshot();
        let mut left = lock_mutex(&self.too_large);
        left.insert(path);
        let there = |path: &str| {
            Table::ALL
                .into_iter()
                .any(|table| snapshot.files(table).iter().any(|file| file.path == path))
        };
        left.retain(|path| there(path));
    }

    /// Merges files of an hour of samples; where these are all of them and the hour is over, makes its roll-ups too.
    async fn merge_hour(&self, job: Rewrite) -> Result<(), StoreError> {
        let (written, merged) = self.write_merged(&job).await;
        let [samples, rollups @ ..] = match merged {
            Ok(()) => written,
            Err(error) => {
                for (table, files) in MERGED.into_iter().zip(&written) {
                    self.delete_now(table, files).await;
                }
                return Err(error);
            }
        };
        // The roll-ups are made of the very files that are there from now on, and are not current before.
        let mut done = Ok(());
        if !samples.is_empty() {
            done = self.replace(Table::Samples, &job.files, samples, false).await;
        }
        for ((table, new), wanted) in Table::ROLLUPS.into_iter().zip(rollups).zip(job.rollups) {
            if done.is_err() {
                // What failed has removed its own; these would lie there until the next start, and the next try adds
                // as many.
                self.delete_now(table, &new).await;
            } else if job.whole && wanted {
                let snapshot = self.snapshot();
                let old = file_list::of_partition(snapshot.files(table), &job.partition);
                done = self.replace(table, old, new, true).await;
            }
        }
        done
    }

    /// Writes what a job makes, not yet part of a table. An error comes with what was written before it.
    async fn write_merged(&self, job: &Rewrite) -> ([Vec<Arc<DataFile>>; MERGED.len()], Result<(), StoreError>) {
        let mut written: [Vec<Arc<DataFile>>; MERGED.len()] = Default::default();
        let reader = self.root.reader();
        let paths = job.files.iter().map(|file| Table::Samples.path_of(&file.path));
        let paths: Vec<String> = paths.collect();
        // One file waits here while the next is made.
        let (to, mut made) = tokio::sync::mpsc::channel(1);
        let work = Hour::new(job, to);
        let rewrite = work.rewrites();
        let merging = tokio::task::spawn_blocking(move || work.merge(reader.as_ref(), &paths));
        let mut failed_put = None;
        while let Some((table, encoded)) = made.recv().await {
            match self.put_file(table, encoded).await {
                Ok(file) => written[MERGED.iter().position(|merged| *merged == table).unwrap_or(0)].push(file),
                Err(error) => {
                    failed_put = Some(error);
                    break;
                }
            }
        }
        drop(made);
        let merged = match (failed_put, merging.await) {
            (Some(error), _) => Err(error),
            (None, Err(error)) => Err(StoreError::table(Table::Samples, "merge files")(error)),
            (None, Ok(merged)) => merged,
        };
        let before: u64 = job.files.iter().map(|file| file.rows).sum();
        let after: u64 = written[0].iter().map(|file| file.rows).sum();
        let merged = merged.and_then(|read| {
            if read == before && (!rewrite || after == before) {
                return Ok(());
            }
            let cause = format!("{before} rows went in and another number came out; the old files stay");
            Err(failed(Table::Samples, cause))
        });
        (written, merged)
    }

    /// In the log and in the view: `old` out, `new` in. `new` is removed from the disk where that does not succeed.
    async fn replace(
        &self,
        table: Table,
        old: &[Arc<DataFile>],
        new: Vec<Arc<DataFile>>,
        data_change: bool,
    ) -> Result<(), StoreError> {
        if self.is_shared() {
            return self.replace_beside_others(table, old, new, data_change).await;
        }
        let mut log = self.logs[table.index()].lock().await;
        let add = new.iter().map(|file| add_action(table, file, data_change)).collect();
        if let Err(error) = log.commit(add, old, &[], data_change).await {
            drop(log);
            return Err(self.clear_up(table, &new, error).await);
        }
        self.rewritten(log, table, old, new);
        Ok(())
    }

    /// After the log says so: in the view, too, before `log` has the next change.
    pub(super) fn rewritten(
        &self,
        log: MutexGuard<'_, TableLog>,
        table: Table,
        old: &[Arc<DataFile>],
        new: Vec<Arc<DataFile>>,
    ) {
        self.replace_files(table, old, new, Stale::Replaced);
        drop(log);
        let files = old.len() as u64;
        self.counters.files_compacted.fetch_add(files, Ordering::Relaxed);
    }

    /// In the view: `old` out, `new` in, in one step. The old ones' content is deleted later.
    pub(crate) fn replace_files(&self, table: Table, old: &[Arc<DataFile>], new: Vec<Arc<DataFile>>, stale: Stale) {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let files = &mut view.files[table.index()];
        let gone: std::collections::HashSet<&str> = old.iter().map(|file| file.path.as_str()).collect();
        Arc::make_mut(files).retain(|file| !gone.contains(file.path.as_str()));
        add_files(files, new);
        drop(view);
        let garbage = old
            .iter()
            .map(|file| ObsoleteFile::new(table, stale, &file.path, file.size_bytes));
        lock_mutex(&self.garbage).extend(garbage);
    }
}

/// What was read of files to be merged.
struct Gathered {
    /// In one piece, so that they are not in memory twice while they are sorted. None where not even two files are
    /// within the limit.
    rows: Option<RecordBatch>,
    /// Of how many files, the first ones.
    files: usize,
    /// The larger of two that are beyond the limit.
    too_large: String,
}

/// Reads files as long as their rows take no more than `limit_bytes`. What a file says of itself is no measure:
/// strings that come again and again are in it once.
fn gather(
    reader: &dyn RangeReader,
    table: Table,
    partition: &str,
    files: &[Arc<DataFile>],
    limit_bytes: usize,
) -> Result<Gathered, StoreError> {
    let (mut batches, mut bytes, mut largest) = (Vec::new(), 0, (0, ""));
    for (index, file) in files.iter().enumerate() {
        let (whole, before) = (batches.len(), bytes);
        for rows in FileRows::open(reader, table, &table.path_of(&file.path), DAY_BATCH_ROWS)? {
            let batch = with_partition(table, &rows?, partition).map_err(StoreError::table(table, "read a file"))?;
            bytes += batch.get_array_memory_size();
            batches.push(batch);
            if bytes > limit_bytes {
                break;
            }
        }
        largest = largest.max((bytes - before, &file.path));
        if bytes > limit_bytes {
            batches.truncate(whole);
            if index >= 2 {
                return gathered(table, &batches, index);
            }
            return Ok(Gathered {
                rows: None,
                files: index,
                too_large: largest.1.to_owned(),
            });
        }
    }
    gathered(table, &batches, files.len())
}

fn gathered(table: Table, batches: &[RecordBatch], files: usize) -> Result<Gathered, StoreError> {
    let rows = concat_batches(&table.schema(), batches).map_err(StoreError::table(table, "gather rows"))?;
    Ok(Gathered {
        rows: Some(rows),
        files,
        too_large: String::new(),
    })
}

/// Rows with the partition column.
fn with_partition(table: Table, rows: &RecordBatch, partition: &str) -> Result<RecordBatch, ArrowError> {
    let keys = Int32Array::from_value(0, rows.num_rows());
    let values: ArrayRef = Arc::new(StringArray::from(vec![partition]));
    let mut columns = rows.columns().to_vec();
    columns.push(Arc::new(DictionaryArray::try_new(keys, values)?));
    RecordBatch::try_new(table.schema(), columns)
}

fn failed(table: Table, cause: String) -> StoreError {
    StoreError::Table {
        table: table.name(),
        what: "compact",
        cause,
    }
}

/// The tables that a merge of samples writes to.
const MERGED: [Table; 1 + Table::ROLLUPS.len()] = [
    Table::Samples,
    Table::SamplesMinute,
    Table::SamplesHour,
    Table::SamplesTenSeconds,
];
