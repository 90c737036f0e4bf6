//! From located stacks to batches, on two threads of their own.
//!
//! In: [`Finished`] intervals over [`Intervals`], and [`Ahead`], the code locations in files that are about to be given
//! up. Out: batches, to a sink. Times are those of the interval's clocks, in nanoseconds.
//!
//! `thread` names interval after interval: it has each code location named once, makes the batch's frame table and
//! stacks, and completes cut stacks by what `roots` knows of their threads. `ahead_thread` names what is in files that
//! go. Neither looks at a process.

mod ahead;
mod ahead_thread;
mod frame_table;
mod intervals;
mod roots;
mod thread;
mod trampolines;
mod wakers;
mod work;

pub(super) use ahead::{Ahead, is_of};
pub(super) use ahead_thread::name_ahead;
pub(super) use intervals::{Behind, Intervals, WAITING_INTERVALS};
pub(super) use thread::name_intervals;
pub(super) use work::Finished;
