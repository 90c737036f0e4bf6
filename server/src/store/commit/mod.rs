//! Group commit: gathers the rows of all senders, writes them every few seconds, and only then tells the senders.
//!
//! In: rows of batches, and which batches those are. Out: files and entries of the tables' logs, and an answer to each
//! sender.
//!
//! Order on the disk: dictionaries (stacks last), then `batches`, then `samples` together with each
//! instance's highest number. So a crash in between leaves only rows that nobody refers to yet, and the senders, who
//! got no answer, send again.

mod beside_others;

use crate::lock::lock_mutex;
use crate::store::buffer::arriving::{FreshSamples, Pending};
use crate::store::buffer::batch::{Ack, BatchId, Rows, Sender};
use crate::store::buffer::commit_queue::{CommitGroup, Waiter, outcome};
use crate::store::buffer::sender_window::{Fingerprint, MOST_SKIPPED, Seen, SenderWindow};
use crate::store::format::provenance::Provenance;
use crate::store::format::write::row_group;
use crate::store::format::write::rows_file::{self, Encoded, WriteProfile};
use crate::store::log::table_log::{CommitError, add_action};
use crate::store::root::waiting::waiting;
use crate::store::state::Store;
use crate::store::table::data_file::DataFile;
use crate::store::table::error::StoreError;
use crate::store::table::file_list::add_files;
use crate::store::table::partition::hour;
use crate::store::table::schema::Table;
use futures::StreamExt;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Instant;
use tokio::sync::watch;

/// Tables that samples refer to. Those of one step are written at the same time; frames are there before the stacks
/// that list them, also for whoever looks meanwhile.
const DICTIONARIES: [&[Table]; 2] = [
    &[Table::Frames, Table::Series, Table::Processes, Table::Types],
    &[Table::Stacks],
];

/// More rows than this are committed without waiting for the interval.
const EARLY_COMMIT_ROWS: usize = 2_000_000;

/// New instances beyond this are refused: no fleet has as many, but a broken sender can make up ids.
pub(crate) const MAX_INSTANCES: usize = 1_000_000;

/// Files of a table that are written at once: each waits for the disk several times.
const FILES_AT_ONCE: usize = 8;

impl Store {
    /// Takes rows in and returns when they are committed and synced: [`Store::admit`] and [`Store::acknowledge`].
    pub async fn append(&self, rows: Rows, id: Option<BatchId>) -> Result<Ack, StoreError> {
        let ticket = self.admit(rows, id)?;
        self.acknowledge(ticket).await
    }

    /// Returns when the rows of an admitted batch are committed and synced.
    pub async fn acknowledge(&self, ticket: Ticket) -> Result<Ack, StoreError> {
        if let Some(waiter) = ticket.waiter {
            outcome(waiter).await?;
        }
        match ticket.ack {
            Ack::Stored => {}
            Ack::Duplicate => drop(self.counters.batches_duplicate.fetch_add(1, Ordering::Relaxed)),
            Ack::Conflict => drop(self.counters.batches_conflicting.fetch_add(1, Ordering::Relaxed)),
        }
        Ok(ticket.ack)
    }

    /// For each id whether its row of that day is in a dictionary table, or is about to be: it need not be given
    /// again. Holds as long as [`Store::known_epoch`] stays what it was before; [`Rows::relies_on`] says so to
    /// [`Store::admit`].
    pub fn known_rows(&self, table: Table, day: &str, ids: &[i64]) -> Vec<bool> {
        lock_mutex(&self.inbox).known.has(table, day, ids)
    }

    /// Changes when rows are gone that were known.
    pub fn known_epoch(&self) -> u64 {
        lock_mutex(&self.inbox).known.epoch()
    }

