//! Control groups of version 2 by the number that samples carry, to their paths.
//!
//! In: numbers, and the paths of groups as they are made. Out: paths. A number is never given twice, so that what is
//! known stays true, also when the group is gone. What was never known is told as unknown, not guessed.

use std::fs::DirEntry;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::hash::FastMap;
use crate::sys::GroupFolder;

/// Groups that are kept in mind: twice as many at most.
const MAX_GROUPS: usize = 8192;
/// Folders that are looked at where the kernel does not find a group by its number, and how often at most.
const MAX_FOLDERS: usize = 16_384;
const SEARCH_EVERY: Duration = Duration::from_secs(5);

/// What is known of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Group {
    Path(Arc<str>),
    /// It is gone, and nobody knew it before.
    Gone,
    /// This machine does not tell.
    Untold,
}

/// All groups that were met, in two generations.
#[derive(Debug, Default)]
pub(super) struct Groups {
    folder: Option<GroupFolder>,
    path: PathBuf,
    young: FastMap<u64, Option<Arc<str>>>,
    old: FastMap<u64, Option<Arc<str>>>,
    /// The kernel does not let this process open a group by its number.
    is_refused: bool,
    searched: Option<Instant>,
}

impl Groups {
    /// `mounts` is the text of /proc/self/mountinfo.
    pub(super) fn mounted(mounts: &str) -> Self {
        let path = mounts.lines().find_map(mount_of_groups).unwrap_or_default();
        let folder = GroupFolder::open(&path).ok();
        Self {
            folder,
            path,
            ..Self::default()
        }
    }

    /// A group was made.
    pub(super) fn made(&mut self, id: u64, path: &str) {
        self.put(id, Some(path.into()));
    }

    pub(super) fn get(&mut self, id: u64) -> Group {
        if let Some(known) = self.young.get(&id) {
            return told(known.clone());
        }
        if let Some(known) = self.old.remove(&id) {
            self.put(id, known.clone());
            return told(known);
        }
        let Some(folder) = &self.folder else {
            return Group::Untold;
        };
        if !self.is_refused {
            match folder.path_of(id) {
                Ok(path) => return self.keep(id, Some(path.into())),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return self.keep(id, None),
                Err(error) => {
                    tracing::debug!(
                        %error,
                        "the kernel does not open control groups by number: their folders are searched"
                    );
                    self.is_refused = true;
                }
            }
        }
        if self.searched.is_none_or(|at| at.elapsed() >= SEARCH_EVERY) {
            self.search();
            self.searched = Some(Instant::now());
        }
        // It may be met again by the next search.
        self.young.get(&id).cloned().map_or(Group::Gone, told)
    }

    fn keep(&mut self, id: u64, path: Option<Arc<str>>) -> Group {
        self.put(id, path.clone());
        told(path)
    }

    fn put(&mut self, id: u64, path: Option<Arc<str>>) {
        if self.young.len() >= MAX_GROUPS {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(id, path);
    }

    /// Every folder's inode is its group's number.
    fn search(&mut self) {
        let root = self.path.clone();
        self.put(inode(&root).unwrap_or(1), Some("/".into()));
        let (mut left, mut folders) = (MAX_FOLDERS, vec![root]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder)
                .into_iter()
                .flatten()
                .flatten()
                .filter(is_folder)
            {
                let Some(more) = left.checked_sub(1) else { return };
                left = more;
                let path = entry.path();
                let group = path.strip_prefix(&self.path).map(|path| format!("/{}", path.display()));
                self.put(entry.ino(), group.ok().map(Into::into));
                folders.push(path);
            }
        }
    }
}

fn told(known: Option<Arc<str>>) -> Group {
    known.map_or(Group::Gone, Group::Path)
}

fn is_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir())
}

fn inode(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;

    std::fs::metadata(path).ok().map(|folder| folder.ino())
}

/// Of a line such as `35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw`, the folder.
fn mount_of_groups(line: &str) -> Option<PathBuf> {
    let (fields, kind) = line.split_once(" - ")?;
    if kind.split(' ').next() != Some("cgroup2") {
        return None;
    }
    let path = fields.split(' ').nth(4)?;
    Some(path.replace("\\040", " ").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_is_found_among_others() {
        let lines = "24 1 0:22 / /sys rw - sysfs sysfs rw\n\
                     30 24 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                     35 24 0:30 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        let mount = lines.lines().find_map(mount_of_groups);
        assert_eq!(mount.as_deref(), Some(Path::new("/sys/fs/cgroup/unified")));
        assert_eq!(mount_of_groups("nothing"), None);
    }

    #[test]
    fn what_was_told_stays_known_and_what_was_never_known_is_not_guessed() {
        let mut groups = Groups::default();
        groups.made(7, "/a/b");
        assert_eq!(groups.get(7), Group::Path("/a/b".into()));
        assert_eq!(groups.get(8), Group::Untold, "without a mount");
        for id in 0..10 * MAX_GROUPS as u64 {
            groups.made(100 + id, "/x");
            assert_eq!(groups.get(7), Group::Path("/a/b".into()), "asked for all the time");
        }
        assert!(groups.young.len() + groups.old.len() <= 2 * MAX_GROUPS);
    }

    #[test]
    fn folders_are_searched_where_the_kernel_refuses() {
        let root = std::env::temp_dir().join(format!("groups-{}", std::process::id()));
        std::fs::create_dir_all(root.join("a/b c")).unwrap();
        let mut groups = Groups {
            folder: GroupFolder::open(&root).ok(),
            path: root.clone(),
            is_refused: true,
            ..Groups::default()
        };
        let inner = inode(&root.join("a/b c")).unwrap();
        assert_eq!(groups.get(inner), Group::Path("/a/b c".into()));
        assert_eq!(groups.get(inode(&root).unwrap()), Group::Path("/".into()));
        assert_eq!(groups.get(u64::MAX), Group::Gone);
        std::fs::remove_dir_all(&root).unwrap();
    }
}
