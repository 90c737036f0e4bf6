//! Reads parts of objects on the thread that asks.

use crate::store::root::error::RootError;
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// Length and hash of all bytes of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) bytes: u64,
    /// XXH3, 64 bits, without a seed.
    pub(crate) hash: u64,
}

/// Reads objects of the data root, by their path below it. Every call may wait for a disk or a network: it belongs on
/// a thread that may wait, never on one that serves requests. Every error names the object.
pub(crate) trait RangeReader: std::fmt::Debug + Send + Sync {
    /// The bytes of these ranges, in their order, each of them whole. An object that ends before one of them does is
    /// an error.
    fn ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, RootError>;

    /// Keeps an object at hand, for many small reads of it.
    fn open(&self, path: &str) -> Result<Arc<dyn OpenObject>, RootError>;

    /// All bytes of an object.
    fn whole(&self, path: &str) -> Result<Bytes, RootError> {
        let length = self.length(path)?;
        let bytes = self.ranges(path, std::slice::from_ref(&(0..length)))?.pop();
        bytes.ok_or_else(|| RootError::new(path, "no bytes were read"))
    }

    /// All bytes of each of some small objects, in their order; where each costs a request, several at a time.
    fn each(&self, paths: &[String]) -> Vec<Result<Bytes, RootError>> {
        paths.iter().map(|path| self.whole(path)).collect()
    }

    /// Gives all bytes of an object, one piece after the other and in bounded memory, as they lie there: never what is
    /// kept of them. An error of `with` ends it.
    fn pieces(&self, path: &str, with: &mut dyn FnMut(Bytes) -> Result<(), RootError>) -> Result<(), RootError>;

    /// How many bytes an object has.
    fn length(&self, path: &str) -> Result<u64, RootError>;

    /// Reads all of an object, in bounded memory.
    fn digest(&self, path: &str) -> Result<Digest, RootError>;

    /// What a person calls an object, such as its path on this machine. The empty path is the root itself. Never
    /// waits.
    fn name_of(&self, path: &str) -> String;
}

/// An object that is at hand: a file stays open, so that a small read costs no look at its path.
pub(crate) trait OpenObject: std::fmt::Debug + Send + Sync {
    /// How many bytes it had when it was opened.
    fn length(&self) -> u64;

    /// The bytes of a range, all of them. May wait, as [`RangeReader::ranges`] may.
    fn range(&self, range: Range<u64>) -> Result<Bytes, RootError>;
}
