//! Files that are mapped as code, opened once and kept open, so that they can be named after their processes ended or the
//! file was deleted.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::address_space::SourceId;
use super::elf::gnu_build_id;
use super::maps::MapLine;
use super::proc_files::open_regular;

/// One file that holds code. While it is open its inode cannot be given to another file.
#[derive(Debug)]
pub struct Module {
    pub id: SourceId,
    /// As the first process that mapped it sees it.
    pub path: Arc<str>,
    /// Lower-case hex.
    pub build_id: Option<Arc<str>>,
    /// Size of the file.
    pub bytes: u64,
    file: Option<File>,
    /// What the file was when it was opened.
    version: Option<FileVersion>,
    /// A process that has it mapped, or had.
    user_tgid: AtomicU32,
    open_files: Arc<AtomicUsize>,
}

/// Tells apart what was in one file at different times: size, and time of the last change.
type FileVersion = (u64, i64, i64);

fn version(file: &File) -> Option<FileVersion> {
    let metadata = file.metadata().ok()?;
    Some((metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
}

impl Module {
    /// A file that no process was seen to map. It counts towards no table's limit.
    pub fn open(path: &Path, id: SourceId) -> Self {
        let file = path.to_str().and_then(open_regular);
        let open_files = Arc::new(AtomicUsize::new(usize::from(file.is_some())));
        Self::new(id, &path.to_string_lossy(), file, 0, open_files)
    }

    fn new(id: SourceId, path: &str, file: Option<File>, tgid: u32, open_files: Arc<AtomicUsize>) -> Self {
        let version = file.as_ref().and_then(version);
        Self {
            id,
            path: path.into(),
            build_id: file.as_ref().and_then(gnu_build_id).map(Arc::from),
            bytes: version.map_or(0, |(bytes, ..)| bytes),
            file,
            version,
            user_tgid: AtomicU32::new(tgid),
            open_files,
        }
    }

    /// A path under which the file can be opened for as long as this module lives; none where it could not be opened.
    pub fn open_path(&self) -> Option<String> {
        self.file
            .as_ref()
            .map(|file| format!("/proc/self/fd/{}", file.as_raw_fd()))
    }

    /// True where something was written over the file: what it has now says nothing of the code that was mapped before.
    pub fn is_overwritten(&self) -> bool {
        self.file.as_ref().is_some_and(|file| version(file) != self.version)
    }

    /// The process that was last seen to map the file; it may have ended.
    pub fn user_tgid(&self) -> u32 {
        self.user_tgid.load(Ordering::Relaxed)
    }

    /// Fills `bytes` from the file; false where it is not open or ends before.
    pub fn read_at(&self, offset: u64, bytes: &mut [u8]) -> bool {
        self.file
            .as_ref()
            .is_some_and(|file| file.read_exact_at(bytes, offset).is_ok())
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.file.is_some() {
            self.open_files.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Known modules by device and inode. Bounded: what was not asked for the longest goes first.
#[derive(Debug)]
pub struct ModuleTable {
    modules: HashMap<(u64, u64), (Arc<Module>, u64)>,
    uses: u64,
    capacity: usize,
    open_files: Arc<AtomicUsize>,
    open_limit: usize,
}

impl ModuleTable {
    /// Keeps at most `capacity` modules of its own and at most `open_limit` files open in all, those included that
    /// processes still refer to.
    pub fn new(capacity: usize, open_limit: usize) -> Self {
        Self {
            modules: HashMap::new(),
            uses: 0,
            capacity,
            open_files: Arc::new(AtomicUsize::new(0)),
            open_limit,
        }
    }

    /// The module behind a mapping of the process `tgid`. A file that cannot be opened is a module without names.
    pub(super) fn find(
        &mut self,
        tgid: u32,
        line: &MapLine,
        (device, inode): (u64, u64),
        path: &str,
        next_id: &mut impl FnMut() -> SourceId,
    ) -> Arc<Module> {
        self.uses += 1;
        if let Some((module, used)) = self.modules.get_mut(&(device, inode))
            && !module.is_overwritten()
        {
            module.user_tgid.store(tgid, Ordering::Relaxed);
            // One that could not be opened may be readable through another process.
            if module.file.is_some() || self.open_files.load(Ordering::Relaxed) >= self.open_limit {
                *used = self.uses;
                return Arc::clone(module);
            }
        }
        let file = if self.open_files.load(Ordering::Relaxed) < self.open_limit {
            open_mapped(tgid, line, inode, path)
        } else {
            None
        };
        if file.is_none()
            && let Some((module, used)) = self.modules.get_mut(&(device, inode))
        {
            *used = self.uses;
            return Arc::clone(module);
        }
        if file.is_some() {
            self.open_files.fetch_add(1, Ordering::Relaxed);
        }
        let module = Arc::new(Module::new(next_id(), path, file, tgid, Arc::clone(&self.open_files)));
        self.modules.insert((device, inode), (Arc::clone(&module), self.uses));
        if self.modules.len() > self.capacity {
            self.forget_oldest();
        }
        module
    }

    fn forget_oldest(&mut self) {
        let mut uses: Vec<u64> = self.modules.values().map(|(_, used)| *used).collect();
        uses.sort_unstable();
        let keep_from = uses[uses.len() - self.capacity * 3 / 4];
        self.modules.retain(|_, (_, used)| *used >= keep_from);
    }

    /// Files held open.
    pub fn open_files(&self) -> usize {
        self.open_files.load(Ordering::Relaxed)
    }
}

/// Opens the very file that is mapped: through map_files, which also reaches deleted files and other mount namespaces, or by
/// its path inside the process's root if that still leads to the same inode.
fn open_mapped(tgid: u32, line: &MapLine, inode: u64, path: &str) -> Option<File> {
    // Opening a device can do things.
    if path.starts_with("/dev/") && !path.starts_with("/dev/shm/") {
        return None;
    }
    open_regular(&format!("/proc/{tgid}/map_files/{:x}-{:x}", line.start, line.end)).or_else(|| {
        let file = open_regular(&format!("/proc/{tgid}/root{path}"))?;
        file.metadata()
            .is_ok_and(|metadata| metadata.ino() == inode)
            .then_some(file)
    })
}
