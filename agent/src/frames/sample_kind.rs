//! What a sample is of: a thread that runs, or one that waits.

/// What a sample is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SampleKind {
    /// The thread ran.
    Cpu,
    /// It waited for something else than a CPU.
    OffCpu(WaitState),
    /// It could have run, and waited for a CPU.
    RunQueue(WaitState),
    /// It ended another thread's wait, which had this state.
    WakeUp(WaitState),
}

/// How a wait began, or for a CPU, why the thread had none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitState {
    /// A signal would have ended the wait.
    Sleeping,
    /// No signal would, as in most waits for a disk.
    Uninterruptible,
    /// The same of a kernel thread that has nothing to do.
    Idle,
    /// By a signal, or by who traces it.
    Stopped,
    /// Anything else, such as a kernel thread that is parked.
    Other,
    /// It was woken, and others were on its CPU.
    Woken,
    /// It could have gone on, and another thread was preferred.
    Preempted,
    /// It has not run before.
    New,
}

impl WaitState {
    /// As it is shipped.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sleeping => "sleeping",
            Self::Uninterruptible => "uninterruptible",
            Self::Idle => "idle",
            Self::Stopped => "stopped",
            Self::Other => "other",
            Self::Woken => "woken",
            Self::Preempted => "preempted",
            Self::New => "new",
        }
    }
}

impl SampleKind {
    /// The state of the wait.
    pub fn state(self) -> Option<WaitState> {
        match self {
            Self::Cpu => None,
            Self::OffCpu(state) | Self::RunQueue(state) | Self::WakeUp(state) => Some(state),
        }
    }
}
