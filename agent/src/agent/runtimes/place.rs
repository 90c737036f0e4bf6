//! A frame of a runtime before it has a name.

use crate::frames::{Frame, FrameKind};
use crate::kernel::RuntimeWord;

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

/// A frame of which nothing is known.
pub(super) fn nothing() -> Frame {
    Frame {
        kind: FrameKind::Unknown,
        module: "".into(),
        build_id: None,
        function: None,
        file: None,
        line: 0,
        inlined: false,
        offset: None,
    }
}
