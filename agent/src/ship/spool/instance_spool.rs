//! The folder of one run of the agent: its batches in order, and what it has lost since it last could tell.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use uuid::Uuid;

use super::file::{self, Label, Unreadable};
use super::spooled_batch::{IN_FLIGHT, NUMBER_SPAN, SpooledBatch};
use crate::ship::encode;
use crate::ship::losses::{CAUSE_SPOOL_FULL, Losses};

const CLOSING: &str = "closing";

/// One batch that waits.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) number: u64,
    pub(super) samples: u64,
    /// Length of its file.
    pub(super) bytes: u64,
    /// The server may have it.
    pub(super) attempted: bool,
    /// An attempt is under way.
    pub(super) sending: bool,
    pub(super) synced: bool,
    /// The request, where the disk did not take it.
    pub(super) held: Option<Bytes>,
}

#[derive(Debug)]
pub(super) struct InstanceSpool {
    pub(super) instance: Uuid,
    pub(super) dir: PathBuf,
    /// By number; the first one is sent.
    pub(super) entries: VecDeque<Entry>,
    pub(super) next_number: u64,
    /// Lost in this run of the agent.
    pub(super) lost: Losses,
    /// The part of `lost` that `base` tells.
    told: Losses,
    /// A request of this instance, uncompressed: what the closing batch is made from.
    base: Option<Vec<u8>>,
    /// `closing` lies in the folder.
    closing: bool,
}

/// The part of a file's name that tells number and samples, so that a damaged file's samples can still be counted.
pub(super) fn stem(number: u64, samples: u64) -> String {
    format!("{number:012}-{samples}")
}

fn parse_name(name: &str) -> Option<(u64, u64)> {
    let (number, samples) = name.strip_suffix(".batch")?.split_once('-')?;
    Some((number.parse().ok()?, samples.parse().ok()?))
}

impl InstanceSpool {
    pub(super) fn new(instance: Uuid, dir: PathBuf) -> Self {
        Self {
            instance,
            dir,
            entries: VecDeque::new(),
            next_number: 1,
            lost: Losses::new(),
            told: Losses::new(),
            base: None,
            closing: false,
        }
    }

    /// What an earlier run left in `dir`; `None` when the name is not one of ours.
    pub(super) fn load(dir: PathBuf) -> std::io::Result<Option<Self>> {
        let name = dir.file_name().and_then(|name| name.to_str());
        let Some((_, instance)) = name.and_then(|name| name.split_once('-')) else {
            return Ok(None);
        };
        let Ok(instance) = Uuid::try_parse(instance) else {
            return Ok(None);
        };
        let mut run = Self::new(instance, dir);
        let mut found = Vec::new();
        for file in std::fs::read_dir(&run.dir)? {
            let file = file?;
            let name = file.file_name();
            if let Some((number, samples)) = name.to_str().and_then(parse_name) {
                let bytes = file.metadata()?.len();
                found.push(Entry {
                    number,
                    samples,
                    bytes,
                    attempted: false,
                    sending: false,
                    synced: true,
                    held: None,
                });
            } else if name != CLOSING {
                // A file that was being written when the agent was killed: its batch never entered the spool.
                std::fs::remove_file(file.path())?;
            }
        }
        found.sort_unstable_by_key(|entry| entry.number);
        run.entries = found.into();
        // They may have been under way when the agent ended.
        for entry in run.entries.iter_mut().take(IN_FLIGHT) {
            entry.attempted = true;
        }
        let last = run.entries.back().map_or(0, |entry| entry.number);
        run.next_number = last + 1;
        match file::read(&run.closing_path()) {
            Ok((label, _)) if label.number > last => {
                run.next_number = label.number;
                run.closing = true;
            }
            // Damaged, or the agent was killed between writing the batch that told the same and removing this.
            Ok(_) | Err(Unreadable::Damaged(_)) => run.forget_closing(),
            Err(Unreadable::Io(error)) => return Err(error),
        }
        Ok(Some(run))
    }

    pub(super) fn is_idle(&self) -> bool {
        self.entries.is_empty() && !self.closing
    }

    pub(super) fn path(&self, entry: &Entry) -> PathBuf {
        self.batch_path(entry.number, entry.samples)
    }

    fn batch_path(&self, number: u64, samples: u64) -> PathBuf {
        self.dir.join(format!("{}.batch", stem(number, samples)))
    }

    fn closing_path(&self) -> PathBuf {
        self.dir.join(CLOSING)
    }

    /// A new batch comes, whose `report` tells everything lost so far. Returns its number.
    pub(super) fn begin(&mut self, report: Vec<u8>) -> u64 {
        self.base = Some(report);
        self.told = self.lost.clone();
        self.next_number += 1;
        self.next_number - 1
    }

    pub(super) fn write(&self, number: u64, samples: u64, request: &Bytes, durable: bool) -> std::io::Result<u64> {
        let label = Label {
            instance: self.instance,
            number,
            samples,
        };
        file::write(&self.batch_path(number, samples), label, request, durable)
    }

    pub(super) fn lose(&mut self, cause: &'static str, samples: u64) {
        if samples > 0 {
            *self.lost.entry(cause).or_default() += samples;
        }
    }

