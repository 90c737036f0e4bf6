//! `cargo xtask faults`: the end-to-end tests of faults, each as often as it takes to trust it.
//!
//! One of them is the server's own, of days of ingest by a clock that the test sets.
//!
//! In: their names, and how often. Out: as `cargo xtask test` prints them, which runs the same tests a few times each.

use anyhow::{Result, bail, ensure};

use crate::artifacts::{self, Profile};
use crate::{e2e, packages, repo, run};

/// Of the server's integration tests, and how many batches come in an hour of it.
const LONG_RUN: (&str, u32) = ("files_and_bytes_level_off", 30);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these tests; --list names them
    #[arg(value_name = "TEST")]
    tests: Vec<String>,
    /// How often each fault is repeated [default: 100 kills, 20 power cuts, 100 bursts; 30 batches an hour of three
    /// days]
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,
    /// Only several servers on one data root, below this URL of a bucket, such as s3://bucket/prefix: its endpoint and
    /// keys come by the environment that the server reads. Without it they share a folder
    #[arg(long, value_name = "URL", conflicts_with_all = ["tests", "doors"], num_args = 0..=1)]
    bucket: Option<Option<String>>,
    /// What decides which server is killed when [default: chance]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Only the attack on the server's doors, in its long form
    #[arg(long, conflicts_with = "tests")]
    doors: bool,
    /// Name the tests and do nothing
    #[arg(long)]
    list: bool,
}

/// Runs them; an error if one failed.
pub(crate) fn run(args: &Args) -> Result<()> {
    let known: Vec<&str> = e2e::FAULTS.iter().copied().chain([LONG_RUN.0]).collect();
    if args.list {
        println!("{}", known.join("\n"));
        return Ok(());
    }
    if let Some(wrong) = args.tests.iter().find(|test| !known.contains(&test.as_str())) {
        bail!("there is no test {wrong}; there are: {}", known.join(", "));
    }
    packages::ensure_build()?;
    packages::ensure_test()?;
    let chosen = |name: &str| match (args.doors, &args.bucket) {
        (true, _) => name == e2e::DOORS,
        (_, Some(_)) => name == e2e::SEVERAL,
        _ => args.tests.is_empty() || args.tests.iter().any(|test| test == name),
    };
    if chosen(LONG_RUN.0) {
        long_run(args.rounds.unwrap_or(LONG_RUN.1))?;
    }
    let binaries = artifacts::all(Profile::Debug)?;
    let faults = e2e::Faults {
        rounds: args.rounds,
        bucket: args.bucket.clone().flatten(),
        seed: args.seed,
    };
    let tally = e2e::run_chosen(&binaries, Some(faults), |name| {
        e2e::FAULTS.contains(&name) && chosen(name)
    })?;
    ensure!(tally.failed == 0, "{} tests failed", tally.failed);
    Ok(())
}

fn long_run(batches: u32) -> Result<()> {
    let mut test = repo::cargo();
    test.args([
        "test",
        "--locked",
        "--workspace",
        "--test",
        "it",
        "--",
        "--nocapture",
        LONG_RUN.0,
    ]);
    run::run(test.env("STAKEOUT_LONG_RUN_BATCHES", batches.to_string()))
}
