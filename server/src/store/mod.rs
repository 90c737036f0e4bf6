//! The tables on disk: takes rows in, commits them in groups, and hands out consistent views.
//!
//! In: [`Rows`], record batches of every table that belong to one accepted batch. Out: [`Snapshot`]s, in which a row
//! that was appended stands exactly once: among the pending rows, or in a committed file. Times are nanoseconds since
//! the Unix epoch. Nothing is acknowledged before it is committed and synced to the disk. Knows nothing of HTTP or
//! OTLP.
//!
//! Rooms, each of which uses those behind it only: open, commit, maintenance, keep, shared, state, view, log, notebook,
//! members, format, buffer, table, root.

mod buffer;
mod commit;
#[cfg(test)]
mod faults;
mod log;
mod maintenance;
mod members;
mod notebook;
mod open;
mod root;
mod shared;
mod state;
mod table;
mod view;

pub(crate) mod format;
pub mod keep;

pub use crate::clock::{Clock, Reading};
pub use buffer::arriving::{Amount, Common, FreshSample, FreshSamples, MAX_TYPES, NO_CPU, NO_THREAD, NO_WAIT, Pending};
pub use buffer::batch::{Ack, BatchId, Rows, Sender};
pub use buffer::quota::{MOST_SERIES, Quota};
pub use buffer::report::BatchRow;
pub use buffer::sender_window::Owner;
pub use commit::Ticket;
pub use members::heartbeat::Member;
pub(crate) use notebook::{Burst, BurstCondition, BurstReport, BurstState, Expected, Marker, Put, Refused, View};
#[cfg(test)]
pub(crate) use notebook::{MOST_BURSTS, MOST_MARKERS, MOST_MARKERS_BYTES, MOST_VIEWS};
#[cfg(test)]
pub(crate) use notebook::{TAKEN_WITHIN_SECONDS, TOLD_WITHIN_SECONDS};
pub(crate) use root::reader::RangeReader;
pub(crate) use root::traffic::Traffic;
pub use shared::gather::Freshness;
pub use state::{FREE_SHARE_PERCENT, Store, StoreConfig, StoreCounters};
pub use table::data_file::{ColumnRange, DataFile};
pub use table::error::StoreError;
pub use table::integrity::DamagedFile;
pub use table::orphans::Stale;
pub(crate) use table::partition::{HOUR_NS, MINUTE_NS, TEN_SECONDS_NS};
pub use table::partition::{day, hour};
pub use table::schema::Table;
pub use view::agents::NodeInfo;
pub use view::snapshot::Snapshot;
