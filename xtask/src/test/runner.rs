//! Runs a command of a step and counts what it tells.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::run;
use crate::tally::{Reader, Tally};

/// How a test that cannot run on this machine says so, past the runner that keeps what passed tests print.
const SKIPPED: &str = "SKIPPED: ";

/// One command that is one test.
pub(super) fn command(command: &mut Command) -> Result<Tally> {
    Ok(Tally::one(run::tee(command, |_| ())?))
}

/// A test runner: its own summary lines are added up. A run that fails without a failed test (it didn't compile, it
/// crashed) is one failure.
pub(super) fn runner(command: &mut Command, reader: Reader) -> Result<Tally> {
    let (mut tally, mut telling, mut skipped) = (Tally::default(), false, 0);
    let ok = run::tee(command.env("NO_COLOR", "1"), |line| {
        reader.read(line, &mut tally, &mut telling);
        skipped += u32::from(line.starts_with(SKIPPED));
    })?;
    if skipped > 0 {
        println!("{skipped} tests counted as passed were SKIPPED: each says above what it lacks");
    }
    if !ok && tally.failed == 0 {
        tally.failed = 1;
    }
    ensure!(tally.passed + tally.failed > 0, "no test ran");
    Ok(tally)
}
