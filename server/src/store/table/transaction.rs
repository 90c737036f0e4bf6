//! What the log says of a sender's batches.

/// An application transaction as the log keeps it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Txn {
    pub(crate) app_id: String,
    pub(crate) version: i64,
    /// Unix milliseconds.
    pub(crate) updated_ms: i64,
}
