//! Maintenance: what is too old goes, what is replaced is deleted, what is damaged is found, what is scattered is
//! rewritten, what is long gets a checkpoint.

use crate::lock::lock_mutex;
use crate::store::log::checksums;
use crate::store::log::schema::TRANSACTION_RETENTION;
use crate::store::maintenance::plan::{Plan, Rewrite};
use crate::store::root::waiting::waiting;
use crate::store::state::Store;
use crate::store::table::error::StoreError;
use crate::store::table::orphans::{ObsoleteFile, Stale};
use crate::store::table::partition::{HOUR_NS, day, hour, hour_end_ns};
use crate::store::table::schema::Table;
use crate::store::view::snapshot::Snapshot;
use futures::stream::StreamExt;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use std::collections::{BTreeSet, HashSet};
use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The day's part of an hour such as `2026-11-21T08`.
const DAY_CHARS: usize = 10;

/// How long maintenance waits for a commit.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// The end of the last hour whose samples are gone while its roll-up is there: more samples of it would make another
/// roll-up of those alone.
pub(crate) fn floor_ns(view: &Snapshot) -> i64 {
    let first = view.files(Table::Samples).first();
    let gone = Table::ROLLUPS
        .iter()
        .flat_map(|table| view.files(*table))
        .filter(|file| first.is_none_or(|first| file.partition < first.partition));
    gone.filter_map(|file| hour_end_ns(&file.partition))
        .max()
        .unwrap_or(i64::MIN)
}

/// The time of the newest sample, of those that there are.
pub(crate) fn newest_ns(view: &Snapshot) -> Option<i64> {
    let tables = [Table::Samples].into_iter().chain(Table::ROLLUPS);
    let files = tables.flat_map(|table| view.files(table));
    files.filter_map(|file| Some(file.int_range("ts_ns")?.max)).max()
}

impl Store {
    /// Removes whole hours from `samples` and its roll-ups that are older than their retention, or too much for the
    /// limit of bytes; then the days of the other tables to which nothing refers any more.
    pub(crate) async fn expire(&self) -> Result<(), StoreError> {
        let now_ns = self.config.clock.proven_ns();
        let by_hour = || [Table::Samples].into_iter().chain(Table::ROLLUPS);
        let mut tried = HashSet::new();
        let first_kept = first_hour(now_ns, self.config.retention_samples);
        self.expire_samples(&first_kept, now_ns, "age", &mut tried).await?;
        for table in Table::ROLLUPS {
            let first_kept = first_hour(now_ns, self.config.retention_of(table));
            self.expire_before(table, &first_kept, "age").await?;
        }
        self.expire_bytes(now_ns).await?;
        let earliest_ns = self.earliest_ns(now_ns);
        let snapshot = self.snapshot();
        let oldest = by_hour().filter_map(|table| snapshot.files(table).first());
        let needed = oldest.filter_map(|file| file.partition.get(..DAY_CHARS)).min();
        let mut first_day = day(earliest_ns);
        if let Some(needed) = needed.filter(|needed| *needed < first_day.as_str()) {
            first_day = needed.to_owned();
        }
        for table in Table::ALL {
            if table.partition_column() == "day" {
                self.expire_before(table, &first_day, "age").await?;
            }
        }
        lock_mutex(&self.nodes).forget_older(earliest_ns);
        self.forget_old_instances(now_ns);
        Ok(())
    }

    /// Instances that were silent for so long that the log has forgotten them, too.
    pub(super) fn forget_old_instances(&self, now_ns: i64) {
        let forget_ms = now_ns / 1_000_000 - i64::try_from(TRANSACTION_RETENTION.as_millis()).unwrap_or(i64::MAX);
        lock_mutex(&self.inbox).sender_window_mut().forget_older(forget_ms);
    }

