//! `cargo xtask kernels`: the agent's tests on the real kernel, on Debian's kernels too.
//!
//! In: kernels from apt, unpacked but not installed, and the agent's `root` tests. Each kernel is booted by qemu with
//! an initramfs that holds the tests, the agent and the programs that both use; what they say comes back over a
//! serial port. The same tests then run on this machine's own kernel. Out: the sum of the tests, and a line of
//! figures for each kernel. Nothing is written but in the target folder's cache and in a temporary folder.

mod archive;
mod boot;
mod debs;
mod guest;

use std::env;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

use crate::signals::Stop;
use crate::tally::{self, Tally};
use crate::{packages, repo, run, test_programs};
use debs::Kernel;
use guest::Tests;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these kernels, separated by commas: 6.1, 6.12, 5.10, running
    #[arg(long, value_delimiter = ',', value_name = "KERNEL")]
    only: Vec<String>,
    /// Only the tests whose name contains this
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Emulate the processor, also where KVM is there
    #[arg(long)]
    emulate: bool,
}

/// Debian's release line, what its packages are called, and whether it is no surprise where apt doesn't have it.
const LINES: &[(&str, &str, bool)] = &[
    ("5.10", r"^linux-image-5\.10\.0-[0-9]+-amd64$", true),
    ("6.1", r"^linux-image-6\.1\.0-[0-9]+-amd64$", false),
    ("6.12", r"^linux-image-6\.12\.[0-9]+(\+deb1[0-9]|\+bpo)?-amd64$", false),
];
const RUNNING: &str = "running";

/// What one kernel said.
struct Outcome {
    kernel: String,
    tally: Tally,
    took: Duration,
    /// The line that `agent/tests/root/deep.rs` prints.
    figures: Option<String>,
}

/// Runs the tests on every kernel; an error if one failed.
pub(crate) fn run(args: &Args) -> Result<()> {
    packages::ensure_build()?;
    let tally = all(args)?;
    println!("{} passed, {} failed", tally.passed, tally.failed);
    ensure!(tally.failed == 0, "not every test passed on every kernel");
    Ok(())
}

/// For `cargo xtask test`: Debian's kernels only, since a step of its own has the running one.
pub(crate) fn step() -> Result<Tally> {
    let only = LINES.iter().map(|(name, ..)| (*name).to_owned()).collect();
    all(&Args {
        only,
        filter: None,
        emulate: false,
    })
}

fn all(args: &Args) -> Result<Tally> {
    let known = || LINES.iter().map(|(name, ..)| *name).chain([RUNNING]);
    if let Some(wrong) = args.only.iter().find(|name| known().all(|known| known != *name)) {
        bail!(
            "there is no kernel {wrong}; there are: {}",
            known().collect::<Vec<_>>().join(", ")
        );
    }
    let chosen = |name: &str| args.only.is_empty() || args.only.iter().any(|only| only == name);
    ensure!(
        env::consts::ARCH == "x86_64",
        "the kernels that are booted are those of x86-64, and this machine is none"
    );
    packages::ensure_kernels()?;
    let stop = Stop::install()?;
    let mut kernels = vec![];
    for (name, pattern, may_lack) in LINES.iter().filter(|(name, ..)| chosen(name)) {
        match debs::newest(name, pattern)? {
            Some(kernel) => kernels.push(kernel),
            None if *may_lack => println!("{name}: NOT CHECKED, apt has no such kernel here"),
            None => bail!(
                "apt has no kernel {name} here (a package like {pattern}); Debian 12 with its security updates has"
            ),
        }
    }
    let tests = tests()?;
    let dir = TempDir::new().context("can't make a temporary folder")?;
    let mut outcomes = vec![];
    if !kernels.is_empty() {
        let initramfs = dir.path().join("initramfs");
        guest::write(&initramfs, &tests, args.filter.as_deref())?;
        let mut machine = boot::Machine::of_this_host(args.emulate);
        for kernel in &kernels {
            stop.check()?;
            outcomes.push(guest_outcome(kernel, &initramfs, &mut machine, dir.path(), &stop)?);
        }
    }
    if chosen(RUNNING) {
        outcomes.push(running(&tests, args.filter.as_deref())?);
    }
    Ok(report(&outcomes))
}

fn tests() -> Result<Tests> {
    let program = test_programs::root_program()?;
    let agent = crate::artifacts::folder(crate::artifacts::Profile::Debug)?.join("stakeout-agent");
    ensure!(agent.is_file(), "cargo built no {}", agent.display());
    Ok(Tests { program, agent })
}

fn guest_outcome(
    kernel: &Kernel,
    initramfs: &Path,
    machine: &mut boot::Machine,
    dir: &Path,
    stop: &Stop,
) -> Result<Outcome> {
    println!("\n--- {} ---", kernel.package);
    let begin = Instant::now();
    let said = machine.boot(kernel, initramfs, dir, stop)?;
    // The last one: a test that runs itself in another process prints one of its own.
    let mut tally = said
        .text
        .lines()
        .filter_map(tally::read_cargo)
        .next_back()
        .unwrap_or_default();
    let figures = said.text.lines().find_map(|line| line.trim().strip_prefix("figures: "));
    let outcome = |tally| Outcome {
        kernel: kernel.package.clone(),
        tally,
        took: begin.elapsed(),
        figures: figures.map(str::to_owned),
    };
    if said.complete && tally.failed == 0 && tally.passed > 0 {
        return Ok(outcome(tally));
    }
    tally.failed = tally.failed.max(1);
    println!("{}", said.text.trim_end());
    if !said.complete {
        println!(
            "{}: it did not get to the end of its tests; the kernel's last lines:",
            kernel.package
        );
    } else {
        println!("{}: the kernel's last lines:", kernel.package);
    }
    println!("{}", said.kernel_log);
    Ok(outcome(tally))
}

/// The same tests on the kernel that runs here.
fn running(tests: &Tests, filter: Option<&str>) -> Result<Outcome> {
    println!("\n--- the running kernel ---");
    let begin = Instant::now();
    let mut test = packages::as_root("the agent's tests load BPF programs into this kernel")?;
    test.current_dir(repo::root().join("agent")).args(["env", "CI=true"]);
    if let Some(path) = env::var_os("PATH") {
        let mut pair = std::ffi::OsString::from("PATH=");
        pair.push(path);
        test.arg(pair);
    }
    test.arg(&tests.program)
        .args(["--show-output", "--test-threads=1"])
        .args(filter);
    let (mut tally, mut figures) = (Tally::default(), None);
    let ok = run::tee(&mut test, |line| {
        if let Some(more) = tally::read_cargo(line) {
            tally.add(more);
        }
        if let Some(found) = line.trim().strip_prefix("figures: ") {
            figures = Some(found.to_owned());
        }
    })?;
    if !ok {
        tally.failed = tally.failed.max(1);
    }
    Ok(Outcome {
        kernel: "the running kernel".into(),
        tally,
        took: begin.elapsed(),
        figures,
    })
}

fn report(outcomes: &[Outcome]) -> Tally {
    println!("\nkernel, tests passed and failed, seconds with boot");
    for outcome in outcomes {
        let Outcome {
            kernel,
            tally,
            took,
            figures,
        } = outcome;
        println!(
            "{kernel:<40}{:>4}{:>4}{:>9.1}",
            tally.passed,
            tally.failed,
            took.as_secs_f64()
        );
        println!(
            "    {}",
            figures
                .as_deref()
                .unwrap_or("no figures: the test of deep stacks did not get that far")
        );
    }
    outcomes
        .iter()
        .fold(Tally::default(), |sum, outcome| sum.and(outcome.tally.clone()))
}
