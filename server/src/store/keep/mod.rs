//! Copies, backups and checks of whole stores, of such too that a server writes meanwhile.
//!
//! In: two places. Out: a place that holds what the other held at one moment, or what is wrong with one. A store that
//! is copied from is only read, without its lock. Never overwrites what it did not put there itself.

mod backup;
mod check;
mod copy;
mod day;
mod error;
mod ledger;
pub(crate) mod mark;
mod pins;
mod place;
mod tally;
mod transfer;

pub use backup::{backup, restore};
pub use check::{Checked, check};
pub use copy::copy;
pub use error::KeepError;
pub use tally::{Copied, Fault, Tell};
