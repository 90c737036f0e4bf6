//! `cargo xtask fuzz`: the decoders of agent and server, fed made-up bytes by libFuzzer, which keeps those that reach
//! new code.
//!
//! In: the targets of `agent/src/fuzz` and `server/src/fuzz.rs`, and seeds from this machine's own files. Out: a line
//! of figures for each target; for what broke one, the file that does it, what the target said, and the command to run
//! it again. Nothing is written but in the target folder, where the next run goes on from what this one found.

mod elf;
mod seeds;

use std::collections::VecDeque;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, Once, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail, ensure};

use crate::artifacts::{self, Profile};
use crate::signals::Stop;
use crate::tally::Tally;
use crate::{packages, repo, run};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these targets; --list names them
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// How long each target is fed
    #[arg(long, default_value_t = 60, value_name = "N")]
    seconds: u64,
    /// Run this file once, for one target, instead
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Name the targets and do nothing
    #[arg(long)]
    list: bool,
}

/// What cargo-fuzz gives the compiler, without a sanitizer: those take a nightly compiler, and the agent's only unsafe
/// code that reads made-up bytes is C, which its build script makes trap.
const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg",
    "fuzzing",
];
/// Of the whole process, the corpus included; what a target itself may hold is less, and `xtask/fuzz` watches it.
const RSS_LIMIT_MIB: u32 = 768;
/// For one input; the slowest decoder takes milliseconds.
const TIMEOUT_SECONDS: u32 = 5;
/// Where nothing says how long inputs should be.
const MAX_INPUT_BYTES: u32 = 48 * 1024;
/// For each of the server's targets in `cargo xtask test`: a minute, and what runs beside the first of them takes.
const STEP_SECONDS: u64 = 62;
/// Rust's default for threads: the programs have the stack that the agent's threads have, deep recursion is a finding.
const STACK_BYTES: u64 = 2 << 20;
/// Lines of a broken target's output that are shown.
const SHOWN_LINES: usize = 30;
/// libFuzzer's answer to Ctrl-C.
const INTERRUPTED: i32 = 72;

/// Fuzzes the targets; an error if one broke.
pub(crate) fn run(args: &Args) -> Result<()> {
    packages::ensure_build()?;
    let fuzzers = [Fuzzer::of_agent()?, Fuzzer::of_server()?];
    let known = fuzzers
        .iter()
        .map(|fuzzer| fuzzer.targets.clone())
        .collect::<Vec<_>>()
        .concat();
    if args.list {
        println!("{}", known.join("\n"));
        return Ok(());
    }
    if let Some(wrong) = args.targets.iter().find(|target| !known.contains(target)) {
        bail!("there is no target {wrong}; there are: {}", known.join(", "));
    }
    if let Some(input) = &args.input {
        let [target] = args.targets.as_slice() else {
            bail!("--input takes one target");
        };
        let fuzzer = fuzzers.iter().find(|fuzzer| fuzzer.targets.contains(target));
        let fuzzer = fuzzer.context("no program has this target")?;
        return run::run(
            fuzzer
                .command(target)
                .arg(format!("-timeout={TIMEOUT_SECONDS}"))
                .arg(input),
        );
    }
    let chosen = |target: &&String| args.targets.is_empty() || args.targets.contains(target);
    let broken = feed(&fuzzers, |target| chosen(&target), args.seconds)?;
    ensure!(broken.is_empty(), "{} targets broke", broken.len());
    Ok(())
}

/// For `cargo xtask test`: the server's targets, a short time each. The agent's have a compiled world of their own.
pub(crate) fn step() -> Result<Tally> {
    let fuzzer = Fuzzer::of_step()?;
    let all = u32::try_from(fuzzer.targets.len())?;
    let broken = feed(&[fuzzer], |_| true, STEP_SECONDS)?;
    let failed = u32::try_from(broken.len())?;
    Ok(Tally::new(all - failed, failed))
}

/// Begins to build what the step feeds, in the time that others leave of the CPUs; the first of several calls does.
/// Where that fails the step tries again, and tells.
pub(crate) fn build_meanwhile() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(|| drop(thread::spawn(|| drop(Fuzzer::of_step()))));
}

/// Feeds the chosen targets, as many at a time as there are processors, and says what broke.
fn feed(fuzzers: &[Fuzzer], chosen: impl Fn(&String) -> bool, seconds: u64) -> Result<Vec<(String, Finding)>> {
    let stop = Stop::install()?;
    println!("\n{}", Figures::HEAD);
    let all = fuzzers
        .iter()
        .flat_map(|fuzzer| fuzzer.targets.iter().map(move |target| (fuzzer, target.clone())));
    let queue: Mutex<VecDeque<(&Fuzzer, String)>> = Mutex::new(all.filter(|(_, target)| chosen(target)).collect());
    let broken = Mutex::new(vec![]);
    let work = || -> Result<()> {
        loop {
            let Some((fuzzer, target)) = queue.lock().ok().and_then(|mut queue| queue.pop_front()) else {
                return Ok(());
            };
            stop.check()?;
            let outcome = fuzzer.fuzz(&target, seconds)?;
            println!("{}", outcome.figures.line(&target));
            if let (Some(finding), Ok(mut broken)) = (outcome.finding, broken.lock()) {
                broken.push((target, finding));
            }
        }
    };
    thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|_| bail!("a worker panicked")))
    })?;
    let broken = broken.into_inner().unwrap_or_default();
    for (target, finding) in &broken {
        finding.print(target);
    }
    Ok(broken)
}

