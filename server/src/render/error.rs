//! Why a format could not be written.

/// A format that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("writing {format} failed: {cause}")]
pub struct RenderError {
    format: &'static str,
    cause: String,
}

impl RenderError {
    pub(crate) fn new(format: &'static str, cause: impl std::fmt::Display) -> Self {
        RenderError {
            format,
            cause: cause.to_string(),
        }
    }
}