    /// Removes the oldest hours until all tables together have no more bytes than they may: first of `samples`, then
    /// of the roll-ups. The hour that is running stays. What goes is rolled up before, however lately something came
    /// of it.
    async fn expire_bytes(&self, now_ns: i64) -> Result<(), StoreError> {
        if self.config.retention_bytes.is_none() {
            return Ok(());
        }
        let (now_hour, mut tried) = (hour(now_ns), HashSet::new());
        // Rewritten it is smaller, and fewer hours may have to go.
        if let Some(first_kept) = self.first_within_bytes(Table::Samples, &now_hour) {
            self.roll_up_before(&first_kept, now_ns, &mut tried).await;
        }
        for table in [
            Table::Samples,
            Table::SamplesTenSeconds,
            Table::SamplesMinute,
            Table::SamplesHour,
        ] {
            let first_kept = self.first_within_bytes(table, &now_hour);
            let Some(first_kept) = first_kept else { continue };
            if table != Table::Samples {
                self.expire_before(table, &first_kept, "bytes").await?;
            } else if !self.expire_samples(&first_kept, now_ns, "bytes", &mut tried).await? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Removes the samples of the hours before; false where some of them wait for their commit, and these hours with
    /// them. What still comes of these hours is refused from now on, also when the clock is set back; what had come
    /// before is rolled up with the rest.
    async fn expire_samples(
        &self,
        first_kept: &str,
        now_ns: i64,
        by: &str,
        tried: &mut HashSet<String>,
    ) -> Result<bool, StoreError> {
        let oldest = self.snapshot().files(Table::Samples).first().cloned();
        if oldest.is_none_or(|file| file.partition.as_str() >= first_kept) {
            return Ok(true);
        }
        let Some(end_ns) = hour_end_ns(first_kept) else {
            return Ok(true);
        };
        self.floor_ns.fetch_max(end_ns - HOUR_NS, Ordering::SeqCst);
        if !self.is_written_before(first_kept).await {
            return Ok(false);
        }
        self.roll_up_before(first_kept, now_ns, tried).await;
        self.expire_before(Table::Samples, first_kept, by).await?;
        Ok(true)
    }

    /// The hour before which all of a table have to go for the limit of bytes, where one has.
    fn first_within_bytes(&self, table: Table, now_hour: &str) -> Option<String> {
        let limit = self.config.retention_bytes?;
        let snapshot = self.snapshot();
        let bytes = |table: Table| snapshot.files(table).iter().map(|file| file.size_bytes).sum::<u64>();
        let mut total: u64 = Table::ALL.into_iter().map(bytes).sum();
        let mut first_kept = None;
        let hours = snapshot.files(table).chunk_by(|a, b| a.partition == b.partition);
        for hour in hours.take_while(|hour| hour[0].partition.as_str() < now_hour) {
            if total <= limit {
                break;
            }
            total -= hour.iter().map(|file| file.size_bytes).sum::<u64>();
            first_kept = hour_end_ns(&hour[0].partition);
        }
        first_kept.map(hour)
    }

    /// Rolls hours up whose samples are about to go, but for those of which that failed: space is needed.
    async fn roll_up_before(&self, first_kept: &str, now_ns: i64, failed: &mut HashSet<String>) {
        while !self.is_disk_full() {
            let jobs = self.due(Table::Samples, now_ns, Duration::ZERO, |due, snapshot| {
                due.hours(snapshot)
            });
            let goes = |job: &Rewrite| job.partition.as_str() < first_kept && !failed.contains(&job.partition);
            let Some(job) = jobs.into_iter().find(goes) else { return };
            let partition = job.partition.clone();
            if let Err(error) = self.compact(job).await {
                tracing::error!(%error, partition, "cannot roll up an hour whose samples go now");
                failed.insert(partition);
            }
        }
    }

    /// Waits until no sample of earlier hours waits for its commit; false where that takes long.
    async fn is_written_before(&self, first_kept: &str) -> bool {
        let written = async {
            loop {
                let committed = self.committed.notified();
                tokio::pin!(committed);
                committed.as_mut().enable();
                let pending = self.snapshot().pending_hours();
                if pending.iter().all(|hour| hour.as_str() >= first_kept) {
                    return;
                }
                self.wake.notify_one();
                committed.await;
            }
        };
        tokio::time::timeout(MAX_WAIT, written).await.is_ok()
    }

    async fn expire_before(&self, table: Table, first_kept: &str, by: &str) -> Result<(), StoreError> {
        let snapshot = self.snapshot();
        let files = snapshot.files(table);
        let old = &files[..files.partition_point(|file| file.partition.as_str() < first_kept)];
        if old.is_empty() {
            return Ok(());
        }
        if self.is_shared() {
            if !self.remove_beside_others(table, old, first_kept).await? {
                return Ok(());
            }
        } else {
            let mut log = self.logs[table.index()].lock().await;
            log.commit(Vec::new(), old, &[], true).await?;
            self.replace_files(table, old, Vec::new(), Stale::Expired);
            drop(log);
        }
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
            by,
            "removed what is beyond the retention"
        );
        Ok(())
    }

    /// Deletes files that were replaced longer ago than the grace time.
    pub(crate) async fn vacuum(&self) {
        let grace = self.config.vacuum_grace;
        if self.is_shared() {
            self.keep_named();
        }
        let old: Vec<ObsoleteFile> = {
            let mut garbage = lock_mutex(&self.garbage);
            let (old, young) = std::mem::take(&mut *garbage)
                .into_iter()
                .partition(|file| file.since.elapsed() >= grace);
            *garbage = young;
            old
        };
        let objects = &self.root.objects();
        futures::stream::iter(&old)
            .for_each_concurrent(4, |file| async move {
                match objects.delete(&Path::from(file.path.as_str())).await {
                    Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                    Err(error) => {
                        tracing::warn!(%error, path = file.path, "cannot delete a replaced file; trying again later");
                        lock_mutex(&self.garbage).push(ObsoleteFile {
                            path: file.path.clone(),
                            since: Instant::now(),
                            ..*file
                        });
                    }
                }
            })
            .await;
        let folders = old.iter().filter_map(|file| file.path.rsplit_once('/'));
        let folders: BTreeSet<String> = folders.map(|(folder, _)| folder.to_owned()).collect();
        let root = self.root.clone();
        let pruned = waiting(move || {
            // An empty folder costs nothing but its name.
            folders.iter().for_each(|folder| drop(root.prune(folder)));
            Ok(())
        });
        let _ = pruned.await;
    }

    /// The next rewrite that is due, but for those that failed before.
    fn next_job(&self, failed: &HashSet<(Table, String)>) -> Option<Rewrite> {
        let now_ns = self.config.clock.proven_ns();
        // Roll-ups are made with their hours.
        let tables = Table::ALL.into_iter().filter(|table| !Table::ROLLUPS.contains(table));
        tables.into_iter().find_map(|table| {
            let jobs = self.due(table, now_ns, self.config.settle, |due, snapshot| match table {
                Table::Samples => due.hours(snapshot),
                _ => due.days(table, snapshot.files(table)),
            });
            jobs.into_iter()
                .find(|job| !failed.contains(&(job.table, job.partition.clone())))
        })
    }

    /// What is due at this moment, of partitions to which nothing was written for so long.
    fn due<T>(&self, table: Table, now_ns: i64, settle: Duration, of: impl FnOnce(Plan<'_>, &Snapshot) -> T) -> T {
        let (damaged, too_large) = (self.damage.paths(), lock_mutex(&self.too_large).clone());
        let first_rollups = Table::ROLLUPS.map(|table| first_hour(now_ns, self.config.retention_of(table)));
        let due = Plan {
            now_partition: &partition_at(table, now_ns),
            now_ms: now_ns / 1_000_000,
            settle_ms: i64::try_from(settle.as_millis()).unwrap_or(i64::MAX),
            first_rollups: first_rollups.each_ref().map(String::as_str),
            // Dictionaries grow slowly once the usual stacks are known, and are read whole.
            many: match table {
                Table::Samples => self.config.compact_files,
                _ => (self.config.compact_files / 4).max(2),
            },
            damaged: &damaged,
            too_large: &too_large,
        };
        of(due, &self.snapshot())
    }

    /// One round of everything, which else comes by itself.
    pub async fn maintain(&self) {
        let _alone = self.maintaining.lock().await;
        let stop = self.stop.subscribe();
        if self.is_shared()
            && let Err(error) = self.look().await
        {
            tracing::warn!(%error, "cannot read what other servers have committed; maintaining later");
            return;
        }
        if let Err(error) = self.expire().await {
            tracing::error!(%error, "cannot remove old samples; trying again");
        }
        self.clear_after_others().await;
        self.vacuum().await;
        self.scrub().await;
        let mut failed = HashSet::new();
        while !*stop.borrow() && !self.is_disk_full() {
            let Some(job) = self.next_job(&failed) else { break };
            let (key, files) = ((job.table, job.partition.clone()), job.files.len());
            let (table, partition) = (key.0.name(), key.1.clone());
            let start = Instant::now();
            match self.compact(job).await {
                Ok(()) => tracing::debug!(table, partition, files, elapsed = ?start.elapsed(), "compacted"),
                Err(error @ StoreError::Overtaken { .. }) => {
                    tracing::info!(%error, table, partition, "not compacted");
                    failed.insert(key);
                }
                Err(error) => {
                    tracing::error!(%error, table, partition, "cannot compact; trying again later");
                    failed.insert(key);
                }
            }
        }
        self.write_checkpoints().await;
    }

    /// Of logs that have grown long. Checkpoints leave out transactions by their age, so none is written while the
    /// clock is ahead.
    async fn write_checkpoints(&self) {
        if self.config.clock.is_ahead() {
            let ahead_s = (self.config.clock.wall_ns() - self.config.clock.proven_ns()) / 1_000_000_000;
            tracing::warn!(
                ahead_s,
                "the clock is ahead of all samples: nothing is removed by it, and logs get no checkpoints"
            );
            return;
        }
        for table in Table::ALL {
            let checkpoint = {
                let mut log = self.logs[table.index()].lock().await;
                match log.due_checkpoint(self.config.checkpoint_commits) {
                    Some(checkpoint) => checkpoint,
                    None => continue,
                }
            };
            let log = checkpoint.log().clone();
            if let Err(error) = checkpoint.write(self.config.log_commits).await {
                tracing::error!(%error, "cannot write a checkpoint; the next start reads a longer log");
                // The next start mends what is damaged; the state in memory is whole.
                for fault in waiting(move || checksums::faults(&log)).await.unwrap_or_default() {
                    self.damage.add_log(table, &fault);
                }
            }
        }
    }
}

/// The first hour that is kept.
fn first_hour(now_ns: i64, age: Duration) -> String {
    let age = i64::try_from(age.as_nanos()).unwrap_or(i64::MAX);
    hour(now_ns.saturating_sub(age))
}

fn partition_at(table: Table, ts_ns: i64) -> String {
    match table.partition_column() {
        "hour" => hour(ts_ns),
        _ => day(ts_ns),
    }
}

/// The first round comes after this part of the interval: what a start left to do is done soon.
const FIRST_PART: u32 = 10;

/// Maintains on every interval until told to stop.
pub(crate) async fn run(store: Weak<Store>, mut stop: watch::Receiver<bool>) {
    let Some(interval) = store.upgrade().map(|store| store.config.maintenance_interval) else {
        return;
    };
    let mut pause = interval / FIRST_PART;
    loop {
        let stopping = tokio::select! {
            () = tokio::time::sleep(pause) => false,
            _ = stop.wait_for(|stop| *stop) => true,
        };
        let Some(store) = store.upgrade() else { return };
        if stopping {
            return;
        }
        match store.maintains() {
            true => store.maintain().await,
            false => store.maintain_own().await,
        }
        pause = interval;
    }
}
