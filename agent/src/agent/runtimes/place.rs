//! A frame of a runtime before it has a name.

use crate::kernel::RuntimeWord;
use crate::runtime::Unreadable;

/// A frame of a runtime as the kernel side tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::agent) struct RuntimePlace {
    pub(in crate::agent) frame: RuntimeWord,
    /// None where it was left out.
    pub(in crate::agent) detail: Option<u64>,
    /// It was interrupted there, which is no return address.
    pub(in crate::agent) innermost: bool,
}

/// Why a frame has no name.
pub(super) enum Nameless {
    /// Something else stands there by now.
    Replaced,
    Unreadable,
}

impl From<Unreadable> for Nameless {
    fn from(error: Unreadable) -> Self {
        match error {
            Unreadable::Replaced => Self::Replaced,
            _ => Self::Unreadable,
        }
    }
}
