//! Objects in memory, for tests of what reads them.

use crate::store::root::error::RootError;
use crate::store::root::reader::{Digest, OpenObject, RangeReader};
use bytes::Bytes;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Reads these objects, by path.
#[derive(Debug, Default)]
pub(crate) struct InMemory(pub(crate) HashMap<String, Bytes>);

impl InMemory {
    fn get(&self, path: &str) -> Result<&Bytes, RootError> {
        let missing = || RootError::new(path, std::io::Error::from(std::io::ErrorKind::NotFound));
        self.0.get(path).ok_or_else(missing)
    }
}

impl RangeReader for InMemory {
    fn ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, RootError> {
        let bytes = self.get(path)?;
        ranges.iter().map(|range| piece(path, bytes, range)).collect()
    }

    fn open(&self, path: &str) -> Result<Arc<dyn OpenObject>, RootError> {
        let (path, bytes) = (path.to_owned(), self.get(path)?.clone());
        Ok(Arc::new(Opened { path, bytes }))
    }

    fn pieces(&self, path: &str, with: &mut dyn FnMut(Bytes) -> Result<(), RootError>) -> Result<(), RootError> {
        with(self.get(path)?.clone())
    }

    fn length(&self, path: &str) -> Result<u64, RootError> {
        Ok(self.get(path)?.len() as u64)
    }

    fn digest(&self, path: &str) -> Result<Digest, RootError> {
        let bytes = self.get(path)?;
        Ok(Digest {
            bytes: bytes.len() as u64,
            hash: xxhash_rust::xxh3::xxh3_64(bytes),
        })
    }

    fn name_of(&self, path: &str) -> String {
        path.to_owned()
    }
}

fn piece(path: &str, bytes: &Bytes, range: &Range<u64>) -> Result<Bytes, RootError> {
    match range.end <= bytes.len() as u64 {
        true => Ok(bytes.slice(range.start as usize..range.end as usize)),
        false => Err(RootError::new(path, format!("the object ends at {}", bytes.len()))),
    }
}

#[derive(Debug)]
struct Opened {
    path: String,
    bytes: Bytes,
}

impl OpenObject for Opened {
    fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn range(&self, range: Range<u64>) -> Result<Bytes, RootError> {
        piece(&self.path, &self.bytes, &range)
    }
}
