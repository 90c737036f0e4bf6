//! The Stakeout server: OTLP profiles in, flamegraphs of one window or of the difference between two out.
//!
//! Data flows one way: `ingest` → `store` → `query` → `render`, and `api` is the only room that knows HTTP.
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may panic"))]
#![forbid(unsafe_code)]

pub mod api;
mod clock;
mod column;
pub mod command;
pub mod config;
pub mod durations;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod hash;
pub mod ingest;
pub mod label;
mod lock;
pub mod memory;
pub mod panics;
mod profile_type;
pub mod query;
pub mod reload;
pub mod render;
pub mod run_queue;
pub mod settings;
mod sizes;
pub mod store;

/// Fails where `docs/threats.md` does not have these numbers, each beside the name of its constant.
#[cfg(test)]
fn documented(numbers: &[(&str, u64)]) {
    let text = include_str!("../docs/threats.md");
    for (name, number) in numbers {
        let digits = number.to_string();
        let mut shown = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                shown.push(',');
            }
            shown.push(digit);
        }
        let row = format!("| {shown} | `{name}` |");
        assert!(text.contains(&row), "docs/threats.md has no row that ends with {row:?}");
    }
}
