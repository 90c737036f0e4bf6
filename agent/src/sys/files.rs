//! Files of other processes: what they are without asking their server, opening them without leaving a root, how many
//! may be open.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

/// What a file is, and which of the things that lay at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileState {
    /// As `stat` tells it, major number in the upper half: another one for each filesystem below an overlay and each
    /// subvolume of btrfs.
    pub device: u64,
    /// Its number in its filesystem.
    pub inode: u64,
    /// How long it is.
    pub bytes: u64,
    /// When its content was changed last.
    pub modified_ns: i128,
    /// The same where nobody has set that time; where somebody has, the earlier of what was set and when.
    pub written_ns: i128,
    /// Type and rights, as `stat` has them.
    pub mode: u16,
    /// The user that it belongs to.
    pub owner: u32,
    /// How many names it has: none once it is deleted.
    pub links: u32,
}

impl FileState {
    /// True of a file, false of a folder, a pipe or a device.
    pub(crate) fn is_regular(&self) -> bool {
        u32::from(self.mode) & libc::S_IFMT == libc::S_IFREG
    }

    /// True where it may be read by everybody.
    pub fn is_public(&self) -> bool {
        u32::from(self.mode) & libc::S_IROTH != 0
    }
}

fn state(directory: RawFd, path: &CStr, flags: libc::c_int) -> io::Result<FileState> {
    let mut buffer = MaybeUninit::<libc::statx>::zeroed();
    // What the kernel knows is enough: whoever serves the file may never answer.
    let flags = flags | libc::AT_STATX_DONT_SYNC | libc::AT_NO_AUTOMOUNT;
    let wanted = libc::STATX_BASIC_STATS;
    // SAFETY: the path ends with a zero, and the buffer is one of the kernel's structures.
    if unsafe { libc::statx(directory, path.as_ptr(), flags, wanted, buffer.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was all zero before, which is a value of it, and the kernel has filled it.
    let stat = unsafe { buffer.assume_init() };
    let ns = |time: libc::statx_timestamp| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
    let modified_ns = ns(stat.stx_mtime);
    Ok(FileState {
        device: u64::from(stat.stx_dev_major) << 32 | u64::from(stat.stx_dev_minor),
        inode: stat.stx_ino,
        bytes: stat.stx_size,
        modified_ns,
        written_ns: modified_ns.min(ns(stat.stx_ctime)),
        mode: stat.stx_mode,
        owner: stat.stx_uid,
        links: stat.stx_nlink,
    })
}

/// What an open file is, as far as the kernel knows without asking who serves it.
pub fn file_state(file: &File) -> io::Result<FileState> {
    state(file.as_raw_fd(), c"", libc::AT_EMPTY_PATH)
}

/// The same of what a path leads to.
pub fn path_state(path: &str) -> io::Result<FileState> {
    state(libc::AT_FDCWD, &CString::new(path)?, 0)
}

/// The kernel's `struct open_how`.
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

fn opened(fd: libc::c_long) -> io::Result<File> {
    match RawFd::try_from(fd) {
        // SAFETY: the kernel has just made this descriptor, and nobody else has it.
        Ok(fd) if fd >= 0 => Ok(unsafe { File::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A place in a file tree: what lies there is not opened, so that nothing happens to it.
pub fn find_place(path: &str) -> io::Result<File> {
    let path = CString::new(path)?;
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    // SAFETY: the path ends with a zero.
    opened(libc::c_long::from(unsafe { libc::open(path.as_ptr(), flags) }))
}

/// The place to which a path leads for who has `root` as its root: absolute links and `..` stay below, and links of
/// /proc are not followed. `follow` says whether the last part may be a link.
pub fn find_place_in(root: &File, path: &str, follow: bool) -> io::Result<File> {
    let path = CString::new(path)?;
    let last = if follow { 0 } else { libc::O_NOFOLLOW };
    let how = OpenHow {
        flags: (libc::O_PATH | libc::O_CLOEXEC | last) as u64,
        mode: 0,
        resolve: libc::RESOLVE_IN_ROOT | libc::RESOLVE_NO_MAGICLINKS,
    };
    // SAFETY: the path ends with a zero, and the structure has the size that is said.
    opened(unsafe {
        libc::syscall(
            libc::SYS_openat2,
            root.as_raw_fd(),
            path.as_ptr(),
            &raw const how,
            size_of::<OpenHow>(),
        )
    })
}

/// Opens what lies at a place for reading; never waits for somebody at the other end, and makes no terminal this
/// process's own.
pub fn open_place(place: &File) -> io::Result<File> {
    let path = CString::new(format!("/proc/self/fd/{}", place.as_raw_fd()))?;
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    // SAFETY: the path ends with a zero.
    opened(libc::c_long::from(unsafe { libc::open(path.as_ptr(), flags) }))
}

/// Raises the limit of open files to what is allowed, at most `wanted`; returns the limit now in force.
pub fn raise_descriptor_limit(wanted: u64) -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is valid for both calls.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return 1024;
        }
        if limit.rlim_cur < wanted {
            let raised = libc::rlimit {
                rlim_cur: wanted.min(limit.rlim_max),
                rlim_max: limit.rlim_max,
            };
            if libc::setrlimit(libc::RLIMIT_NOFILE, &raised) == 0 {
                limit = raised;
            }
        }
    }
    limit.rlim_cur
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stay_below_the_root_that_they_are_followed_in() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("inside"), "here").unwrap();
        for (name, target) in [
            ("absolute", "/inside"),
            ("upwards", "../../../../inside"),
            ("outside", "/etc/passwd"),
        ] {
            std::os::unix::fs::symlink(target, folder.path().join(name)).unwrap();
        }
        let root = find_place(folder.path().to_str().unwrap()).unwrap();
        let read = |path, follow| {
            let file = open_place(&find_place_in(&root, path, follow)?)?;
            io::read_to_string(file)
        };
        for path in ["/inside", "absolute", "/upwards", "../../inside"] {
            assert_eq!(read(path, true).unwrap(), "here", "{path}");
        }
        assert!(read("/outside", true).is_err(), "there is no such file below");
        assert!(read("/absolute", false).is_err(), "a link is not what was meant");
        std::os::unix::fs::symlink("/proc/self/root/etc/passwd", folder.path().join("proc")).unwrap();
        assert!(read("/proc", true).is_err());
    }

    #[test]
    fn what_is_said_of_a_file_is_what_stat_says() {
        use std::os::unix::fs::MetadataExt;
        let path = std::env::current_exe().unwrap();
        let (file, metadata) = (File::open(&path).unwrap(), std::fs::metadata(&path).unwrap());
        let state = file_state(&file).unwrap();
        assert_eq!(state, path_state(path.to_str().unwrap()).unwrap());
        assert_eq!((state.inode, state.bytes), (metadata.ino(), metadata.len()));
        let modified = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        assert_eq!((state.modified_ns, state.owner), (modified, metadata.uid()));
        assert!(state.is_regular() && !path_state("/dev/null").unwrap().is_regular());
    }
}
