//! Tests of the agent that need folders and loopback, but no privileges.
#![allow(clippy::unwrap_used, reason = "tests")]

mod bursts;
mod damage;
/// The agent's fuzz targets make the same files.
#[path = "../../src/fuzz/made.rs"]
mod made;
mod metadata;
mod names;
mod packaging;
mod peer;
mod ship;
mod unwind;
mod walk;
