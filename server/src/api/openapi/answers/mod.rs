//! What answers look like: a schema for each that is JSON, by name.
//!
//! In: nothing. Out: schemas. `render/` and `api/ops` write the answers; tests hold what a server answers against these
//! schemas, with no field more than they name.

mod bursts;
mod charts;
mod common;
mod notes;
mod senders;
mod tables;
mod trees;
mod waits;

use serde_json::Value;

/// Every schema by its name.
pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    [
        common::shared(),
        charts::lists(),
        trees::trees(),
        charts::charts(),
        waits::schemas(),
        tables::tables(),
        senders::senders(),
        notes::notes(),
        bursts::bursts(),
    ]
    .concat()
}
