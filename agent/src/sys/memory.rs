//! Memory of this process: what it takes, giving it back, files that no disk has.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of a page of memory.
pub fn page_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    // SAFETY: no arguments in memory.
    *BYTES.get_or_init(|| u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096))
}

/// Bytes in all [`MemoryFile`]s.
static MEMORY_FILE_BYTES: AtomicU64 = AtomicU64::new(0);

/// A file without a place on any disk, of which only what was written takes memory. That is this process's, but no part
/// of what counts as resident unless it is mapped.
#[derive(Debug)]
pub struct MemoryFile {
    file: File,
    counted_bytes: u64,
}

impl MemoryFile {
    /// Of `length` bytes, zeros at first.
    pub fn new(name: &CStr, length: u64) -> io::Result<Self> {
        // Where `vm.memfd_noexec` is 2 only files that can't be executed are made; kernels before 6.3 don't know of
        // that.
        let create = |flags| {
            // SAFETY: `name` ends with a zero; the result is checked.
            let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | flags) };
            if fd < 0 {
                Err(io::Error::last_os_error())
            } else {
                Ok(fd)
            }
        };
        let fd = create(libc::MFD_NOEXEC_SEAL).or_else(|_| create(0))?;
        // SAFETY: nobody else has this descriptor.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(length)?;
        Ok(Self { file, counted_bytes: 0 })
    }

    /// Writes all of `bytes`, the first of them at `offset`.
    pub(crate) fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let page = page_bytes();
        let pages = (offset + bytes.len() as u64).div_ceil(page) - offset / page;
        self.counted_bytes += pages * page;
        MEMORY_FILE_BYTES.fetch_add(pages * page, Ordering::Relaxed);
        self.file.write_all_at(bytes, offset)
    }

    /// Leads to it in this process, as long as it lives.
    pub fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        MEMORY_FILE_BYTES.fetch_sub(self.counted_bytes, Ordering::Relaxed);
    }
}

/// Memory that all [`MemoryFile`]s take, at most.
pub fn memory_file_bytes() -> u64 {
    MEMORY_FILE_BYTES.load(Ordering::Relaxed)
}

/// What the kernel counts as this process's resident memory. `statm` costs a fifth of what `status` does.
pub fn resident_bytes() -> u64 {
    let sizes = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = sizes
        .split_ascii_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * page_bytes()
}

/// Bytes of this process's address space that are memory of BPF maps, all of it resident: the kernel maps them as a
/// whole.
pub fn mapped_map_bytes() -> u64 {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let lines = maps.lines().filter(|line| line.ends_with(" anon_inode:bpf-map"));
    lines.filter_map(range).map(|(start, end)| (end - start) as u64).sum()
}

/// Makes the allocator give memory back: two heaps rather than eight a CPU, and large blocks always on their own.
pub fn tune_allocator() {
    #[cfg(target_env = "gnu")]
    // SAFETY: these only change the allocator's settings.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 * 1024);
    }
}

/// Gives back what the allocator holds without need, and unmaps the pages of [`MemoryFile`]s that are mapped, which
/// counted twice: the files keep them.
pub fn release_memory() {
    if memory_file_bytes() > 0 {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        for (start, end) in maps.lines().filter_map(shared_read_only_file) {
            // SAFETY: nobody can write to the mapping, so that dropping its pages changes nothing that can be read.
            unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED) };
        }
    }
    #[cfg(target_env = "gnu")]
    // SAFETY: no arguments in memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// The range of a line of /proc/self/maps, if it is a file that is shared and mapped for nothing but reading. Programs
/// and libraries are mapped privately, rings of the kernel have no path.
fn shared_read_only_file(line: &str) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    if fields.next()? != "r--s" || !fields.nth(3)?.starts_with('/') {
        return None;
    }
    range(line)
}

/// The range of addresses with which a line of /proc/self/maps begins.
fn range(line: &str) -> Option<(usize, usize)> {
    let (start, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
    Some((
        usize::from_str_radix(start, 16).ok()?,
        usize::from_str_radix(end, 16).ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shared_read_only_files_are_released() {
        let file = "7f0000000000-7f0000002000 r--s 00000000 fe:00 1234    /usr/lib/a b.so";
        assert_eq!(shared_read_only_file(file), Some((0x7f00_0000_0000, 0x7f00_0000_2000)));
        for other in [
            "7f0000000000-7f0000002000 r--p 00000000 fe:00 1234    /usr/lib/a.so",
            "7f0000000000-7f0000002000 rw-s 00000000 fe:00 1234    /dev/shm/x",
            "7f0000000000-7f0000002000 r--s 00000000 00:0e 12      anon_inode:bpf-map",
            "7f0000000000-7f0000002000 r--s 00000000 00:00 0 ",
        ] {
            assert_eq!(shared_read_only_file(other), None);
        }
        release_memory();
    }
}
