//! Files that are mapped as code, opened once and held open while a process maps them.

use std::collections::HashMap;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::reading::{Held, SafeFile, open_in_root, open_mapped, open_regular};
use crate::elf::{Image, Segment};
use crate::frames::SourceId;
use crate::sys::FileState;

/// One file that holds code. While it is open its inode cannot be given to another file.
#[derive(Debug)]
pub struct Module {
    /// The source that the file is.
    pub id: SourceId,
    /// As the first process that mapped it sees it.
    pub path: Arc<str>,
    /// Lower-case hex.
    pub build_id: Option<Arc<str>>,
    /// Size of the file.
    pub bytes: u64,
    held: Arc<Held>,
    /// Where the file says that its parts lie in memory.
    segments: Box<[Segment]>,
    /// What it was when it was opened.
    version: Option<Version>,
    /// When it was written last before that, where that can be told.
    written_ns: Option<u64>,
    print: u64,
    /// A process that has it mapped, or had.
    user_tgid: AtomicU32,
}

/// Which file, and what was in it: /proc/PID/maps repeats its numbers for files of an overlay and of subvolumes, `stat`
/// does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Version {
    device: u64,
    inode: u64,
    bytes: u64,
    modified_ns: i128,
}

impl From<FileState> for Version {
    fn from(state: FileState) -> Self {
        Self {
            device: state.device,
            inode: state.inode,
            bytes: state.bytes,
            modified_ns: state.modified_ns,
        }
    }
}

/// A file with what its first look has told.
#[derive(Debug)]
pub(super) struct Opened {
    file: SafeFile,
    build_id: Option<String>,
    segments: Vec<Segment>,
    /// Of what is in it, so that a file that was closed is known again.
    print: u64,
    is_elf: bool,
}

/// What of a file tells it from others of its size, where it has no build id.
const PRINT_BYTES: usize = 4096;

impl Opened {
    /// Reads the file on this thread, which may take for ever.
    fn examine(file: SafeFile) -> Self {
        let read = |offset: u64, into: &mut [u8]| file.read_here(offset, into);
        let image = Image::open(read);
        let build_id = image.as_ref().and_then(Image::build_id);
        let mut magic = [0; 4];
        let is_elf = read(0, &mut magic) && magic == *b"\x7fELF";
        let print = if let Some(id) = &build_id {
            xxhash_rust::xxh3::xxh3_64(id.as_bytes())
        } else {
            let bytes = file.state().bytes;
            let mut ends = vec![0; 2 * PRINT_BYTES.min(usize::try_from(bytes).unwrap_or(PRINT_BYTES))];
            let half = ends.len() / 2;
            let (first, last) = ends.split_at_mut(half);
            // What can't be read is zero each time.
            let _ = (read(0, first), read(bytes - last.len() as u64, last));
            xxhash_rust::xxh3::xxh3_64(&ends)
        };
        Self {
            segments: image.map(|image| image.segments).unwrap_or_default(),
            file,
            build_id,
            print,
            is_elf,
        }
    }

    /// Opens the very file that is mapped: through map_files, which also reaches deleted files and other mount
    /// namespaces, or by its path inside the process's root if that still leads to the same inode.
    pub(super) fn of_mapping(tgid: u32, (start, end): (u64, u64), inode: u64, path: &str) -> Option<Self> {
        let file = open_mapped(tgid, start, end)
            .or_else(|| open_in_root(tgid, path).filter(|file| file.state().inode == inode))?;
        Some(Self::examine(file))
    }
}

impl Module {
    /// A file that no process was seen to map. It counts towards no table's limit.
    pub fn open(path: &Path, id: SourceId) -> Self {
        let opened = path.to_str().and_then(open_regular).map(Opened::examine);
        Self::new(id, &path.to_string_lossy(), opened, 0, Arc::default())
    }

