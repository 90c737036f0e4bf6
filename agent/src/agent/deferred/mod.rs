//! Deferred stacks: those whose walk the kernel side could not end, for want of unwinding tables.
//!
//! In: samples with the state of their walk and a copy of their stack, tables as they come. Out: the same samples with
//! whole stacks, or with cut ones that are counted, in the interval that they are of.
//!
//! A sample with such a stack goes this way:
//!
//! 1. The kernel side walks until it meets code without a table. It hands over the state of the walk and a copy of the
//!    stack (`kernel::DeferredWalk`).
//! 2. `Interval::add` opens the sample's program, unless that can wait, and asks for a place in the [`StackPool`].
//!    Without one the stack stays cut.
//! 3. [`DeferredStacks`] keeps the sample beside its interval until the walk ends.
//! 4. After each drain the sampling thread opens programs that could wait (`Sampling::open_deferred`).
//! 5. It then asks for the tables of the code at which walks stopped (`Sampling::want_tables`). `agent/tables` has them
//!    compiled and published.
//! 6. When one has come, the walks that waited for it go on in user space, over the copy (`Sampling::walk_deferred`). A
//!    walk may stop again further on, which leads back to step 5.
//! 7. A walk that ends gives its copy back, and its sample becomes one like all others (`Interval::finish_one`).
//! 8. An interval that has ended waits for its deferred stacks, at most half a minute (`Sampling::close_if_ready`).
//!    What is still without a table then is a broken stack, and is counted.
//!
//! `pool` holds copies, `stacks` the samples that wait, `interval` what an interval does with them, `turn` what the
//! sampling thread does.

mod interval;
mod pool;
mod stacks;
mod turn;

pub(super) use pool::StackPool;
pub(super) use stacks::{DeferredStacks, Stop, location_of_stop};
