//! Group commits where other servers write to the same tables.
//!
//! The order is the same: dictionaries, `batches`, `samples`. Only the entry of `samples` decides which batches are
//! stored: it is put behind all entries that were read, by which what is in them already is left out of it.

use super::{DICTIONARIES, NewFiles, by_partition};
use crate::lock::lock_mutex;
use crate::store::buffer::commit_queue::CommitGroup;
use crate::store::format::provenance::Provenance;
use crate::store::log::shared_log::Appended;
use crate::store::log::table_log::{Change, TableLog, add_action};
use crate::store::shared::tries::Tries;
use crate::store::state::Store;
use crate::store::table::data_file::DataFile;
use crate::store::table::error::StoreError;
use crate::store::table::partition::hour;
use crate::store::table::schema::Table;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::MutexGuard;

/// Files of samples, and which batches of the group they hold: those that were not stored when they were made.
struct Made {
    batches: Vec<(String, i64)>,
    files: Vec<Arc<DataFile>>,
    /// Samples of the others.
    repeated: usize,
}

impl Store {
    /// Writes a group, and tells its senders.
    pub(super) async fn commit_beside_others(&self, group: CommitGroup) {
        let committed = async {
            self.write_before_samples(&group).await?;
            self.commit_samples(&group).await
        };
        let committed = committed.await;
        match committed {
            Ok((log, made)) => {
                let mut files = NewFiles::default();
                files[Table::Samples.index()] = made.files;
                self.finish(group, &made.batches, made.repeated, files);
                // Before that nobody may take in an entry that removes the files again.
                drop(log);
            }
            Err(error) => self.abandon(group, NewFiles::default(), error),
        }
    }

    async fn write_before_samples(&self, group: &CommitGroup) -> Result<(), StoreError> {
        for tables in DICTIONARIES {
            let written = tables.iter().map(|table| self.write_keyed(*table, group));
            for done in futures::future::join_all(written).await {
                done?;
            }
        }
        self.write_keyed(Table::Batches, group).await
    }

    /// Rows that have a key: where another server has written the same, readers see one of them. The files are part of
    /// the view at once, beside the rows that wait.
    async fn write_keyed(&self, table: Table, group: &CommitGroup) -> Result<(), StoreError> {
        let partitions = by_partition(&group.rows[table.index()]);
        if partitions.is_empty() {
            return Ok(());
        }
        let provenance = Provenance {
            parts: partitions.len(),
            ..Provenance::default()
        };
        let new = self.put_partitions(table, partitions, &provenance).await?;
        let mut log = self.logs[table.index()].lock().await;
        let mut tries = Tries::default();
        loop {
            let change = Change {
                add: new.iter().map(|file| add_action(table, file, true)).collect(),
                remove: &[],
                txns: &[],
                data_change: true,
            };
            match log.append(change).await {
                Ok(Appended::Written) => break,
                Ok(Appended::Behind) => {
                    if let Err(error) = self.again(table, &mut log, &mut tries).await {
                        self.delete_now(table, &new).await;
                        return Err(error);
                    }
                }
                Err(error) => return Err(self.clear_up(table, &new, error).await),
            }
        }
        self.counters.count_conflict(&tries);
        self.add_to_view(table, new);
        Ok(())
    }

    /// Commits the samples of the batches that nobody has stored. Returns with the log locked.
    async fn commit_samples(&self, group: &CommitGroup) -> Result<(MutexGuard<'_, TableLog>, Made), StoreError> {
        let table = Table::Samples;
        let mut made = self.make_samples(group).await?;
        let mut log = self.logs[table.index()].lock().await;
        let mut tries = Tries::default();
        let mut read = self.read_news(table, &mut log, &mut tries).await;
        loop {
            if let Err(error) = read {
                self.delete_now(table, &made.files).await;
                return Err(error);
            }
            if self.not_stored(group) != made.batches {
                self.delete_now(table, &made.files).await;
                made = self.make_samples(group).await?;
            }
            let gone_ns = self.gone_ns.load(Ordering::SeqCst);
            if gone_ns > 0 && made.files.iter().any(|file| file.partition < hour(gone_ns)) {
                self.delete_now(table, &made.files).await;
                return Err(StoreError::HourGone);
            }
            let now_ms = self.transaction_ms();
            let txns = lock_mutex(&self.inbox)
                .sender_window
                .transactions(&made.batches, now_ms);
            if made.files.is_empty() && txns.is_empty() {
                break;
            }
            let change = Change {
                add: made.files.iter().map(|file| add_action(table, file, true)).collect(),
                remove: &[],
                txns: &txns,
                data_change: true,
            };
            match log.append(change).await {
                Ok(Appended::Written) => break,
                Ok(Appended::Behind) => read = self.again(table, &mut log, &mut tries).await,
                Err(error) => return Err(self.clear_up(table, &made.files, error).await),
            }
        }
        self.counters.count_conflict(&tries);
        Ok((log, made))
    }

    /// The group's batches that are not stored, as far as the log was read.
    fn not_stored(&self, group: &CommitGroup) -> Vec<(String, i64)> {
        let inbox = lock_mutex(&self.inbox);
        let is_new = |(instance, number): &&(String, i64)| !inbox.sender_window.is_stored(instance, *number);
        group.batches.iter().filter(is_new).cloned().collect()
    }

    async fn make_samples(&self, group: &CommitGroup) -> Result<Made, StoreError> {
        let batches = self.not_stored(group);
        let left_out: HashSet<u64> = {
            let kept: HashSet<&(String, i64)> = batches.iter().collect();
            let inbox = lock_mutex(&self.inbox);
            let repeats = group.batches.iter().filter(|batch| !kept.contains(batch));
            let samples = repeats.filter_map(|batch| inbox.samples_of.get(batch));
            samples.flatten().copied().collect()
        };
        let (repeats, rows): (Vec<_>, Vec<_>) = group.rows[Table::Samples.index()]
            .iter()
            .partition(|pending| pending.is_one_of(&left_out));
        let partitions = by_partition(rows);
        let now_ms = self.transaction_ms();
        let provenance = Provenance {
            txns: lock_mutex(&self.inbox).sender_window.transactions(&batches, now_ms),
            batches: batches.clone(),
            parts: partitions.len(),
            ..Provenance::default()
        };
        Ok(Made {
            files: self.put_partitions(Table::Samples, partitions, &provenance).await?,
            batches,
            repeated: repeats.iter().map(|pending| pending.num_rows()).sum(),
        })
    }
}
