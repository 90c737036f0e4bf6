//! All tables of a store at one moment, of one too that is written meanwhile.
//!
//! A commit writes dictionaries (stacks last), then `batches`, then `samples`, and roll-ups are made of
//! samples. So they are looked at the other way round: whatever a row refers to is there when its turn comes. `batches`
//! may then be ahead of `samples` by the commit that is under way: it is taken a few versions back, to where every
//! batch is stored. Where several servers write, one's commit may have ended while another's is under way, and no
//! version of `batches` has the one and not the other: then, and where what retention removed shows in the days that
//! are left, all is looked at anew. Where no look finds them apart, `batches` has all that is stored, and rows of a
//! commit that was under way: as after a server that was killed.

use crate::store::buffer::sender_window::{Seen, SenderWindow};
use crate::store::format::read::rows::FileRows;
use crate::store::keep::error::KeepError;
use crate::store::keep::place::{Place, waiting};
use crate::store::log::pinned::{self, PinnedLog};
use crate::store::table::data_file::DataFile;
use crate::store::table::error::StoreError;
use crate::store::table::schema::Table;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// Tables that rows of samples and roll-ups have to be found in, by the day.
const OF_EACH_DAY: [Table; 2] = [Table::Stacks, Table::Series];

/// Looks until tables fit together. What does not then, never did.
const TRIES: usize = 4;

const PAUSE: Duration = Duration::from_millis(200);

/// Versions that `batches` is taken back, at most: each server's commit is one, and a rewrite may come between.
const MOST_BACK: u64 = 12;

/// So far may the clocks of servers be apart that date files.
const APART_MS: i64 = 120_000;

/// Rows of `batches` that are compared to see what a version lacks, at most. It has more only where all of a day was
/// rewritten.
const MOST_COMPARED: u64 = 1 << 20;

/// Rows that are read at a time.
pub(super) const BATCH_ROWS: usize = 64 * 1024;

/// The characters of a day in the name of an hour.
const DAY_CHARS: usize = 10;

/// See the module.
#[derive(Debug)]
pub(super) struct Pins {
    /// Of the tables that there are, in the order in which they were looked at.
    pub(super) logs: Vec<PinnedLog>,
}

/// The day of a partition.
pub(super) fn day_of(partition: &str) -> &str {
    partition.get(..DAY_CHARS).unwrap_or(partition)
}

impl Pins {
    /// Of a store, which may be written meanwhile, or of a backup.
    pub(super) async fn of(place: &Place) -> Result<Self, KeepError> {
        if place.is_backup() {
            return Ok(Self::once(place).await?);
        }
        let mut pins = Self::once(place).await?;
        for _ in 1..TRIES {
            if pins.fit_together() && pins.take_batches_back(place).await? {
                return Ok(pins);
            }
            tokio::time::sleep(PAUSE).await;
            pins = Self::once(place).await?;
        }
        pins.take_batches_back(place).await?;
        Ok(pins)
    }

    async fn once(place: &Place) -> Result<Self, StoreError> {
        let mut logs = Vec::with_capacity(Table::COUNT);
        for table in Table::REFERRERS_FIRST {
            logs.extend(pinned::pin(&place.location(table), None).await?);
        }
        Ok(Self { logs })
    }

    pub(super) fn of_table(&self, table: Table) -> Option<&PinnedLog> {
        self.logs.iter().find(|log| log.table == table)
    }

    /// In order of partition.
    pub(super) fn files_of(&self, table: Table) -> &[Arc<DataFile>] {
        self.of_table(table).map_or(&[], |log| log.files.as_slice())
    }

    /// Which store it is; an error where there is none.
    pub(super) fn id(&self, place: &Place) -> Result<String, KeepError> {
        let samples = self.of_table(Table::Samples);
        let id = samples.map(|log| log.id.clone());
        id.ok_or_else(|| KeepError::refused(place.name(), "no store is there: it has no table samples"))
    }

    /// All data files.
    pub(super) fn files(&self) -> impl Iterator<Item = (Table, &Arc<DataFile>)> {
        self.logs
            .iter()
            .flat_map(|log| log.files.iter().map(|file| (log.table, file)))
    }

    /// Rows of the samples, as the log says.
    pub(super) fn samples(&self) -> u64 {
        self.files_of(Table::Samples).iter().map(|file| file.rows).sum()
    }

