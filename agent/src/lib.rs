//! Stakeout's agent: samples the stacks of everything that runs on a node, names them and ships them.

#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "tests"))]

pub mod agent;
pub mod config;
mod cpu_budget;
mod elf;
pub mod frames;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod hash;
pub mod kernel;
pub mod metadata;
pub mod process;
mod random;
pub mod runtime;
pub mod ship;
pub mod symbolize;
pub mod sys;
pub mod unwind;
