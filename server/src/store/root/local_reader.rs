//! Reads files below the data root's folder.

use crate::store::root::error::RootError;
use crate::store::root::reader::{Digest, OpenObject, RangeReader};
use bytes::Bytes;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// Bytes that are hashed at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Reads files below a folder.
#[derive(Debug, Clone)]
pub(crate) struct LocalReader {
    dir: PathBuf,
}

impl LocalReader {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    /// Where an object is. What a log names may not lead out of the root.
    pub(crate) fn locate(&self, path: &str) -> std::io::Result<PathBuf> {
        let is_below = |part: Component<'_>| matches!(part, Component::Normal(_));
        match Path::new(path).components().all(is_below) {
            true if path.is_empty() => Ok(self.dir.clone()),
            true => Ok(self.dir.join(path)),
            false => Err(std::io::Error::other("this is no path below the data directory")),
        }
    }
}

impl RangeReader for LocalReader {
    fn ranges(&self, path: &str, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, RootError> {
        let read = self.locate(path).and_then(|path| read_ranges(&path, ranges));
        read.map_err(|cause| RootError::new(path, cause))
    }

    fn open(&self, path: &str) -> Result<Arc<dyn OpenObject>, RootError> {
        let open = |whole: PathBuf| {
            let file = File::open(whole)?;
            let (path, length) = (path.to_owned(), file.metadata()?.len());
            Ok(OpenFile { path, file, length })
        };
        let opened = self.locate(path).and_then(open);
        Ok(Arc::new(opened.map_err(|cause| RootError::new(path, cause))?))
    }

    fn pieces(&self, path: &str, with: &mut dyn FnMut(Bytes) -> Result<(), RootError>) -> Result<(), RootError> {
        let failed = |cause| RootError::new(path, cause);
        let mut file = self.locate(path).and_then(File::open).map_err(failed)?;
        loop {
            let mut piece = Vec::with_capacity(PIECE_BYTES);
            let read = (&mut file).take(PIECE_BYTES as u64).read_to_end(&mut piece);
            if read.map_err(failed)? == 0 {
                return Ok(());
            }
            with(piece.into())?;
        }
    }

    fn length(&self, path: &str) -> Result<u64, RootError> {
        let metadata = self.locate(path).and_then(std::fs::metadata);
        metadata
            .map(|metadata| metadata.len())
            .map_err(|cause| RootError::new(path, cause))
    }

    fn digest(&self, path: &str) -> Result<Digest, RootError> {
        let digest = self.locate(path).and_then(|path| digest(&path));
        digest.map_err(|cause| RootError::new(path, cause))
    }

    fn name_of(&self, path: &str) -> String {
        match path.is_empty() {
            true => self.dir.display().to_string(),
            false => self.dir.join(path).display().to_string(),
        }
    }
}

/// A file that stays open.
#[derive(Debug)]
struct OpenFile {
    /// Below the root.
    path: String,
    file: File,
    length: u64,
}

impl OpenObject for OpenFile {
    fn length(&self) -> u64 {
        self.length
    }

    fn range(&self, range: Range<u64>) -> Result<Bytes, RootError> {
        if range.end > self.length {
            // What a damaged file says of itself takes no memory.
            return Err(RootError::new(&self.path, ends_within(self.length)));
        }
        let mut bytes = vec![0; range.end.saturating_sub(range.start) as usize];
        let read = self.file.read_exact_at(&mut bytes, range.start);
        read.map_err(|cause| RootError::new(&self.path, cause))?;
        Ok(bytes.into())
    }
}

fn ends_within(end: u64) -> String {
    format!("the file ends at {end}, in the middle of what is said to be read")
}

fn read_ranges(path: &Path, ranges: &[Range<u64>]) -> std::io::Result<Vec<Bytes>> {
    let mut file = File::open(path)?;
    let read = |range: &Range<u64>| {
        let length = range.end.saturating_sub(range.start);
        let mut bytes = Vec::with_capacity(length as usize);
        file.seek(SeekFrom::Start(range.start))?;
        (&mut file).take(length).read_to_end(&mut bytes)?;
        match bytes.len() as u64 == length {
            true => Ok(bytes.into()),
            false => Err(std::io::Error::other(ends_within(range.start + bytes.len() as u64))),
        }
    };
    ranges.iter().map(read).collect()
}

fn digest(path: &Path) -> std::io::Result<Digest> {
    let mut file = File::open(path)?;
    let mut piece = vec![0; PIECE_BYTES];
    let (mut bytes, mut hash) = (0, Xxh3::new());
    loop {
        match file.read(&mut piece) {
            Ok(0) => {
                let hash = hash.digest();
                return Ok(Digest { bytes, hash });
            }
            Ok(read) => {
                bytes += read as u64;
                hash.update(&piece[..read]);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
