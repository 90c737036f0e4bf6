//! The agent on a real kernel, against programs whose stacks and shares are known.
//!
//! Needs root, or the agent's capabilities, and a C compiler. Where the privileges are missing the tests say so and
//! pass, but with `CI=true` they must run.
#![allow(clippy::unwrap_used, reason = "tests")]

mod accounting;
mod budget;
mod bursts;
mod cut_stacks;
mod deep;
mod exec_chain;
mod foreign_files;
mod ground_truth;
mod identity;
mod languages;
mod new_mappings;
mod privileges;
mod program;
mod program_binary;
mod program_sizes;
mod recording;
mod restless;
mod short_lives;
mod timers;
mod waits;
mod whole_stacks;