    /// Takes rows in without waiting: they are visible to snapshots at once. With an `id`, a batch that is stored or
    /// pending is not stored again: the answer comes with the first's.
    pub fn admit(&self, rows: Rows, id: Option<BatchId>) -> Result<Ticket, StoreError> {
        self.query_pool.ingest_comes();
        let fingerprint = if id.is_some() { fingerprint(&rows) } else { 0 };
        let has_series_quota = rows
            .sender
            .quota
            .as_ref()
            .is_some_and(|quota| quota.series_per_day.is_some());
        let series: BTreeSet<i64> = match has_series_quota {
            true => rows.samples.iter().flat_map(FreshSamples::series).collect(),
            false => BTreeSet::new(),
        };
        let mut inbox = lock_mutex(&self.inbox);
        let inbox = &mut *inbox;
        if let Some(id) = &id {
            may_send(&inbox.sender_window, id, &rows.sender)?;
            let ack = if inbox.sender_window.differs(&id.instance, id.number, fingerprint) {
                Ack::Conflict
            } else {
                Ack::Duplicate
            };
            match inbox.sender_window.check(&id.instance, id.number) {
                Seen::Committed => return Ok(Ticket { waiter: None, ack }),
                Seen::Pending(waiter) => {
                    let waiter = Some(waiter);
                    return Ok(Ticket { waiter, ack });
                }
                Seen::Skipped => {
                    let (instance, number) = (id.instance.clone(), id.number);
                    return Err(StoreError::Skipped { instance, number });
                }
                Seen::New => {}
            }
        }
        if rows.relies_on.is_some_and(|epoch| epoch != inbox.known.epoch()) {
            return Err(StoreError::Forgotten);
        }
        if inbox.stopping {
            return Err(StoreError::Stopping);
        }
        // Since it was decoded: its hour's samples go, and these would come after its roll-up was made.
        let floor_ns = self.floor_ns.load(Ordering::SeqCst);
        if floor_ns > 0 {
            let floor = hour(floor_ns);
            let mut given = rows.samples.iter().filter(|samples| samples.num_rows() > 0);
            if given.any(|samples| samples.hour < floor) {
                return Err(StoreError::HourGone);
            }
        }
        if self.is_disk_full() {
            return Err(StoreError::DiskFull {
                detail: "too little space is left".to_owned(),
            });
        }
        if let Some(id) = &id
            && !has_room(&inbox.sender_window, id, &rows.sender)
        {
            return Err(StoreError::TooManyInstances { limit: MAX_INSTANCES });
        }
        let limit_bytes = self.config.max_pending_bytes;
        if inbox.bytes > limit_bytes {
            return Err(StoreError::Overloaded {
                pending_bytes: inbox.bytes,
                limit_bytes,
            });
        }
        let quota = rows.sender.quota.as_ref();
        let now_ns = self.config.clock.wall_ns();
        let taken = quota.map(|quota| inbox.quotas.take(quota, now_ns, rows.otlp_bytes, &series));
        let taken = taken.transpose()?;
        let mut new_ids = Vec::new();
        let fresh = inbox.known.fresh_rows(&rows, &mut new_ids);
        let mut fresh = fresh.inspect_err(|_| {
            inbox.known.forget(&new_ids);
            inbox.quotas.give_back(&taken);
        })?;
        let samples = rows.samples.into_iter().filter(|samples| samples.num_rows() > 0);
        fresh[Table::Samples.index()].extend(samples.map(|samples| Pending::Samples(Arc::new(samples))));
        let report = rows.batch.map(|report| Pending::Report(Arc::new(report)));
        fresh[Table::Batches.index()].extend(report);
        let bytes: usize = fresh.iter().flatten().map(Pending::bytes).sum();
        let group = &mut inbox.group;
        group.requests += 1;
        group.bytes += bytes as u64;
        inbox.bytes += bytes as u64;
        group.samples += fresh[Table::Samples.index()]
            .iter()
            .map(Pending::num_rows)
            .sum::<usize>();
        group.new_ids.append(&mut new_ids);
        let batch = || id.as_ref().map(|id| (id.instance.clone(), id.number));
        group.taken.extend(taken.map(|taken| (batch(), taken)));
        let waiter = group.done.subscribe();
        if let Some(id) = id {
            let sender_window = &mut inbox.sender_window;
            sender_window.add_pending(&id.instance, rows.sender.owner, id.number, fingerprint, waiter.clone());
            let batch = (id.instance, id.number);
            if self.is_shared() {
                let numbers = sample_numbers(&fresh[Table::Samples.index()]);
                inbox.samples_of.insert(batch.clone(), numbers.into_iter().collect());
            }
            group.batches.push(batch);
        }
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        for (table, batches) in fresh.into_iter().enumerate() {
            if !batches.is_empty() {
                Arc::make_mut(&mut view.pending[table]).extend(batches.iter().cloned());
                group.rows[table].extend(batches);
            }
        }
        drop(view);
        // What is being written does not count: it is half of what there is room for, at most, and the next commit is
        // as large.
        if group.samples > EARLY_COMMIT_ROWS || group.bytes > limit_bytes / 2 {
            self.wake.notify_one();
        }
        Ok(Ticket {
            waiter: Some(waiter),
            ack: Ack::Stored,
        })
    }

