//! Reads objects of a bucket, on threads that may wait. Pages of data files are kept in memory: they never change.

use crate::store::root::bucket::io_threads::IoThreads;
use crate::store::root::bucket::pages::{PAGE_BYTES, Pages};
use crate::store::root::bucket::words;
use crate::store::root::error::RootError;
use crate::store::root::reader::{Digest, OpenObject, RangeReader};
use bytes::{Bytes, BytesMut};
use futures::stream::{StreamExt as _, TryStreamExt as _};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// Requests of one call that are on their way at the same time.
const AT_ONCE: usize = 8;

/// The same of small objects.
const MANY: usize = 32;

/// Pages that are fetched beyond those that are wanted, where the one before them was read.
const AHEAD: u64 = 3;

/// Bytes that are fetched at a time where all of an object is read.
const PIECE_BYTES: u64 = 8 << 20;

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct BucketReader {
    /// Relative to the root.
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) threads: Arc<IoThreads>,
    pub(super) pages: Arc<Pages>,
    /// Of the root, without a `/` at its end.
    pub(super) name: String,
}

/// Whether an object never changes: a data file, whose name is used once.
fn is_data_file(path: &str) -> bool {
    path.ends_with(".parquet") && !path.contains("_delta_log/")
}

/// Pages in which bytes lie.
fn pages_of(range: &Range<u64>) -> Range<u64> {
    range.start / PAGE_BYTES..range.end.div_ceil(PAGE_BYTES)
}

impl BucketReader {
    /// The bytes of these ranges, none of them empty; fewer where the object ends.
    fn fetch(&self, path: &str, ranges: impl IntoIterator<Item = Range<u64>>) -> Result<Vec<Bytes>, RootError> {
        let (objects, at) = (self.objects.clone(), Path::from(path));
        let ranges: Vec<_> = ranges.into_iter().collect();
        self.threads.wait(path, async move {
            let each = |range: Range<u64>| {
                let (objects, at) = (objects.clone(), at.clone());
                async move { objects.get_range(&at, range).await }
            };
            let requests: Vec<_> = ranges.into_iter().map(each).collect();
            futures::stream::iter(requests).buffered(AT_ONCE).try_collect().await
        })
    }

    /// Pages of a data file.
    fn pages(&self, path: &str, name: &Arc<str>, wanted: &BTreeSet<u64>) -> Result<HashMap<u64, Bytes>, RootError> {
        self.pages.get(name, wanted, |stretches| {
            let bytes = stretches
                .iter()
                .map(|pages| pages.start() * PAGE_BYTES..(pages.end() + 1) * PAGE_BYTES);
            self.fetch(path, bytes)
        })
    }

    /// What the error of a call means, where the object ends before what was to be read: a store only says that it
    /// has no such range.
    fn ends(&self, path: &str, ranges: &[Range<u64>]) -> Option<RootError> {
        let length = self.length(path).ok()?;
        let last = ranges.iter().map(|range| range.end).max()?;
        (last > length).then(|| ends_at(path, length))
    }

    fn read(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, RootError> {
        let wanted = ranges.iter().filter(|range| !range.is_empty());
        if is_data_file(path) {
            let wanted: BTreeSet<u64> = wanted.flat_map(pages_of).collect();
            let pages = self.pages(path, &Arc::from(path), &wanted)?;
            return ranges.iter().map(|range| cut(path, &pages, range)).collect();
        }
        let mut fetched = self.fetch(path, wanted.cloned())?.into_iter();
        let whole = |range: &Range<u64>| match range.is_empty() {
            true => Ok(Bytes::new()),
            false => fetched
                .next()
                .filter(|bytes| bytes.len() as u64 == range.end - range.start)
                .ok_or_else(|| RootError::new(path, "fewer bytes came than were asked for")),
        };
        ranges.iter().map(whole).collect()
    }
}

fn ends_at(path: &str, length: u64) -> RootError {
    RootError::new(
        path,
        format!("the object ends at {length}, in the middle of what is said to be read"),
    )
}

/// The bytes of a range, of its pages.
fn cut(path: &str, pages: &HashMap<u64, Bytes>, range: &Range<u64>) -> Result<Bytes, RootError> {
    if range.is_empty() {
        return Ok(Bytes::new());
    }
    let mut parts = Vec::new();
    for page in pages_of(range) {
        let begins = page * PAGE_BYTES;
        let (from, to) = (
            range.start.max(begins) - begins,
            range.end.min(begins + PAGE_BYTES) - begins,
        );
        let bytes = pages.get(&page).filter(|bytes| to <= bytes.len() as u64);
        let bytes = bytes.ok_or_else(|| RootError::new(path, "fewer bytes came than were asked for"))?;
        parts.push(bytes.slice(from as usize..to as usize));
    }
    if parts.len() == 1 {
        return Ok(parts.remove(0));
    }
    let mut whole = BytesMut::with_capacity((range.end - range.start) as usize);
    parts.iter().for_each(|part| whole.extend_from_slice(part));
    Ok(whole.freeze())
}

impl RangeReader for BucketReader {
    fn ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, RootError> {
        match self.read(path, ranges) {
            Err(error @ (RootError::Other(_) | RootError::Ours(_))) => Err(self.ends(path, ranges).unwrap_or(error)),
            read => read,
        }
    }

