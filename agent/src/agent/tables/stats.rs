//! What unwinding tables cost and brought.

/// What the unwinding has done, cumulative but for the first two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnwindStats {
    /// Files whose tables are installed.
    pub tables: u64,
    /// Bytes of tables and mappings.
    pub table_bytes: u64,
    /// Files that say nothing of their frames.
    pub without_information: u64,
    /// Tables that did not fit.
    pub no_room: u64,
    /// Tables that were given up for others that were needed more.
    pub evicted: u64,
    /// Stacks that were walked in user space, since they came before their tables.
    pub walked_deferred: u64,
    /// Of these, those whose tables did not come in time.
    pub walked_without_table: u64,
}
