//! Closer looks that the server asks for, over connections that the agent opens.
//!
//! In: what the server answers to a request that it holds until there is something to say. Out: [`BurstOrder`]s for the
//! thread that samples, on a [`BurstDesk`] between both; and back over it what became of them. Never: listens, keeps
//! batches waiting, or lets a burst go on while nobody can end it.

mod desk;
mod poll;
mod wire;

#[cfg(any(test, fuzzing))]
pub(crate) use wire::check_answer;

pub use desk::BurstDesk;
pub use poll::BurstPolls;
pub use wire::{About, BurstCondition, BurstOrder, BurstReport, BurstState};
