//! `cargo xtask stacks`: the proof that stacks are whole, as two tables.
//!
//! Runs two of the agent's root tests. Nothing is warmed up: a program's first samples count like all others.

mod versions;

use std::path::Path;

use anyhow::{Context, Result};

use crate::{packages, run, test_programs};

/// The tests that print the tables: of programs of all kinds, and of languages with a runtime.
const TESTS: [&str; 2] = [
    "whole_stacks::stacks_of_all_kinds_of_programs_are_whole",
    "languages::programs_of_languages_with_a_runtime_have_their_own_names",
];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only the rows whose title contains this
    #[arg(default_value = "", value_name = "TEXT")]
    row: String,
    /// A folder with a folder for each version of a runtime to try (`bin/java` in it), instead of what is installed
    #[arg(long, value_name = "FOLDER")]
    runtimes: Option<String>,
    /// First get the versions that the folder lacks: Debian's of several releases, and Node.js' by npm (4 GB)
    #[arg(long, requires = "runtimes")]
    fetch: bool,
}

/// Prints the table; an error where a row falls short.
pub(crate) fn run(args: &Args) -> Result<()> {
    packages::ensure_build()?;
    packages::ensure_test()?;
    if args.fetch {
        let folder = args
            .runtimes
            .as_deref()
            .context("`--fetch` fills the folder of `--runtimes`")?;
        versions::fetch(Path::new(folder))?;
    }
    let row = format!("STAKEOUT_STACKS={}", args.row);
    let runtimes = args
        .runtimes
        .as_ref()
        .map(|folder| format!("STAKEOUT_RUNTIMES={folder}"));
    let variables: Vec<&str> = [Some(&*row), runtimes.as_deref()].into_iter().flatten().collect();
    let mut tests = test_programs::root_tests(&variables)?;
    // One by itself: each has its own agent.
    let only = if args.runtimes.is_some() {
        &TESTS[1..]
    } else {
        &TESTS[..]
    };
    run::run(
        tests
            .arg("--exact")
            .args(only)
            .args(["--nocapture", "--test-threads=1"]),
    )
}
