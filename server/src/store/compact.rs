//! Rewrites many small files of a partition into one sorted file; dictionaries to one row an id.
//!
//! Files of about the same size are merged when there are enough of them, so that a row is rewritten a few times only,
//! however often is committed. A partition whose time has passed ends as one file, or a few where it is large.

use super::commit::add_files;
use super::file::Effort;
use super::hour::{Hour, SETTLED};
use super::log::add_action;
use super::notes::Notes;
use super::retain::{Garbage, Stale};
use super::rollup;
use super::rows::FileRows;
use super::schema::Table;
use super::{DataFile, Pending, Snapshot, Store, StoreError, lock_mutex};
use arrow::array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use arrow::error::ArrowError;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// Rows of a file of samples. A file of half as many is rewritten only when its hour is over.
pub(super) const MAX_ROWS: u64 = 4_000_000;

/// Rows of one rewrite of another table, which are in memory all at once. A file of half as many is not rewritten any more.
fn max_day_rows(table: Table) -> u64 {
    match table {
        // 25 frames each are 100 MB.
        Table::Stacks => 500_000,
        _ => 1_000_000,
    }
}

/// Files that are merged at the same time, each of which has a page of every column and the codes of its stacks in memory: about 1 MB.
const MAX_FILES: usize = 192;

/// Rows of a file of samples that queries read as fast as a larger one: it waits for the end of its hour.
const LARGE_ROWS: u64 = 128 * 1024;

/// Rows of a file that is not the last of its hour: it is in memory as a whole.
const MAX_PART_ROWS: u64 = 4 * MAX_ROWS;

/// Rows of a dictionary that are read at a time: a row may have a command line of kilobytes.
const DAY_BATCH_ROWS: usize = 1024;

/// Files of a tier have up to this many times as many rows as those of the tier below.
const TIER_FACTOR: f64 = 16.0;

/// Files of one partition to be rewritten together.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) table: Table,
    pub(super) partition: String,
    pub(super) files: Vec<Arc<DataFile>>,
    /// All of an hour that is over: its samples end in files that do not overlap, and are rolled up.
    pub(super) whole: bool,
    /// Which of [`Table::ROLLUPS`] are kept for so long.
    pub(super) rollups: [bool; Table::ROLLUPS.len()],
}

/// When and how much is rewritten.
#[derive(Debug, Clone, Copy)]
pub(super) struct Due<'a> {
    /// Value of the partition column at this moment.
    pub(super) now_partition: &'a str,
    pub(super) now_ms: i64,
    /// A partition whose time is over is settled when nothing was written to it for this long, milliseconds.
    pub(super) settle_ms: i64,
    /// The first hour of which there is to be a roll-up, of each.
    pub(super) first_rollups: [&'a str; Table::ROLLUPS.len()],
    /// A partition that is not settled waits for this many files of about the same size.
    pub(super) many: usize,
    /// Damaged files, by path below their table's folder: they stay as they are.
    pub(super) damaged: &'a HashSet<String>,
    /// The same of dictionaries' files whose rows are too large to be merged.
    pub(super) too_large: &'a HashSet<String>,
}