    /// Writes the gathered group.
    async fn commit(&self) {
        self.check_space();
        let group = std::mem::replace(&mut lock_mutex(&self.inbox).group, CommitGroup::new());
        if group.requests == 0 {
            return;
        }
        let start = Instant::now();
        if self.is_shared() && !self.is_disk_full() {
            self.commit_beside_others(group).await;
            self.counters.commit_seconds.add(start.elapsed());
            return;
        }
        let result = if self.is_disk_full() {
            Err((
                StoreError::DiskFull {
                    detail: "too little space is left".to_owned(),
                },
                Default::default(),
            ))
        } else {
            self.write(&group).await
        };
        self.counters.commit_seconds.add(start.elapsed());
        match result {
            Ok(files) => {
                let batches = group.batches.clone();
                self.finish(group, &batches, 0, files);
            }
            Err((error, files)) => self.abandon(group, files, error),
        }
    }

    /// Writes and commits all tables in order. An error comes with what was committed before it.
    async fn write(&self, group: &CommitGroup) -> Result<NewFiles, (StoreError, NewFiles)> {
        let mut files = NewFiles::default();
        for tables in DICTIONARIES {
            let writes = tables.iter().map(|table| self.write_table(*table, group, Vec::new()));
            let written = futures::future::join_all(writes).await;
            let mut failed = None;
            for (table, result) in tables.iter().zip(written) {
                match result {
                    Ok(new) => files[table.index()] = new,
                    Err(error) => failed = Some(error),
                }
            }
            if let Some(error) = failed {
                return Err((error, files));
            }
        }
        match self.write_table(Table::Batches, group, Vec::new()).await {
            Ok(new) => files[Table::Batches.index()] = new,
            Err(error) => return Err((error, files)),
        }
        let now_ms = self.transaction_ms();
        let txns = lock_mutex(&self.inbox)
            .sender_window
            .transactions(&group.batches, now_ms);
        match self.write_table(Table::Samples, group, txns).await {
            Ok(new) => files[Table::Samples.index()] = new,
            Err(error) => return Err((error, files)),
        }
        Ok(files)
    }

    async fn write_table(
        &self,
        table: Table,
        group: &CommitGroup,
        txns: Vec<crate::store::table::transaction::Txn>,
    ) -> Result<Vec<Arc<DataFile>>, StoreError> {
        let partitions = by_partition(&group.rows[table.index()]);
        if partitions.is_empty() && txns.is_empty() {
            return Ok(Vec::new());
        }
        let provenance = Provenance {
            txns: txns.clone(),
            batches: if table == Table::Samples {
                group.batches.clone()
            } else {
                Vec::new()
            },
            parts: partitions.len(),
            ..Provenance::default()
        };
        let new = self.put_partitions(table, partitions, &provenance).await?;
        let add = new.iter().map(|file| add_action(table, file, true)).collect();
        let committed = self.logs[table.index()]
            .lock()
            .await
            .commit(add, &[], &txns, true)
            .await;
        match committed {
            Ok(()) => Ok(new),
            Err(error) => Err(self.clear_up(table, &new, error).await),
        }
    }

