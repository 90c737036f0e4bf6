//! `cargo xtask test`: exactly what CI runs. Goes on after a failure, so that one run tells all of them.

use std::env;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::artifacts::{self, Profile};
use crate::{check_install, e2e, fuzz, kernels, packages, repo, run, tidy};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only what takes few minutes: format, lints, rules, unit tests of both languages
    #[arg(long)]
    quick: bool,
    /// Only these steps, separated by commas; --list names them. `kernels` runs only where it is named here
    #[arg(long, value_delimiter = ',', value_name = "STEP")]
    only: Vec<String>,
    /// Of the end-to-end tests only those whose name contains this
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Name the steps and do nothing
    #[arg(long)]
    list: bool,
}

/// Lines of what failed that a step says once more at the end; a run's whole output may be kept in part only.
const REPEATED_LINES: usize = 150;

/// What one step found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u32,
    pub(crate) failed: u32,
    /// What failed and why, line by line: said once more at the end.
    failures: Vec<String>,
}

impl Tally {
    pub(crate) fn new(passed: u32, failed: u32) -> Tally {
        Tally {
            passed,
            failed,
            failures: vec![],
        }
    }

    /// A check that is one test.
    fn one(passed: bool) -> Tally {
        Tally::new(u32::from(passed), u32::from(!passed))
    }

    /// One more test, which failed; says so.
    pub(crate) fn fail(&mut self, text: &str) {
        println!("{text}");
        self.failed += 1;
        self.failures.extend(text.lines().map(str::to_owned));
    }

    /// The sum of two.
    pub(crate) fn and(mut self, other: Tally) -> Tally {
        self.add(other);
        self
    }

    pub(crate) fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.failures.extend(other.failures);
    }
}

/// How a test runner's output is read, line by line.
#[derive(Clone, Copy)]
struct Reader {
    summary: fn(&str) -> Option<Tally>,
    /// What failed begins to be told.
    begins: fn(&str) -> bool,
    /// No part of that any more.
    ends: fn(&str) -> bool,
}

impl Reader {
    /// Reads a line. `telling`: whether it is in the midst of what failed.
    fn read(&self, line: &str, tally: &mut Tally, telling: &mut bool) {
        *telling = (*telling || (self.begins)(line)) && !(self.ends)(line);
        if *telling {
            tally.failures.push(line.to_owned());
        }
        if let Some(more) = (self.summary)(line) {
            tally.add(more);
        }
    }
}

const CARGO: Reader = Reader {
    summary: read_cargo,
    begins: |line| line == "failures:",
    ends: |line| line.starts_with("test result: "),
};
const VITEST: Reader = Reader {
    summary: read_vitest,
    begins: |line| line.contains(" Failed Tests ") || line.contains(" Failed Suites "),
    ends: |line| line.trim_start().starts_with("Test Files "),
};
const PLAYWRIGHT: Reader = Reader {
    summary: read_playwright,
    begins: |line| line.starts_with("  1) "),
    ends: |_| false,
};

type Run = fn(&Args) -> Result<Tally>;

/// When a step runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// Also with `--quick`.
    Always,
    UnlessQuick,
    /// Only where `--only` names it: it takes longer than all the others.
    Named,
}

/// Name, when it runs, what it does. In order: cheap first, then what needs the built binaries.
const STEPS: &[(&str, When, Run)] = &[
    ("format", When::Always, format),
    ("tidy", When::Always, rules),
    ("licences", When::UnlessQuick, licences),
    ("page-check", When::Always, page_check),
    ("page-unit", When::Always, page_unit),
    ("page-build", When::UnlessQuick, page_build),
    ("lints", When::Always, lints),
    ("unit", When::Always, unit),
    ("binaries", When::UnlessQuick, binaries),
    ("integration", When::UnlessQuick, integration),
    ("root", When::UnlessQuick, root),
    ("shell", When::UnlessQuick, shell),
    ("end-to-end", When::UnlessQuick, end_to_end),
    ("browser", When::UnlessQuick, browser),
    ("install", When::UnlessQuick, install),
    ("fuzz", When::UnlessQuick, fuzzed),
    ("kernels", When::Named, on_kernels),
];

