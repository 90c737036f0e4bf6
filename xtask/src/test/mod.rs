//! `cargo xtask test`: exactly what CI runs. Goes on after a failure, so that one run tells all of them.
//!
//! In: the working tree. Out: what each step found, and the sum as the last line. `parts` says which files a step
//! looks at, `changed` which of them differ from a base, `alerts` has promtool, `lints` has clippy, `once` what would
//! be compiled twice, `programs` runs some of what cargo built, `runner` runs a command and counts.

mod alerts;
mod changed;
mod lints;
mod once;
mod parts;
mod programs;
mod runner;

use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::artifacts::{self, Profile};
use crate::tally::{CARGO, PLAYWRIGHT, Tally, VITEST};
use crate::test_programs::root_tests;
use crate::tools::{self, Tool};
use crate::{check_install, e2e, fuzz, kernels, packages, repo, run, tidy};
use changed::Changed;
use parts::Piece;
use programs::{ALL_INTEGRATION_TARGETS, ALL_UNIT_TARGETS, built, filters, tell_s3_server, unit_targets};
use runner::{command, runner};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only what takes few minutes: format, lints, rules, unit tests of both languages
    #[arg(long)]
    quick: bool,
    /// Only these steps, separated by commas; --list names them. `kernels` runs only where it is named here
    #[arg(long, value_delimiter = ',', value_name = "STEP")]
    only: Vec<String>,
    /// Only what looks at files that differ from REF, which by default is this branch's upstream or `main`: of these
    /// steps, and of each only the tests that the files belong to
    #[arg(long, value_name = "REF", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    changed: Option<String>,
    /// Of the end-to-end tests only those whose name contains this
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Name the steps, with --changed what of each, and do nothing
    #[arg(long)]
    list: bool,
}

/// Lines of what failed that a step says once more at the end; a run's whole output may be kept in part only.
const REPEATED_LINES: usize = 150;

/// What of a step is run.
struct Scope<'a> {
    args: &'a Args,
    pieces: Vec<Piece>,
    /// Whether decoders are fed in a later step, whose program may be built while this one waits.
    fuzz_follows: bool,
    /// Whether all integration tests are run in a later step, whose programs may be built with this one's.
    integration_follows: bool,
    /// Whether the installation is a later step, which may run beside this one.
    install_follows: bool,
}

impl Scope<'_> {
    fn is_whole(&self) -> bool {
        self.pieces.contains(&Piece::Whole)
    }

    /// Files below `web` whose tests are run, as seen from there; none where all tests are.
    fn page_files(&self) -> Option<Vec<&str>> {
        let files = self.pieces.iter().filter_map(Piece::file);
        (!self.is_whole()).then(|| files.filter_map(|path| path.strip_prefix("web/")).collect())
    }
}

type Run = fn(&Scope<'_>) -> Result<Tally>;

/// When a step runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// Also with `--quick`.
    Always,
    UnlessQuick,
    /// Only where `--only` names it: it takes longer than all the others.
    Named,
}

/// One of the steps.
struct Step {
    name: &'static str,
    when: When,
    /// Whether it needs more programs than the build does.
    needs_programs: bool,
    run: Run,
}

const fn step(name: &'static str, when: When, needs_programs: bool, run: Run) -> Step {
    Step {
        name,
        when,
        needs_programs,
        run,
    }
}

/// Part of what these need is made while other steps run.
const INSTALL: &str = "install";
const LICENCES: &str = "licences";
const ALERTS: &str = "alerts";
const UNIT: &str = "unit";
const INTEGRATION: &str = "integration";
const END_TO_END: &str = "end-to-end";
/// What this needs is built while the server's integration tests run.
const FUZZ: &str = "fuzz";