    /// Writes a file of each partition, not yet part of the table. Of what fails nothing is left.
    async fn put_partitions(
        &self,
        table: Table,
        partitions: BTreeMap<String, Vec<Pending>>,
        provenance: &Provenance,
    ) -> Result<Vec<Arc<DataFile>>, StoreError> {
        let writes: Vec<_> = partitions
            .into_iter()
            .map(|(partition, rows)| self.write_file(table, partition, rows, WriteProfile::Fresh, provenance.clone()))
            .collect();
        // In their order; after an error the others end first, so that all that was written is known.
        let written: Vec<_> = futures::stream::iter(writes).buffered(FILES_AT_ONCE).collect().await;
        let mut new: Vec<Arc<DataFile>> = Vec::new();
        let mut failed = None;
        for file in written {
            match file {
                Ok(file) => new.extend(file),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) => {
                self.delete_now(table, &new).await;
                Err(error)
            }
            None => Ok(new),
        }
    }

    /// Encodes rows of one partition and puts them on the disk, not yet part of the table.
    pub(crate) async fn write_file(
        &self,
        table: Table,
        partition: String,
        rows: Vec<Pending>,
        profile: WriteProfile,
        provenance: Provenance,
    ) -> Result<Option<Arc<DataFile>>, StoreError> {
        let encode = move || {
            if table == Table::Samples {
                return row_group::encode(&partition, &Pending::samples(rows), profile, &provenance);
            }
            let batches = Pending::batches(rows).map_err(StoreError::table(table, "gather rows"))?;
            rows_file::encode(table, &partition, &batches, profile, &provenance)
        };
        let encoded = tokio::task::spawn_blocking(encode)
            .await
            .map_err(StoreError::table(table, "encode a file"))??;
        match encoded {
            Some(encoded) => self.put_file(table, encoded).await.map(Some),
            None => Ok(None),
        }
    }

    /// What a transaction of this moment is dated. By a clock that is behind it would be forgotten too early.
    fn transaction_ms(&self) -> i64 {
        self.config.clock.possible_ns() / 1_000_000
    }

    /// Puts an encoded file on the disk, and dates it.
    pub(crate) async fn put_file(&self, table: Table, encoded: Encoded) -> Result<Arc<DataFile>, StoreError> {
        let Encoded { bytes, mut file } = encoded;
        file.modified_ms = self.config.clock.wall_ns() / 1_000_000;
        let (root, path) = (self.root.clone(), table.path_of(&file.path));
        waiting(move || root.create(&path, bytes))
            .await
            .map_err(StoreError::of_root(table, "write a file"))?;
        self.counters
            .bytes_written
            .fetch_add(file.size_bytes, Ordering::Relaxed);
        Ok(Arc::new(file))
    }

