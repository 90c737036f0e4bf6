//! Whether the agent stays within its limits while programs come and go.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::agent::this_node;
use super::crowd::{Churning, Crowd};
use super::median;
use super::report::Figures;
use super::short_lives::ShortLives;
use crate::artifacts::{self, Profile};
use crate::e2e::check_agent;
use crate::packages;
use crate::proc::{bpf, cpu_seconds, memory};
use crate::service::Service;
use crate::signals::Stop;
use crate::stack::{Options, Stack};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How long programs come and go; growth is looked for in the second half
    #[arg(long, default_value_t = 600, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(40..))]
    seconds: u64,
    /// Processes that live at a time
    #[arg(long, default_value_t = 500, value_name = "N")]
    processes: usize,
    /// Different executables among them
    #[arg(long, default_value_t = 300, value_name = "N")]
    executables: usize,
    /// Instead of these, 300 short processes a minute of Python and Node.js beside five Java machines
    #[arg(long)]
    runtimes: bool,
}

const MIB: f64 = 1_048_576.0;
/// The agent's default for `--memory-limit`.
const LIMIT_BYTES: u64 = 64 << 20;
/// The same for `--cpu-limit`.
const CPU_LIMIT_PERCENT: f64 = 1.0;
/// Files that the agent may hold open, and what it needs beside them.
const MOST_DESCRIPTORS: usize = 4096 + 256;
/// A last quarter that is larger by more than this than the one before it is growth.
const GROWTH_BYTES: f64 = 2.0 * MIB;
const GROWTH_DESCRIPTORS: f64 = 64.0;
/// How often the crowd is looked after; memory is read each second.
const TURN: Duration = Duration::from_millis(100);

/// One second of the agent.
#[derive(Debug, Clone, Copy)]
struct Reading {
    at: Duration,
    rss: u64,
    /// The highest since the reading before.
    peak: u64,
    maps: u64,
    descriptors: usize,
}

/// CPU time that there was.
fn machine_seconds(args: &Args) -> f64 {
    args.seconds as f64 * thread::available_parallelism().map_or(1, usize::from) as f64
}

/// Reads all of it, and begins a new peak.
fn read(agent: &Service, begin: Instant) -> Result<Reading> {
    let pid = agent.pid();
    let memory = memory(pid)?;
    let reading = Reading {
        at: begin.elapsed(),
        rss: memory.resident,
        peak: memory.peak,
        maps: u64::try_from(bpf(pid)?.map_bytes)?,
        descriptors: fs::read_dir(format!("/proc/{pid}/fd"))?.count(),
    };
    let path = format!("/proc/{pid}/clear_refs");
    fs::write(&path, "5").with_context(|| format!("can't write {path}"))?;
    Ok(reading)
}

/// Runs the crowd beside a server and an agent with default limits, which are the targets of the figures.
pub(crate) fn run(args: &Args, figures: &mut Figures) -> Result<()> {
    ensure!(
        packages::is_root(),
        "the agent's peaks are read as root: run this as root"
    );
    let binaries = artifacts::all(Profile::Release)?;
    let stop = Stop::install()?;
    let dir = tempfile::tempdir()?;
    let options = Options {
        binaries,
        state_dir: dir.path().to_owned(),
        listen: "127.0.0.1:0".to_owned(),
        frequency_hz: 20,
    };
    let (mut crowd, what): (Box<dyn Churning>, String) = if args.runtimes {
        let lives = ShortLives::new(dir.path())?;
        let what = format!("for {} s {}", args.seconds, lives.titles());
        (Box::new(lives), what)
    } else {
        let crowd = Crowd::new(dir.path(), args.executables, args.processes)?;
        let what = format!(
            "{} processes of {} executables for {} s, and one after the other: {}",
            args.processes,
            args.executables,
            args.seconds,
            crowd.large_names()
        );
        (Box::new(crowd), what)
    };
    let mut stack = Stack::start(&options, &stop)?;
    figures.print_note(what);
    let readings = watch(args, &mut stack, &mut *crowd, &stop)?;
    ensure!(
        stack
            .agent
            .stop(Duration::from_secs(30))
            .is_some_and(|status| status.success()),
        "the agent ended badly:\n{}",
        stack.agent.last_lines(10)
    );
    drop(crowd);
    let accounting = check_agent(&stack.client);
    let node = this_node(&stack.client, 0)?;
    // The rate is one of them: with `rate_lowered` fewer samples were taken than asked for.
    figures.print_note(format!(
        "limits that were reached: {}; at last {} Hz",
        node["limits"], node["frequency_hz"]
    ));
    stack.server.stop(Duration::from_secs(20));
    let seconds = |key: &str| node[key].as_f64().unwrap_or(f64::NAN);
    let used = (seconds("cpu_seconds") + seconds("bpf_seconds")) / machine_seconds(args) * 100.0;
    judge(&readings, accounting, used, args, figures);
    Ok(())
}

