//! `perf record` on the same load, for comparison: by frame pointers, and by DWARF from copied stacks.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use super::{Args, Figures, sleep};
use crate::bench::mixed::Mixed;
use crate::http::{self, Client};
use crate::proc::{cpu_seconds, size_bytes};
use crate::run;
use crate::service::Service;
use crate::signals::Stop;
use crate::stack::{Options, now_ms, start_agent};

/// How perf is told to get its stacks.
#[derive(Clone, Copy)]
pub(super) struct Mode {
    pub(super) title: &'static str,
    arguments: &'static [&'static str],
}

pub(super) const MODES: [Mode; 2] = [
    Mode {
        title: "perf -g",
        arguments: &["-g"],
    },
    Mode {
        title: "perf --call-graph dwarf",
        arguments: &["--call-graph", "dwarf"],
    },
];

/// Programs of the load whose `_start` has a symbol, so that everybody can tell where a stack has to end.
const JUDGED: [&str; 2] = ["deep-fp", "deep-nofp"];
/// Samples of each that are judged: perf takes milliseconds for one of its stacks.
const MOST_JUDGED: u64 = 500;
/// From perf's start to its window.
const SETTLES_SECONDS: u64 = 3;

/// perf, recording every CPU into `data`.
pub(super) fn record(mode: Mode, frequency_hz: u32, data: &Path) -> Result<Service> {
    let mut record = Command::new("perf");
    record
        .args(["record", "-a", "-e", "cpu-clock", "-F", &frequency_hz.to_string()])
        .args(mode.arguments)
        .arg("-o")
        .arg(data);
    Service::start("perf", &mut record, &data.with_extension("log"))
}

/// Ends a recording as Ctrl-C does: it finishes its file.
pub(super) fn finish(perf: &mut Service) -> Result<()> {
    perf.signal(nix::sys::signal::Signal::SIGINT);
    perf.wait(Duration::from_secs(60)).context("perf doesn't end")?;
    Ok(())
}

/// Prints what perf costs at each rate, and how many of its stacks and of ours reach the program's start.
pub(super) fn beside(
    args: &Args,
    options: &Options,
    client: &Client,
    load: &mut Mixed,
    stop: &Stop,
    figures: &mut Figures,
) -> Result<()> {
    let data = options.state_dir.join("perf.data");
    println!(
        "\nperf record -a -e cpu-clock on the same load; stacks that reach main and _start, of {}",
        JUDGED.join(" and ")
    );
    println!(
        "{:<24} {:>4} {:>9} {:>8} {:>10} {:>12} {:>9}  reach main, _start",
        "", "Hz", "samples", "CPU s", "us/sample", "bytes/sample", "RSS MiB"
    );
    figures.table("perf record on the same load, and how many stacks reach the program's start");
    for mode in MODES {
        for &frequency_hz in &args.frequency {
            let mut perf = record(mode, frequency_hz, &data)?;
            sleep(SETTLES_SECONDS, &mut perf, load, stop)?;
            let before = cpu_seconds(perf.pid())?;
            sleep(args.seconds, &mut perf, load, stop)?;
            let cpu = cpu_seconds(perf.pid())? - before;
            let rss = size_bytes(perf.pid(), "VmRSS")?;
            finish(&mut perf)?;
            let samples = samples(&data)?;
            // The file also has the seconds before the window.
            let in_window = samples * args.seconds as f64 / (args.seconds + SETTLES_SECONDS) as f64;
            figures.row(&format!("{}, {frequency_hz} Hz", mode.title));
            figures.add("samples", "", in_window);
            figures.add("CPU", "us a sample", cpu * 1e6 / in_window);
            figures.add("size", "bytes a sample", fs::metadata(&data)?.len() as f64 / samples);
            figures.add("RSS", "MiB", rss as f64 / 1_048_576.0);
            println!(
                "{:<24} {frequency_hz:>4} {in_window:>9.0} {cpu:>8.2} {:>10.1} {:>12.0} {:>9.1}  {}",
                mode.title,
                cpu * 1e6 / in_window,
                fs::metadata(&data)?.len() as f64 / samples,
                rss as f64 / 1_048_576.0,
                shares(figures, |program| reaches_by_perf(&data, program))?,
            );
        }
    }
    for &frequency_hz in &args.frequency {
        figures.row(&format!("stakeout-agent, {frequency_hz} Hz"));
        let reached = shares_of_ours(args, options, frequency_hz, client, load, stop, figures)?;
        println!("{:<24} {frequency_hz:>4} {:>58}{reached}", "stakeout-agent", "");
    }
    figures.print_note(
        "not like for like: perf only writes addresses (with dwarf 8 KiB of the stack a sample) to this disk; it walks and names \
         them later, in `perf script`, which is not counted. By frame pointers nobody gets through a C library that has none, as Debian's. The agent walks, names, compresses and ships. What both cost \
         inside of the kernel stands below.",
    );
    Ok(())
}

