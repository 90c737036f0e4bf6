//! How well times have to be known, and how well they are.

use crate::column::coded::CodedColumn;

/// How well an accumulator has to know when samples were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeResolution {
    /// Whether within the window.
    Window,
    /// In which step; where only roll-ups are left of an hour, their minute or hour is near enough.
    Step {
        /// Roll-ups by so many nanoseconds or less tell it; 0: none does.
        grain_ns: i64,
    },
    /// To the nanosecond.
    Exact,
}

/// When samples were taken.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Times<'a> {
    Exact(&'a [i64]),
    /// Of roll-ups, which have few: the begin of the minute or hour.
    Coded(&'a CodedColumn),
}
