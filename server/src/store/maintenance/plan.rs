//! Which files are rewritten together, and when.

use crate::store::table::data_file::DataFile;
use crate::store::table::file_list;
use crate::store::table::schema::Table;
use crate::store::view::snapshot::Snapshot;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Rows of a file of samples. A file of half as many is rewritten only when its hour is over.
pub(crate) const MAX_ROWS: u64 = 4_000_000;

/// Rows of one rewrite of another table, which are in memory all at once. A file of half as many is not rewritten any
/// more.
fn max_day_rows(table: Table) -> u64 {
    match table {
        // 25 frames each are 100 MB.
        Table::Stacks => 500_000,
        _ => 1_000_000,
    }
}

/// Files that are merged at the same time, each of which has a page of every column and the codes of its stacks in
/// memory: about 1 MB.
const MAX_FILES: usize = 192;

/// Rows of a file of samples that queries read as fast as a larger one: it waits for the end of its hour.
const LARGE_ROWS: u64 = 128 * 1024;

/// Rows of a file that is not the last of its hour: it is in memory as a whole.
const MAX_PART_ROWS: u64 = 4 * MAX_ROWS;

/// Files of a tier have up to this many times as many rows as those of the tier below.
const TIER_FACTOR: f64 = 16.0;

/// Files of one partition to be rewritten together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rewrite {
    pub(crate) table: Table,
    pub(crate) partition: String,
    pub(crate) files: Vec<Arc<DataFile>>,
    /// All of an hour that is over: its samples end in files that do not overlap, and are rolled up.
    pub(crate) whole: bool,
    /// Which of [`Table::ROLLUPS`] are kept for so long.
    pub(crate) rollups: [bool; Table::ROLLUPS.len()],
}

/// When and how much is rewritten.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan<'a> {
    /// Value of the partition column at this moment.
    pub(crate) now_partition: &'a str,
    pub(crate) now_ms: i64,
    /// A partition whose time is over is settled when nothing was written to it for this long, milliseconds.
    pub(crate) settle_ms: i64,
    /// The first hour of which there is to be a roll-up, of each.
    pub(crate) first_rollups: [&'a str; Table::ROLLUPS.len()],
    /// A partition that is not settled waits for this many files of about the same size.
    pub(crate) many: usize,
    /// Damaged files, by path below their table's folder: they stay as they are.
    pub(crate) damaged: &'a HashSet<String>,
    /// The same of dictionaries' files whose rows are too large to be merged.
    pub(crate) too_large: &'a HashSet<String>,
}

impl Plan<'_> {
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
    ) -> Option<Rewrite> {
        let wanted = self.first_rollups.map(|first| first <= partition);
        let job = |files: Vec<&Arc<DataFile>>, whole| Rewrite {
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
        if parts().next().is_none() && wanted.all(|(rollup, _)| file_list::is_current(files, rollup)) {
            return None;
        }
        if all.len() <= MAX_FILES || parts().count() < 2 {
            return Some(job(all, true));
        }
        Some(job(smallest(parts()), false))
    }

    /// The rewrites of samples that are due.
    pub(crate) fn hours(&self, snapshot: &Snapshot) -> Vec<Rewrite> {
        let files = snapshot.files(Table::Samples);
        let hours = files.chunk_by(|a, b| a.partition == b.partition);
        hours
            .filter_map(|files| {
                let partition = &files[0].partition;
                let rollups = Table::ROLLUPS.map(|table| file_list::of_partition(snapshot.files(table), partition));
                self.hour(partition, files, rollups)
            })
            .collect()
    }

    /// The rewrites of a dictionary, or of the reports, that are due.
    pub(crate) fn days(&self, table: Table, files: &[Arc<DataFile>]) -> Vec<Rewrite> {
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
                jobs.push(Rewrite {
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

pub(crate) fn is_settled(file: &DataFile) -> bool {
    file.path
        .rsplit('/')
        .next()
        .is_some_and(|name| name.starts_with(SETTLED))
}

/// How the name of a file begins that holds its part of a whole hour and overlaps with no other.
pub(crate) const SETTLED: &str = "settled";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::table::file_list;

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

    fn at(now_partition: &str, now_ms: i64) -> Plan<'_> {
        static NONE_DAMAGED: std::sync::LazyLock<HashSet<String>> = std::sync::LazyLock::new(HashSet::new);
        Plan {
            damaged: &NONE_DAMAGED,
            too_large: &NONE_DAMAGED,
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
        let rollup = [file(hour, &format!("{}-0", file_list::rollup_file_name(&whole)), 5)];
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
