//! What can go wrong with an object of the data root.

use rustix::io::Errno;
use std::error::Error;
use std::io::ErrorKind;

/// An error of the data root, by what a caller can do about it. Its text names the object.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RootError {
    /// There is no such object.
    #[error(transparent)]
    NotFound(Failure),
    /// Something is there already.
    #[error(transparent)]
    Exists(Failure),
    /// There is no space left, or a quota is used up.
    #[error(transparent)]
    Full(Failure),
    /// The server lacks descriptors or memory, or a store does not answer as it should: this is no property of the
    /// object.
    #[error(transparent)]
    Ours(Failure),
    #[error(transparent)]
    Other(Failure),
}

/// What failed.
#[derive(Debug, thiserror::Error)]
#[error("{object}: {source}")]
pub(crate) struct Failure {
    object: String,
    source: Box<dyn Error + Send + Sync>,
}

impl RootError {
    /// `object` is the object's path below the root. The kind is found anywhere in the chain of causes.
    pub(crate) fn new(object: &str, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let source = cause.into();
        let kind = kind_of(source.as_ref());
        kind(Failure {
            object: object.to_owned(),
            source,
        })
    }

    /// No property of the object, whatever the cause says.
    pub(crate) fn ours(object: &str, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Ours(Failure {
            object: object.to_owned(),
            source: cause.into(),
        })
    }

    fn failure(&self) -> &Failure {
        match self {
            Self::NotFound(failure)
            | Self::Exists(failure)
            | Self::Full(failure)
            | Self::Ours(failure)
            | Self::Other(failure) => failure,
        }
    }

    /// The object's path below the root.
    pub(crate) fn object(&self) -> &str {
        &self.failure().object
    }

    /// The cause without the object's name, for a message that names it in its own way.
    pub(crate) fn cause(&self) -> &(dyn Error + Send + Sync + 'static) {
        self.failure().source.as_ref()
    }

    /// As [`RootError::cause`].
    pub(crate) fn into_cause(self) -> Box<dyn Error + Send + Sync> {
        match self {
            Self::NotFound(failure)
            | Self::Exists(failure)
            | Self::Full(failure)
            | Self::Ours(failure)
            | Self::Other(failure) => failure.source,
        }
    }
}

fn kind_of(cause: &(dyn Error + 'static)) -> fn(Failure) -> RootError {
    let mut next = Some(cause);
    while let Some(error) = next {
        match error.downcast_ref::<object_store::Error>() {
            Some(object_store::Error::NotFound { .. }) => return RootError::NotFound,
            Some(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                return RootError::Exists;
            }
            _ => {}
        }
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            match error.kind() {
                ErrorKind::NotFound => return RootError::NotFound,
                ErrorKind::AlreadyExists => return RootError::Exists,
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => return RootError::Full,
                _ if is_ours(error) => return RootError::Ours,
                _ => {}
            }
        }
        next = error.source();
    }
    RootError::Other
}

/// Too many open files, or no memory.
fn is_ours(error: &std::io::Error) -> bool {
    let wants = [Errno::MFILE, Errno::NFILE, Errno::NOMEM].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| wants.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_found_behind_wrappers_and_the_text_names_the_object() {
        let wrapped = |kind: ErrorKind| object_store::Error::Generic {
            store: "local",
            source: Box::new(std::io::Error::from(kind)),
        };
        let full = RootError::new("samples/x", wrapped(ErrorKind::StorageFull));
        assert!(matches!(full, RootError::Full(_)), "{full:?}");
        assert!(full.to_string().starts_with("samples/x: Generic local error"), "{full}");
        let exists = RootError::new("x", wrapped(ErrorKind::AlreadyExists));
        assert!(matches!(exists, RootError::Exists(_)), "{exists:?}");
        let ours = RootError::new("x", std::io::Error::from_raw_os_error(Errno::MFILE.raw_os_error()));
        assert!(matches!(ours, RootError::Ours(_)), "{ours:?}");
        let other = RootError::new("x", "a text");
        assert!(matches!(other, RootError::Other(_)), "{other:?}");
        assert_eq!(
            (other.to_string(), other.into_cause().to_string()),
            ("x: a text".to_owned(), "a text".to_owned())
        );
    }
}