    /// Removes the oldest batch that the server cannot have, and counts it.
    pub(super) fn drop_oldest_unsent(&mut self) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| !entry.attempted)?;
        self.find_base();
        let entry = self.entries.remove(at)?;
        self.remove(&entry);
        self.lose(CAUSE_SPOOL_FULL, entry.samples);
        self.tell();
        Some(entry)
    }

    /// Removes a batch's file.
    pub(super) fn remove(&self, entry: &Entry) {
        if entry.held.is_none() {
            remove(&self.path(entry));
        }
    }

    /// Marks the oldest batch that is not under way as sent and reads it. An error carries the batch's number.
    pub(super) fn send_next(&mut self) -> Option<Result<SpooledBatch, (u64, Unreadable)>> {
        let oldest = self.entries.front()?.number;
        let at = self.entries.iter().position(|entry| !entry.sending)?;
        let Entry { number, samples, .. } = self.entries[at];
        if number - oldest >= NUMBER_SPAN {
            return None;
        }
        let instance = self.instance;
        let body = match &self.entries[at].held {
            Some(body) => Ok(body.clone()),
            None => file::read(&self.path(&self.entries[at])).and_then(|(label, body)| {
                let same = label
                    == Label {
                        instance,
                        number,
                        samples,
                    };
                if same {
                    Ok(body)
                } else {
                    Err(Unreadable::Damaged("it holds another batch than its name says"))
                }
            }),
        };
        self.entries[at].sending = body.is_ok();
        self.entries[at].attempted |= body.is_ok();
        Some(
            body.map(|body| SpooledBatch {
                instance,
                number,
                samples,
                body,
            })
            .map_err(|error| (number, error)),
        )
    }

    pub(super) fn entry(&mut self, number: u64) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.number == number)
    }

    pub(super) fn take(&mut self, number: u64) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.number == number)?;
        self.entries.remove(at)
    }

    /// For an earlier run: looks for a request to make the closing batch from, before the last one is gone.
    pub(super) fn find_base(&mut self) {
        if self.base.is_some() {
            return;
        }
        let newest_first = self.entries.iter().rev().map(|entry| self.path(entry));
        let closing = self.closing.then(|| self.closing_path());
        self.base = closing
            .into_iter()
            .chain(newest_first)
            .filter_map(|path| file::read(&path).ok())
            .find_map(|(_, request)| encode::decompress(&request));
    }

    /// What no batch tells yet.
    fn untold(&self) -> Losses {
        let untold = |(cause, samples): (&&'static str, &u64)| (*cause, samples - self.told.get(*cause).unwrap_or(&0));
        self.lost
            .iter()
            .map(untold)
            .filter(|(_, samples)| *samples > 0)
            .collect()
    }

    /// Makes the closing batch tell what no other batch tells.
    pub(super) fn tell(&mut self) {
        let untold = self.untold();
        if untold.is_empty() {
            return;
        }
        let Some(base) = &self.base else {
            tracing::warn!(instance = %self.instance, ?untold, "losses that no batch can tell the server any more");
            return;
        };
        let Some(request) = encode::closing(base, self.next_number, &untold) else {
            return;
        };
        let label = Label {
            instance: self.instance,
            number: self.next_number,
            samples: 0,
        };
        let written =
            encode::compress(&request).and_then(|request| file::write(&self.closing_path(), label, &request, false));
        match written {
            Ok(_) => self.closing = true,
            Err(error) => tracing::warn!(dir = %self.dir.display(), %error, "the spool cannot be written"),
        }
    }

    /// A batch has been put in: when it tells everything, the closing batch has nothing to say.
    pub(super) fn forget_what_is_told(&mut self) {
        if self.closing && self.untold().is_empty() {
            self.forget_closing();
        }
    }

    fn forget_closing(&mut self) {
        remove(&self.closing_path());
        self.closing = false;
    }

    /// Nothing follows any more: when all batches are gone, the closing batch becomes the last one.
    pub(super) fn close(&mut self) {
        if !self.closing || !self.entries.is_empty() {
            return;
        }
        self.closing = false;
        let number = self.next_number;
        let path = self.closing_path();
        let renamed = std::fs::metadata(&path)
            .and_then(|metadata| std::fs::rename(&path, self.batch_path(number, 0)).map(|()| metadata.len()));
        match renamed {
            Ok(bytes) => {
                self.next_number += 1;
                self.told = self.lost.clone();
                self.entries.push_back(Entry {
                    number,
                    samples: 0,
                    bytes,
                    attempted: false,
                    sending: false,
                    synced: true,
                    held: None,
                });
            }
            Err(error) => tracing::warn!(path = %path.display(), %error, "losses that the server will not be told"),
        }
    }

    /// Brings everything to the disk. A failure costs something only in a power cut.
    pub(super) fn sync(&mut self) {
        let mut all = || -> std::io::Result<()> {
            let mut any = false;
            for at in 0..self.entries.len() {
                let entry = &self.entries[at];
                if entry.synced || entry.held.is_some() {
                    continue;
                }
                File::open(self.path(entry))?.sync_data()?;
                self.entries[at].synced = true;
                any = true;
            }
            if any { File::open(&self.dir)?.sync_all() } else { Ok(()) }
        };
        if let Err(error) = all() {
            tracing::warn!(dir = %self.dir.display(), %error, "the spool could not be synced to disk");
        }
    }

    /// Removes the folder if it is empty.
    pub(super) fn remove_dir(&self) {
        if let Err(error) = std::fs::remove_dir(&self.dir) {
            tracing::warn!(dir = %self.dir.display(), %error, "a folder of the spool stays");
        }
    }
}

fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_file(path)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(
            path = %path.display(),
            %error,
            "a file of the spool cannot be removed: its batch may be sent again"
        );
    }
}
