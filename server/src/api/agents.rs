//! The agents that the server hands out, and their checksums.

use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tokio::io::AsyncReadExt;
use tokio::sync::Semaphore;

/// Downloads of agents at the same time.
pub(crate) const MOST_DOWNLOADS: usize = 32;

/// Architectures that an agent can be offered for.
pub(crate) const ARCHITECTURES: [&str; 2] = ["x86_64", "aarch64"];

/// A file of this size is no agent; nothing larger is read.
pub(crate) const MAX_AGENT_BYTES: u64 = 1 << 30;

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The agent binaries that the server can hand out, with their checksums.
#[derive(Debug)]
pub struct Agents {
    /// Folders to look in, first match wins.
    dirs: Vec<PathBuf>,
    /// Downloads at the same time: whoever asks needs no token.
    pub(crate) downloads: Arc<Semaphore>,
    /// Checksum by path, as long as the file is the same.
    checksums: Mutex<HashMap<PathBuf, (SystemTime, u64, String)>>,
}

/// An agent's binary.
pub(crate) struct Agent {
    pub(crate) path: PathBuf,
    pub(crate) sha256: String,
    pub(crate) bytes: u64,
}

impl Agents {
    /// Looks in `dir` where it is given, else beside the server's executable.
    pub fn new(dir: Option<PathBuf>) -> Self {
        let dirs = match dir {
            Some(dir) => vec![dir],
            None => std::env::current_exe()
                .ok()
                .and_then(|exe| Some(exe.parent()?.to_owned()))
                .into_iter()
                .collect(),
        };
        Self {
            dirs,
            downloads: Arc::new(Semaphore::new(MOST_DOWNLOADS)),
            checksums: Mutex::default(),
        }
    }

    /// Whether there is an agent for this machine's own architecture.
    pub fn any(&self) -> bool {
        ARCHITECTURES
            .iter()
            .any(|architecture| self.path(architecture).is_some())
    }

    /// `stakeout-agent-linux-ARCH`, or for the server's own architecture a plain `stakeout-agent` as a build leaves it.
    fn path(&self, architecture: &str) -> Option<PathBuf> {
        let plain = (architecture == std::env::consts::ARCH).then_some("stakeout-agent".to_owned());
        let names = [Some(format!("stakeout-agent-linux-{architecture}")), plain];
        self.dirs
            .iter()
            .flat_map(|dir| names.iter().flatten().map(move |name| dir.join(name)))
            .find(|path| path.is_file())
    }

    pub(crate) async fn find(&self, architecture: &str) -> Option<Agent> {
        let path = self.path(architecture)?;
        let metadata = tokio::fs::metadata(&path).await.ok()?;
        let (modified, bytes) = (metadata.modified().ok()?, metadata.len());
        if bytes > MAX_AGENT_BYTES {
            return None;
        }
        let known = self
            .checksums
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&path)
            .cloned();
        if let Some((at, size, sha256)) = known
            && (at, size) == (modified, bytes)
        {
            return Some(Agent { path, sha256, bytes });
        }
        let mut file = tokio::fs::File::open(&path).await.ok()?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 256 * 1024];
        loop {
            match file.read(&mut buffer).await.ok()? {
                0 => break,
                read => hash.update(&buffer[..read]),
            }
        }
        let sha256 = hex(&hash.finalize());
        let mut checksums = self.checksums.lock().unwrap_or_else(PoisonError::into_inner);
        checksums.insert(path.clone(), (modified, bytes, sha256.clone()));
        drop(checksums);
        Some(Agent { path, sha256, bytes })
    }
}