fn samples(data: &Path) -> Result<f64> {
    let report = run::output(Command::new("perf").args(["report", "--stats", "-i"]).arg(data))?;
    let count = report.lines().find_map(|line| {
        let count = line.trim().strip_prefix("SAMPLE events:")?;
        count.split_whitespace().next()?.parse().ok()
    });
    count.context("perf counts no samples")
}

/// Of a program's stacks, those with `main` in them, those whose outermost frame is `_start`, and all.
#[derive(Default)]
struct Reached {
    main: u64,
    start: u64,
    all: u64,
}

/// The same for each of the judged programs, as figures and as text.
fn shares(figures: &mut Figures, reached: impl Fn(&str) -> Result<Reached>) -> Result<String> {
    let one = |program: &&str| {
        let Reached { main, start, all } = reached(program)?;
        let percent = |part: u64| part as f64 * 100.0 / all.max(1) as f64;
        figures.add(&format!("{program} to main"), "%", percent(main));
        figures.add(&format!("{program} to _start"), "%", percent(start));
        Ok(format!(
            "{program} {:.1}, {:.1} % of {all}",
            percent(main),
            percent(start)
        ))
    };
    Ok(JUDGED.iter().map(one).collect::<Result<Vec<String>>>()?.join(", "))
}

/// As perf walks and names them.
fn reaches_by_perf(data: &Path, program: &str) -> Result<Reached> {
    let mut script = Command::new("perf");
    script
        .args(["script", "--no-inline", "-F", "comm,ip,sym", "--comms", program, "-i"])
        .arg(data)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut script = script.spawn().context("can't start perf script")?;
    let lines = BufReader::new(script.stdout.take().context("no standard output")?);
    let (mut reached, mut outermost, mut has_main) = (Reached::default(), String::new(), false);
    for line in lines.lines() {
        let line = line?;
        // A stack is a line with the program's name, one for each frame, and an empty one.
        if !line.is_empty() {
            has_main |= line.split_whitespace().nth(1) == Some("main");
            outermost = line;
            continue;
        }
        reached.all += 1;
        reached.main += u64::from(std::mem::take(&mut has_main));
        reached.start += u64::from(outermost.split_whitespace().nth(1) == Some("_start"));
        if reached.all == MOST_JUDGED {
            break;
        }
    }
    // It may have more to say than anybody reads.
    let _ = script.kill();
    let _ = script.wait();
    Ok(reached)
}

/// The agent once more at this rate, from its first sample on: of all its stacks of the judged programs.
fn shares_of_ours(
    args: &Args,
    options: &Options,
    frequency_hz: u32,
    client: &Client,
    load: &mut Mixed,
    stop: &Stop,
    figures: &mut Figures,
) -> Result<String> {
    let from = now_ms();
    let options = Options {
        frequency_hz,
        ..options.clone()
    };
    let mut agent = start_agent(&options, client.base(), &[])?;
    sleep(args.seconds, &mut agent, load, stop)?;
    agent.stop(Duration::from_secs(30)).context("the agent doesn't end")?;
    shares(figures, |program| {
        let query = format!("{{process=\"{program}\"}}");
        let from = from.to_string();
        let graph = http::path(
            "/api/v1/flamegraph",
            &[
                ("format", "collapsed"),
                ("query", &query),
                ("from", &from),
                ("until", "now"),
            ],
        );
        let mut reached = Reached::default();
        for line in client.get_ok(&graph)?.text().lines() {
            let Some((stack, count)) = line.rsplit_once(' ') else {
                continue;
            };
            let count: u64 = count.parse().with_context(|| format!("no count in `{line}`"))?;
            reached.all += count;
            reached.main += if stack.split(';').any(|frame| frame == "main") {
                count
            } else {
                0
            };
            reached.start += if stack.split(';').next() == Some("_start") {
                count
            } else {
                0
            };
        }
        Ok(reached)
    })
}
