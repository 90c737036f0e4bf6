//! What a scene is played by and what it shows: the length of its windows, and links to them.

/// A page to open.
pub(super) struct Link {
    pub(super) about: &'static str,
    pub(super) path: String,
}

/// Seconds of the windows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) before: u64,
    pub(super) after: u64,
}