/// A program, the folder that holds all that belongs to it, and its targets.
struct Fuzzer {
    program: PathBuf,
    dir: PathBuf,
    targets: Vec<String>,
}

/// What became of one target.
struct Outcome {
    figures: Figures,
    finding: Option<Finding>,
}

/// An input that broke a target.
struct Finding {
    input: Option<PathBuf>,
    /// The end of what the program said.
    said: Vec<String>,
}

impl Finding {
    fn print(&self, target: &str) {
        println!("\n{target} broke:");
        for line in &self.said {
            println!("    {line}");
        }
        match &self.input {
            Some(input) => println!(
                "  by {}\n  again: cargo xtask fuzz {target} --input {}",
                input.display(),
                input.display()
            ),
            None => println!("  without an input that does it"),
        }
    }
}

/// libFuzzer's own, as it prints them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Figures {
    seeds: usize,
    inputs: u64,
    per_second: u64,
    /// Edges of the code that were reached, and those with how often, by powers of two.
    edges: u64,
    features: u64,
    peak_mib: u64,
}

impl Figures {
    const HEAD: &str = "target          seeds      inputs  a second     edges  features  peak MiB";

    fn line(&self, target: &str) -> String {
        format!(
            "{target:<14}{:>7}{:>12}{:>10}{:>10}{:>10}{:>10}",
            self.seeds, self.inputs, self.per_second, self.edges, self.features, self.peak_mib
        )
    }

    /// From lines such as `#8192 pulse  cov: 410 ft: 1200 corp: …` and `stat::average_exec_per_sec:     25`.
    fn read(log: &str, seeds: usize) -> Figures {
        let stat = |name: &str| {
            let mut lines = log.lines().rev();
            let found = lines.find_map(|line| line.strip_prefix("stat::")?.strip_prefix(name)?.strip_prefix(':'));
            found.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
        };
        let progress = |name: &str| {
            let found = log.lines().rev().filter(|line| line.starts_with('#')).find_map(|line| {
                let mut words = line.split_whitespace().skip_while(|word| *word != name);
                words.nth(1)?.parse().ok()
            });
            found.unwrap_or(0)
        };
        Figures {
            seeds,
            inputs: stat("number_of_executed_units"),
            per_second: stat("average_exec_per_sec"),
            edges: progress("cov:"),
            features: progress("ft:"),
            peak_mib: stat("peak_rss_mb"),
        }
    }
}

impl Fuzzer {
    /// Builds the agent's program with coverage, apart from all other builds: nothing of it is of use to them.
    fn of_agent() -> Result<Fuzzer> {
        let version = run::output(Command::new("rustc").arg("-vV").current_dir(repo::root()))?;
        let triple = version.lines().find_map(|line| line.strip_prefix("host: "));
        let triple = triple.context("rustc doesn't say what it compiles for")?;
        let dir = repo::target_dir()?.join("fuzz");
        // With a target named, build scripts and macros are built without these flags.
        let mut build = repo::cargo();
        build.args(["build", "--locked", "--package", "stakeout-fuzz", "--features", "agent"]);
        build.args(["--profile", "fuzz", "--target", triple]);
        build.env_remove("RUSTFLAGS").env("CARGO_TARGET_DIR", &dir);
        build.env("CARGO_ENCODED_RUSTFLAGS", COVERAGE.join("\x1f"));
        run::run(&mut build)?;
        Fuzzer::new(dir.join(triple).join("fuzz/stakeout-fuzz"), dir)
    }

    /// The server's program for the step, built from what the other steps have built. By one at a time: until it is
    /// copied it lies where cargo puts every build of it.
    fn of_step() -> Result<Fuzzer> {
        static BUILDING: Mutex<()> = Mutex::new(());
        let _one = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
        artifacts::all(Profile::Debug)?;
        Fuzzer::of_server()
    }

    /// Builds the server's program. Only the server itself is compiled for coverage: what it is made of is there
    /// already, and takes far longer to compile than to fuzz.
    fn of_server() -> Result<Fuzzer> {
        let dir = repo::target_dir()?.join("fuzz");
        fs::create_dir_all(&dir).with_context(|| format!("can't make {}", dir.display()))?;
        let wrapper = dir.join("rustc");
        let script = format!(
            "#!/bin/sh\ncase \" $* \" in\n*' --crate-name stakeout_server '*' --crate-type lib '*) exec \"$@\" {} ;;\nesac\nexec \"$@\"\n",
            COVERAGE.join(" ")
        );
        fs::write(&wrapper, script)?;
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
        let mut build = repo::cargo();
        // The whole workspace's features, so that nothing is compiled another way than for all else.
        build.args(["build", "--locked", "--workspace", "--features", "stakeout-fuzz/server"]);
        build.args(["--bin", "stakeout-fuzz"]);
        build.env("RUSTC_WORKSPACE_WRAPPER", &wrapper);
        run::run(&mut run::behind_others(&build))?;
        let built = repo::target_dir()?.join("debug/stakeout-fuzz");
        let program = dir.join("stakeout-fuzz-server");
        fs::copy(&built, &program).with_context(|| format!("can't copy {}", built.display()))?;
        Fuzzer::new(program, dir)
    }