    fn new(id: SourceId, path: &str, opened: Option<Opened>, tgid: u32, open_files: Arc<AtomicUsize>) -> Self {
        let version = opened.as_ref().map(|opened| Version::from(opened.file.state()));
        let mut module = Self {
            id,
            path: path.into(),
            build_id: None,
            bytes: version.map_or(0, |version| version.bytes),
            held: Arc::new(Held::new(None, open_files)),
            segments: Box::default(),
            version,
            written_ns: opened.as_ref().and_then(|opened| opened.file.written_ns()),
            print: 0,
            user_tgid: AtomicU32::new(tgid),
        };
        if let Some(opened) = opened {
            module.build_id = opened.build_id.map(Arc::from);
            module.segments = opened.segments.into();
            module.print = opened.print;
            module.held.set(Some(opened.file));
        }
        module
    }

    /// True while it can be read.
    pub fn is_open(&self) -> bool {
        self.held.is_open()
    }

    /// True where it could be read, until no process mapped it any more: it may be opened again.
    pub fn was_given_up(&self) -> bool {
        self.held.was_given_up()
    }

    /// True where something was written over the file: what it has now says nothing of the code that was mapped before.
    pub fn is_overwritten(&self) -> bool {
        self.file().is_some_and(|file| self.is_another(&file))
    }

    /// The file; none while it is not open. Whoever takes it keeps it open as long.
    pub(crate) fn file(&self) -> Option<SafeFile> {
        self.held.get()
    }

    /// The same of what it was opened as.
    pub(crate) fn is_another(&self, file: &SafeFile) -> bool {
        file.present_state().map(Version::from) != self.version
    }

    /// When it was written last before it was opened, by the monotonic clock: what ran before may have been something
    /// else.
    pub(super) fn written_ns(&self) -> Option<u64> {
        self.written_ns
    }

    /// The process that was last seen to map the file; it may have ended.
    pub fn user_tgid(&self) -> u32 {
        self.user_tgid.load(Ordering::Relaxed)
    }

    /// Fills `bytes` from the file; false where it is not open or ends before.
    pub fn read_at(&self, offset: u64, bytes: &mut [u8]) -> bool {
        self.held.get().is_some_and(|file| file.read_at(offset, bytes))
    }

    pub(super) fn held(&self) -> &Arc<Held> {
        &self.held
    }

    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// A process maps it.
    pub(super) fn used_by(&self, tgid: u32) {
        self.user_tgid.store(tgid, Ordering::Relaxed);
        self.held.stay();
    }
}

/// How a module is found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Version(Version),
    /// By the numbers and the path of /proc/PID/maps, where the file can't be opened.
    Told(u64, u64, Arc<str>),
}

/// What a mapped file is.
#[derive(Debug)]
pub(super) enum MappedFile {
    Module(Arc<Module>),
    /// Code that a process has made.
    Made,
}