    /// Whether no table was looked at after something of it went to which an earlier one refers, and no roll-up counts
    /// samples that came after those here.
    fn fit_together(&self) -> bool {
        let partitions = |table: Table| -> BTreeSet<&str> {
            let files = self.files_of(table).iter();
            files.map(|file| file.partition.as_str()).collect()
        };
        let hours = partitions(Table::Samples);
        let rolled: BTreeSet<&str> = Table::ROLLUPS.into_iter().flat_map(partitions).collect();
        let is_ahead = |hour: &&str| hours.first().is_some_and(|first| hour > first) && !hours.contains(*hour);
        if rolled.iter().any(is_ahead) {
            return false;
        }
        let needed: BTreeSet<&str> = hours.iter().chain(&rolled).map(|hour| day_of(hour)).collect();
        let has_all = |table: Table| needed.is_subset(&partitions(table));
        // Roll-ups have no processes; of a day that nothing needs any more stacks may be there, and their frames not.
        let of_samples: BTreeSet<&str> = hours.iter().map(|hour| day_of(hour)).collect();
        OF_EACH_DAY.into_iter().all(has_all)
            && of_samples.is_subset(&partitions(Table::Processes))
            && partitions(Table::Stacks).is_subset(&partitions(Table::Frames))
    }

    /// To where every batch is stored by the samples' transactions; false where there is no such version near that has
    /// all of them that the newest one has. Then it stays.
    async fn take_batches_back(&mut self, place: &Place) -> Result<bool, StoreError> {
        let (Some(samples), Some(at)) = (
            self.of_table(Table::Samples),
            self.logs.iter().position(|log| log.table == Table::Batches),
        ) else {
            return Ok(true);
        };
        let newest_ms = samples.files.iter().map(|file| file.modified_ms).max();
        let since_ms = newest_ms.map(|newest_ms| newest_ms.saturating_sub(APART_MS));
        let txns = pinned::txns(&place.location(Table::Samples), samples.version).await?;
        let window = Arc::new(SenderWindow::<()>::from_txns(&txns));
        let newest = self.logs[at].clone();
        let mut log = newest.clone();
        for _ in 0..=MOST_BACK {
            if lacks_stored(place, &newest, &log, &window).await {
                return Ok(false);
            }
            if !has_others(place, &log, since_ms, &window).await {
                self.logs[at] = log;
                return Ok(true);
            }
            let Some(before) = log.version.checked_sub(1) else {
                return Ok(false);
            };
            match pinned::pin(&place.location(Table::Batches), Some(before)).await {
                Ok(Some(older)) => log = older,
                // Older entries are gone.
                _ => return Ok(false),
            }
        }
        Ok(false)
    }
}