    fn new(program: PathBuf, dir: PathBuf) -> Result<Fuzzer> {
        let mut fuzzer = Fuzzer {
            program,
            dir,
            targets: vec![],
        };
        let listed = run::output(&mut fuzzer.command("list"))?;
        fuzzer.targets = listed.lines().map(str::to_owned).collect();
        Ok(fuzzer)
    }

    fn command(&self, target: &str) -> Command {
        // Of this program the limit would be everybody's that is started beside.
        let mut command = Command::new("prlimit");
        command.arg(format!("--stack={STACK_BYTES}:")).arg(&self.program);
        command.env("STAKEOUT_FUZZ_TARGET", target).env("RUST_BACKTRACE", "0");
        command
    }

    fn folder(&self, kind: &str, target: &str) -> Result<PathBuf> {
        let dir = self.dir.join(kind).join(target);
        fs::create_dir_all(&dir).with_context(|| format!("can't make {}", dir.display()))?;
        Ok(dir)
    }

    /// Feeds one target. What libFuzzer says goes to a file beside its corpus.
    fn fuzz(&self, target: &str, seconds: u64) -> Result<Outcome> {
        let (corpus, findings) = (self.folder("corpus", target)?, self.folder("findings", target)?);
        let seeds_dir = self.folder("seeds", target)?;
        let seeds = seeds::gather(target, &seeds_dir)?;
        let log_path = self.dir.join(format!("{target}.log"));
        let log = File::create(&log_path).with_context(|| format!("can't write {}", log_path.display()))?;
        let begin = std::time::SystemTime::now();
        let mut command = self.command(target);
        command.args([
            format!("-max_total_time={seconds}"),
            format!("-timeout={TIMEOUT_SECONDS}"),
            format!("-rss_limit_mb={RSS_LIMIT_MIB}"),
            format!("-artifact_prefix={}/", findings.display()),
            "-print_final_stats=1".into(),
            "-print_funcs=0".into(),
        ]);
        if seeds == 0 {
            command.arg(format!("-max_len={MAX_INPUT_BYTES}"));
        }
        // New inputs go to the first folder.
        command.args([&corpus, &seeds_dir]);
        let status = command
            .stdout(log.try_clone().context("can't write the log")?)
            .stderr(log)
            .status()
            .with_context(|| format!("can't start {}", self.program.display()))?;
        let said = fs::read(&log_path).with_context(|| format!("can't read {}", log_path.display()))?;
        let said = String::from_utf8_lossy(&said);
        let ended_well = status.success() || status.code() == Some(INTERRUPTED);
        let finding = (!ended_well).then(|| Finding {
            input: newest(&findings, begin),
            said: telling(&said),
        });
        Ok(Outcome {
            figures: Figures::read(&said, seeds),
            finding,
        })
    }
}

/// The file that was written last, since `begin`.
fn newest(dir: &Path, begin: std::time::SystemTime) -> Option<PathBuf> {
    let written = |entry: fs::DirEntry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()));
    let files = fs::read_dir(dir).ok()?.flatten().filter_map(written);
    files.filter(|(at, _)| *at >= begin).max().map(|(_, path)| path)
}

/// The end of a broken target's output, without progress, figures and the bytes of the input.
fn telling(log: &str) -> Vec<String> {
    let noise = |line: &&str| !line.starts_with('#') && !line.starts_with("stat::") && line.len() < 400;
    let lines: Vec<&str> = log.lines().filter(noise).collect();
    let first = lines.len().saturating_sub(SHOWN_LINES);
    lines[first..].iter().map(|line| (*line).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_libfuzzers_figures() {
        let log = "INFO: seed corpus: files: 3\n#4\tINITED cov: 100 ft: 200 corp: 3/9b\n#900\tNEW    cov: 410 ft: 1200 corp: 9/40b\n\
                   Done 950 runs\nstat::number_of_executed_units: 950\nstat::average_exec_per_sec:     95\nstat::peak_rss_mb:              52\n";
        let expected = Figures {
            seeds: 3,
            inputs: 950,
            per_second: 95,
            edges: 410,
            features: 1200,
            peak_mib: 52,
        };
        assert_eq!(Figures::read(log, 3), expected);
        let said = telling(&format!("{log}thread panicked at a.rs:1\n{}\n", "0x41,".repeat(100)));
        assert_eq!(said.last().map(String::as_str), Some("thread panicked at a.rs:1"));
    }
}