/// Known modules. Bounded: what was not asked for the longest goes first.
#[derive(Debug)]
pub struct ModuleTable {
    modules: HashMap<Key, (Arc<Module>, u64)>,
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
            open_files: Arc::default(),
            open_limit,
        }
    }

    /// The module of a file that is open and has this state, for a process that maps it.
    pub(super) fn known(&mut self, tgid: u32, state: FileState) -> Option<Arc<Module>> {
        self.uses += 1;
        let (module, used) = self.modules.get_mut(&Key::Version(state.into()))?;
        *used = self.uses;
        module.used_by(tgid);
        module.is_open().then(|| Arc::clone(module))
    }

    /// Files that may still be opened.
    pub(super) fn room(&self) -> usize {
        self.open_limit.saturating_sub(self.open_files())
    }

    /// The module of a file that was opened; one that could not be opened is a module without names. `told` is what
    /// /proc/PID/maps says of it.
    pub(super) fn add(
        &mut self,
        tgid: u32,
        opened: Option<Opened>,
        told: (u64, u64, &str),
        next_id: &mut impl FnMut() -> SourceId,
    ) -> MappedFile {
        self.uses += 1;
        let (device, inode, path) = told;
        let key = match &opened {
            Some(opened) if !opened.is_elf => return MappedFile::Made,
            Some(opened) => Key::Version(opened.file.state().into()),
            None => Key::Told(device, inode, path.into()),
        };
        if let Some((module, used)) = self.modules.get_mut(&key) {
            *used = self.uses;
            module.used_by(tgid);
            match opened {
                None => return MappedFile::Module(Arc::clone(module)),
                Some(_) if module.is_open() => return MappedFile::Module(Arc::clone(module)),
                // Its numbers may have been given to another one meanwhile, that has the same size and time.
                Some(again) if again.print == module.print => {
                    module.held.set(Some(again.file));
                    return MappedFile::Module(Arc::clone(module));
                }
                Some(other) => return self.insert(key, tgid, path, Some(other), next_id),
            }
        }
        self.insert(key, tgid, path, opened, next_id)
    }

    fn insert(
        &mut self,
        key: Key,
        tgid: u32,
        path: &str,
        opened: Option<Opened>,
        next_id: &mut impl FnMut() -> SourceId,
    ) -> MappedFile {
        let module = Arc::new(Module::new(next_id(), path, opened, tgid, Arc::clone(&self.open_files)));
        self.modules.insert(key, (Arc::clone(&module), self.uses));
        if self.modules.len() > self.capacity {
            self.forget_oldest();
        }
        MappedFile::Module(module)
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

    /// Where a file of this table's processes is counted.
    pub(super) fn count(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.open_files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(path: &Path) -> Option<Opened> {
        path.to_str().and_then(open_regular).map(Opened::examine)
    }

    fn add(table: &mut ModuleTable, path: &Path, next: &mut u32) -> Option<Arc<Module>> {
        let mut next_id = || {
            *next += 1;
            SourceId::numbered(*next)
        };
        match table.add(1, opened(path), (1, 2, "/same/numbers/and/path"), &mut next_id) {
            MappedFile::Module(module) => Some(module),
            MappedFile::Made => None,
        }
    }

    /// A file that begins like a program.
    fn program(folder: &Path, name: &str, content: &str) -> std::path::PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, format!("\x7fELF{content}")).unwrap();
        path
    }

    #[test]
    fn files_of_which_proc_says_the_same_are_told_apart_by_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let (mut table, mut next) = (ModuleTable::new(8, 8), 0);
        let one = add(&mut table, &program(folder.path(), "one", "1"), &mut next).unwrap();
        let other = add(&mut table, &program(folder.path(), "other", "2"), &mut next).unwrap();
        assert_ne!(one.id, other.id);
        let again = add(&mut table, &folder.path().join("one"), &mut next).unwrap();
        assert!(Arc::ptr_eq(&one, &again));
        std::fs::write(folder.path().join("text"), "no program").unwrap();
        assert!(add(&mut table, &folder.path().join("text"), &mut next).is_none());
        assert_eq!(table.open_files(), 2);
    }

    #[test]
    fn a_file_that_was_closed_is_known_again_by_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let (mut table, mut next) = (ModuleTable::new(8, 8), 0);
        let path = program(folder.path(), "x", "first");
        let time = std::fs::metadata(&path).unwrap().modified().unwrap();
        let first = add(&mut table, &path, &mut next).unwrap();
        let give_up = |module: &Module| {
            module.held.leave();
            module.held.leave_now();
        };
        give_up(&first);
        assert!(
            first.was_given_up()
                && table
                    .known(1, crate::sys::path_state(path.to_str().unwrap()).unwrap())
                    .is_none()
        );
        let again = add(&mut table, &path, &mut next).unwrap();
        assert!(Arc::ptr_eq(&first, &again) && first.is_open());
        give_up(&first);
        // Other content under the same number, of the same size and time.
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        std::os::unix::fs::FileExt::write_at(&file, b"other", 4).unwrap();
        file.set_modified(time).unwrap();
        assert_ne!(add(&mut table, &path, &mut next).unwrap().id, first.id);
    }

    #[test]
    fn a_file_that_was_written_over_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let (mut table, mut next) = (ModuleTable::new(8, 8), 0);
        let path = program(folder.path(), "x", "old");
        let old = add(&mut table, &path, &mut next).unwrap();
        assert!(!old.is_overwritten());
        std::fs::write(&path, "\x7fELFnewer").unwrap();
        assert!(old.is_overwritten());
        assert_ne!(add(&mut table, &path, &mut next).unwrap().id, old.id);
    }
}
