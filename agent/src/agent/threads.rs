//! The agent's threads, and why one cannot start or go on.

use std::thread::JoinHandle;

use crate::kernel::KernelError;

/// Why an agent does not start, or has ended.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The BPF programs cannot be loaded, attached or read. The agent does not start, or ends.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The system gave no thread. The agent does not start.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// A thread panicked. The value is what it did, such as `sampling`; the agent has to be started again.
    #[error("the {0} thread ended unexpectedly; the log says why")]
    Ended(&'static str),
}

pub(super) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, AgentError> {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(work)
        .map_err(AgentError::Thread)
}