/// In order: cheap first, then what needs the built binaries.
const STEPS: &[Step] = &[
    step("format", When::Always, false, format),
    step("tidy", When::Always, false, rules),
    step("page-check", When::Always, false, page_check),
    step("page-unit", When::Always, false, page_unit),
    step("page-build", When::UnlessQuick, false, page_build),
    step("lints", When::Always, false, lints),
    step(UNIT, When::Always, false, unit),
    step(LICENCES, When::UnlessQuick, false, licences),
    step(ALERTS, When::UnlessQuick, false, alerts),
    step("binaries", When::UnlessQuick, false, binaries),
    step(INTEGRATION, When::UnlessQuick, true, integration),
    step("root", When::UnlessQuick, true, root),
    step("shell", When::UnlessQuick, true, shell),
    step(END_TO_END, When::UnlessQuick, true, end_to_end),
    step("browser", When::UnlessQuick, true, browser),
    step(FUZZ, When::UnlessQuick, false, fuzzed),
    step(INSTALL, When::UnlessQuick, true, install),
    step("kernels", When::Named, true, on_kernels),
];

/// Runs the steps and prints the sum as the last line.
pub(crate) fn run(args: &Args) -> Result<()> {
    let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
    if let Some(wrong) = args.only.iter().find(|name| !known.contains(&name.as_str())) {
        bail!("there is no step {wrong}; there are: {}", known.join(", "));
    }
    let changed = args.changed.as_deref().map(Changed::since).transpose()?;
    let chosen = chosen(args, changed.as_ref());
    if let Some(changed) = &changed {
        let runs: Vec<&str> = chosen.iter().map(|(step, _)| step.name).collect();
        let left_out = STEPS.iter().filter(|step| step.when != When::Named);
        let left_out: Vec<&str> = left_out
            .map(|step| step.name)
            .filter(|name| !runs.contains(name))
            .collect();
        changed.tell(&runs, &left_out);
    }
    if args.list {
        if changed.is_none() {
            println!("{}", known.join("\n"));
        }
        return Ok(());
    }
    if !chosen.is_empty() {
        packages::ensure_build()?;
    }
    if chosen.iter().any(|(step, _)| step.needs_programs) {
        packages::ensure_test()?;
    }
    let has = |name: &str| chosen.iter().any(|(step, _)| step.name == name);
    if has(INSTALL) {
        check_install::make_debian_meanwhile();
    }
    tools::build_meanwhile(early_tools(has));
    if has(LICENCES) && has(END_TO_END) {
        e2e::engines::make_python_meanwhile();
    }
    run_steps(chosen)
}

/// What is built while other steps run, in the order in which it is needed. The steps for licences and for alerts wait
/// until all of it is there, so that what is needed after them is begun early only where one of them runs.
fn early_tools(has: impl Fn(&str) -> bool) -> Vec<&'static Tool> {
    let tools = [
        (has(UNIT) || has(INTEGRATION), &tools::S3_SERVER),
        (has(LICENCES), &tools::CARGO_DENY),
        (has(ALERTS), &tools::PROMTOOL),
        (
            has(END_TO_END) && (has(LICENCES) || has(ALERTS)),
            &tools::INFERNO_FLAMEGRAPH,
        ),
    ];
    let needed = tools.into_iter().filter(|(is_needed, _)| *is_needed);
    needed.map(|(_, tool)| tool).collect()
}

/// The steps that the arguments ask for, and what of each.
fn chosen<'a>(args: &'a Args, changed: Option<&Changed>) -> Vec<(&'static Step, Scope<'a>)> {
    let asked_for = |step: &Step| {
        if args.only.is_empty() {
            step.when == When::Always || step.when == When::UnlessQuick && !args.quick
        } else {
            args.only.iter().any(|only| only == step.name)
        }
    };
    let steps = STEPS.iter().filter(|step| asked_for(step));
    let asked: Vec<(&Step, Vec<Piece>)> = steps
        .filter_map(|step| {
            let pieces = changed.map_or(Some(vec![Piece::Whole]), |changed| changed.plan.pieces(step.name))?;
            Some((step, pieces))
        })
        .collect();
    let has = |name: &str| asked.iter().any(|(step, _)| step.name == name);
    let (fuzz_follows, install_follows) = (has(FUZZ), has(INSTALL));
    let is_whole = |pieces: &[Piece]| pieces.contains(&Piece::Whole);
    let integration_follows = asked
        .iter()
        .any(|(step, pieces)| step.name == INTEGRATION && is_whole(pieces));
    let with_scope = |(step, pieces)| {
        let scope = Scope {
            args,
            pieces,
            fuzz_follows,
            integration_follows,
            install_follows,
        };
        (step, scope)
    };
    asked.into_iter().map(with_scope).collect()
}