impl Due<'_> {
    fn is_settled(&self, partition: &str, files: &[&Arc<DataFile>]) -> bool {
        partition < self.now_partition
            && files
                .iter()
                // What is dated ahead was written when the clock was wrong.
                .all(|file| file.modified_ms + self.settle_ms <= self.now_ms || file.modified_ms > self.now_ms)
    }

    /// Files of the first tier that has enough of them.
    fn tier<'f>(&self, files: impl IntoIterator<Item = &'f Arc<DataFile>>) -> Option<Vec<&'f Arc<DataFile>>> {
        let mut tiers: BTreeMap<u32, Vec<&Arc<DataFile>>> = BTreeMap::new();
        for file in files {
            let tier = (file.rows.max(1) as f64).log(TIER_FACTOR) as u32;
            tiers.entry(tier).or_default().push(file);
        }
        tiers.into_values().find(|files| files.len() >= self.many)
    }

    /// What is to be done with an hour of samples.
    fn hour(
        &self,
        partition: &str,
        files: &[Arc<DataFile>],
        rollups: [&[Arc<DataFile>]; Table::ROLLUPS.len()],
    ) -> Option<Job> {
        let wanted = self.first_rollups.map(|first| first <= partition);
        let job = |files: Vec<&Arc<DataFile>>, whole| Job {
            table: Table::Samples,
            partition: partition.to_owned(),
            files: files.into_iter().cloned().collect(),
            whole,
            rollups: wanted,
        };
        let all: Vec<_> = files.iter().collect();
        let damaged = |file: &DataFile| self.damaged.contains(&file.path);
        let parts = || files.iter().filter(|file| !is_settled(file) && !damaged(file));
        // Of an hour that lacks something no roll-up is made.
        if !self.is_settled(partition, &all) || files.iter().any(|file| damaged(file)) {
            if let Some(chosen) = self.tier(parts().filter(|file| file.rows < LARGE_ROWS)) {
                return Some(job(chosen.into_iter().take(MAX_FILES).collect(), false));
            }
            let large = || parts().filter(|file| (LARGE_ROWS..MAX_ROWS / 2).contains(&file.rows));
            return (large().count() >= MAX_FILES).then(|| job(smallest(large()), false));
        }
        let mut wanted = rollups.iter().zip(wanted).filter(|(_, wanted)| *wanted);
        if parts().next().is_none() && wanted.all(|(rollup, _)| rollup::is_current(files, rollup)) {
            return None;
        }
        if all.len() <= MAX_FILES || parts().count() < 2 {
            return Some(job(all, true));
        }
        Some(job(smallest(parts()), false))
    }

    /// The rewrites of samples that are due.
    pub(super) fn hours(&self, snapshot: &Snapshot) -> Vec<Job> {
        let files = snapshot.files(Table::Samples);
        let hours = files.chunk_by(|a, b| a.partition == b.partition);
        hours
            .filter_map(|files| {
                let partition = &files[0].partition;
                let rollups = Table::ROLLUPS.map(|table| rollup::of_partition(snapshot.files(table), partition));
                self.hour(partition, files, rollups)
            })
            .collect()
    }

    /// The rewrites of a dictionary, or of the accounts, that are due.
    pub(super) fn days(&self, table: Table, files: &[Arc<DataFile>]) -> Vec<Job> {
        let mut partitions: BTreeMap<&str, Vec<&Arc<DataFile>>> = BTreeMap::new();
        let max_rows = max_day_rows(table);
        let stays = |path: &str| self.damaged.contains(path) || self.too_large.contains(path);
        let fit = |file: &&Arc<DataFile>| file.rows < max_rows / 2 && !stays(&file.path);
        for file in files.iter().filter(fit) {
            partitions.entry(&file.partition).or_default().push(file);
        }
        let mut jobs = Vec::new();
        for (partition, mut files) in partitions {
            files.sort_by_key(|file| file.rows);
            let chosen = if self.is_settled(partition, &files) {
                files
            } else {
                match self.tier(files) {
                    Some(files) => files,
                    None => continue,
                }
            };
            let mut rows = 0;
            let chosen: Vec<_> = chosen
                .into_iter()
                .take_while(|file| {
                    rows += file.rows;
                    rows <= max_rows
                })
                .cloned()
                .collect();
            if chosen.len() >= 2 {
                jobs.push(Job {
                    table,
                    partition: partition.to_owned(),
                    files: chosen,
                    whole: false,
                    rollups: [false; Table::ROLLUPS.len()],
                });
            }
        }
        jobs
    }
}

/// The smallest of many files, as many as become one.
fn smallest<'f>(files: impl Iterator<Item = &'f Arc<DataFile>>) -> Vec<&'f Arc<DataFile>> {
    let mut files: Vec<_> = files.collect();
    files.sort_by_key(|file| file.rows);
    let mut rows = 0;
    let fits = |file: &&&Arc<DataFile>| {
        rows += file.rows;
        rows <= MAX_PART_ROWS
    };
    let count = files.iter().take(MAX_FILES).take_while(fits).count();
    files.truncate(count.max(2));
    files
}

pub(super) fn is_settled(file: &DataFile) -> bool {
    file.path
        .rsplit('/')
        .next()
        .is_some_and(|name| name.starts_with(SETTLED))
}