/// Runs the steps and prints the sum as the last line.
pub(crate) fn run(args: &Args) -> Result<()> {
    let known: Vec<&str> = STEPS.iter().map(|(name, ..)| *name).collect();
    if args.list {
        println!("{}", known.join("\n"));
        return Ok(());
    }
    if let Some(wrong) = args.only.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("there is no step {wrong}; there are: {}", known.join(", "));
    }
    let chosen = |name: &str, when: When| {
        if args.only.is_empty() {
            when == When::Always || when == When::UnlessQuick && !args.quick
        } else {
            args.only.iter().any(|only| only == name)
        }
    };
    packages::ensure_build()?;
    if !args.quick {
        packages::ensure_test()?;
    }
    let mut table = vec![];
    let mut sum = Tally::default();
    for (name, when, step) in STEPS {
        if !chosen(name, *when) {
            continue;
        }
        println!("\n=== {name} ===");
        let begin = Instant::now();
        let tally = step(args).unwrap_or_else(|error| {
            let mut tally = Tally::default();
            tally.fail(&format!("error: {error:#}"));
            tally
        });
        table.push((*name, tally.clone(), begin.elapsed()));
        sum.add(tally);
    }
    for (name, tally, _) in table.iter().filter(|(_, tally, _)| tally.failed > 0) {
        println!("\n=== {name}: {} failed ===", tally.failed);
        for line in tally.failures.iter().take(REPEATED_LINES) {
            println!("{line}");
        }
        match tally.failures.len().checked_sub(REPEATED_LINES + 1) {
            Some(more) => println!("({} lines more above, where the step ran)", more + 1),
            None if tally.failures.is_empty() => println!("(what it said stands above, where the step ran)"),
            None => {}
        }
    }
    println!("\n{:<14}{:>8}{:>8}{:>9}", "step", "passed", "failed", "seconds");
    for (name, tally, took) in &table {
        println!("{name:<14}{:>8}{:>8}{:>9}", tally.passed, tally.failed, seconds(*took));
    }
    println!("{} passed, {} failed", sum.passed, sum.failed);
    if sum.failed > 0 {
        // Not an error with a message: the sum stays the last line.
        std::process::exit(1);
    }
    Ok(())
}

fn seconds(took: Duration) -> String {
    format!("{:.1}", took.as_secs_f64())
}

/// One command that is one test.
fn command(command: &mut Command) -> Result<Tally> {
    Ok(Tally::one(run::tee(command, |_| ())?))
}

/// A test runner: its own summary lines are added up. A run that fails without a failed test (it didn't compile, it
/// crashed) is one failure.
fn runner(command: &mut Command, reader: Reader) -> Result<Tally> {
    let (mut tally, mut telling) = (Tally::default(), false);
    let ok = run::tee(command.env("NO_COLOR", "1"), |line| {
        reader.read(line, &mut tally, &mut telling);
    })?;
    if !ok && tally.failed == 0 {
        tally.failed = 1;
    }
    ensure!(tally.passed + tally.failed > 0, "no test ran");
    Ok(tally)
}

/// `test result: ok. 12 passed; 0 failed; 1 ignored; …`
pub(crate) fn read_cargo(line: &str) -> Option<Tally> {
    let counts = line.trim().strip_prefix("test result: ")?.split_once(". ")?.1;
    let count = |word: &str| {
        let part = counts.split(';').find(|part| part.trim().ends_with(word))?;
        part.trim().strip_suffix(word)?.trim().parse().ok()
    };
    Some(Tally::new(count(" passed")?, count(" failed")?))
}

/// Vitest: `     Tests  1 failed | 11 passed (12)`.
fn read_vitest(line: &str) -> Option<Tally> {
    let counts = line.trim().strip_prefix("Tests ")?.trim();
    let mut tally = Tally::default();
    for part in counts.split('|') {
        let (number, word) = part.trim().split_once(' ')?;
        match word.split(' ').next()? {
            "passed" => tally.passed = number.parse().ok()?,
            "failed" => tally.failed = number.parse().ok()?,
            _ => {}
        }
    }
    Some(tally)
}

/// Playwright: lines `  12 passed (10s)`, `  1 failed`, and flaky ones, which passed on a second try only.
fn read_playwright(line: &str) -> Option<Tally> {
    let (number, word) = line.trim().split_once(' ')?;
    let number = number.parse().ok()?;
    match word.split(' ').next()? {
        "passed" => Some(Tally::new(number, 0)),
        "failed" | "flaky" => Some(Tally::new(0, number)),
        _ => None,
    }
}

