//! The data root in a folder of this machine.

use crate::store::root::contract::{Incoming, Lock, LogRoot, Named, Root, Stamp, Version};
use crate::store::root::durable::{self, DurableStore};
use crate::store::root::error::RootError;
use crate::store::root::local_incoming::LocalIncoming;
use crate::store::root::local_reader::LocalReader;
use crate::store::root::reader::RangeReader;
use bytes::Bytes;
use object_store::ObjectStore;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file whose lock the process holds that writes.
const LOCK: &str = "lock";

/// The file whose lock the process holds that replaces an object on a condition.
const TURN: &str = "turn";

/// Where files are begun.
const STAGING: &str = "tmp";

/// See the module.
#[derive(Debug)]
pub(crate) struct LocalRoot {
    /// Absolute, without symbolic links.
    dir: PathBuf,
    staging: PathBuf,
    objects: Arc<dyn ObjectStore>,
    reader: Arc<LocalReader>,
    is_shared: bool,
}

impl LocalRoot {
    /// The same folder for several servers of this machine at once, as a bucket is for those of many.
    pub(crate) fn shared(self) -> Self {
        Self {
            is_shared: true,
            ..self
        }
    }

    /// Opens the file whose lock says who writes, and takes the lock by `take`.
    fn locked(&self, take: fn(&File) -> Result<(), TryLockError>) -> Result<File, RootError> {
        self.at(LOCK, |path| {
            let file = File::options()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .mode(durable::FILE_MODE)
                .open(path)?;
            match take(&file) {
                Ok(()) => Ok(file),
                Err(TryLockError::WouldBlock) => {
                    let held = "another process has it locked";
                    Err(std::io::Error::new(ErrorKind::AlreadyExists, held))
                }
                Err(TryLockError::Error(cause)) => Err(cause),
            }
        })
    }

    /// Opens a folder, creating it and those above it where they are missing. Takes it from everybody but its user.
    /// An error's object is the folder.
    pub(crate) fn open(dir: &Path) -> Result<Self, RootError> {
        let failed = |dir: &Path, cause| RootError::new(&dir.display().to_string(), cause);
        let absolute = std::path::absolute(dir).map_err(|cause| failed(dir, cause))?;
        durable::create_dir_durably(&absolute).map_err(|cause| failed(&absolute, cause))?;
        durable::make_private(&absolute);
        Self::existing(&absolute)
    }

    /// Opens a folder that is there. Makes and changes nothing in it: whoever only reads needs no more.
    pub(crate) fn existing(dir: &Path) -> Result<Self, RootError> {
        let failed = |cause| RootError::new(&dir.display().to_string(), cause);
        let found = dir.canonicalize().map_err(failed)?;
        if !found.is_dir() {
            return Err(failed(std::io::Error::from(ErrorKind::NotADirectory)));
        }
        let dir = found;
        let staging = dir.join(STAGING);
        let objects = DurableStore::new(Some(&dir), staging.clone());
        let objects = objects.map_err(|cause| RootError::new(&dir.display().to_string(), cause))?;
        Ok(Self {
            reader: Arc::new(LocalReader::new(&dir)),
            objects: Arc::new(objects),
            dir,
            staging,
            is_shared: false,
        })
    }

    /// Does something with the file or folder of a path.
    fn at<T>(&self, path: &str, work: impl FnOnce(&Path) -> std::io::Result<T>) -> Result<T, RootError> {
        let done = self.reader.locate(path).and_then(|whole| work(&whole));
        done.map_err(|cause| RootError::new(path, cause))
    }

    fn put(&self, path: &str, bytes: Bytes, replace: bool) -> Result<(), RootError> {
        let whole = self.reader.locate(path).map_err(|cause| RootError::new(path, cause))?;
        durable::write_durably(&self.staging, &whole, &bytes.into(), replace)
            .map_err(|cause| RootError::new(path, durable::put_error(path, cause)))
    }
}

impl Root for LocalRoot {
    fn objects(&self) -> Arc<dyn ObjectStore> {
        self.objects.clone()
    }

    fn table(&self, path: &str) -> Result<LogRoot, RootError> {
        let dir = self.reader.locate(path).map_err(|cause| RootError::new(path, cause))?;
        let failed = |cause: object_store::Error| RootError::new(path, cause);
        let url = url::Url::from_directory_path(&dir)
            .map_err(|()| RootError::new(path, format!("{} is not an absolute path", dir.display())))?;
        Ok(LogRoot {
            table: Arc::new(DurableStore::new(Some(&dir), self.staging.clone()).map_err(failed)?),
            whole: Arc::new(DurableStore::new(None, self.staging.clone()).map_err(failed)?),
            url,
        })
    }

