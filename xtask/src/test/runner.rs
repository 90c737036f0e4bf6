//! Runs a command of a step, counts what it tells, and says which of its tests took long.

use std::process::Command;
use std::time::{Duration, Instant};

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
    let mut waits = Waits::since(Instant::now());
    let ok = run::tee(command.env("NO_COLOR", "1"), |line| {
        waits.see(line, Instant::now());
        reader.read(line, &mut tally, &mut telling);
        skipped += u32::from(line.starts_with(SKIPPED));
    })?;
    waits.tell();
    if skipped > 0 {
        println!("{skipped} tests counted as passed were SKIPPED: each says above what it lacks");
    }
    if !ok && tally.failed == 0 {
        tally.failed = 1;
    }
    ensure!(tally.passed + tally.failed > 0, "no test ran");
    Ok(tally)
}

/// How long cargo's tests kept the next result waiting. Of tests that take turns, as the agent's on the real kernel do,
/// that is how long each took; the others' own summary says how long all of them took.
struct Waits {
    since: Instant,
    found: Vec<(Duration, String)>,
}

/// So long is worth a line.
const LONG: Duration = Duration::from_secs(5);

impl Waits {
    fn since(since: Instant) -> Waits {
        Waits { since, found: vec![] }
    }

    fn see(&mut self, line: &str, now: Instant) {
        // What was compiled before the first of a program is no part of it.
        if line.starts_with("running ") {
            self.since = now;
        }
        let passed = |rest: &str| Some(rest.strip_suffix(" ... ok")?.to_owned());
        if let Some(name) = line.strip_prefix("test ").and_then(passed) {
            let took = now.saturating_duration_since(self.since);
            self.found.push((took, name));
            self.since = now;
        }
    }

    /// The longest first.
    fn long(mut self) -> Vec<(Duration, String)> {
        self.found.retain(|(took, _)| *took >= LONG);
        self.found.sort_by_key(|(took, _)| std::cmp::Reverse(*took));
        self.found
    }

    fn tell(self) {
        let long = self.long();
        if !long.is_empty() {
            println!(
                "\nseconds since the result before, where they were {} or more:",
                LONG.as_secs()
            );
        }
        for (took, name) in long {
            println!("{:>6.1} {name}", took.as_secs_f64());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_took_long_are_told_without_what_was_compiled_before() {
        let begun = Instant::now();
        let mut waits = Waits::since(begun);
        for (second, line) in [
            (200, "     Running tests/it/main.rs (target/debug/deps/it-1a)"),
            (201, "running 4 tests"),
            (207, "test six ... ok"),
            (209, "test two ... ok"),
            (215, "test twelve has been running for over 60 seconds"),
            (221, "test twelve ... ok"),
            (223, "test nine ... FAILED"),
        ] {
            waits.see(line, begun + Duration::from_secs(second));
        }
        let long: Vec<_> = waits
            .long()
            .into_iter()
            .map(|(took, name)| (took.as_secs(), name))
            .collect();
        assert_eq!(long, [(12, "twelve".to_owned()), (6, "six".to_owned())]);
    }
}
