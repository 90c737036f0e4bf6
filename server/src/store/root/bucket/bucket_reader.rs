//! Reads objects of a bucket, on threads that may wait.

use crate::store::root::bucket::io_threads::IoThreads;
use crate::store::root::error::RootError;
use crate::store::root::reader::{Digest, OpenObject, RangeReader};
use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use xxhash_rust::xxh3::Xxh3;

/// Bytes that are fetched at once for small reads, from a multiple of them on.
const PAGE_BYTES: u64 = 1 << 20;

/// Bytes that are fetched and hashed at a time.
const PIECE_BYTES: u64 = 8 << 20;

/// See the module.
#[derive(Debug, Clone)]
pub(super) struct BucketReader {
    /// Relative to the root.
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) threads: Arc<IoThreads>,
    /// Of the root, without a `/` at its end.
    pub(super) name: String,
}

impl BucketReader {
    fn fetch(&self, path: &str, range: Range<u64>) -> Result<Bytes, RootError> {
        let fetched = self.ranges(path, std::slice::from_ref(&range))?.pop();
        fetched.ok_or_else(|| RootError::new(path, "no bytes were read"))
    }
}

impl RangeReader for BucketReader {
    /// Ranges with less than 1 MiB between them are fetched by one request, up to 10 requests at once: the defaults of
    /// the object store's library.
    fn ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, RootError> {
        // An empty range is no valid request.
        let wanted: Vec<Range<u64>> = ranges.iter().filter(|range| !range.is_empty()).cloned().collect();
        let mut fetched = Vec::new();
        if !wanted.is_empty() {
            let (objects, at) = (self.objects.clone(), Path::from(path));
            let read = async move { objects.get_ranges(&at, &wanted).await };
            fetched = self.threads.wait(path, read)?;
        }
        let mut fetched = fetched.into_iter();
        let whole = |range: &Range<u64>| {
            let bytes = if range.is_empty() { Some(Bytes::new()) } else { fetched.next() };
            let length = range.end.saturating_sub(range.start);
            bytes
                .filter(|bytes| bytes.len() as u64 == length)
                .ok_or_else(|| RootError::new(path, format!("the object ends before {}", range.end)))
        };
        ranges.iter().map(whole).collect()
    }

    fn open(&self, path: &str) -> Result<Arc<dyn OpenObject>, RootError> {
        Ok(Arc::new(Opened {
            length: self.length(path)?,
            path: path.to_owned(),
            reader: self.clone(),
            page: Mutex::default(),
        }))
    }

    fn length(&self, path: &str) -> Result<u64, RootError> {
        let (objects, at) = (self.objects.clone(), Path::from(path));
        self.threads
            .wait(path, async move { objects.head(&at).await.map(|meta| meta.size) })
    }

    fn digest(&self, path: &str) -> Result<Digest, RootError> {
        let length = self.length(path)?;
        let (mut at, mut hash) = (0, Xxh3::new());
        while at < length {
            let end = length.min(at + PIECE_BYTES);
            hash.update(&self.fetch(path, at..end)?);
            at = end;
        }
        Ok(Digest {
            bytes: length,
            hash: hash.digest(),
        })
    }

    fn name_of(&self, path: &str) -> String {
        match path.is_empty() {
            true => self.name.clone(),
            false => format!("{}/{path}", self.name),
        }
    }
}

/// An object whose small reads come from the page that was fetched last.
#[derive(Debug)]
struct Opened {
    /// Below the root.
    path: String,
    reader: BucketReader,
    length: u64,
    /// Where it begins, and its bytes.
    page: Mutex<(u64, Bytes)>,
}

impl OpenObject for Opened {
    fn length(&self) -> u64 {
        self.length
    }

    fn range(&self, range: Range<u64>) -> Result<Bytes, RootError> {
        if range.end > self.length {
            let ends = format!("the object ends at {}, before what is said to be read", self.length);
            return Err(RootError::new(&self.path, ends));
        }
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let (start, held) = self.page.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if range.start >= start && range.end <= start + held.len() as u64 {
            return Ok(held.slice((range.start - start) as usize..(range.end - start) as usize));
        }
        let first = range.start / PAGE_BYTES * PAGE_BYTES;
        let last = range.end.next_multiple_of(PAGE_BYTES).min(self.length);
        let page = self.reader.fetch(&self.path, first..last)?;
        let piece = page.slice((range.start - first) as usize..(range.end - first) as usize);
        *self.page.lock().unwrap_or_else(PoisonError::into_inner) = (first, page);
        Ok(piece)
    }
}
