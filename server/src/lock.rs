//! Locks of what is changed in single steps.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A poisoned lock only says that a thread panicked elsewhere; what it guards is changed in single steps.
pub(crate) fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
