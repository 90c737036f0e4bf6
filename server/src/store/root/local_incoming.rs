//! A file below the data root's folder that comes piece by piece.

use crate::store::root::contract::Incoming;
use crate::store::root::durable;
use crate::store::root::error::RootError;
use bytes::Bytes;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Begun where files are, and renamed at its end.
#[derive(Debug)]
pub(crate) struct LocalIncoming {
    /// Below the root.
    path: String,
    file: File,
    temporary: PathBuf,
    target: PathBuf,
}

impl LocalIncoming {
    /// `staging` must be there; the target's folder need not.
    pub(crate) fn begin(path: &str, staging: &Path, target: &Path) -> std::io::Result<Self> {
        let temporary = staging.join(uuid::Uuid::new_v4().simple().to_string());
        let file = File::options()
            .write(true)
            .create_new(true)
            .mode(durable::FILE_MODE)
            .open(&temporary)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            temporary,
            target: target.to_owned(),
        })
    }

    fn put(&mut self) -> std::io::Result<()> {
        let dir = self.target.parent();
        let dir = dir.ok_or_else(|| std::io::Error::other("a file needs a folder"))?;
        self.file.sync_all()?;
        durable::create_dir_durably(dir)?;
        fs::rename(&self.temporary, &self.target)?;
        durable::sync_dir(dir)
    }
}

impl Incoming for LocalIncoming {
    fn add(&mut self, piece: Bytes) -> Result<(), RootError> {
        let written = self.file.write_all(&piece);
        written.map_err(|cause| RootError::new(&self.path, cause))
    }

    fn finish(mut self: Box<Self>) -> Result<(), RootError> {
        let put = self.put();
        put.map_err(|cause| RootError::new(&self.path, cause))
    }
}

impl Drop for LocalIncoming {
    fn drop(&mut self) {
        // It is gone where all went well.
        let _ = fs::remove_file(&self.temporary);
    }
}
