//! Why a request is not taken in.

use crate::store::StoreError;

impl IngestError {
    /// The reason in a word, as senders are told it.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "too_large",
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
    #[error("{what} is larger than {limit_bytes} bytes")]
    TooLarge { what: &'static str, limit_bytes: usize },
    #[error("the body is not valid {what}: {cause}")]
    Compression { what: &'static str, cause: String },
    #[error("the body is not an OTLP ExportProfilesServiceRequest: {cause}")]
    Protobuf { cause: String },
    #[error("{cause}")]
    Text { cause: String },
    #[error("the layout of this message's version of opentelemetry-proto is not read here: {why}; 1.8 to 1.11 are")]
    Layout { why: &'static str },
    #[error("{user} refers to {table}[{index}], but {table} has {size} entries")]
    Index {
        user: &'static str,
        table: &'static str,
        index: i32,
        size: usize,
    },
    #[error("{0}")]
    Invalid(String),
    #[error("too much is being received at the moment")]
    Busy,
    #[error(
        "samples are more than a day later than this server's clock, which says {now} and may not have been set since the start"
    )]
    Ahead { now: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}
