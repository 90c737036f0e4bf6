//! The words in which the rooms speak of stacks.
//!
//! An address becomes a [`CodeLocation`] in `process`, that becomes [`Frames`] in `symbolize`, and these become a
//! [`Stack`] of indices in `ship`. Plain values: nothing is read, found out or remembered here.

mod frame;
mod location;

pub use frame::{Frame, FrameKind, Frames, Stack};
pub use location::{CodeLocation, ProgramKey, SourceId};
