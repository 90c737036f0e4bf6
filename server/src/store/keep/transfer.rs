//! Moves files, logs and notes from one place to another, and takes away what does not belong to the copy.

use crate::store::keep::error::KeepError;
use crate::store::keep::pins::Pins;
use crate::store::keep::place::{Place, waiting};
use crate::store::keep::tally::Tally;
use crate::store::log::checksums::{self, Sums};
use crate::store::log::pinned::PinnedLog;
use crate::store::root::contract::Root;
use crate::store::root::error::RootError;
use crate::store::table::data_file::DataFile;
use crate::store::table::error::chain;
use crate::store::table::integrity;
use crate::store::table::schema::Table;
use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use object_store::ObjectStoreExt as _;
use object_store::path::Path;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// Files that are on their way at the same time. Of each no more than a few pieces are in memory.
pub(super) const FILES_AT_ONCE: usize = 4;

/// Where notes are.
const NOTES: &str = "notes";

/// What became of a file.
enum Came {
    Copied,
    Skipped,
    /// It is not there any more.
    Gone,
}

/// What is copied from where to where, and how.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) from: Arc<Place>,
    pub(super) to: Arc<Place>,
    /// Files that are there already are compared as a whole, not by their names and lengths alone.
    pub(super) compare: bool,
    pub(super) tally: Arc<Tally>,
}

impl Way {
    /// Copies the files that are not `done`, which it adds to. Gives those that are not there any more, by path below
    /// their root.
    pub(super) async fn files(&self, pins: &Pins, done: &mut HashSet<String>) -> Result<Vec<String>, KeepError> {
        let to = self.to.clone();
        let there = waiting(move || to.data_files().map_err(KeepError::of_root(to.root.as_ref()))).await?;
        let path_of = |table: Table, file: &DataFile| self.from.file(table, &file.path);
        let wanted = pins
            .files()
            .filter(|(table, file)| !done.contains(&path_of(*table, file)));
        let jobs: Vec<_> = wanted
            .map(|(table, file)| {
                let has = there.get(&self.to.file(table, &file.path)).copied();
                (table, file.clone(), has)
            })
            .collect();
        let bytes = jobs.iter().map(|(_, file, _)| file.size_bytes).sum();
        self.tally.begin(jobs.len() as u64, bytes);
        let mut gone = Vec::new();
        let work = |(table, file, has): (Table, Arc<DataFile>, Option<u64>)| {
            let (way, path) = (self.clone(), path_of(table, &file));
            async move { (path, waiting(move || way.file(table, &file, has)).await) }
        };
        let mut works = stream::iter(jobs).map(work).buffer_unordered(FILES_AT_ONCE);
        while let Some((path, came)) = works.next().await {
            match came? {
                Came::Copied | Came::Skipped => drop(done.insert(path)),
                Came::Gone => gone.push(path),
            }
        }
        Ok(gone)
    }

    /// Copies a file, unless it is there. `has`: the length of what is there.
    fn file(&self, table: Table, file: &DataFile, has: Option<u64>) -> Result<Came, KeepError> {
        let (source, target) = (self.from.file(table, &file.path), self.to.file(table, &file.path));
        if has == Some(file.size_bytes) {
            match self.is_there(file, &source, &target) {
                Ok(true) => {
                    self.tally.skipped(file.size_bytes);
                    return Ok(Came::Skipped);
                }
                Ok(false) => {}
                Err(Met::Source(RootError::NotFound(_))) => return Ok(Came::Gone),
                Err(met) => return Err(self.failed(met)),
            }
        }
        let (mut bytes, mut hash) = (0, Xxh3::new());
        let moved = self.stream(&source, &target, &mut |piece| {
            bytes += piece.len() as u64;
            hash.update(piece);
            self.tally.moved(piece.len() as u64);
        });
        match moved {
            Ok(()) => {}
            Err(Met::Source(RootError::NotFound(_))) => return Ok(Came::Gone),
            // A file of the source that a disk does not give back keeps nobody from copying the others.
            Err(Met::Source(error @ RootError::Other(_))) => {
                let cause = chain(error.cause());
                self.tally
                    .fault(&source, format!("it cannot be read, and was not copied: {cause}"));
                return Ok(Came::Copied);
            }
            Err(met) => return Err(self.failed(met)),
        }
        if bytes != file.size_bytes {
            let written = file.size_bytes;
            self.tally.fault(
                &source,
                format!("it has {bytes} bytes, {written} were written; copied as it is"),
            );
        } else if integrity::hash_in(&file.path).is_some_and(|written| written != hash.digest()) {
            self.tally
                .fault(&source, "its content is not what was written; copied as it is");
        }
        self.tally.done(bytes);
        Ok(Came::Copied)
    }

    /// Whether what is there, of the right length, is the file. A name that holds the hash of the content belongs to
    /// that alone, and what is there was put whole.
    fn is_there(&self, file: &DataFile, source: &str, target: &str) -> Result<bool, Met> {
        let written = integrity::hash_in(&file.path);
        if written.is_some() && !self.compare {
            return Ok(true);
        }
        let there = self.to.root.reader().digest(target).map_err(Met::Target)?;
        let written = match written {
            Some(written) => written,
            None => self.from.root.reader().digest(source).map_err(Met::Source)?.hash,
        };
        Ok(there.hash == written)
    }

