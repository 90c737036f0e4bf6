//! What a file holds that its format does not allow.

use parquet::errors::ParquetError;

/// What a file holds is not what the format allows.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{what}")]
pub(crate) struct Damage {
    pub(crate) what: String,
}

impl Damage {
    pub(crate) fn new(what: impl Into<String>) -> Damage {
        Damage { what: what.into() }
    }
}

impl From<ParquetError> for Damage {
    fn from(error: ParquetError) -> Damage {
        Damage::new(error.to_string())
    }
}
