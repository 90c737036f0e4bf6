//! What the table remembers between two looks for files that nobody maps.

/// What makes the table look again.
#[derive(Debug, Default)]
pub(super) struct UnmappedScan {
    /// Processes and programs that ended when it looked last.
    pub(super) ended: u64,
    pub(super) seen_ended: u64,
    pub(super) waits: bool,
    /// The process that was asked after last.
    pub(super) asked: (u32, u64),
    /// Words that were lost in all, and how many processes are still to be asked after for that.
    pub(super) lost: u64,
    pub(super) left: usize,
}

impl UnmappedScan {
    /// A process or a program of one has ended.
    pub(super) fn one_ended(&mut self) {
        self.ended += 1;
    }
}
