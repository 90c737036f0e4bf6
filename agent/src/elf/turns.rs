//! Large files are read one at a time, whoever reads them: what is needed while one is read is needed once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Smaller files take so little that nobody needs to wait.
const LARGE_FILE_BYTES: u64 = 4 << 20;

/// Shared by the threads that read files.
#[derive(Debug, Clone, Default)]
pub struct Turns(Arc<Mutex<()>>);

impl Turns {
    /// Waits for its turn where the file is large; dropping what it gives ends the turn.
    pub(crate) fn take(&self, file_bytes: u64) -> Option<MutexGuard<'_, ()>> {
        // Nothing is behind the lock that a reader who panicked could have left half done.
        let take = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (file_bytes >= LARGE_FILE_BYTES).then(take)
    }
}
