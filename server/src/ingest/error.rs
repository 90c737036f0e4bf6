//! Why a request is not taken in.

use crate::store::StoreError;

impl IngestError {
    /// The reason in a word, as senders are told it.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too_large",
            Self::Store(StoreError::QuotaUsedUp { .. }) => "quota_exceeded",
            Self::Busy | Self::Ahead { .. } | Self::Store(_) => "overloaded",
            _ => "bad_profile",
        }
    }

    /// Whether it is the fault of one profile, and others of the request can be taken in.
    pub(crate) fn is_of_profile(&self) -> bool {
        matches!(self, Self::Index { .. } | Self::Invalid(_) | Self::Text { .. })
    }
}

/// Why a request is not taken in.
#[derive(Debug, Clone, thiserror::Error)]
pub enum IngestError {
    /// A limit is reached. The same request will never be taken; a smaller one may be.
    #[error("{what} is larger than {limit_bytes} bytes")]
    TooLarge {
        /// What is too large, such as `the request`.
        what: &'static str,
        /// The limit.
        limit_bytes: usize,
    },
    /// The body cannot be decompressed as its header says. The same one will never be taken.
    #[error("the body is not valid {what}: {cause}")]
    Compression {
        /// What it should be, such as `zstd`.
        what: &'static str,
        /// What the decoder says.
        cause: String,
    },
    /// The body is no message of OTLP, in protobuf or JSON. The same one will never be taken.
    #[error("the body is not an OTLP ExportProfilesServiceRequest: {cause}")]
    Protobuf {
        /// Where it breaks off, or what is wrong there.
        cause: String,
    },
    /// A text of the message is not UTF-8. A profile with it is left out.
    #[error("{cause}")]
    Text {
        /// Which text, where that is known, and what is wrong with it.
        cause: String,
    },
    /// The message is of a version of OTLP that is not read: the sender has to use another.
    #[error("the layout of this message's version of opentelemetry-proto is not read here: {why}; 1.8 to 1.11 are")]
    Layout {
        /// By what that is seen.
        why: &'static str,
    },
    /// The message refers to what it does not have. The profile that does so is left out.
    #[error("{user} refers to {table}[{index}], but {table} has {size} entries")]
    Index {
        /// What refers, such as `a stack's location_indices`.
        user: &'static str,
        /// The table that it refers to.
        table: &'static str,
        /// The entry that it names.
        index: i32,
        /// How many entries there are.
        size: usize,
    },
    /// The message breaks the conventions of docs/wire.md. The value says how, for the sender.
    #[error("{0}")]
    Invalid(String),
    /// Too many requests wait for their turn, or too much is being received. It may be sent again.
    #[error("too much is being received at the moment")]
    Busy,
    /// Its time is later than a clock that may not be set yet. It is to be sent again some seconds later.
    #[error(
        "samples are more than a day later than this server's clock, which says {now} and may not have been set since the start"
    )]
    Ahead {
        /// What the clock says, for people.
        now: String,
    },
    /// The store does not take it; [`StoreError::is_for_good`] says whether to try again.
    #[error(transparent)]
    Store(#[from] StoreError),
}