/// Whether `batches` has a batch that the samples' transactions do not say to be stored, in files that may have been
/// written after the newest of samples: those of older commits are stored, whoever sent them. False where that cannot
/// be read: what is wrong with a file is found when it is copied.
async fn has_others(place: &Place, log: &PinnedLog, since_ms: Option<i64>, window: &Arc<SenderWindow<()>>) -> bool {
    let is_young = |file: &&Arc<DataFile>| since_ms.is_none_or(|since_ms| file.modified_ms > since_ms);
    let young: Vec<Arc<DataFile>> = log.files.iter().filter(is_young).cloned().collect();
    let (place, window) = (place.clone(), window.clone());
    let looked = waiting(move || {
        let reader = place.root.reader();
        for file in young {
            let path = place.file(Table::Batches, &file.path);
            for rows in FileRows::open(reader.as_ref(), Table::Batches, &path, BATCH_ROWS)? {
                if has_other(&rows?, &window) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    });
    looked.await.unwrap_or_default()
}

/// Whether batches that are stored are in the newest version of `batches`, and not in this older one: another server's
/// commit ended while one was under way. True also where that cannot be seen.
async fn lacks_stored(place: &Place, newest: &PinnedLog, older: &PinnedLog, window: &Arc<SenderWindow<()>>) -> bool {
    let (came, went) = (files_but(newest, older), files_but(older, newest));
    let rows: u64 = came.iter().chain(&went).map(|file| file.rows).sum();
    if rows > MOST_COMPARED {
        return true;
    }
    let (place, window) = (place.clone(), window.clone());
    let looked = waiting(move || {
        let (came, went) = (stored_in(&place, &came, &window)?, stored_in(&place, &went, &window)?);
        Ok(!came.is_subset(&went))
    });
    looked.await.unwrap_or(true)
}

/// Files of a version that another one does not have.
fn files_but(of: &PinnedLog, but: &PinnedLog) -> Vec<Arc<DataFile>> {
    let but: HashSet<&str> = but.files.iter().map(|file| file.path.as_str()).collect();
    let others = of.files.iter().filter(|file| !but.contains(file.path.as_str()));
    others.cloned().collect()
}

/// The batches in these files of `batches` that are stored.
fn stored_in(
    place: &Place,
    files: &[Arc<DataFile>],
    window: &SenderWindow<()>,
) -> Result<HashSet<(String, i64)>, StoreError> {
    let (reader, mut stored) = (place.root.reader(), HashSet::new());
    for file in files {
        let path = place.file(Table::Batches, &file.path);
        for rows in FileRows::open(reader.as_ref(), Table::Batches, &path, BATCH_ROWS)? {
            let rows = rows?;
            let batches = batches_of(&rows).into_iter().flatten();
            let is_stored = |(instance, number): &(&str, i64)| window.check(instance, *number) == Seen::Committed;
            let found = batches.filter(is_stored);
            stored.extend(found.map(|(instance, number)| (instance.to_owned(), number)));
        }
    }
    Ok(stored)
}

fn has_other(rows: &RecordBatch, window: &SenderWindow<()>) -> bool {
    let batches = batches_of(rows);
    batches
        .is_some_and(|mut batches| batches.any(|(instance, number)| window.check(instance, number) != Seen::Committed))
}

/// Instance and number of each row of `batches`.
pub(super) fn batches_of(rows: &RecordBatch) -> Option<impl Iterator<Item = (&str, i64)>> {
    let instances = rows.column_by_name("instance")?.as_string_opt::<i32>()?;
    let numbers = rows.column_by_name("number")?.as_primitive_opt::<Int64Type>()?;
    let numbers = numbers.values().iter().copied();
    Some((0..instances.len()).map(move |row| instances.value(row)).zip(numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pins(of: &[(Table, &[&str])]) -> Pins {
        let log = |(table, partitions): &(Table, &[&str])| PinnedLog {
            table: *table,
            id: String::new(),
            version: 1,
            files: partitions
                .iter()
                .map(|partition| {
                    Arc::new(DataFile {
                        path: format!("x={partition}/part"),
                        partition: (*partition).to_owned(),
                        size_bytes: 1,
                        rows: 1,
                        modified_ms: 1,
                        int_ranges: Vec::new(),
                        string_ranges: Vec::new(),
                    })
                })
                .collect(),
            names: Vec::new(),
        };
        Pins {
            logs: of.iter().map(log).collect(),
        }
    }

    #[test]
    fn tables_fit_together_where_nothing_went_or_came_between_two_looks() {
        let (samples, hours) = (Table::Samples, Table::SamplesHour);
        let dictionaries = [Table::Stacks, Table::Frames, Table::Series, Table::Processes];
        let two: &[&str] = &["2026-11-20", "2026-11-21"];
        let usual = |of_samples: &[&str], of_hours: &[&str], days: &[&str]| {
            let of_days = dictionaries.map(|table| (table, days));
            pins(&[&[(samples, of_samples), (hours, of_hours)][..], &of_days].concat()).fit_together()
        };
        assert!(usual(&[], &[], &[]));
        assert!(usual(&["2026-11-21T08"], &["2026-11-20T07", "2026-11-21T08"], two));
        assert!(usual(&[], &["2026-11-20T07"], two), "samples are gone by retention");
        assert!(!usual(&["2026-11-20T07"], &[], &["2026-11-21"]), "a day went");
        assert!(!usual(&["2026-11-21T07"], &["2026-11-21T09"], two), "an hour came");
        // A day went while tables were looked at: one of them does not have it any more.
        for lacks in dictionaries {
            let days = dictionaries.map(|table| (table, if table == lacks { &two[1..] } else { two }));
            let of = |of_samples: &[&str]| pins(&[&[(samples, of_samples)][..], &days].concat()).fit_together();
            assert!(!of(&["2026-11-20T07", "2026-11-21T08"]), "{lacks:?}");
            assert_eq!(of(&["2026-11-21T08"]), lacks != Table::Frames, "{lacks:?}");
        }
    }
}
