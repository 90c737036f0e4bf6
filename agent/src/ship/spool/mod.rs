//! The spool: every batch lies here, in a file of its own, from its encoding until the server has it.
//!
//! In: compressed requests. Out: the oldest ones of a lane, again and again until each is acknowledged or refused.
//! Sizes in bytes. Never: hands out a batch under another identity than it was put in with, or drops one that may have
//! reached the server.
//!
//!     STATE/lock                                   held while an agent runs
//!     STATE/spool/STARTED_MS-INSTANCE/             one folder a run of the agent
//!         NUMBER-SAMPLES.batch                     see `file`
//!         closing                                  tells, without samples, losses that no other batch tells
//!     STATE/quarantine/INSTANCE-NUMBER-SAMPLES-WHY.batch
//!
//! Files are synced only while the server does not take batches: one that is acknowledged within seconds never has to
//! reach the disk. Where the disk refuses, batches are held in memory, up to a bound.

mod file;
#[cfg(any(test, fuzzing))]
pub(super) use file::check;
mod dead_letters;
mod instance_spool;
mod spooled_batch;

use std::collections::VecDeque;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use uuid::Uuid;

use self::dead_letters::DeadLetters;
use self::file::{Unreadable, make_private_dir};
use self::instance_spool::{Entry, InstanceSpool};
use super::config::ShipError;
use super::losses::{CAUSE_REFUSED, CAUSE_SPOOL_DAMAGED, CAUSE_SPOOL_FULL, Losses};
pub(super) use spooled_batch::{IN_FLIGHT, Lane, SpooledBatch};

/// Bytes of batches that are held in memory because the disk refused them.
const HELD_LIMIT_BYTES: u64 = 8 << 20;

/// What a lane has to send now.
#[derive(Debug)]
pub(super) enum Head {
    Batch(SpooledBatch),
    Empty,
    /// The file cannot be read now.
    Unreadable(std::io::Error),
}

#[derive(Debug)]
pub(super) struct Spool {
    limit_bytes: u64,
    /// By start, this run's last.
    earlier: VecDeque<InstanceSpool>,
    live: InstanceSpool,
    /// No more batches will be put in.
    finished: bool,
    /// Losses of earlier runs that are gone.
    earlier_lost: Losses,
    dead_letters: DeadLetters,
    full: FullLog,
    durable: bool,
    _lock: File,
}