    /// The group is on the disk: its rows move from pending to files in one step, and its senders hear of it. `batches`
    /// are those that it stored; so many samples of others had been stored by another server.
    fn finish(&self, group: CommitGroup, batches: &[(String, i64)], repeated: usize, files: NewFiles) {
        let samples = files[Table::Samples.index()].iter();
        if let Some(newest_ns) = samples.filter_map(|file| Some(file.int_range("ts_ns")?.max)).max() {
            self.config.clock.witness(newest_ns);
        }
        let now_ms = self.transaction_ms();
        let mut inbox = lock_mutex(&self.inbox);
        inbox.sender_window.committed(batches, now_ms);
        group
            .batches
            .iter()
            .for_each(|batch| drop(inbox.samples_of.remove(batch)));
        if batches.len() < group.batches.len() {
            // Whoever stored them counts them.
            let stored: HashSet<&(String, i64)> = batches.iter().collect();
            let is_repeat = |batch: &Option<(String, i64)>| batch.as_ref().is_some_and(|batch| !stored.contains(batch));
            let repeats = group.taken.iter().filter(|(batch, _)| is_repeat(batch));
            inbox.quotas.give_back(repeats.map(|(_, taken)| taken));
        }
        inbox.bytes = inbox.bytes.saturating_sub(group.bytes);
        {
            let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
            for (table, files) in files.into_iter().enumerate() {
                let pending = Arc::make_mut(&mut view.pending[table]);
                if self.is_shared() && table == Table::Samples.index() {
                    // Some have gone before, with the entry of another server that stored them.
                    let own = sample_numbers(&group.rows[table]);
                    pending.retain(|rows| !rows.is_one_of(&own));
                } else {
                    // The oldest pending rows are this group's: rows are only ever added at the end.
                    pending.drain(..group.rows[table].len());
                }
                add_files(&mut view.files[table], files);
            }
        }
        drop(inbox);
        self.committed.notify_waiters();
        let mut nodes = lock_mutex(&self.nodes);
        for pending in &group.rows[Table::Batches.index()] {
            if let Pending::Report(report) = pending {
                nodes.add(report);
            }
        }
        drop(nodes);
        self.counters
            .samples_stored
            .fetch_add((group.samples - repeated) as u64, Ordering::Relaxed);
        let repeats = group.batches.len() - batches.len();
        self.counters
            .batches_stored
            .fetch_add((group.requests - repeats) as u64, Ordering::Relaxed);
        self.counters
            .batches_duplicate
            .fetch_add(repeats as u64, Ordering::Relaxed);
        self.counters.commits.fetch_add(1, Ordering::Relaxed);
        group.done.send_replace(Some(Ok(())));
    }

    /// The group could not be written. What came after it may rely on its dictionary rows, so all that is pending
    /// goes; the senders, who have no answer yet, send again.
    fn abandon(&self, group: CommitGroup, files: NewFiles, error: StoreError) {
        if matches!(error, StoreError::DiskFull { .. }) {
            self.disk_full.store(true, Ordering::Relaxed);
            tracing::error!(%error, batches = group.requests, "commit failed; the senders keep their batches");
        } else {
            tracing::error!(%error, batches = group.requests, "commit failed; the senders are asked to try again");
        }
        self.counters.commits_failed.fetch_add(1, Ordering::Relaxed);
        let mut inbox = lock_mutex(&self.inbox);
        let next = std::mem::replace(&mut inbox.group, CommitGroup::new());
        inbox.sender_window.forget_pending();
        inbox.samples_of.clear();
        inbox.known.forget(&group.new_ids);
        inbox.known.forget(&next.new_ids);
        let taken = group.taken.iter().chain(&next.taken);
        inbox.quotas.give_back(taken.map(|(_, taken)| taken));
        inbox.bytes = 0;
        {
            let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
            for (table, files) in files.into_iter().enumerate() {
                view.pending[table] = Arc::default();
                add_files(&mut view.files[table], files);
            }
        }
        drop(inbox);
        self.committed.notify_waiters();
        next.done.send_replace(Some(Err(error.clone())));
        group.done.send_replace(Some(Err(error)));
    }

    /// After a failed commit: removes its files, unless the log may name them.
    pub(crate) async fn clear_up(&self, table: Table, files: &[Arc<DataFile>], error: CommitError) -> StoreError {
        if matches!(error, CommitError::NotWritten(_)) {
            self.delete_now(table, files).await;
        }
        error.into()
    }

    /// Removes files that never became part of a table. One that the log turned out to have stays.
    pub(crate) async fn delete_now(&self, table: Table, files: &[Arc<DataFile>]) {
        use object_store::ObjectStoreExt;
        let objects = self.root.objects();
        for path in self.unnamed(table, files) {
            if let Err(error) = objects.delete(&path).await {
                tracing::warn!(%error, %path, "cannot remove a file that is not needed; the next start will");
            }
        }
    }
}

