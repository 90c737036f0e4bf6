//! `cargo xtask stacks`: the proof that stacks are whole, as one table.
//!
//! Runs one test of the agent, with the agent optimised: nothing is warmed up then, and a program's first samples count.

use anyhow::Result;

use crate::{packages, repo, run};

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
    let mut test = repo::cargo();
    test.args(["--config", "profile.dev.package.stakeout-agent.opt-level=2"]);
    test.args(["test", "--locked", "-p", "stakeout-agent", "--test", "root"]);
    run::run(
        test.args(["--", "--exact", TEST, "--nocapture"])
            .env("STAKEOUT_STACKS", &args.row),
    )
}