impl Spool {
    /// Takes over what lies in `state_dir`; at most one agent at a time.
    pub(super) fn open(state_dir: &Path, limit_bytes: u64, instance: Uuid) -> Result<Self, ShipError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            |source| ShipError::StateDir { path, source }
        };
        let root = state_dir.join("spool");
        make_private_dir(&root).map_err(failed(&root))?;
        let lock_path = state_dir.join("lock");
        let lock = File::create(&lock_path).map_err(failed(&lock_path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(ShipError::Busy {
                    path: state_dir.to_owned(),
                });
            }
            Err(TryLockError::Error(source)) => {
                return Err(ShipError::StateDir {
                    path: lock_path,
                    source,
                });
            }
        }
        let earlier = earlier_runs(&root).map_err(failed(&root))?;
        let now_ms = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_millis();
        let live_dir = root.join(format!("{now_ms:013}-{instance}"));
        std::fs::create_dir(&live_dir).map_err(failed(&live_dir))?;
        let mut spool = Self {
            limit_bytes,
            earlier,
            live: InstanceSpool::new(instance, live_dir),
            finished: false,
            earlier_lost: Losses::new(),
            dead_letters: DeadLetters::new(state_dir.join("quarantine")),
            full: FullLog::default(),
            durable: false,
            _lock: lock,
        };
        spool.make_room(0);
        Ok(spool)
    }

    /// The number that the next batch must be encoded with.
    pub(super) fn next_number(&self) -> u64 {
        self.live.next_number
    }

    /// Losses of this run that the next batch must tell.
    pub(super) fn lost(&self) -> &Losses {
        &self.live.lost
    }

    /// Losses of earlier runs that were found or caused in this one.
    pub(super) fn earlier_lost(&self) -> Losses {
        let mut all = self.earlier_lost.clone();
        for run in &self.earlier {
            add(&mut all, &run.lost);
        }
        all
    }

    /// Batches and bytes that wait.
    pub(super) fn usage(&self) -> (u64, u64) {
        let entries = self.earlier.iter().chain([&self.live]).flat_map(|run| &run.entries);
        entries.fold((0, 0), |(batches, bytes), entry| (batches + 1, bytes + entry.bytes))
    }

    /// Drops the oldest batches until `bytes` more fit. False when they cannot: what may have reached the server must
    /// stay.
    pub(super) fn make_room(&mut self, bytes: u64) -> bool {
        let (_, mut used) = self.usage();
        while used + bytes > self.limit_bytes {
            let dropped = self.earlier.iter_mut().find_map(InstanceSpool::drop_oldest_unsent);
            let Some(entry) = dropped.or_else(|| self.live.drop_oldest_unsent()) else {
                return false;
            };
            used -= entry.bytes;
            self.full.note(entry.samples, self.limit_bytes);
        }
        true
    }

    /// Puts a batch of this run in under `next_number`. `report` is the same request without samples. A batch that
    /// finds no room is counted.
    pub(super) fn push(&mut self, samples: u64, body: &Bytes, report: Vec<u8>) {
        let number = self.live.begin(report);
        if self.make_room((file::HEADER_BYTES + body.len()) as u64) {
            self.settle();
            self.store(number, samples, body);
        } else {
            let limit_bytes = self.limit_bytes;
            tracing::error!(
                batch = number,
                samples,
                limit_bytes,
                "the spool has no room for the batch: dropped"
            );
            self.live.lose(CAUSE_SPOOL_FULL, samples);
        }
        self.live.tell();
        self.live.forget_what_is_told();
    }

    /// Counts a batch that could not even be made, under `next_number`.
    pub(super) fn lose(&mut self, samples: u64, report: Vec<u8>) {
        self.live.begin(report);
        self.live.lose(CAUSE_SPOOL_FULL, samples);
        self.live.tell();
    }

    fn store(&mut self, number: u64, samples: u64, body: &Bytes) {
        let stored = self.live.write(number, samples, body, self.durable);
        let bytes = (file::HEADER_BYTES + body.len()) as u64;
        let entry = Entry {
            number,
            samples,
            bytes,
            attempted: false,
            sending: false,
            synced: self.durable,
            held: None,
        };
        let dir = self.live.dir.display();
        match stored {
            Ok(_) => self.live.entries.push_back(entry),
            Err(error) if self.held_bytes() + bytes <= HELD_LIMIT_BYTES => {
                tracing::warn!(%dir, %error, "the spool cannot be written: holding the batch in memory");
                self.live.entries.push_back(Entry {
                    held: Some(body.clone()),
                    ..entry
                });
            }
            Err(error) => {
                tracing::error!(%dir, %error, samples, "the spool cannot be written: dropped the batch");
                self.live.lose(CAUSE_SPOOL_FULL, samples);
            }
        }
    }

    fn held_bytes(&self) -> u64 {
        self.live
            .entries
            .iter()
            .filter_map(|entry| entry.held.as_ref())
            .map(|body| body.len() as u64)
            .sum()
    }

    /// Writes what is held in memory to the disk, as far as it goes.
    fn settle(&mut self) {
        for at in 0..self.live.entries.len() {
            let entry = &self.live.entries[at];
            let Some(body) = entry.held.clone() else { continue };
            if self
                .live
                .write(entry.number, entry.samples, &body, self.durable)
                .is_err()
            {
                return;
            }
            self.live.entries[at].held = None;
            self.live.entries[at].synced = self.durable;
        }
    }

    /// While true, batches are synced to disk; the change to true syncs those that are there.
    pub(super) fn set_durable(&mut self, durable: bool) {
        if durable && !self.durable {
            self.live.sync();
        }
        self.durable = durable;
    }

    /// No more batches of this run: what it still has to tell may follow its last batch.
    pub(super) fn finish(&mut self) {
        self.settle();
        self.finished = true;
    }

    /// The lane's oldest batch that is not under way; from now on it is, and may have reached the server.
    pub(super) fn next(&mut self, lane: Lane) -> Head {
        loop {
            let finished = self.finished || lane == Lane::Earlier;
            let Some(run) = self.lane(lane) else {
                return Head::Empty;
            };
            if finished {
                run.close();
            }
            match run.send_next() {
                None if lane == Lane::Earlier && run.entries.is_empty() => self.retire_first_earlier(),
                None => return Head::Empty,
                Some(Ok(spooled)) => return Head::Batch(spooled),
                Some(Err((_, Unreadable::Io(error)))) => return Head::Unreadable(error),
                Some(Err((number, Unreadable::Damaged(why)))) => {
                    self.set_aside(lane, number, CAUSE_SPOOL_DAMAGED, "damaged", why);
                }
            }
        }
    }

    /// The attempt has failed: the batch is to be sent again.
    pub(super) fn send_again(&mut self, lane: Lane, number: u64) {
        if let Some(entry) = self.lane(lane).and_then(|run| run.entry(number)) {
            entry.sending = false;
        }
    }

    /// The server has the batch but for `refused` samples.
    pub(super) fn acknowledge(&mut self, lane: Lane, number: u64, refused: u64) {
        let Some(run) = self.lane(lane) else { return };
        if refused > 0 {
            run.find_base();
        }
        if let Some(entry) = run.take(number) {
            run.remove(&entry);
            run.lose(CAUSE_REFUSED, refused);
            run.tell();
        }
    }

    /// The server will never take the batch: it goes to the dead letters, `why` into its file's name.
    pub(super) fn refuse(&mut self, lane: Lane, number: u64, why: &str, message: &str) {
        self.set_aside(lane, number, CAUSE_REFUSED, why, message);
    }

    fn set_aside(&mut self, lane: Lane, number: u64, cause: &'static str, why: &str, message: &str) {
        let run = match lane {
            Lane::Live => &mut self.live,
            Lane::Earlier => match self.earlier.front_mut() {
                Some(run) => run,
                None => return,
            },
        };
        run.find_base();
        let Some(entry) = run.take(number) else {
            return;
        };
        let name = format!(
            "{}-{}-{why}.batch",
            run.instance,
            instance_spool::stem(entry.number, entry.samples)
        );
        let kept = self.dead_letters.put(&run.path(&entry), &name);
        run.remove(&entry);
        run.lose(cause, entry.samples);
        run.tell();
        let samples = entry.samples;
        let instance = run.instance;
        match kept {
            Ok(path) => {
                tracing::error!(
                    %instance,
                    batch = number,
                    samples,
                    why = message,
                    file = %path.display(),
                    "lost a batch; kept for inspection"
                );
            }
            Err(error) => tracing::error!(%instance, batch = number, samples, why = message, %error, "lost a batch"),
        }
    }

    fn lane(&mut self, lane: Lane) -> Option<&mut InstanceSpool> {
        match lane {
            Lane::Live => Some(&mut self.live),
            Lane::Earlier => self.earlier.front_mut(),
        }
    }

    fn retire_first_earlier(&mut self) {
        if let Some(run) = self.earlier.pop_front() {
            add(&mut self.earlier_lost, &run.lost);
            run.remove_dir();
        }
    }

    /// Leaves the disk in order: nothing unsynced, no empty folder.
    pub(super) fn close(&mut self) {
        self.settle();
        self.live.sync();
        if self.live.entries.is_empty() {
            self.live.remove_dir();
        }
    }
}