fn run_steps(chosen: Vec<(&Step, Scope<'_>)>) -> Result<()> {
    let mut table = vec![];
    let mut sum = Tally::default();
    for (step, scope) in chosen {
        println!("\n=== {} ===", step.name);
        let begin = Instant::now();
        let tally = (step.run)(&scope).unwrap_or_else(|error| {
            let mut tally = Tally::default();
            tally.fail(&format!("error: {error:#}"));
            tally
        });
        table.push((step.name, tally.clone(), begin.elapsed()));
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

fn format(_: &Scope<'_>) -> Result<Tally> {
    component("rustfmt", "cargo-fmt")?;
    command(repo::cargo().args(["fmt", "--all", "--", "--check"]))
}

fn lints(_: &Scope<'_>) -> Result<Tally> {
    component("clippy", "cargo-clippy")?;
    lints::step()
}

/// A part of the Rust toolchain that minimal installations lack.
fn component(name: &str, program: &str) -> Result<()> {
    if repo::find_program(program).is_some() || repo::find_program("rustup").is_none() {
        return Ok(());
    }
    run::run(Command::new("rustup").args(["component", "add", name]))
}

fn rules(_: &Scope<'_>) -> Result<Tally> {
    tidy::step()
}

fn licences(_: &Scope<'_>) -> Result<Tally> {
    tools::finish_meanwhile();
    let deny = tools::CARGO_DENY.ready()?;
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

fn alerts(_: &Scope<'_>) -> Result<Tally> {
    alerts::step()
}

fn page_check(_: &Scope<'_>) -> Result<Tally> {
    artifacts::web_packages()?;
    command(artifacts::npm().args(["run", "check"]))
}

fn page_unit(scope: &Scope<'_>) -> Result<Tally> {
    artifacts::web_packages()?;
    let mut npm = artifacts::npm();
    match scope.page_files() {
        None => npm.args(["run", "test"]),
        // One test holds all sources against each other, and imports none of them.
        Some(files) => npm
            .args(["exec", "--", "vitest", "related", "--run", "src/rooms.test.ts"])
            .args(files),
    };
    runner(&mut npm, VITEST)
}

fn page_build(_: &Scope<'_>) -> Result<Tally> {
    artifacts::web()?;
    Ok(Tally::one(true))
}

fn unit(scope: &Scope<'_>) -> Result<Tally> {
    if !scope.is_whole() {
        let packages: Vec<&str> = scope.pieces.iter().filter_map(Piece::package).collect();
        let targets: Vec<&str> = packages.iter().copied().flat_map(unit_targets).copied().collect();
        return built(&targets, |folder, _| packages.contains(&folder).then(Vec::new));
    }
    if scope.integration_follows {
        build_all_tests();
    }
    let mut test = repo::cargo();
    test.args(["test", "--locked", "--workspace", "--no-fail-fast"])
        .args(ALL_UNIT_TARGETS);
    tell_s3_server(&mut test)?;
    runner(&mut test, CARGO)
}

/// Builds the programs of unit and integration tests in one run of cargo: what links one of them, or reads a large
/// library's declarations, leaves a CPU to what compiles another one. Where that fails each step builds its own, and
/// tells.
fn build_all_tests() {
    let mut build = repo::cargo();
    build
        .args(["test", "--locked", "--workspace", "--no-run"])
        .args(ALL_UNIT_TARGETS)
        .args(ALL_INTEGRATION_TARGETS);
    if let Err(error) = run::run(&mut build) {
        println!("{error:#}");
    }
}

/// The real binaries, which the integration tests may start: of the dependencies that the tests are built with.
fn binaries(_: &Scope<'_>) -> Result<Tally> {
    let mut tally = Tally::one(true);
    for twice in once::built_twice()? {
        tally.fail(&format!("built twice, with all that depends on it: {twice}"));
    }
    artifacts::all(Profile::Debug)?;
    Ok(tally)
}

/// Integration tests; as root, those of the agent on the real kernel are among them and must run.
fn integration(scope: &Scope<'_>) -> Result<Tally> {
    if !scope.is_whole() {
        let targets: Vec<&str> = scope
            .pieces
            .iter()
            .filter_map(Piece::program)
            .flat_map(|name| ["--test", name])
            .collect();
        return built(&targets, |folder, name| filters(&scope.pieces, folder, name));
    }
    // Some wait: for a server that starts anew, for a network that loses answers. The agent's on the real kernel take
    // turns, and are as many at a time as ever.
    let threads = thread::available_parallelism().map_or(1, usize::from) + 1;
    built(&ALL_INTEGRATION_TARGETS, |folder, name| {
        // The server's tests come last, when no agent looks at this machine any more: whatever CPU time they leave is
        // a compiler's.
        if folder == "server" && scope.fuzz_follows {
            fuzz::build_meanwhile();
        }
        let more = (name != "root").then(|| format!("--test-threads={threads}"));
        Some(more.into_iter().collect())
    })
}

/// The agent's tests on the real kernel again as root, where the step before was not.
fn root(scope: &Scope<'_>) -> Result<Tally> {
    if packages::is_root() {
        println!("ran as root in the step before");
        return Ok(Tally::default());
    }
    let filters = filters(&scope.pieces, "agent", "root").unwrap_or_default();
    runner(root_tests(&[])?.args(filters), CARGO)
}

fn on_kernels(_: &Scope<'_>) -> Result<Tally> {
    kernels::step()
}

fn shell(_: &Scope<'_>) -> Result<Tally> {
    let listed = run::output(
        Command::new("git")
            .current_dir(repo::root())
            .args(["ls-files", "*.sh", ".ci/run"]),
    )?;
    let mut check = Command::new("shellcheck");
    command(check.current_dir(repo::root()).args(listed.lines()))
}

fn end_to_end(scope: &Scope<'_>) -> Result<Tally> {
    let binaries = artifacts::all(Profile::Debug)?;
    e2e::run(&binaries, scope.args.filter.as_deref())
}

fn browser(scope: &Scope<'_>) -> Result<Tally> {
    let binaries = artifacts::all(Profile::Debug)?;
    e2e::with_stack(&binaries, |stack| {
        let mut npm = artifacts::npm();
        npm.args(["run", "e2e", "--"])
            .args(scope.page_files().unwrap_or_default())
            .env("CI", "true")
            .env("STAKEOUT_URL", stack.client.base());
        runner(&mut npm, PLAYWRIGHT)
    })
}

/// The installation, where it was begun beside another step.
static INSTALLING: Mutex<Option<JoinHandle<Result<Tally>>>> = Mutex::new(None);

/// Feeds the decoders for minutes; the installation has company then.
fn fuzzed(scope: &Scope<'_>) -> Result<Tally> {
    if scope.install_follows {
        let binaries = artifacts::all(Profile::Debug)?;
        let begun = thread::spawn(move || {
            let begin = Instant::now();
            let tally = check_install::run(&binaries);
            println!("install took {} s beside this step", seconds(begin.elapsed()));
            tally
        });
        *INSTALLING.lock().unwrap_or_else(PoisonError::into_inner) = Some(begun);
    }
    fuzz::step()
}

/// Most of it waits for samples and for programs to end, and none of it is a matter of how fast.
fn install(_: &Scope<'_>) -> Result<Tally> {
    let begun = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner).take();
    match begun {
        Some(begun) => {
            println!("ran beside the step before");
            begun.join().unwrap_or_else(|_| bail!("it panicked"))
        }
        None => check_install::run(&artifacts::all(Profile::Debug)?),
    }
}