/// Whether an instance is known, or may be one more of this sender's.
fn has_room(sender_window: &SenderWindow<Waiter>, id: &BatchId, sender: &Sender) -> bool {
    sender_window.has_room_for(&id.instance, sender.owner, &sender.tokens, MAX_INSTANCES)
}

/// Whether a sender's batch may count as one of that instance.
fn may_send(sender_window: &SenderWindow<Waiter>, id: &BatchId, sender: &Sender) -> Result<(), StoreError> {
    let instance = || id.instance.clone();
    if !sender_window.is_own(&id.instance, sender.owner, &sender.tokens) {
        return Err(StoreError::Foreign { instance: instance() });
    }
    match sender_window.is_far_ahead(&id.instance, id.number) {
        Some(highest) => Err(StoreError::FarAhead {
            instance: instance(),
            number: id.number,
            highest,
            most: MOST_SKIPPED,
        }),
        None => Ok(()),
    }
}

/// Rows by the partition that they belong to.
fn by_partition<'r>(rows: impl IntoIterator<Item = &'r Pending>) -> BTreeMap<String, Vec<Pending>> {
    let mut partitions: BTreeMap<String, Vec<Pending>> = BTreeMap::new();
    for rows in rows {
        if let Some(partition) = rows.partition() {
            partitions.entry(partition).or_default().push(rows.clone());
        }
    }
    partitions
}

/// What tells samples from others of this process.
fn sample_numbers(rows: &[Pending]) -> HashSet<u64> {
    let number = |pending: &Pending| match pending {
        Pending::Samples(samples) => Some(samples.number()),
        _ => None,
    };
    rows.iter().filter_map(number).collect()
}

type NewFiles = [Vec<Arc<DataFile>>; Table::COUNT];

/// An admitted batch, until it is acknowledged.
#[derive(Debug)]
pub struct Ticket {
    /// None: it is on the disk already.
    waiter: Option<Waiter>,
    ack: Ack,
}

/// Of a batch's samples, in whatever order: how many, when where that was sent, and of which stacks. A sum of hashes,
/// since a Collector may sort them anew.
fn fingerprint(rows: &Rows) -> Fingerprint {
    let mut sum = 0_u64;
    for samples in &rows.samples {
        for (ts_ns, stack_id) in samples.times_and_stacks() {
            let ts_ns = if Some(ts_ns) == rows.stand_in_ns { 0 } else { ts_ns };
            // A multiplication mixes as much as is needed where nobody attacks (Knuth 6.4): odd 64-bit golden ratio.
            let mixed = (ts_ns as u64 ^ (stack_id as u64).rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            sum = sum.wrapping_add(mixed ^ (mixed >> 29));
        }
        sum = sum.wrapping_add(samples.num_rows() as u64);
    }
    sum
}

impl Store {
    /// Commits what is pending now, and returns when that is done.
    pub async fn flush(&self) -> Result<(), StoreError> {
        let waiter = lock_mutex(&self.inbox).waiter();
        self.wake.notify_one();
        match waiter {
            Some(waiter) => outcome(waiter).await,
            None => Ok(()),
        }
    }
}

/// Commits on every interval until told to stop, and once more then.
pub(crate) async fn run(store: Weak<Store>, mut stop: watch::Receiver<bool>) {
    let Some(wake) = store.upgrade().map(|store| store.wake.clone()) else {
        return;
    };
    loop {
        let Some(interval) = store.upgrade().map(|store| store.commit_pause()) else {
            return;
        };
        let stopping = tokio::select! {
            () = tokio::time::sleep(interval) => false,
            () = wake.notified() => false,
            _ = stop.wait_for(|stop| *stop) => true,
        };
        let Some(store) = store.upgrade() else { return };
        store.commit().await;
        store.keep_quotas(stopping).await;
        if stopping {
            return;
        }
    }
}