/// Keeps the crowd alive and reads the agent each second; prints a line a minute.
fn watch(args: &Args, stack: &mut Stack, crowd: &mut dyn Churning, stop: &Stop) -> Result<Vec<Reading>> {
    println!(
        "{:>5} {:>8} {:>9} {:>9} {:>8} {:>8} {:>9} {:>6} {:>6} {:>8} {:>8}",
        "s", "RSS MiB", "peak MiB", "maps MiB", "sum", "peak sum", "% limit", "fds", "alive", "started", "CPU s"
    );
    let begin = Instant::now();
    let (mut readings, mut printed, mut cpu_before) = (vec![], 0, cpu_seconds(stack.agent.pid())?);
    let (mut started_before, mut next_line) = (0, Duration::from_secs(args.seconds.min(60)));
    while begin.elapsed() < Duration::from_secs(args.seconds) {
        thread::sleep(TURN);
        stop.check()?;
        stack.check()?;
        crowd.turn_over()?;
        if begin.elapsed().as_secs() as usize > readings.len() {
            readings.push(read(&stack.agent, begin)?);
        }
        if begin.elapsed() >= next_line {
            let cpu = cpu_seconds(stack.agent.pid())?;
            print_line(
                &readings[printed..],
                crowd,
                crowd.started() - started_before,
                cpu - cpu_before,
            );
            (printed, cpu_before, started_before) = (readings.len(), cpu, crowd.started());
            next_line += Duration::from_secs(60);
        }
    }
    if printed < readings.len() {
        let cpu = cpu_seconds(stack.agent.pid())? - cpu_before;
        print_line(&readings[printed..], crowd, crowd.started() - started_before, cpu);
    }
    Ok(readings)
}

/// The highest figures of some seconds.
fn print_line(readings: &[Reading], crowd: &dyn Churning, started: u64, cpu: f64) {
    let most = |what: fn(&Reading) -> u64| readings.iter().map(what).max().unwrap_or(0) as f64 / MIB;
    let sum = most(|reading| reading.peak + reading.maps);
    println!(
        "{:>5} {:>8.1} {:>9.1} {:>9.1} {:>8.1} {:>8.1} {:>9.1} {:>6} {:>6} {started:>8} {cpu:>8.1}",
        readings.last().map_or(0, |reading| reading.at.as_secs()),
        most(|reading| reading.rss),
        most(|reading| reading.peak),
        most(|reading| reading.maps),
        most(|reading| reading.rss + reading.maps),
        sum,
        sum * MIB / LIMIT_BYTES as f64 * 100.0,
        readings.iter().map(|reading| reading.descriptors).max().unwrap_or(0),
        crowd.alive(),
    );
}

/// Says of each limit whether it was kept.
fn judge(readings: &[Reading], accounting: Result<()>, used: f64, args: &Args, figures: &mut Figures) {
    let most = |what: fn(&Reading) -> u64| readings.iter().map(what).max().unwrap_or(u64::MAX);
    let quarter = readings.len() / 4;
    let (third, last) = (&readings[2 * quarter..3 * quarter], &readings[3 * quarter..]);
    let middle = |readings: &[Reading], what: fn(&Reading) -> f64| median(readings.iter().map(what).collect());
    let growth = |what: fn(&Reading) -> f64| middle(last, what) - middle(third, what);
    let sum = most(|reading| reading.rss + reading.maps);
    let peak = most(|reading| reading.peak + reading.maps);
    let descriptors = most(|reading| reading.descriptors as u64);
    let grown = growth(|reading| (reading.rss + reading.maps) as f64);
    let more = growth(|reading| reading.descriptors as f64);
    let unaccounted = accounting.err().map(|error| format!("{error:#}"));
    figures.table("");
    for (name, unit, value, limit) in [
        ("most RSS + maps", "MiB", sum as f64 / MIB, LIMIT_BYTES as f64 / MIB),
        (
            "most peak RSS + maps",
            "MiB",
            peak as f64 / MIB,
            LIMIT_BYTES as f64 / MIB,
        ),
        ("most descriptors", "", descriptors as f64, MOST_DESCRIPTORS as f64),
        (
            "memory of the last quarter beside the third",
            "MiB",
            grown / MIB,
            GROWTH_BYTES / MIB,
        ),
        (
            "descriptors of the last quarter beside the third",
            "",
            more,
            GROWTH_DESCRIPTORS,
        ),
        (
            "CPU time of agent and BPF",
            "% of the machine",
            used,
            // A minute's allowance may have piled up.
            CPU_LIMIT_PERCENT * (1.0 + 60.0 / args.seconds as f64),
        ),
        (
            "whether taken - lost differs from stored",
            "",
            f64::from(u8::from(unaccounted.is_some())),
            0.0,
        ),
    ] {
        let word = if value <= limit { "pass" } else { "FAIL" };
        println!("{word} {name}: {value:.2} {unit} of {limit:.2}");
        figures.add(name, unit, value).at_most(limit);
    }
    if let Some(error) = unaccounted {
        figures.print_note(error);
    }
}
