//! Memory of BPF maps that the kernel shares with this process.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// The value of an array map with one entry, mapped for reading and writing, as words of type `T`.
#[derive(Debug)]
pub(super) struct Shared<T> {
    words: NonNull<T>,
    count: usize,
}

// SAFETY: the memory belongs to the map, which any thread may use; `&mut` is needed to write.
unsafe impl<T: Send> Send for Shared<T> {}

/// Integers only: every bit pattern is a value.
pub(super) trait Word: Copy {}
impl Word for u32 {}
impl Word for u64 {}

impl<T: Word> Shared<T> {
    pub(super) fn map(fd: BorrowedFd<'_>, count: usize) -> io::Result<Self> {
        Self::map_from(fd, 0, count)
    }

    /// Maps only the pages that hold `count` words from word `first` on; also gives which word of the mapping is the first.
    pub(super) fn map_pages(fd: BorrowedFd<'_>, first: usize, count: usize) -> io::Result<(Self, usize)> {
        let page_bytes = super::system::page_bytes();
        let begin_bytes = first * size_of::<T>() / page_bytes * page_bytes;
        let skipped = first - begin_bytes / size_of::<T>();
        Ok((Self::map_from(fd, begin_bytes, skipped + count)?, skipped))
    }

    fn map_from(fd: BorrowedFd<'_>, offset_bytes: usize, count: usize) -> io::Result<Self> {
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
        Ok(Self { words, count })
    }

    /// Writes from word `at` on. BPF programs may read meanwhile: what they can reach is never written, only what is
    /// published afterwards. What lies outside is left out.
    pub(super) fn write(&mut self, at: usize, values: impl IntoIterator<Item = T>) {
        for (index, value) in (at..self.count).zip(values) {
            // SAFETY: `index` is below `count`, which is how much was mapped. Volatile, since others read it.
            unsafe { self.words.add(index).write_volatile(value) };
        }
    }

    pub(super) fn as_ptr(&self) -> *const T {
        self.words.as_ptr()
    }
}

impl Shared<u32> {
    /// Writes two words at once, the lower half first, from an even word on. Whoever sees them sees all that was written before.
    pub(super) fn write_pair(&mut self, at: usize, value: u64) {
        if at.is_multiple_of(2) && at + 1 < self.count {
            // SAFETY: both words were mapped, and an even word of a mapping lies at a multiple of 8 bytes.
            let pair = unsafe { AtomicU64::from_ptr(self.words.add(at).as_ptr().cast()) };
            pair.store(value.to_le(), Ordering::Release);
        }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: the range was mapped in `map`, and nothing refers to it any more.
        unsafe { libc::munmap(self.words.as_ptr().cast(), self.count * size_of::<T>()) };
    }
}
