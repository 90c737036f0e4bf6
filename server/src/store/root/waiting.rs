//! Leaves the threads that serve requests while the data root is waited for.

use crate::store::root::error::RootError;

/// Does something that may wait for the data root on a thread for blocking work.
pub(crate) async fn waiting<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RootError> + Send + 'static,
) -> Result<T, RootError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(RootError::new("", error)),
    }
}
