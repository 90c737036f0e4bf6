//! What the store needs of the place where its data is, whatever that place is made of.

use crate::store::root::error::RootError;
use crate::store::root::reader::RangeReader;
use crate::store::root::traffic::Traffic;
use bytes::Bytes;
use object_store::ObjectStore;
use std::sync::Arc;
use std::time::SystemTime;

/// Where all data is: an object store, and what an object store cannot say. Paths are relative to the root, with `/`
/// between their parts and none at their ends; the empty path is the root itself. Where nothing else is said a call
/// may wait for a disk or a network: it belongs on a thread that may wait, as [`waiting`] has them. Errors name the
/// object.
///
/// [`waiting`]: crate::store::root::waiting::waiting
pub(crate) trait Root: std::fmt::Debug + Send + Sync {
    /// The objects. What is put is whole and durable when that is answered. Never waits.
    fn objects(&self) -> Arc<dyn ObjectStore>;

    /// What a table's log is read and written through. The table's folder must have been prepared.
    fn table(&self, path: &str) -> Result<LogRoot, RootError>;

    /// Makes this process the only one that writes, as long as the value lives, and removes what an earlier one began
    /// and did not end. [`RootError::Exists`]: another process has it.
    fn lock(&self) -> Result<Lock, RootError>;

    /// Whether several servers write here at the same time: [`Root::join`] takes the place of [`Root::lock`] then.
    /// Never waits.
    fn is_shared(&self) -> bool {
        false
    }

    /// Makes this process one of those that write, as long as the value lives. What others began stays.
    /// [`RootError::Exists`]: another process has it for itself.
    fn join(&self) -> Result<Lock, RootError>;

    /// Bytes that can still be stored; none where no bound is known. Takes microseconds.
    fn free_bytes(&self) -> Result<Option<u64>, RootError>;

    /// Writes a little, takes it away again, and looks whether one may write below these prefixes: whether anything
    /// can be stored.
    fn probe(&self, prefixes: &[&str]) -> Result<(), RootError>;

    /// What tells an object from another one under the same path.
    fn stamp(&self, path: &str) -> Result<Stamp, RootError>;

    /// Puts an object where none is; it is whole and durable when this returns well. [`RootError::Exists`]: there is
    /// one. After another error it may be there all the same.
    fn create(&self, path: &str, bytes: Bytes) -> Result<(), RootError>;

    /// Puts an object, durably, in place of one that may be there: readers find the old or the new, whole.
    fn replace(&self, path: &str, bytes: Bytes) -> Result<(), RootError>;

    /// As [`Root::replace`], in place of the very object that has this stamp; of the default stamp, where none is.
    /// [`RootError::Exists`]: another is there, or none is any more. After another error it may be there all the same.
    fn replace_if(&self, path: &str, stamp: &Stamp, bytes: Bytes) -> Result<(), RootError>;

    /// Begins an object that comes in pieces, in bounded memory however large it gets. It takes the place of one that
    /// may be there: readers find the old or the new, whole.
    fn receive(&self, path: &str) -> Result<Box<dyn Incoming>, RootError>;

    /// What is directly below a prefix, folders too, of the names that are wanted, in no order; nothing below a
    /// prefix that is not there.
    fn names(&self, prefix: &str, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Named>, RootError>;

    /// What is in the folders directly below a prefix, of the folders that are wanted and the names that are, as
    /// `folder/name`, in no order. A folder that cannot be listed by itself is left out.
    fn names_below(
        &self,
        prefix: &str,
        folders: &dyn Fn(&str) -> bool,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<Named>, RootError> {
        let mut all = Vec::new();
        for folder in self.names(prefix, folders)? {
            let path_of = |name: &str| format!("{}/{name}", folder.name);
            let is_wanted = |name: &str| wanted(&path_of(name));
            let named = self.names(&format!("{prefix}/{}", folder.name), &is_wanted);
            all.extend(named.unwrap_or_default().into_iter().map(|named| Named {
                name: path_of(&named.name),
                bytes: named.bytes,
            }));
        }
        Ok(all)
    }

    /// Whether a look at an object costs a request. Then nobody looks before each reading whether it is what it was.
    fn looks_cost(&self) -> bool {
        false
    }

    /// Makes room for objects below a prefix, durably. A bucket needs none.
    fn prepare(&self, prefix: &str) -> Result<(), RootError>;

    /// Makes durable what is directly below a prefix now, whoever put it there.
    fn settle(&self, prefix: &str) -> Result<(), RootError>;

    /// Moves an object out of the way, below a prefix that was prepared, for a person to look at. Durable once both
    /// prefixes are settled.
    fn set_aside(&self, path: &str, to: &str) -> Result<(), RootError>;

    /// What is below each of two prefixes changes places with what is below the other, durably, and in one step where
    /// the place can do that. Elsewhere the next [`Root::lock`] ends what was cut off. Where the second is not there,
    /// it is as if nothing were below it.
    fn exchange(&self, new: &str, old: &str) -> Result<(), RootError>;

    /// Removes a folder if nothing is in it. A bucket has no folders.
    fn prune(&self, prefix: &str) -> Result<(), RootError>;

    /// Removes all that is below a prefix, if anything is.
    fn discard(&self, prefix: &str) -> Result<(), RootError>;

    /// Reads objects, for threads that may wait. Never waits itself.
    fn reader(&self) -> Arc<dyn RangeReader>;

    /// What was read may be kept in memory for the next reader, up to so many bytes. Gives the bytes that it may take:
    /// none where the machine keeps it anyhow.
    fn keeps(&self, most_bytes: usize) -> usize {
        let _ = most_bytes;
        0
    }

    /// What was asked of a place that is not on this machine; none of a disk.
    fn traffic(&self) -> Option<Arc<Traffic>> {
        None
    }
}

/// An object that comes piece by piece. Where it is dropped before its end, it is as if it had never begun.
pub(crate) trait Incoming: std::fmt::Debug + Send {
    /// Adds bytes at its end.
    fn add(&mut self, piece: Bytes) -> Result<(), RootError>;

    /// It is whole and durable when this returns well.
    fn finish(self: Box<Self>) -> Result<(), RootError>;
}

/// Held by the process that writes.
pub(crate) type Lock = Box<dyn std::fmt::Debug + Send + Sync>;

/// What the Delta library wants of a table.
#[derive(Debug)]
pub(crate) struct LogRoot {
    /// Its `/` is the table's folder.
    pub(crate) table: Arc<dyn ObjectStore>,
    /// Its `/` is the URL's.
    pub(crate) whole: Arc<dyn ObjectStore>,
    /// The table's folder.
    pub(crate) url: url::Url,
}

/// What [`Root::names`] finds.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Named {
    /// Without the prefix.
    pub(crate) name: String,
    /// 0 where nobody can tell; of a folder anything.
    pub(crate) bytes: u64,
}

/// Changes when an object is written to, if by anything but a failing disk. The default is that of no object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) bytes: u64,
    pub(crate) modified: Option<SystemTime>,
    pub(crate) version: Version,
}

/// What tells two objects of the same size and time apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Version {
    #[default]
    None,
    /// Of a file: when its inode changed, in seconds and nanoseconds, and which it is.
    Inode { changed: (i64, i64), number: u64 },
    /// Of an object in a bucket: its tag and its generation, where the store gives them.
    Object {
        etag: Option<String>,
        generation: Option<String>,
    },
}
