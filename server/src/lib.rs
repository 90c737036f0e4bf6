//! The Stakeout server: OTLP profiles in, flamegraphs of one window or of the difference between two out.
//!
//! Data flows one way: `ingest` → `store` → `query` → `render`, and `api` is the only room that knows HTTP.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]
#![forbid(unsafe_code)]

pub mod api;
pub mod config;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod hash;
pub mod ingest;
pub mod memory;
mod profile_type;
pub mod query;
pub mod render;
pub mod store;
