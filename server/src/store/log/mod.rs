//! Each table's Delta log: opened, checked, mended, and written one entry a commit.
//!
//! In: files to add and to remove, transactions. Out: an entry that is durable, or an error that says whether it may
//! be there. Reads rows only to recover.

pub(crate) mod checkpoint;
pub(crate) mod checksums;
pub(crate) mod entries;
pub(crate) mod location;
mod looked;
pub(crate) mod opening;
pub(crate) mod orphan_commit;
pub(crate) mod pinned;
pub(crate) mod recover;
pub(crate) mod schema;
pub(crate) mod shared_log;
pub(crate) mod table_log;
pub(crate) mod transactions;
