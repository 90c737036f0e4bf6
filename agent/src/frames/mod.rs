//! The words in which the rooms speak of stacks.
//!
//! In: what each room found out of a frame. Out: the same as values that all rooms know, with times in nanoseconds.
//!
//! An address becomes a [`CodeLocation`] in `process`, that becomes [`Frames`] in `symbolize`, and these become a
//! [`Stack`] of indices in `ship`. Plain values: nothing is read, found out or remembered here.

mod frame;
mod location;
mod run_queue;
mod sample_kind;
mod wait_class;

pub use frame::{Frame, FrameKind, Frames, Stack};
pub use location::{CodeLocation, ProgramKey, SourceId};
pub use run_queue::{CpuTicks, WaitLengths, bucket_begins_ns};
pub use sample_kind::{SampleKind, WaitState};
pub use wait_class::WaitClass;
