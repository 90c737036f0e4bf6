//! Threads that serve requests to the bucket, for callers that wait.

use crate::store::root::bucket::words;
use crate::store::root::error::RootError;
use std::future::Future;
use std::sync::mpsc;
use tokio::runtime::{Builder, Handle, Runtime};

/// Threads; they carry requests and hash nothing.
const THREADS: usize = 2;

/// See the module.
#[derive(Debug)]
pub(super) struct IoThreads {
    runtime: Option<Runtime>,
    handle: Handle,
}

impl IoThreads {
    pub(super) fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("bucket")
            .enable_all()
            .build()?;
        Ok(Self {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Waits, on a thread that may, until something is done. Errors name the object.
    pub(super) fn wait<T, F>(&self, object: &str, work: F) -> Result<T, RootError>
    where
        T: Send + 'static,
        F: Future<Output = object_store::Result<T>> + Send + 'static,
    {
        let (done, ended) = mpsc::sync_channel(1);
        self.handle.spawn(async move {
            // Who waited may be gone.
            let _ = done.send(work.await);
        });
        match ended.recv() {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(cause)) => Err(words::error(object, cause)),
            Err(cause) => Err(RootError::new(object, cause)),
        }
    }
}

impl Drop for IoThreads {
    fn drop(&mut self) {
        // Threads that serve requests may not wait for these to end.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
