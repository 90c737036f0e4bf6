//! Memory of BPF maps that the kernel shares with this process.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::page_bytes;

/// Bytes in all [`Shared`]s.
static SHARED_BYTES: AtomicU64 = AtomicU64::new(0);

/// Bytes of maps that are mapped here: resident in this process, as far as the kernel counts, and charged for as maps
/// as well.
pub(in crate::kernel) fn shared_bytes() -> u64 {
    SHARED_BYTES.load(Ordering::Relaxed)
}

/// Bytes that the kernel charges for a map.
pub(in crate::kernel) fn charged_bytes(map: BorrowedFd<'_>) -> u64 {
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", map.as_raw_fd())).unwrap_or_default();
    info.lines()
        .find_map(|line| line.strip_prefix("memlock:")?.trim().parse().ok())
        .unwrap_or(0)
}

/// The value of an array map with one entry, mapped for reading and writing, as words of type `T`.
#[derive(Debug)]
pub(in crate::kernel) struct Shared<T> {
    words: NonNull<T>,
    count: usize,
}

// SAFETY: the memory belongs to the map, which any thread may use; `&mut` is needed to write.
unsafe impl<T: Send> Send for Shared<T> {}

/// Integers only: every bit pattern is a value.
pub(in crate::kernel) trait Word: Copy {}
impl Word for u32 {}
impl Word for u64 {}

impl<T: Word> Shared<T> {
    pub(in crate::kernel) fn map(fd: BorrowedFd<'_>, count: usize) -> io::Result<Self> {
        Self::map_bytes(fd, 0, count)
    }

    /// Maps `count` words from word `first` on, which begins a page.
    pub(in crate::kernel) fn map_from(fd: BorrowedFd<'_>, first: usize, count: usize) -> io::Result<Self> {
        Self::map_bytes(fd, first * size_of::<T>(), count)
    }

    fn map_bytes(fd: BorrowedFd<'_>, offset_bytes: usize, count: usize) -> io::Result<Self> {
        let offset = libc::off_t::try_from(offset_bytes).map_err(io::Error::other)?;
        // SAFETY: a new mapping at an address of the kernel's choice, checked below.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                count * size_of::<T>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                offset,
            )
        };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let words = NonNull::new(address.cast()).ok_or_else(|| io::Error::other("mapped at zero"))?;
        let shared = Self { words, count };
        SHARED_BYTES.fetch_add(shared.bytes(), Ordering::Relaxed);
        Ok(shared)
    }

    /// Writes from word `at` on. BPF programs may read meanwhile: what they can reach is never written, only what is
    /// published afterwards. What lies outside is left out.
    pub(in crate::kernel) fn write(&mut self, at: usize, values: impl IntoIterator<Item = T>) {
        for (index, value) in (at..self.count).zip(values) {
            // SAFETY: `index` is below `count`, which is how much was mapped. Volatile, since others read it.
            unsafe { self.words.add(index).write_volatile(value) };
        }
    }

    pub(in crate::kernel) fn count(&self) -> usize {
        self.count
    }

    pub(in crate::kernel) fn as_ptr(&self) -> *const T {
        self.words.as_ptr()
    }
}

impl<T> Shared<T> {
    /// As much as is resident: the kernel maps whole pages, all of them at once.
    fn bytes(&self) -> u64 {
        ((self.count * size_of::<T>()) as u64).next_multiple_of(page_bytes())
    }
}

impl Shared<u32> {
    /// Writes pairs of words from an even word on, each pair at once and the lower half first. Whoever sees one sees
    /// all that was written before. What lies outside is left out.
    pub(in crate::kernel) fn write_pairs(&mut self, at: usize, pairs: impl IntoIterator<Item = u64>) {
        let places = (at..self.count.saturating_sub(1)).step_by(2);
        for (index, value) in places.filter(|_| at.is_multiple_of(2)).zip(pairs) {
            // SAFETY: both words were mapped, and an even word of a mapping lies at a multiple of 8 bytes.
            let pair = unsafe { AtomicU64::from_ptr(self.words.add(index).as_ptr().cast()) };
            pair.store(value.to_le(), Ordering::Release);
        }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        SHARED_BYTES.fetch_sub(self.bytes(), Ordering::Relaxed);
        // SAFETY: the range was mapped in `map`, and nothing refers to it any more.
        unsafe { libc::munmap(self.words.as_ptr().cast(), self.count * size_of::<T>()) };
    }
}
