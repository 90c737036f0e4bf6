//! What the agent costs per delivered sample, beside perf on the same load.

mod before;
mod kernel_side;
mod perf;
mod runtimes;

pub(super) use runtimes::start_peer;

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::median;
use super::mixed::Mixed;
use super::receiver::Receiver;
use super::report::Figures;
use crate::http::{Client, integer, samples_lost};
use crate::proc::{Bpf, Threads, bpf, memory};
use crate::service::Service;
use crate::signals::Stop;
use crate::stack::{now_ms, start_agent};
use crate::{packages, repo};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Length of a window
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    seconds: u64,
    /// Windows at each rate
    #[arg(long, default_value_t = 2, value_name = "N")]
    windows: u32,
    /// Time from the agent's start to the first window: what opening all that runs costs is `bench start`'s
    #[arg(long, default_value_t = 100, value_name = "SECONDS")]
    warm_up: u64,
    /// Rates to measure, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "20,99", value_name = "HZ")]
    frequency: Vec<u32>,
    /// Rounds in which the work that programs get done is measured with and without each profiler; 0: none
    #[arg(long, default_value_t = 6, value_name = "N")]
    rounds: u32,
    /// A folder with the programs of an older build: both agents sample the same load at once, and that is all
    #[arg(long, value_name = "FOLDER", conflicts_with = "mixed_runtimes")]
    before: Option<PathBuf>,
    /// Instead of all that, programs in C++ and of each language with a runtime: cost and what is shown of them
    #[arg(long)]
    mixed_runtimes: bool,
    /// The program of OpenTelemetry's eBPF profiler, which takes turns with the agent
    #[arg(long, value_name = "FILE", requires = "mixed_runtimes")]
    peer: Option<PathBuf>,
    /// A folder with a folder for each version of a runtime (`bin/java` in it), instead of what is installed
    #[arg(long, value_name = "FOLDER", requires = "mixed_runtimes")]
    runtimes: Option<PathBuf>,
}

/// Turns the kernel's BPF statistics on, and back to what they were.
pub(super) struct BpfStatistics(String);

const BPF_STATISTICS: &str = "/proc/sys/kernel/bpf_stats_enabled";

impl BpfStatistics {
    pub(super) fn on() -> Result<BpfStatistics> {
        let before = fs::read_to_string(BPF_STATISTICS).with_context(|| format!("can't read {BPF_STATISTICS}"))?;
        fs::write(BPF_STATISTICS, "1").with_context(|| format!("can't write {BPF_STATISTICS}"))?;
        Ok(BpfStatistics(before))
    }
}

impl Drop for BpfStatistics {
    fn drop(&mut self) {
        let _ = fs::write(BPF_STATISTICS, &self.0);
    }
}

/// One moment's counters.
#[derive(Clone, Copy)]
struct Counters {
    cpu_seconds: f64,
    bpf: Bpf,
    delivered: i64,
}

