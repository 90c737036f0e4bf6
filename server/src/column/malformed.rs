//! What a file holds that its format does not allow.

use parquet::errors::ParquetError;

/// What a file holds is not what the format allows.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what}")]
pub(crate) struct MalformedFile {
    pub(crate) what: String,
}

impl MalformedFile {
    pub(crate) fn new(what: impl Into<String>) -> MalformedFile {
        MalformedFile { what: what.into() }
    }
}

impl From<ParquetError> for MalformedFile {
    fn from(error: ParquetError) -> MalformedFile {
        MalformedFile::new(error.to_string())
    }
}
