//! `cargo xtask faults`: the end-to-end tests of faults, each as often as it takes to trust it.
//!
//! In: their names, and how often. Out: as `cargo xtask test` prints them, which runs the same tests a few times each.

use anyhow::{Result, bail, ensure};

use crate::artifacts::{self, Profile};
use crate::{e2e, packages};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these tests; --list names them
    #[arg(value_name = "TEST")]
    tests: Vec<String>,
    /// How often each fault is repeated [default: 100 kills, 20 power cuts]
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,
    /// Name the tests and do nothing
    #[arg(long)]
    list: bool,
}

/// Runs them; an error if one failed.
pub(crate) fn run(args: &Args) -> Result<()> {
    let known = e2e::FAULTS;
    if args.list {
        println!("{}", known.join("\n"));
        return Ok(());
    }
    if let Some(wrong) = args.tests.iter().find(|test| !known.contains(&test.as_str())) {
        bail!("there is no test {wrong}; there are: {}", known.join(", "));
    }
    packages::ensure_build()?;
    packages::ensure_test()?;
    let binaries = artifacts::all(Profile::Debug)?;
    let faults = e2e::Faults { rounds: args.rounds };
    let chosen = |name: &str| match args.tests.as_slice() {
        [] => true,
        tests => tests.iter().any(|test| test == name),
    };
    let tally = e2e::run_chosen(&binaries, Some(faults), |name| known.contains(&name) && chosen(name))?;
    ensure!(tally.failed == 0, "{} tests failed", tally.failed);
    Ok(())
}
