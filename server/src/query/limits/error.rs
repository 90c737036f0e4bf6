//! What can go wrong with a query, as the user is told it.

use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool};

/// An error of the query room. The message says what was wrong and where, the hint what is allowed or what to do.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// A selector, a pattern or SQL that cannot be read.
    #[error("{message}")]
    BadQuery {
        /// What was wrong, and where.
        message: String,
        /// What is allowed.
        hint: String,
    },
    /// A time that cannot be read, or a window that is none.
    #[error("{message}")]
    BadTime {
        /// What was wrong, and where.
        message: String,
        /// What is allowed.
        hint: String,
    },
    /// Any other parameter.
    #[error("{message}")]
    BadParameter {
        /// What was wrong, and where.
        message: String,
        /// What is allowed.
        hint: String,
    },
    /// The answer or what it needs would be larger than a limit.
    #[error("{message}")]
    TooLarge {
        /// What would be too large, and the limit.
        message: String,
        /// How to ask for less.
        hint: String,
    },
    /// More values of a label in steps of time than one answer counts.
    #[error("the selection has more than {groups} groups of {steps} steps each")]
    TooManyGroups {
        /// How many fit.
        groups: usize,
        /// Steps of each.
        steps: usize,
    },
    /// More queries than may run and wait.
    #[error("{running} queries run and {waiting} wait: no more are taken")]
    Overloaded {
        /// Queries that run now.
        running: usize,
        /// Queries that wait for their turn.
        waiting: usize,
    },
    /// It needs more memory than queries may take, or than others have left of it.
    #[error("{what} need {needed_mib} MiB; {used_mib} of {limit_mib} MiB that queries may take are in use")]
    NoMemory {
        /// What needs memory, such as `names of stacks`.
        what: String,
        /// How much of it that is, in MiB.
        needed_mib: usize,
        /// What queries use now, in MiB.
        used_mib: usize,
        /// What they may use, in MiB.
        limit_mib: usize,
    },
    /// It took longer than a query may.
    #[error("the query took longer than {seconds} s and was stopped")]
    Timeout {
        /// What a query may take, its wait included.
        seconds: u64,
    },
    /// Not the user's fault; the cause is for the log.
    #[error("the query failed inside the server: {what}")]
    Internal {
        /// The step that failed.
        what: &'static str,
        /// Why, for the log alone.
        cause: String,
    },
}

impl QueryError {
    pub(crate) fn bad_query(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::BadQuery {
            message: message.into(),
            hint: hint.into(),
        }
    }

    pub(crate) fn bad_time(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::BadTime {
            message: message.into(),
            hint: hint.into(),
        }
    }

    pub(crate) fn bad_parameter(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::BadParameter {
            message: message.into(),
            hint: hint.into(),
        }
    }

    pub(crate) fn too_large(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::TooLarge {
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// Who needs so many bytes of a pool was refused.
    pub(crate) fn no_memory(what: String, needed_bytes: usize, pool: &dyn MemoryPool) -> Self {
        let limit = match pool.memory_limit() {
            MemoryLimit::Finite(limit) => limit,
            _ => usize::MAX,
        };
        Self::NoMemory {
            what,
            needed_mib: needed_bytes.div_ceil(1 << 20),
            used_mib: pool.reserved() >> 20,
            limit_mib: limit >> 20,
        }
    }

    pub(crate) fn internal(what: &'static str, cause: impl std::fmt::Display) -> Self {
        Self::Internal {
            what,
            cause: cause.to_string(),
        }
    }

    /// Whether the same query may succeed a little later.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Overloaded { .. } => true,
            // By itself it would fit.
            Self::NoMemory {
                needed_mib, limit_mib, ..
            } => needed_mib * 2 <= *limit_mib,
            _ => false,
        }
    }

    /// What is allowed, or what to do.
    pub fn hint(&self) -> &str {
        match self {
            Self::BadQuery { hint, .. }
            | Self::BadTime { hint, .. }
            | Self::BadParameter { hint, .. }
            | Self::TooLarge { hint, .. } => hint,
            Self::TooManyGroups { .. } => "ask for another `by`, a longer `step`, or a narrower selector",
            Self::Overloaded { .. } => "try again in a few seconds",
            Self::NoMemory { .. } if self.is_temporary() => "try again in a few seconds, when other queries have ended",
            Self::NoMemory { .. } => {
                "ask for a shorter window or a narrower selector, or give the server more with --memory-limit or --query-memory"
            }
            Self::Timeout { .. } => "ask for a shorter window or a narrower selector",
            Self::Internal { .. } => "the server's log has the cause",
        }
    }
}
