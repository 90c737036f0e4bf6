//! Closer looks on demand: what was asked for, what runs, and what it took.
//!
//! In: orders from a desk ([`crate::ship::BurstDesk`]). Out: bursts of the kernel side, one at a time, and a report of
//! each. The end is the agent's own: at its time, on request, when the server is lost, and when the agent stops.

mod conditions;
mod state;
mod turn;

pub use conditions::BURST_LABELS;
pub(super) use state::Bursting;