/// Measures each rate, then perf.
pub(crate) fn run(args: &Args, figures: &mut Figures) -> Result<()> {
    ensure!(
        packages::is_root(),
        "the kernel's BPF statistics are root's: run this as root"
    );
    if args.mixed_runtimes {
        return runtimes::run(args, figures);
    }
    if let Some(folder) = &args.before {
        return before::run(args, folder, figures);
    }
    let Receiver {
        mut options,
        client,
        mut server,
        stop,
        dir,
    } = Receiver::start(20)?;
    let mut load = Mixed::start(dir.path())?;
    let _statistics = BpfStatistics::on()?;
    let processes = fs::read_dir("/proc")?
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok())
        .count();
    figures.print_note(format!(
        "load: {}; {} CPUs, {processes} processes; windows of {} s after {} s",
        load.names(),
        thread::available_parallelism()?,
        args.seconds,
        args.warm_up
    ));
    println!("kernel: {}", fs::read_to_string("/proc/sys/kernel/osrelease")?.trim());
    println!("BPF time from the kernel's statistics, CPU time from /proc; own: what the agent reports of itself\n");
    println!(
        "{:>4} {:>9} {:>8} {:>8} {:>10} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>6}",
        "Hz",
        "delivered",
        "CPU s",
        "BPF s",
        "own BPF s",
        "us/sample",
        "BPF us",
        "user us",
        "RSS MiB",
        "peak MiB",
        "maps MiB",
        "% of core",
        "lost"
    );
    figures.print_note(
        "% of core: CPU + BPF time as a share of the time that CPUs were busy, the share of every busy core that it takes",
    );
    figures.table("A delivered sample");
    for &frequency_hz in &args.frequency {
        options.frequency_hz = frequency_hz;
        let mut agent = start_agent(&options, client.base(), &[])?;
        let started = now_ms();
        sleep(args.warm_up, &mut agent, &mut load, &stop)?;
        // A slow machine may need longer for the first batch than the warm-up lasts.
        for _ in 0..60 {
            if this_node(&client, started).is_ok() {
                break;
            }
            sleep(1, &mut agent, &mut load, &stop)?;
        }
        for window in 1..=args.windows {
            let own_before = own_bpf_seconds(&client, started)?;
            let before = counters(&agent, &client, started)?;
            sleep(args.seconds, &mut agent, &mut load, &stop)?;
            let after = counters(&agent, &client, started)?;
            let own = own_bpf_seconds(&client, started)? - own_before;
            let (cpu, bpf_time) = (
                after.cpu_seconds - before.cpu_seconds,
                after.bpf.seconds - before.bpf.seconds,
            );
            let delivered = after.delivered - before.delivered;
            // A sample is what a busy CPU gives once a period; an idle one gives none.
            let busy_seconds = delivered as f64 / f64::from(frequency_hz);
            let micros = |seconds: f64| seconds * 1e6 / delivered as f64;
            let mib = |bytes: f64| bytes / 1_048_576.0;
            let memory = memory(agent.pid())?;
            println!(
                "{frequency_hz:>4} {delivered:>9} {cpu:>8.2} {bpf_time:>8.3} {own:>10.3} {:>10.1} {:>10.1} {:>10.1} {:>9.1} {:>9.1} {:>9.1} {:>9.2} {:>6}",
                micros(cpu + bpf_time),
                micros(bpf_time),
                micros(cpu),
                mib(memory.resident as f64),
                mib(memory.peak as f64),
                mib(after.bpf.map_bytes as f64),
                (cpu + bpf_time) / busy_seconds * 100.0,
                lost(&client, started)?,
            );
            figures.row(&format!("{frequency_hz} Hz, window {window}"));
            figures.add("samples", "", delivered as f64);
            let a_sample = figures.add("CPU and BPF", "us", micros(cpu + bpf_time));
            match frequency_hz {
                20 => a_sample.at_most(50.0),
                99 => a_sample.at_most(25.0),
                _ => {}
            }
            figures.add("BPF", "us", micros(bpf_time));
            figures.add("user space", "us", micros(cpu));
            let of_core = figures.add("% of core", "", (cpu + bpf_time) / busy_seconds * 100.0);
            if frequency_hz == 99 {
                of_core.at_most(0.25);
            }
            figures.add("RSS", "MiB", mib(memory.resident as f64));
            figures.add("peak RSS", "MiB", mib(memory.peak as f64));
            figures.add("maps", "MiB", mib(after.bpf.map_bytes as f64));
            figures.add("lost samples", "", lost(&client, started)? as f64);
        }
        ensure!(
            agent
                .stop(Duration::from_secs(30))
                .is_some_and(|status| status.success()),
            "the agent ended badly"
        );
    }
    println!(
        "\ntargets: at most 50 us/sample at 20 Hz and 25 us at 99 Hz; below 0.25 % of each busy core at 99 Hz; RSS + maps at most \
         64 MiB with 500 processes"
    );
    if repo::find_program("perf").is_none() {
        println!("perf: not on this machine, nothing to compare with");
    } else {
        perf::beside(args, &options, &client, &mut load, &stop, figures)?;
    }
    drop(load);
    if args.rounds > 0 {
        kernel_side::measure(args, &options, &client, &stop, figures)?;
    }
    server.stop(Duration::from_secs(20));
    Ok(())
}

fn sleep(seconds: u64, agent: &mut Service, load: &mut Mixed, stop: &Stop) -> Result<()> {
    for _ in 0..seconds {
        thread::sleep(Duration::from_secs(1));
        stop.check()?;
        crate::stack::alive(agent)?;
        load.check()?;
    }
    Ok(())
}

fn counters(agent: &Service, client: &Client, started: i64) -> Result<Counters> {
    Ok(Counters {
        cpu_seconds: Threads::of(agent.pid()).read()?.values().sum(),
        bpf: bpf(agent.pid())?,
        delivered: integer(&this_node(client, started)?["samples_stored"]),
    })
}

/// What the server has of the agent that was started then.
pub(super) fn this_node(client: &Client, started: i64) -> Result<serde_json::Value> {
    let nodes = client.get_json("/api/v1/nodes")?;
    let newest = nodes["nodes"]
        .as_array()
        .into_iter()
        .flatten()
        .max_by_key(|node| integer(&node["last_seen"]));
    let newest = newest.filter(|node| integer(&node["last_seen"]) >= started);
    newest
        .cloned()
        .context("the server has nothing from the agent: is the warm-up too short?")
}

fn own_bpf_seconds(client: &Client, started: i64) -> Result<f64> {
    Ok(this_node(client, started)?["bpf_seconds"].as_f64().unwrap_or(0.0))
}

fn lost(client: &Client, started: i64) -> Result<i64> {
    Ok(samples_lost(&this_node(client, started)?))
}