impl Store {
    /// Does one rewrite. Snapshots taken before go on reading the old files.
    pub(super) async fn compact(&self, job: Job) -> Result<(), StoreError> {
        // What is damaged must not become a part of a file that looks sound.
        let sound = self.damage.sound(job.table, &job.files).await;
        if let Some((file, _)) = job.files.iter().zip(sound).find(|(_, sound)| !sound) {
            return Err(failed(job.table, format!("{} is damaged", file.path)));
        }
        if job.table == Table::Samples {
            return self.merge_hour(job).await;
        }
        let Job {
            table,
            partition,
            mut files,
            ..
        } = job;
        let dir = self.config.dir.join(table.name());
        let (read, name, limit_bytes) = (files.clone(), partition.clone(), self.config.merge_bytes);
        let gathered = tokio::task::spawn_blocking(move || gather(table, &dir, &name, &read, limit_bytes))
            .await
            .map_err(StoreError::table(table, "read a file"))??;
        files.truncate(gathered.files);
        let Some(rows) = gathered.rows else {
            self.leave(table, gathered.too_large);
            return Ok(());
        };
        let batches = vec![Pending::Rows(rows)];
        let notes = Notes::of_rewrite(&files);
        let Some(new) = self
            .write_file(table, partition, batches, Effort::Compact, notes)
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
    async fn merge_hour(&self, job: Job) -> Result<(), StoreError> {
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
                // What failed has removed its own; these would lie there until the next start, and the next try adds as many.
                self.delete_now(table, &new).await;
            } else if job.whole && wanted {
                let snapshot = self.snapshot();
                let old = rollup::of_partition(snapshot.files(table), &job.partition);
                done = self.replace(table, old, new, true).await;
            }
        }
        done
    }

    /// Writes what a job makes, not yet part of a table. An error comes with what was written before it.
    async fn write_merged(&self, job: &Job) -> ([Vec<Arc<DataFile>>; MERGED.len()], Result<(), StoreError>) {
        let mut written: [Vec<Arc<DataFile>>; MERGED.len()] = Default::default();
        let dir = self.config.dir.join(Table::Samples.name());
        let paths = job.files.iter().map(|file| dir.join(&file.path)).collect();
        // One file waits here while the next is made.
        let (to, mut made) = tokio::sync::mpsc::channel(1);
        let work = Hour::new(job, to);
        let rewrite = work.rewrites();
        let merging = tokio::task::spawn_blocking(move || work.merge(paths));
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
        let mut log = self.logs[table.index()].lock().await;
        let add = new.iter().map(|file| add_action(table, file, data_change)).collect();
        if let Err(error) = log.commit(add, old, &[], data_change).await {
            drop(log);
            return Err(self.clear_up(table, &new, error).await);
        }
        self.replace_files(table, old, new, Stale::Replaced);
        drop(log);
        self.counters
            .files_compacted
            .fetch_add(old.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// In the view: `old` out, `new` in, in one step. The old ones' content is deleted later.
    pub(super) fn replace_files(&self, table: Table, old: &[Arc<DataFile>], new: Vec<Arc<DataFile>>, stale: Stale) {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let files = &mut view.files[table.index()];
        let gone: std::collections::HashSet<&str> = old.iter().map(|file| file.path.as_str()).collect();
        Arc::make_mut(files).retain(|file| !gone.contains(file.path.as_str()));
        add_files(files, new);
        drop(view);
        let garbage = old
            .iter()
            .map(|file| Garbage::new(table, stale, &file.path, file.size_bytes));
        lock_mutex(&self.garbage).extend(garbage);
    }
}

/// What was read of files to be merged.
struct Gathered {
    /// In one piece, so that they are not in memory twice while they are sorted. None where not even two files are within the limit.
    rows: Option<RecordBatch>,
    /// Of how many files, the first ones.
    files: usize,
    /// The larger of two that are beyond the limit.
    too_large: String,
}

/// Reads files as long as their rows take no more than `limit_bytes`. What a file says of itself is no measure: strings that come again and
/// again are in it once.
fn gather(
    table: Table,
    dir: &Path,
    partition: &str,
    files: &[Arc<DataFile>],
    limit_bytes: usize,
) -> Result<Gathered, StoreError> {
    let (mut batches, mut bytes, mut largest) = (Vec::new(), 0, (0, ""));
    for (index, file) in files.iter().enumerate() {
        let (whole, before) = (batches.len(), bytes);
        for rows in FileRows::open(table, dir.join(&file.path), DAY_BATCH_ROWS)? {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn file(partition: &str, name: &str, rows: u64) -> Arc<DataFile> {
        Arc::new(DataFile {
            path: format!("{partition}/{name}"),
            partition: partition.to_owned(),
            size_bytes: 1,
            rows,
            modified_ms: 0,
            int_ranges: Vec::new(),
            string_ranges: Vec::new(),
        })
    }

    fn files(partition: &str, rows: &[u64]) -> Vec<Arc<DataFile>> {
        let numbered = rows.iter().enumerate();
        numbered
            .map(|(index, rows)| file(partition, &format!("part-{index}"), *rows))
            .collect()
    }

    fn at(now_partition: &str, now_ms: i64) -> Due<'_> {
        static SOUND: std::sync::LazyLock<HashSet<String>> = std::sync::LazyLock::new(HashSet::new);
        Due {
            damaged: &SOUND,
            too_large: &SOUND,
            now_partition,
            now_ms,
            settle_ms: 1000,
            first_rollups: ["2026-11-21T00", "2026-11-20T00", "2026-11-21T00"],
            many: 4,
        }
    }

    #[test]
    fn an_open_partition_waits_for_many_of_one_size() {
        let due = |rows: &[u64]| {
            let (hour, day) = (files("2026-11-21T08", rows), files("2026-11-21", rows));
            let job = at("2026-11-21T08", 0).hour("2026-11-21T08", &hour, [&[]; 3]);
            let days = at("2026-11-21", 0).days(Table::Stacks, &day);
            assert!(job.as_ref().is_none_or(|job| !job.whole));
            let (hour, day) = (job.map(|job| job.files.len()), days.first().map(|job| job.files.len()));
            assert_eq!(hour, day);
            hour
        };
        assert_eq!(due(&[10, 10, 10]), None);
        assert_eq!(due(&[10, 10, 10, 1000]), None);
        assert_eq!(due(&[10, 10, 12, 11, 1000]), Some(4));
    }

    #[test]
    fn a_settled_day_becomes_one_file_and_large_files_stay() {
        let files = files("2026-11-20", &[10, 10, 1000, max_day_rows(Table::Stacks)]);
        assert_eq!(at("2026-11-21", 999).days(Table::Stacks, &files), []);
        let jobs = at("2026-11-21", 1000).days(Table::Stacks, &files);
        assert_eq!(jobs.len(), 1);
        assert_eq!(jobs[0].files.len(), 3);
    }

    #[test]
    fn a_settled_hour_is_rewritten_once_and_again_when_something_comes() {
        let hour = "2026-11-21T08";
        let due = |files: &[Arc<DataFile>], minutes: &[Arc<DataFile>], hours: &[Arc<DataFile>]| {
            at("2026-11-21T09", 1000).hour(hour, files, [minutes, hours, minutes])
        };
        let parts = files(hour, &[10, MAX_ROWS]);
        assert_eq!(at("2026-11-21T09", 999).hour(hour, &parts, [&[]; 3]), None);
        let job = due(&parts, &[], &[]).unwrap();
        assert!(job.whole && job.files.len() == 2);

        let mut whole = vec![file(hour, "settled-0", 10), file(hour, "settled-1", 10)];
        let rollup = [file(hour, &format!("{}-0", rollup::file_name(&whole)), 5)];
        assert_eq!(due(&whole, &rollup, &rollup), None);
        let (missing, stale) = ([], [file(hour, "rollup-0-0", 5)]);
        assert!(due(&whole, &rollup, &missing).unwrap().whole);
        assert!(due(&whole, &stale, &rollup).unwrap().whole);

        // The roll-up by minute of the day before is beyond its retention: it is not made again and again.
        let old = "2026-11-20T23";
        let due_then = at("2026-11-21T09", 1000).hour(old, &whole, [&missing, &rollup, &missing]);
        assert_eq!(due_then, None);
        let due_then = at("2026-11-21T09", 1000).hour(old, &whole, [&missing; 3].map(|files| &files[..]));
        assert_eq!(due_then.unwrap().rollups, [false, true, false]);

        whole.push(file(hour, "part-2", 1));
        assert_eq!(due(&whole, &rollup, &rollup).unwrap().files.len(), 3);
    }

    #[test]
    fn large_parts_wait_for_the_end_of_their_hour_but_not_without_end() {
        let hour = "2026-11-21T08";
        let due = |parts: &[u64]| at(hour, 0).hour(hour, &files(hour, parts), [&[]; 3]);
        assert_eq!(due(&vec![LARGE_ROWS; MAX_FILES - 1]), None);
        let job = due(&vec![LARGE_ROWS; MAX_FILES]).unwrap();
        assert_eq!(job.files.len() as u64, MAX_PART_ROWS / LARGE_ROWS);
        assert_eq!(due(&[LARGE_ROWS; 9].map(|rows| rows - 1)).unwrap().files.len(), 9);
        // Two at least, or it would never end.
        let job = due(&vec![MAX_ROWS / 2 - 1; MAX_FILES]).unwrap();
        assert!((2..=8).contains(&job.files.len()));
    }

    #[test]
    fn an_hour_of_very_many_files_is_merged_in_steps() {
        let hour = "2026-11-21T08";
        let parts = files(hour, &vec![10; MAX_FILES + 1]);
        let job = at("2026-11-21T09", 1000).hour(hour, &parts, [&[]; 3]).unwrap();
        assert!(!job.whole && job.files.len() == MAX_FILES);
    }
}