    fn lock(&self) -> Result<Lock, RootError> {
        let file = self.locked(File::try_lock)?;
        self.at(STAGING, empty)?;
        Ok(Box::new(file))
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn join(&self) -> Result<Lock, RootError> {
        let file = self.locked(File::try_lock_shared)?;
        self.at(STAGING, durable::create_dir_durably)?;
        Ok(Box::new(file))
    }

    fn free_bytes(&self) -> Result<Option<u64>, RootError> {
        let stat = rustix::fs::statvfs(&self.dir).map_err(|cause| RootError::new("", std::io::Error::from(cause)))?;
        Ok(Some(stat.f_bavail.saturating_mul(stat.f_frsize)))
    }

    fn probe(&self, prefixes: &[&str]) -> Result<(), RootError> {
        self.at(STAGING, durable::probe)?;
        prefixes
            .iter()
            .try_for_each(|prefix| self.at(prefix, durable::may_write))
    }

    fn stamp(&self, path: &str) -> Result<Stamp, RootError> {
        self.at(path, |path| {
            let metadata = std::fs::metadata(path)?;
            Ok(Stamp {
                bytes: metadata.len(),
                modified: metadata.modified().ok(),
                version: Version::Inode {
                    changed: (metadata.ctime(), metadata.ctime_nsec()),
                    number: metadata.ino(),
                },
            })
        })
    }

    fn create(&self, path: &str, bytes: Bytes) -> Result<(), RootError> {
        self.put(path, bytes, false)
    }

    fn replace(&self, path: &str, bytes: Bytes) -> Result<(), RootError> {
        self.put(path, bytes, true)
    }

    fn replace_if(&self, path: &str, stamp: &Stamp, bytes: Bytes) -> Result<(), RootError> {
        // Between the look and the replacement no other process may do the same: closing the file frees its lock.
        let turn = self.at(TURN, |path| {
            let file = File::options()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(durable::FILE_MODE)
                .open(path)?;
            file.lock()?;
            Ok(file)
        })?;
        let found = match self.stamp(path) {
            Ok(found) => found,
            Err(RootError::NotFound(_)) => Stamp::default(),
            Err(error) => return Err(error),
        };
        if found != *stamp {
            let other = std::io::Error::new(ErrorKind::AlreadyExists, "it is another one meanwhile");
            return Err(RootError::new(path, other));
        }
        let done = self.put(path, bytes, true);
        drop(turn);
        done
    }

    fn receive(&self, path: &str) -> Result<Box<dyn Incoming>, RootError> {
        let begun = self.at(path, |whole| LocalIncoming::begin(path, &self.staging, whole))?;
        Ok(Box::new(begun))
    }

    fn names(&self, prefix: &str, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Named>, RootError> {
        let listed = self.at(prefix, |dir| {
            let mut names = Vec::new();
            for entry in std::fs::read_dir(dir)? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                if wanted(&name) {
                    let bytes = entry.metadata().map_or(0, |metadata| metadata.len());
                    names.push(Named { name, bytes });
                }
            }
            Ok(names)
        });
        match listed {
            Err(RootError::NotFound(_)) => Ok(Vec::new()),
            listed => listed,
        }
    }

    fn prepare(&self, prefix: &str) -> Result<(), RootError> {
        self.at(prefix, durable::create_dir_durably)
    }

    fn settle(&self, prefix: &str) -> Result<(), RootError> {
        self.at(prefix, durable::sync_dir)
    }

    fn set_aside(&self, path: &str, to: &str) -> Result<(), RootError> {
        self.at(to, |to| Ok(to.to_owned()))
            .and_then(|to| self.at(path, |path| std::fs::rename(path, to)))
    }

    fn exchange(&self, new: &str, old: &str) -> Result<(), RootError> {
        self.at(new, |new| Ok(new.to_owned()))
            .and_then(|new| self.at(old, |old| exchange(&new, old)))
    }

    fn prune(&self, prefix: &str) -> Result<(), RootError> {
        self.at(prefix, |dir| match std::fs::remove_dir(dir) {
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => Err(error),
            _ => Ok(()),
        })
    }

    fn discard(&self, prefix: &str) -> Result<(), RootError> {
        self.at(prefix, |dir| match std::fs::remove_dir_all(dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed,
        })
    }

    fn reader(&self) -> Arc<dyn RangeReader> {
        self.reader.clone()
    }
}

/// Removes unfinished files of a run that was killed.
fn empty(staging: &Path) -> std::io::Result<()> {
    durable::create_dir_durably(staging)?;
    for entry in std::fs::read_dir(staging)? {
        std::fs::remove_file(entry?.path())?;
    }
    Ok(())
}

/// In one step where the file system can do that. Elsewhere the old log is missing between two steps, and a start
/// makes it anew.
fn exchange(new: &Path, old: &Path) -> std::io::Result<()> {
    durable::create_dir_durably(old)?;
    if renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE).is_err() {
        let kept = new.with_extension("old");
        std::fs::rename(old, &kept)?;
        std::fs::rename(new, old)?;
    }
    for dir in [new, old].into_iter().filter_map(Path::parent) {
        durable::sync_dir(dir)?;
    }
    Ok(())
}