fn format(_: &Args) -> Result<Tally> {
    component("rustfmt", "cargo-fmt")?;
    command(repo::cargo().args(["fmt", "--all", "--", "--check"]))
}

fn lints(_: &Args) -> Result<Tally> {
    component("clippy", "cargo-clippy")?;
    command(repo::cargo().args([
        "clippy",
        "--locked",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))
}

/// A part of the Rust toolchain that minimal installations lack.
fn component(name: &str, program: &str) -> Result<()> {
    if repo::find_program(program).is_some() || repo::find_program("rustup").is_none() {
        return Ok(());
    }
    run::run(Command::new("rustup").args(["component", "add", name]))
}

fn rules(_: &Args) -> Result<Tally> {
    let (findings, warnings) = tidy::check()?;
    let mut tally = Tally::default();
    for finding in &findings {
        let kept = finding.broken.is_empty();
        if kept {
            println!("tidy: {} ... ok", finding.rule);
            tally.passed += 1;
        } else {
            tally.fail(&format!(
                "tidy: {} ... FAILED\n    {}",
                finding.rule,
                finding.broken.join("\n    ")
            ));
        }
    }
    for warning in &warnings {
        println!("warning: {warning}");
    }
    println!(
        "tidy result: {} passed; {} failed; {} warnings",
        tally.passed,
        tally.failed,
        warnings.len()
    );
    Ok(tally)
}

fn licences(_: &Args) -> Result<Tally> {
    let deny = match repo::find_program("cargo-deny") {
        Some(program) => program,
        None => artifacts::cargo_tool("tools", "cargo-deny", &["cargo-deny"])?,
    };
    let deny = || {
        let mut command = Command::new(&deny);
        command.current_dir(repo::root()).args(["--workspace", "check"]);
        command
    };
    let mut tally = command(deny().args(["licenses", "bans", "sources"]))?;
    // Advisories live in a git repository that may be out of reach; then the rest still counts.
    let answer = deny().arg("advisories").output().context("can't start cargo-deny")?;
    let said = String::from_utf8_lossy(&answer.stderr).into_owned();
    if said.contains("failed to fetch advisory database") {
        println!("advisories: NOT CHECKED, the advisory database can't be reached from here");
    } else {
        print!("{said}");
        tally.add(Tally::one(answer.status.success()));
    }
    Ok(tally)
}

fn page_check(_: &Args) -> Result<Tally> {
    artifacts::web_packages()?;
    command(artifacts::npm().args(["run", "check"]))
}

fn page_unit(_: &Args) -> Result<Tally> {
    artifacts::web_packages()?;
    runner(artifacts::npm().args(["run", "test"]), VITEST)
}

fn page_build(_: &Args) -> Result<Tally> {
    artifacts::web()?;
    Ok(Tally::one(true))
}

fn unit(_: &Args) -> Result<Tally> {
    runner(
        repo::cargo().args(["test", "--locked", "--workspace", "--lib", "--bins", "--no-fail-fast"]),
        CARGO,
    )
}

/// The real binaries, which the integration tests may start.
fn binaries(_: &Args) -> Result<Tally> {
    artifacts::all(Profile::Debug)?;
    Ok(Tally::one(true))
}

/// Integration tests; as root, those of the agent on the real kernel are among them and must run.
fn integration(_: &Args) -> Result<Tally> {
    let mut test = repo::cargo();
    test.args(["test", "--locked", "--workspace", "--test", "*", "--no-fail-fast"]);
    if packages::is_root() {
        test.env("CI", "true");
    }
    runner(&mut test, CARGO)
}

/// The agent's tests on the real kernel again as root, where the step before was not.
fn root(_: &Args) -> Result<Tally> {
    if packages::is_root() {
        println!("ran as root in the step before");
        return Ok(Tally::default());
    }
    runner(&mut root_tests(&[])?, CARGO)
}

/// The agent's root tests as a command that runs them as root, with these variables (`NAME=value`) in their
/// environment.
pub(crate) fn root_tests(environment: &[&str]) -> Result<Command> {
    let program = root_program()?;
    let mut test = packages::as_root("the agent's tests load BPF programs into this kernel")?;
    test.current_dir(repo::root().join("agent"));
    test.args(["env", "CI=true"]).args(environment);
    if let Some(path) = env::var_os("PATH") {
        let mut pair = std::ffi::OsString::from("PATH=");
        pair.push(path);
        test.arg(pair);
    }
    test.arg(program);
    Ok(test)
}

/// Builds the agent's tests on the real kernel, and says where they are.
pub(crate) fn root_program() -> Result<PathBuf> {
    let mut build = repo::cargo();
    build.args(["test", "--locked", "-p", "stakeout-agent", "--test", "root"]);
    build.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let messages = run::output(&mut build)?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == "root")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .context("cargo built no `root` test")
}

