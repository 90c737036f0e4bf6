//! Large files are read one at a time, whoever reads them: what is needed while one is read is needed once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Smaller files take so little that nobody needs to wait.
const LARGE_FILE_BYTES: u64 = 4 << 20;

/// Shared by the threads that read files.
#[derive(Debug, Clone, Default)]
pub struct ReadTurn(Arc<Queue>);

#[derive(Debug, Default)]
struct Queue {
    lock: Mutex<()>,
    waiting: AtomicUsize,
}

impl ReadTurn {
    /// Waits for its turn where the file is large; dropping what it gives ends the turn.
    pub(crate) fn take(&self, file_bytes: u64) -> Option<MutexGuard<'_, ()>> {
        (file_bytes >= LARGE_FILE_BYTES).then(|| {
            self.0.waiting.fetch_add(1, Ordering::Relaxed);
            // Nothing is behind the lock that a reader who panicked could have left half done.
            let turn = self.0.lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.0.waiting.fetch_sub(1, Ordering::Relaxed);
            turn
        })
    }

    /// True where somebody waits for its turn: who has it should not take its time.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.0.waiting.load(Ordering::Relaxed) > 0
    }
}
