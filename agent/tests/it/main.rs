//! Tests of the agent that need folders and loopback, but no privileges.
#![allow(clippy::unwrap_used, reason = "tests")]

mod metadata;
mod packaging;
mod peer;
mod ship;
mod unwind;
mod walk;
