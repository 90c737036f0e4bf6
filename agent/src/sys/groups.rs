//! Control groups of version 2 by the number that samples carry.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// `FILEID_KERNFS` (include/linux/exportfs.h): the handle is the group's number.
const HANDLE_KERNFS: i32 = 0xfe;

/// `struct file_handle` (uapi/linux/fcntl.h) with eight bytes.
#[repr(C)]
struct Handle {
    bytes: u32,
    kind: i32,
    /// Bytes, not a number: it stands at a multiple of four.
    id: [u8; 8],
}

/// A mount of cgroup2.
#[derive(Debug)]
pub struct GroupFolder {
    mount: File,
    path: PathBuf,
}

impl GroupFolder {
    /// Opens the folder at which cgroup2 is mounted.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mount = File::options()
            .read(true)
            .custom_flags(libc::O_DIRECTORY | libc::O_CLOEXEC)
            .open(path)?;
        Ok(Self {
            mount,
            path: path.into(),
        })
    }

    /// The group's path, beginning with `/`; relative to the mount's root, or from the tree's own root where the group
    /// lies outside of that. `NotFound` where there is no such group any more.
    pub fn path_of(&self, id: u64) -> io::Result<String> {
        let mut handle = Handle {
            bytes: 8,
            kind: HANDLE_KERNFS,
            id: id.to_ne_bytes(),
        };
        // SAFETY: `handle` has as many bytes behind its head as it says, and is valid for the call; the result is
        // checked.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_open_by_handle_at,
                self.mount.as_raw_fd(),
                &raw mut handle,
                libc::O_PATH | libc::O_CLOEXEC,
            )
        };
        if fd < 0 {
            let error = io::Error::last_os_error();
            return Err(match error.raw_os_error() {
                Some(libc::ESTALE) => io::ErrorKind::NotFound.into(),
                _ => error,
            });
        }
        // SAFETY: the descriptor is new and nobody else's.
        let group = unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) };
        let path = std::fs::read_link(format!("/proc/self/fd/{}", group.as_raw_fd()))?;
        if path.as_os_str().as_bytes().ends_with(b" (deleted)") {
            return Err(io::ErrorKind::NotFound.into());
        }
        let path = path.strip_prefix(&self.path).unwrap_or(&path);
        Ok(format!("/{}", path.to_string_lossy().trim_start_matches('/')))
    }
}
