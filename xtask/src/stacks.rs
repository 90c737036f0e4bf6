//! `cargo xtask stacks`: the proof that stacks are whole, as one table.
//!
//! Runs one of the agent's root tests. Nothing is warmed up: a program's first samples count like all others.

use anyhow::Result;

use crate::{packages, run, test};

/// The test that prints the table.
const TEST: &str = "whole_stacks::stacks_of_all_kinds_of_programs_are_whole";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only the rows whose title contains this
    #[arg(default_value = "", value_name = "TEXT")]
    row: String,
}

/// Prints the table; an error where a row falls short.
pub(crate) fn run(args: &Args) -> Result<()> {
    packages::ensure_build()?;
    packages::ensure_test()?;
    let mut tests = test::root_tests(&[&format!("STAKEOUT_STACKS={}", args.row)])?;
    run::run(tests.args(["--exact", TEST, "--nocapture"]))
}
