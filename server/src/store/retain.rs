//! Maintenance: what is too old goes, what is replaced is deleted, what is scattered is rewritten, what is long gets a checkpoint.

use super::compact::{self, Job};
use super::log::TRANSACTION_RETENTION;
use super::schema::{Table, day, hour};
use super::{DataFile, Store, StoreError, lock_mutex};
use futures::stream::StreamExt;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// A file that no newer snapshot names.
#[derive(Debug)]
pub(super) struct Garbage {
    /// Path below the data directory.
    path: String,
    since: Instant,
}

impl Garbage {
    pub(super) fn new(table: Table, path: &str) -> Self {
        Self {
            path: format!("{}/{path}", table.name()),
            since: Instant::now(),
        }
    }
}

/// Data files in a table's folder that are not part of the table: replaced ones, and those of a commit that did not end.
pub(super) fn unreferenced(table: Table, dir: &std::path::Path, files: &[Arc<DataFile>]) -> Vec<Garbage> {
    let named: HashSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let mut garbage = Vec::new();
    let Ok(partitions) = std::fs::read_dir(dir.join(table.name())) else {
        return garbage;
    };
    for partition in partitions.flatten() {
        let folder = partition.file_name().to_string_lossy().into_owned();
        let Ok(entries) = std::fs::read_dir(partition.path()) else {
            continue;
        };
        if !folder.starts_with(table.partition_column()) {
            continue;
        }
        for entry in entries.flatten() {
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if path.ends_with(".parquet") && !named.contains(path.as_str()) {
                garbage.push(Garbage::new(table, &path));
            }
        }
    }
    garbage
}

impl Store {
    /// Removes whole hours and days that are older than the retention from the tables.
    pub(super) async fn expire(&self) -> Result<(), StoreError> {
        let age = i64::try_from(self.config.retention_samples.as_nanos()).unwrap_or(i64::MAX);
        let cutoff_ns = now_ns().saturating_sub(age);
        for table in Table::ALL {
            let first_kept = partition_at(table, cutoff_ns);
            let snapshot = self.snapshot();
            let old: Vec<_> = snapshot
                .files(table)
                .iter()
                .filter(|file| file.partition < first_kept)
                .cloned()
                .collect();
            if old.is_empty() {
                continue;
            }
            let mut log = self.logs[table.index()].lock().await;
            log.commit(Vec::new(), &old, &[], true).await?;
            self.replace_files(table, &old, Vec::new());
            drop(log);
            let partitions: BTreeSet<&str> = old.iter().map(|file| file.partition.as_str()).collect();
            let mut inbox = lock_mutex(&self.inbox);
            for partition in &partitions {
                inbox.known_mut().forget_day(table, partition);
            }
            drop(inbox);
            self.counters
                .files_expired
                .fetch_add(old.len() as u64, Ordering::Relaxed);
            tracing::info!(
                table = table.name(),
                files = old.len(),
                until = first_kept,
                "removed what is older than the retention"
            );
        }
        lock_mutex(&self.nodes).forget_older(cutoff_ns);
        let forget_ms = now_ns() / 1_000_000 - i64::try_from(TRANSACTION_RETENTION.as_millis()).unwrap_or(i64::MAX);
        lock_mutex(&self.inbox).ledger_mut().forget_older(forget_ms);
        Ok(())
    }

    /// Deletes files that were replaced longer ago than the grace time.
    pub(super) async fn vacuum(&self) {
        let grace = self.config.vacuum_grace;
        let old: Vec<Garbage> = {
            let mut garbage = lock_mutex(&self.garbage);
            let (old, young) = std::mem::take(&mut *garbage)
                .into_iter()
                .partition(|file| file.since.elapsed() >= grace);
            *garbage = young;
            old
        };
        let mut folders = BTreeSet::new();
        futures::stream::iter(&old)
            .for_each_concurrent(4, |file| async move {
                match self.files.delete(&Path::from(file.path.as_str())).await {
                    Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                    Err(error) => {
                        tracing::warn!(%error, path = file.path, "cannot delete a replaced file; trying again later");
                        lock_mutex(&self.garbage).push(Garbage {
                            path: file.path.clone(),
                            since: Instant::now(),
                        });
                    }
                }
            })
            .await;
        for file in &old {
            folders.extend(file.path.rsplit_once('/').map(|(folder, _)| folder));
        }
        for folder in folders {
            // Succeeds for an empty folder only.
            let _ = std::fs::remove_dir(self.config.dir.join(folder));
        }
    }

    /// The next rewrite that is due, but for those that failed before.
    fn next_job(&self, failed: &HashSet<(Table, String)>) -> Option<Job> {
        let snapshot = self.snapshot();
        let now_ns = now_ns();
        Table::ALL.into_iter().find_map(|table| {
            let files = snapshot.files(table);
            compact::due(
                table,
                files,
                &partition_at(table, now_ns),
                now_ns / 1_000_000,
                self.config.compact_files,
            )
            .into_iter()
            .find(|job| !failed.contains(&(job.table, job.partition.clone())))
        })
    }

    /// One round of everything.
    async fn maintain(&self, checkpointed: &mut [u64; Table::COUNT], stop: &watch::Receiver<bool>) {
        if let Err(error) = self.expire().await {
            tracing::error!(%error, "cannot remove old samples; trying again");
        }
        self.vacuum().await;
        let mut failed = HashSet::new();
        while !*stop.borrow() && !self.is_disk_full() {
            let Some(job) = self.next_job(&failed) else { break };
            let (key, files) = ((job.table, job.partition.clone()), job.files.len());
            let (table, partition) = (key.0.name(), key.1.clone());
            let start = Instant::now();
            match self.compact(job).await {
                Ok(()) => tracing::debug!(table, partition, files, elapsed = ?start.elapsed(), "compacted"),
                Err(error) => {
                    tracing::error!(%error, table, partition, "cannot compact; trying again later");
                    failed.insert(key);
                }
            }
        }
        for table in Table::ALL {
            let checkpoint = {
                let log = self.logs[table.index()].lock().await;
                let last = &mut checkpointed[table.index()];
                if log.version() < *last + self.config.checkpoint_commits {
                    continue;
                }
                *last = log.version();
                log.checkpoint()
            };
            if let Err(error) = checkpoint.write().await {
                tracing::error!(%error, "cannot write a checkpoint; the next start reads a longer log");
            }
        }
    }
}

fn now_ns() -> i64 {
    chrono::Utc::now().timestamp_nanos_opt().unwrap_or(i64::MAX)
}

fn partition_at(table: Table, ts_ns: i64) -> String {
    match table {
        Table::Samples => hour(ts_ns),
        _ => day(ts_ns),
    }
}

/// Maintains on every interval until told to stop.
pub(super) async fn run(store: Weak<Store>, mut stop: watch::Receiver<bool>) {
    let Some(interval) = store.upgrade().map(|store| store.config.maintenance_interval) else {
        return;
    };
    // The log's length at the start is not known: the first round writes checkpoints of what has grown long.
    let mut checkpointed = [0; Table::COUNT];
    let mut pause = Duration::from_secs(1).min(interval);
    loop {
        let stopping = tokio::select! {
            () = tokio::time::sleep(pause) => false,
            _ = stop.wait_for(|stop| *stop) => true,
        };
        let Some(store) = store.upgrade() else { return };
        if stopping {
            return;
        }
        store.maintain(&mut checkpointed, &stop).await;
        pause = interval;
    }
}
