//! Files that are held open, and given up when nobody maps them any more.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::sys::{self, FileState, Owner, guarded};

/// An open regular file, and what it was when it was opened.
#[derive(Debug, Clone)]
pub(crate) struct SafeFile {
    file: Arc<File>,
    state: FileState,
    /// Nobody is asked for its content.
    local: bool,
}

impl SafeFile {
    pub(super) fn new(file: File, state: FileState, local: bool) -> Self {
        Self {
            file: Arc::new(file),
            state,
            local,
        }
    }

    pub(crate) fn state(&self) -> FileState {
        self.state
    }

    /// When it was written last, by the monotonic clock. None where the clock is not this machine's.
    pub(crate) fn written_ns(&self) -> Option<u64> {
        sys::monotonic_of_file_time(self.state.written_ns).filter(|_| self.local)
    }

    /// What the file is now, as far as the kernel knows.
    pub(crate) fn present_state(&self) -> Option<FileState> {
        sys::file_state(&self.file).ok()
    }

    /// Reads what there is, at most as many bytes as there is room for. None where it fails, or its server does not
    /// answer.
    pub(crate) fn read_some(&self, offset: u64, into: &mut [u8]) -> Option<usize> {
        if self.local {
            return self.file.read_at(into, offset).ok();
        }
        let (file, room) = (Arc::clone(&self.file), into.len());
        let bytes = guarded(Owner::Device(self.state.device), move || {
            let mut bytes = vec![0; room];
            let got = file.read_at(&mut bytes, offset).ok()?;
            bytes.truncate(got);
            Some(bytes)
        })??;
        into[..bytes.len()].copy_from_slice(&bytes);
        Some(bytes.len())
    }

    /// Fills a buffer without asking whether that may take for ever: for who may be left behind.
    pub(in crate::process) fn read_here(&self, offset: u64, into: &mut [u8]) -> bool {
        self.file.read_exact_at(into, offset).is_ok()
    }

    /// Fills a buffer; false where it cannot, or the file ends before.
    pub(crate) fn read_at(&self, offset: u64, into: &mut [u8]) -> bool {
        if self.local {
            return self.file.read_exact_at(into, offset).is_ok();
        }
        let mut done = 0;
        while done < into.len() {
            match self.read_some(offset.saturating_add(done as u64), &mut into[done..]) {
                Some(got) if got > 0 => done += got,
                _ => return false,
            }
        }
        true
    }
}

/// A file of processes that have it mapped. Counted while it is open.
#[derive(Debug)]
pub(crate) struct Held {
    file: RwLock<Option<SafeFile>>,
    /// It is to be given up once what is needed of it was read.
    leaving: AtomicBool,
    /// It was open once.
    was_open: AtomicBool,
    open_files: Arc<AtomicUsize>,
}

impl Held {
    pub(crate) fn new(file: Option<SafeFile>, open_files: Arc<AtomicUsize>) -> Self {
        open_files.fetch_add(usize::from(file.is_some()), Ordering::Relaxed);
        Self {
            was_open: AtomicBool::new(file.is_some()),
            file: RwLock::new(file),
            leaving: AtomicBool::new(false),
            open_files,
        }
    }

    /// The file; none while it is not open. Whoever takes it keeps it open as long.
    pub(crate) fn get(&self) -> Option<SafeFile> {
        self.file.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.file.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// True where it was open and was given up.
    pub(crate) fn was_given_up(&self) -> bool {
        self.was_open.load(Ordering::Relaxed) && !self.is_open()
    }

    /// Takes another file instead, or the same one again.
    pub(crate) fn set(&self, new: Option<SafeFile>) {
        let mut file = self.file.write().unwrap_or_else(PoisonError::into_inner);
        self.open_files.fetch_add(usize::from(new.is_some()), Ordering::Relaxed);
        self.open_files
            .fetch_sub(usize::from(file.is_some()), Ordering::Relaxed);
        self.was_open.fetch_or(new.is_some(), Ordering::Relaxed);
        *file = new;
    }

    /// Somebody maps it.
    pub(crate) fn stay(&self) {
        self.leaving.store(false, Ordering::Release);
    }

    /// Nobody maps it any more: [`Self::leave_now`] may give it up.
    pub(crate) fn leave(&self) {
        self.leaving.store(true, Ordering::Release);
    }

    /// True since nobody maps it any more.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Acquire)
    }

    /// Gives it up unless somebody has come to map it meanwhile.
    pub(crate) fn leave_now(&self) {
        let mut file = self.file.write().unwrap_or_else(PoisonError::into_inner);
        if self.leaving.load(Ordering::Acquire) && file.take().is_some() {
            self.open_files.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_given_up_unless_it_is_wanted_again() {
        let path = std::env::current_exe().unwrap();
        let open = || super::super::open_regular(path.to_str().unwrap()).unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        let held = Held::new(Some(open()), Arc::clone(&count));
        held.leave_now();
        assert!(held.is_open(), "nobody said that it may go");
        held.leave();
        held.stay();
        held.leave_now();
        assert!(held.is_open() && !held.was_given_up());
        held.leave();
        held.leave_now();
        assert_eq!((held.was_given_up(), count.load(Ordering::Relaxed)), (true, 0));
        held.set(Some(open()));
        assert_eq!((held.was_given_up(), count.load(Ordering::Relaxed)), (false, 1));
        drop(held);
        assert_eq!(count.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_is_served_is_read_as_what_is_local() {
        let path = std::env::current_exe().unwrap();
        let local = super::super::open_regular(path.to_str().unwrap()).unwrap();
        let served = SafeFile {
            local: false,
            ..local.clone()
        };
        let (mut one, mut other) = (vec![0; 100_000], vec![0; 100_000]);
        assert!(local.read_at(4096, &mut one) && served.read_at(4096, &mut other));
        assert_eq!(one, other);
        let end = local.state().bytes;
        assert!(!served.read_at(end - 10, &mut other));
        assert_eq!(served.read_some(end - 10, &mut other), Some(10));
    }
}
