//! Batches that could not be delivered, kept for a person to look at; the newest ones only.

use std::path::{Path, PathBuf};

use super::file::make_private_dir;

const LIMIT_FILES: usize = 64;
const LIMIT_BYTES: u64 = 16 << 20;

#[derive(Debug)]
pub(super) struct DeadLetters {
    dir: PathBuf,
}

impl DeadLetters {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Moves the file at `from` here under `name`, and makes room by removing the oldest. Returns where it is.
    pub(super) fn put(&self, from: &Path, name: &str) -> std::io::Result<PathBuf> {
        make_private_dir(&self.dir)?;
        let to = self.dir.join(name);
        std::fs::rename(from, &to)?;
        self.trim(&to)?;
        Ok(to)
    }

    fn trim(&self, newest: &Path) -> std::io::Result<()> {
        let mut files = Vec::new();
        for file in std::fs::read_dir(&self.dir)? {
            let file = file?;
            let metadata = file.metadata()?;
            files.push((file.path() == newest, metadata.modified()?, metadata.len(), file.path()));
        }
        files.sort_unstable();
        let mut count = files.len();
        let mut bytes: u64 = files.iter().map(|(_, _, length, _)| length).sum();
        for (_, _, length, path) in files {
            if count <= LIMIT_FILES && bytes <= LIMIT_BYTES {
                break;
            }
            std::fs::remove_file(path)?;
            count -= 1;
            bytes -= length;
        }
        Ok(())
    }
}