    /// Moves an object, piece by piece.
    fn stream(&self, source: &str, target: &str, each: &mut dyn FnMut(&[u8])) -> Result<(), Met> {
        let mut incoming = self.to.root.receive(target).map_err(Met::Target)?;
        let mut refused = None;
        let read = self.from.root.reader().pieces(source, &mut |piece| {
            each(&piece);
            incoming.add(piece).map_err(|error| {
                refused = Some(error);
                RootError::new(source, "the copy could not be written")
            })
        });
        if let Some(error) = refused {
            return Err(Met::Target(error));
        }
        read.map_err(Met::Source)?;
        incoming.finish().map_err(Met::Target)
    }

    fn failed(&self, met: Met) -> KeepError {
        match met {
            Met::Source(error) => KeepError::of_root(self.from.root.as_ref())(error),
            Met::Target(error) => KeepError::of_root(self.to.root.as_ref())(error),
        }
    }

    /// Copies the logs, in place of those that are there; false where a part of one is not there any more.
    pub(super) async fn logs(&self, pins: &Pins) -> Result<bool, KeepError> {
        for log in &pins.logs {
            let (way, log) = (self.clone(), log.clone());
            if !waiting(move || way.log(&log)).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn log(&self, log: &PinnedLog) -> Result<bool, KeepError> {
        let (from, to) = (self.from.location(log.table).log(), self.to.location(log.table).log());
        let (source, target) = (self.from.root.as_ref(), self.to.root.as_ref());
        let sums = Sums::read(&from).ok().flatten();
        let written = target.discard(&to.path).and_then(|()| target.prepare(&to.path));
        written.map_err(KeepError::of_root(target))?;
        for name in &log.names {
            let content = match from.read(name) {
                Ok(content) => content,
                Err(RootError::NotFound(_)) => return Ok(false),
                Err(error) => return Err(KeepError::of_root(source)(error)),
            };
            if let Some(fault) = checksums::content_fault(name, &content, sums.as_ref()) {
                let (place, what) = (source.reader().name_of(&from.path_of(name)), fault.what);
                let words = format!("{what}; a server mends a log at its start: then copy it");
                return Err(KeepError::refused(place, words));
            }
            put(target, &to.path_of(name), content).map_err(KeepError::of_root(target))?;
        }
        if let Some(sums) = sums {
            let path = to.path_of(checksums::SUMS);
            let only = sums.only(&log.names).map_err(|error| RootError::new(&path, error));
            let written = only.and_then(|sums| put(target, &path, sums));
            written.map_err(KeepError::of_root(target))?;
        }
        Ok(true)
    }

    /// Copies the notes, in place of those that are there.
    pub(super) async fn notes(&self) -> Result<(), KeepError> {
        let way = self.clone();
        waiting(move || {
            let (source, target) = (way.from.root.as_ref(), way.to.root.as_ref());
            let (from, to) = (way.from.beside_logs(NOTES), way.to.beside_logs(NOTES));
            target.discard(&to).map_err(KeepError::of_root(target))?;
            let names = source.names(&from, &|name| name.ends_with(".json"));
            for named in names.map_err(KeepError::of_root(source))? {
                let path = |folder: &str| format!("{folder}/{}", named.name);
                let moved = way.stream(&path(&from), &path(&to), &mut |_| {});
                moved.map_err(|met| way.failed(met))?;
            }
            Ok(())
        })
        .await
    }
}

/// Where something failed.
enum Met {
    Source(RootError),
    Target(RootError),
}

/// Puts an object, which may be large, in place of one that may be there.
pub(super) fn put(root: &dyn Root, path: &str, content: Bytes) -> Result<(), RootError> {
    let mut incoming = root.receive(path)?;
    incoming.add(content)?;
    incoming.finish()
}

/// Removes the data files of a place that are none of these, by path below its root. Gives their number.
pub(super) async fn prune(place: &Arc<Place>, kept: HashSet<String>) -> Result<u64, KeepError> {
    let of = place.clone();
    let there = waiting(move || of.data_files().map_err(KeepError::of_root(of.root.as_ref()))).await?;
    let others: Vec<String> = there.into_keys().filter(|path| !kept.contains(path)).collect();
    let objects = place.root.objects();
    let deletions = others.iter().map(|path| {
        let (objects, at) = (objects.clone(), Path::from(path.as_str()));
        async move { (path, objects.delete(&at).await) }
    });
    let deletions: Vec<_> = deletions.collect();
    let mut deletions = stream::iter(deletions).buffer_unordered(FILES_AT_ONCE);
    while let Some((path, deleted)) = deletions.next().await {
        match deleted {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(KeepError::of_root(place.root.as_ref())(RootError::new(path, error))),
        }
    }
    let folders: BTreeSet<String> = others
        .iter()
        .filter_map(|path| Some(path.rsplit_once('/')?.0.to_owned()))
        .collect();
    let of = place.clone();
    waiting(move || {
        // An empty folder costs nothing but its name.
        folders.iter().for_each(|folder| drop(of.root.prune(folder)));
        Ok(())
    })
    .await?;
    Ok(others.len() as u64)
}