/// A full spool drops a batch every few seconds: one line a minute says it.
#[derive(Debug, Default)]
struct FullLog {
    said: Option<Instant>,
    batches: u64,
    samples: u64,
}

impl FullLog {
    fn note(&mut self, samples: u64, limit_bytes: u64) {
        self.batches += 1;
        self.samples += samples;
        if self.said.is_some_and(|said| said.elapsed() < Duration::from_secs(60)) {
            return;
        }
        let Self { batches, samples, .. } = *self;
        tracing::error!(
            batches,
            samples,
            limit_bytes,
            "the spool is full: dropped its oldest batches"
        );
        *self = Self {
            said: Some(Instant::now()),
            batches: 0,
            samples: 0,
        };
    }
}

fn add(sum: &mut Losses, more: &Losses) {
    for (cause, samples) in more {
        *sum.entry(cause).or_default() += samples;
    }
}

/// The folders of earlier runs, oldest first; empty ones are removed.
fn earlier_runs(root: &Path) -> std::io::Result<VecDeque<InstanceSpool>> {
    let mut dirs: Vec<PathBuf> = std::fs::read_dir(root)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<std::io::Result<_>>()?;
    dirs.sort_unstable();
    let mut runs = VecDeque::new();
    for dir in dirs {
        match InstanceSpool::load(dir.clone())? {
            Some(run) if run.is_idle() => run.remove_dir(),
            Some(run) => runs.push_back(run),
            None => tracing::warn!(path = %dir.display(), "not a part of the spool: left alone"),
        }
    }
    Ok(runs)
}
