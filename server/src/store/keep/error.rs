//! Why a store was not copied or checked.

use crate::store::root::contract::Root;
use crate::store::root::error::RootError;
use crate::store::root::open::OpenError;
use crate::store::table::error::{StoreError, chain};
use crate::store::table::format_version::FormatError;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// A place cannot be used for what was asked.
    #[error("{place}: {problem}")]
    Refused {
        /// As a person names it.
        place: String,
        /// What is wrong with it, and what can be done.
        problem: String,
    },
    /// A table of the store could not be read.
    #[error(transparent)]
    Table(#[from] StoreError),
    /// An object could not be read or written.
    #[error("{object}: {cause}; begin again once that is mended: what is there already is not copied anew")]
    Failed {
        /// As a person names it.
        object: String,
        /// What the system says.
        cause: String,
    },
}

impl KeepError {
    pub(super) fn refused(place: String, problem: impl Into<String>) -> Self {
        let problem = problem.into();
        Self::Refused { place, problem }
    }

    /// Of an object of this root.
    pub(super) fn of_root(root: &dyn Root) -> impl FnOnce(RootError) -> Self + '_ {
        move |error| Self::Failed {
            object: root.reader().name_of(error.object()),
            cause: chain(error.cause()),
        }
    }

    pub(super) fn of_opening(error: OpenError) -> Self {
        match error {
            OpenError::Unsupported { url } => Self::refused(
                url,
                "no such place is known; give a directory, or a bucket as s3://BUCKET/PREFIX, gs:// or az://",
            ),
            // Its object is the place itself.
            OpenError::Failed(error) => Self::refused(error.object().to_owned(), chain(error.cause())),
        }
    }

    pub(super) fn of_format(root: &dyn Root) -> impl FnOnce(FormatError) -> Self + '_ {
        move |error| match error {
            FormatError::Refused(problem) => Self::refused(root.reader().name_of(""), problem),
            FormatError::Failed(error) => Self::of_root(root)(error),
        }
    }
}