    /// A missing object is told by the store at once: one request, where the length would be another.
    fn whole(&self, path: &str) -> Result<Bytes, RootError> {
        let (objects, at) = (self.objects.clone(), Path::from(path));
        self.threads
            .wait(path, async move { objects.get(&at).await?.bytes().await })
    }

    fn each(&self, paths: &[String]) -> Vec<Result<Bytes, RootError>> {
        let request = |path: &String| {
            let (objects, at) = (self.objects.clone(), Path::from(path.as_str()));
            async move { objects.get(&at).await?.bytes().await }
        };
        let requests: Vec<_> = paths.iter().map(request).collect();
        let read = async move { Ok(futures::stream::iter(requests).buffered(MANY).collect::<Vec<_>>().await) };
        match self.threads.wait("", read) {
            Ok(read) => paths
                .iter()
                .zip(read)
                .map(|(path, read)| read.map_err(|cause| words::error(path, cause)))
                .collect(),
            Err(_) => paths.iter().map(|path| self.whole(path)).collect(),
        }
    }

    fn open(&self, path: &str) -> Result<Arc<dyn OpenObject>, RootError> {
        Ok(Arc::new(Opened {
            length: self.length(path)?,
            path: path.into(),
            reader: self.clone(),
        }))
    }

    fn pieces(&self, path: &str, with: &mut dyn FnMut(Bytes) -> Result<(), RootError>) -> Result<(), RootError> {
        let length = self.length(path)?;
        let mut at = 0;
        while at < length {
            let end = length.min(at + PIECE_BYTES);
            for piece in self.fetch(path, std::iter::once(at..end))? {
                at += piece.len() as u64;
                with(piece)?;
            }
            if at != end {
                return Err(ends_at(path, at));
            }
        }
        Ok(())
    }

    fn length(&self, path: &str) -> Result<u64, RootError> {
        let (objects, at) = (self.objects.clone(), Path::from(path));
        self.threads
            .wait(path, async move { objects.head(&at).await.map(|meta| meta.size) })
    }

    fn digest(&self, path: &str) -> Result<Digest, RootError> {
        let (mut bytes, mut hash) = (0, Xxh3::new());
        self.pieces(path, &mut |piece| {
            bytes += piece.len() as u64;
            hash.update(&piece);
            Ok(())
        })?;
        let hash = hash.digest();
        Ok(Digest { bytes, hash })
    }

    fn name_of(&self, path: &str) -> String {
        match path.is_empty() {
            true => self.name.clone(),
            false => format!("{}/{path}", self.name),
        }
    }
}

/// An object that is read in small pieces, mostly one behind the other.
#[derive(Debug)]
struct Opened {
    /// Below the root.
    path: Arc<str>,
    reader: BucketReader,
    length: u64,
}

impl Opened {
    /// The pages of a range, and some more where it goes on from what was read.
    fn wanted(&self, range: &Range<u64>) -> BTreeSet<u64> {
        let pages = pages_of(range);
        let has = |page: u64| self.reader.pages.has(&self.path, page);
        let goes_on = pages.start > 0 && has(pages.start - 1) && !has(pages.start);
        let ahead = if goes_on { AHEAD } else { 0 };
        (pages.start..(pages.end + ahead).min(self.length.div_ceil(PAGE_BYTES))).collect()
    }
}

impl OpenObject for Opened {
    fn length(&self) -> u64 {
        self.length
    }

    fn range(&self, range: Range<u64>) -> Result<Bytes, RootError> {
        if range.end > self.length {
            return Err(ends_at(&self.path, self.length));
        }
        if !is_data_file(&self.path) {
            let read = self.reader.ranges(&self.path, std::slice::from_ref(&range))?.pop();
            return read.ok_or_else(|| RootError::new(&self.path, "no bytes were read"));
        }
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let pages = self.reader.pages(&self.path, &self.path, &self.wanted(&range))?;
        cut(&self.path, &pages, &range)
    }
}