fn on_kernels(_: &Args) -> Result<Tally> {
    kernels::step()
}

fn shell(_: &Args) -> Result<Tally> {
    let listed = run::output(
        Command::new("git")
            .current_dir(repo::root())
            .args(["ls-files", "*.sh", ".ci/run"]),
    )?;
    let mut check = Command::new("shellcheck");
    command(check.current_dir(repo::root()).args(listed.lines()))
}

fn end_to_end(args: &Args) -> Result<Tally> {
    let binaries = artifacts::all(Profile::Debug)?;
    e2e::run(&binaries, args.filter.as_deref())
}

fn browser(_: &Args) -> Result<Tally> {
    let binaries = artifacts::all(Profile::Debug)?;
    e2e::with_stack(&binaries, |stack| {
        let mut npm = artifacts::npm();
        npm.args(["run", "e2e"])
            .env("CI", "true")
            .env("STAKEOUT_URL", stack.client.base());
        runner(&mut npm, PLAYWRIGHT)
    })
}

fn fuzzed(_: &Args) -> Result<Tally> {
    artifacts::all(Profile::Debug)?;
    fuzz::step()
}

fn install(_: &Args) -> Result<Tally> {
    check_install::run(&artifacts::all(Profile::Debug)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_runners_summaries() {
        let tally = |passed, failed| Some(Tally::new(passed, failed));
        let cargo =
            "test result: FAILED. 41 passed; 2 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.42s";
        assert_eq!(read_cargo(cargo), tally(41, 2));
        assert_eq!(read_cargo("test a ... ok"), None);
        assert_eq!(read_vitest("      Tests  1 failed | 11 passed (12)"), tally(11, 1));
        assert_eq!(read_vitest(" Test Files  3 passed (3)"), None);
        assert_eq!(read_playwright("  12 passed (10.1s)"), tally(12, 0));
        assert_eq!(read_playwright("  1 flaky"), tally(0, 1));
        assert_eq!(read_playwright("Running 12 tests using 1 worker"), None);
    }

    #[test]
    fn what_failed_is_kept_for_the_end() {
        let told = |reader: Reader, said: &str| {
            let (mut tally, mut telling) = (Tally::default(), false);
            said.split('\n')
                .for_each(|line| reader.read(line, &mut tally, &mut telling));
            (tally.passed, tally.failed, tally.failures.join("|"))
        };
        let cargo = "test a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\nleft: 1\n\nfailures:\n    b\n\n\
            test result: FAILED. 1 passed; 1 failed; 0 ignored\ntest c ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored";
        assert_eq!(
            told(CARGO, cargo),
            (2, 1, "failures:||---- b stdout ----|left: 1||failures:|    b|".into())
        );
        let vitest =
            " FAIL  a\n⎯⎯ Failed Tests 1 ⎯⎯\nwrong\n\n Test Files  1 failed (1)\n      Tests  1 failed | 2 passed (3)";
        assert_eq!(told(VITEST, vitest), (2, 1, "⎯⎯ Failed Tests 1 ⎯⎯|wrong|".into()));
        let playwright = "  ✘  1 a.spec.ts\n  ✓  2 b.spec.ts\n\n  1) a.spec.ts:7:1 › a ───\n    wrong\n\n  1 failed\n  1 passed (2s)";
        assert_eq!(
            told(PLAYWRIGHT, playwright),
            (
                1,
                1,
                "  1) a.spec.ts:7:1 › a ───|    wrong||  1 failed|  1 passed (2s)".into()
            )
        );
    }
}
