//! What can go wrong at the store's door.

use crate::store::root::error::RootError;
use crate::store::table::schema::Table;
use std::error::Error;
use std::sync::Arc;

/// Errors are cheap to clone: one failed commit is reported to every batch that waited for it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The data directory cannot be made, read or written: the server does not start.
    #[error("data directory {name}: {cause}; give one that this user can write with --data")]
    DataDir {
        /// Its path.
        name: String,
        /// What the system says.
        cause: Arc<dyn Error + Send + Sync>,
    },
    /// Another process has the data directory open: the server does not start.
    #[error(
        "data directory {name} is in use by another stakeout-server; stop it, or give another place with --data; \
         several share it where each has --shared"
    )]
    Locked {
        /// Its path.
        name: String,
    },
    /// The store is of a newer format, or does not say of which: the server does not start.
    #[error("data directory {name}: {problem}")]
    Format {
        /// Its path.
        name: String,
        /// What is wrong, and what can be done.
        problem: String,
    },
    /// Data cannot be kept at such a place: the server does not start.
    #[error(
        "--data {url}: no such place is known; give a directory, or a bucket as s3://BUCKET/PREFIX, gs:// or az://"
    )]
    Unsupported {
        /// The URL that was given.
        url: String,
    },
    /// Too little space is left. The batch is to be sent again; queries go on.
    #[error("the disk of the data directory is full ({detail}); free space or lower --retention-samples")]
    DiskFull {
        /// What was to be written, or that too little space is left.
        detail: String,
    },
    /// Too many rows wait for their commit. The batch is to be sent again.
    #[error("{pending_bytes} bytes already wait to be written, the limit is {limit_bytes}; try again shortly")]
    Overloaded {
        /// Memory that they take.
        pending_bytes: u64,
        /// What they may take.
        limit_bytes: u64,
    },
    /// No more instances are remembered. The batch may be sent again: instances are forgotten after 30 days.
    #[error(
        "{limit} senders have given instance ids in the last 30 days, no new one is taken: one of them may make up an id for each batch"
    )]
    TooManyInstances {
        /// How many are remembered at most.
        limit: usize,
    },
    /// The instance is another sender's. The batch will never be taken.
    #[error(
        "instance {instance} was begun with another token or by another node: its batches are not taken from this sender"
    )]
    Foreign {
        /// The id that was given.
        instance: String,
    },
    /// No agent skips so many numbers. The batch will never be taken.
    #[error(
        "batch {number} of instance {instance} is more than {most} ahead of its highest, {highest}; begin another instance"
    )]
    FarAhead {
        /// The sender's instance.
        instance: String,
        /// The batch's number.
        number: i64,
        /// The highest number of the instance that was taken.
        highest: i64,
        /// How far a number may be ahead of that.
        most: i64,
    },
    /// The instance went on without this batch. It will never be taken.
    #[error("batch {number} of instance {instance} was skipped before; numbers go up only")]
    Skipped {
        /// The sender's instance.
        instance: String,
        /// The batch's number.
        number: i64,
    },
    /// Today's quota is used up. The batch is to be sent again.
    #[error(
        "the quota of {name} is used up: {used} of {limit} {what} a day were taken, and this batch has {wanted} more; it \
         begins anew at {begins}"
    )]
    QuotaUsedUp {
        /// Whose quota it is.
        name: String,
        /// What is counted: `bytes` or `series`.
        what: &'static str,
        /// How much may be taken in a day.
        limit: u64,
        /// How much was taken today.
        used: u64,
        /// What the batch would take.
        wanted: u64,
        /// When the next day begins, for people.
        begins: String,
        /// When to send it again.
        retry_seconds: u32,
    },
    /// The batch alone has more than the quota of a day. It will never be taken.
    #[error("the batch has {wanted} {what}, and the quota of {name} is {limit} {what} a day: it will never be taken")]
    BeyondQuota {
        /// Whose quota it is.
        name: String,
        /// What is counted: `bytes` or `series`.
        what: &'static str,
        /// How much may be taken in a day.
        limit: u64,
        /// What the batch would take.
        wanted: u64,
    },
    /// The batch is to be sent again: its samples of that hour are then left out.
    #[error("an hour of which the batch has samples has just been removed for want of space; send the batch again")]
    HourGone,
    /// Another server has rewritten the same files, or removed them. What was to take their place is given up.
    #[error("table {table}: another server has rewritten the same files meanwhile")]
    Overtaken {
        /// Which table.
        table: &'static str,
    },
    /// Nothing more is taken. The batch is to be sent again, to whoever comes after.
    #[error("the server is stopping; send the batch again")]
    Stopping,
    /// What the batch relies on was lost with a commit that failed. It is to be sent again, whole.
    #[error("rows that were left out as known are not stored after all; give all rows")]
    Forgotten,
    /// A step failed in the files of a table or in its log. A batch may be sent again.
    #[error("table {table}: {what}: {cause}")]
    Table {
        /// Which table.
        table: &'static str,
        /// The step, such as `write a file`.
        what: &'static str,
        /// All causes, in one line.
        cause: String,
    },
}

impl StoreError {
    /// Whether the same batch will never be taken.
    pub fn is_for_good(&self) -> bool {
        matches!(
            self,
            Self::Foreign { .. } | Self::FarAhead { .. } | Self::Skipped { .. } | Self::BeyondQuota { .. }
        )
    }

    /// Wraps the error of a step, and tells a full disk from everything else.
    pub(crate) fn table<E>(table: Table, what: &'static str) -> impl FnOnce(E) -> Self
    where
        E: std::error::Error + 'static,
    {
        move |error| {
            if is_disk_full(&error) {
                return Self::no_space(table, what);
            }
            Self::of_step(table, what, &error)
        }
    }

    /// As [`StoreError::table`], of a step in the data root. The table and the step name what failed.
    pub(crate) fn of_root(table: Table, what: &'static str) -> impl FnOnce(RootError) -> Self {
        move |error| match error {
            RootError::Full(_) => Self::no_space(table, what),
            error => Self::of_step(table, what, error.cause()),
        }
    }

    fn no_space(table: Table, what: &'static str) -> Self {
        Self::DiskFull {
            detail: format!("{what} of table {}", table.name()),
        }
    }

    fn of_step(table: Table, what: &'static str, cause: &dyn Error) -> Self {
        Self::Table {
            table: table.name(),
            what,
            cause: chain(cause),
        }
    }
}

/// Whether an ENOSPC or EDQUOT stands anywhere in the chain of causes.
fn is_disk_full(error: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<std::io::Error>()
            && matches!(io.kind(), StorageFull | QuotaExceeded)
        {
            return true;
        }
        next = error.source();
    }
    false
}

/// All causes in one line; some libraries repeat the cause in their own message.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        next = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_found_behind_wrappers() {
        let io = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let wrapped = object_store::Error::Generic {
            store: "local",
            source: Box::new(io),
        };
        let error = StoreError::table(Table::Samples, "write")(wrapped);
        assert!(matches!(error, StoreError::DiskFull { .. }), "{error}");
        let other = StoreError::table(Table::Samples, "write")(std::io::Error::other("x"));
        assert!(matches!(other, StoreError::Table { .. }), "{other}");
        let of_root = |cause| StoreError::of_root(Table::Samples, "write")(RootError::new("samples/x", cause));
        let full = of_root(std::io::Error::from(std::io::ErrorKind::QuotaExceeded));
        assert!(matches!(full, StoreError::DiskFull { .. }), "{full}");
        assert_eq!(
            of_root(std::io::Error::other("x")).to_string(),
            "table samples: write: x"
        );
    }
}
