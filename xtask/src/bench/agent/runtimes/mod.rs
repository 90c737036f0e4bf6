//! `cargo xtask bench agent --mixed-runtimes`: what a sample costs and what it shows where programs of all languages
//! with a runtime are at work, beside another profiler.
//!
//! Both get the same load, by turns, and ship to the same server, whose answers are judged the same way.

mod judge;
mod load;
mod profiler;

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::{Args, BpfStatistics};
use crate::bench::languages;
use crate::bench::receiver::Receiver;
use crate::bench::report::Figures;
use crate::bench::stacks::Stacks;
use crate::http::Client;
use crate::proc::{Memory, Threads, bpf, memory};
use crate::service::Service;
use crate::signals::Stop;
use crate::stack::{FIRST_SAMPLES, Options, alive, now_ms};
use judge::Shown;
use load::Load;
use profiler::Profiler;
pub(in crate::bench) use profiler::start_peer;

/// After a window, until what was sampled in it is stored: both ship every five seconds.
const ARRIVES_SECONDS: u64 = 15;
const NS_PER_MS: i64 = 1_000_000;
const MIB: f64 = 1_048_576.0;

/// One window of a profiler.
struct Window {
    delivered: i64,
    cpu_seconds: f64,
    bpf_seconds: f64,
    memory: Memory,
    map_bytes: i64,
    /// Of each program of the load.
    shown: Vec<Shown>,
}

/// Measures each rate with each profiler.
pub(super) fn run(args: &Args, figures: &mut Figures) -> Result<()> {
    let Receiver {
        mut options,
        client,
        mut server,
        stop,
        dir,
    } = Receiver::start(20)?;
    let runtimes = languages::newest(args.runtimes.as_deref())?;
    let mut load = Load::start(&runtimes, dir.path())?;
    let _statistics = BpfStatistics::on()?;
    figures.print_note(format!(
        "load: {}, all at work on {} CPUs; windows of {} s, {} s after each start; load average {}",
        load.titles(),
        thread::available_parallelism()?,
        args.seconds,
        args.warm_up,
        fs::read_to_string("/proc/loadavg")?.trim()
    ));
    figures.print_note(
        "complete: nobody calls the stack cut, and it begins where threads do; named: of the language's own frames; chain: the twelve \
         known functions all stand there by name; in order: those, or the first of them as far as it had come",
    );
    if args.peer.is_none() {
        figures.print_note("without a peer: --peer names the program of OpenTelemetry's eBPF profiler");
    }
    let profilers: Vec<Profiler<'_>> = [Some(Profiler::Ours), args.peer.as_deref().map(Profiler::Peer)]
        .into_iter()
        .flatten()
        .collect();
    for &frequency_hz in &args.frequency {
        options.frequency_hz = frequency_hz;
        for window in 1..=args.windows {
            for profiler in &profilers {
                let measured = measure(args, *profiler, &options, &client, &mut load, &stop)
                    .with_context(|| format!("{} at {frequency_hz} Hz", profiler.title()))?;
                measured.tell(*profiler, frequency_hz, window, &load, figures);
            }
        }
    }
    drop(load);
    server.stop(Duration::from_secs(20));
    Ok(())
}

fn measure(
    args: &Args,
    profiler: Profiler<'_>,
    options: &Options,
    client: &Client,
    load: &mut Load,
    stop: &Stop,
) -> Result<Window> {
    let started_ms = now_ms();
    let mut service = profiler.start(options, client)?;
    // A kernel that is busy takes long to check BPF programs.
    let deadline = Instant::now() + FIRST_SAMPLES;
    while samples_between(client, started_ms, i64::MAX / NS_PER_MS)? == 0 {
        ensure!(Instant::now() < deadline, "no sample has come");
        sleep(1, &mut service, load, stop)?;
    }
    sleep(args.warm_up, &mut service, load, stop)?;
    let mut threads = Threads::of(service.pid());
    let begun_ms = now_ms();
    let cpu_before: f64 = threads.read()?.values().sum();
    let bpf_before = bpf(service.pid())?;
    sleep(args.seconds, &mut service, load, stop)?;
    let cpu: f64 = threads.read()?.values().sum();
    let bpf_after = bpf(service.pid())?;
    let memory = memory(service.pid())?;
    let ended_ms = now_ms();
    sleep(ARRIVES_SECONDS, &mut service, load, stop)?;
    profiler.stop(&mut service)?;
    let delivered = samples_between(client, begun_ms, ended_ms)?;
    let shown = |program: &load::Program| -> Result<Shown> {
        let query = format!("{{process=\"{}\"}}", program.process);
        let stacks = Stacks::get(client, &query, begun_ms, ended_ms)?;
        Ok(Shown::of(&stacks, program.kind, &program.process))
    };
    Ok(Window {
        delivered,
        cpu_seconds: cpu - cpu_before,
        bpf_seconds: bpf_after.seconds - bpf_before.seconds,
        memory,
        map_bytes: bpf_after.map_bytes,
        shown: load.programs.iter().map(shown).collect::<Result<_>>()?,
    })
}

/// Of the programs that run on the machine, whoever has sent them.
fn samples_between(client: &Client, from_ms: i64, until_ms: i64) -> Result<i64> {
    let (from_ns, until_ns) = (from_ms * NS_PER_MS, until_ms * NS_PER_MS);
    client.sql_number(&format!(
        "SELECT count(*) FROM samples WHERE type = 'cpu' AND ts_ns >= {from_ns} AND ts_ns < {until_ns}"
    ))
}

fn sleep(seconds: u64, service: &mut Service, load: &mut Load, stop: &Stop) -> Result<()> {
    for _ in 0..seconds {
        thread::sleep(Duration::from_secs(1));
        stop.check()?;
        alive(service)?;
        load.check()?;
    }
    Ok(())
}

impl Window {
    fn tell(&self, profiler: Profiler<'_>, frequency_hz: u32, window: u32, load: &Load, figures: &mut Figures) {
        let micros = |seconds: f64| seconds * 1e6 / self.delivered.max(1) as f64;
        let row = format!("{}, {frequency_hz} Hz, window {window}", profiler.title());
        println!(
            "\n{row}: {} samples, {:.1} us a sample (user space {:.1}, BPF {:.1}), RSS {:.1} MiB (peak {:.1}), maps {:.1} MiB",
            self.delivered,
            micros(self.cpu_seconds + self.bpf_seconds),
            micros(self.cpu_seconds),
            micros(self.bpf_seconds),
            self.memory.resident as f64 / MIB,
            self.memory.peak as f64 / MIB,
            self.map_bytes as f64 / MIB
        );
        let is_ours = matches!(profiler, Profiler::Ours);
        figures.table("A delivered sample, and memory");
        figures.row(&row);
        figures.add("samples", "", self.delivered as f64);
        let cost = figures.add("CPU and BPF", "us", micros(self.cpu_seconds + self.bpf_seconds));
        match frequency_hz {
            20 if is_ours => cost.at_most(35.0),
            99 if is_ours => cost.at_most(25.0),
            _ => {}
        }
        figures.add("user space", "us", micros(self.cpu_seconds));
        figures.add("BPF", "us", micros(self.bpf_seconds));
        figures.add("RSS", "MiB", self.memory.resident as f64 / MIB);
        figures.add("peak RSS", "MiB", self.memory.peak as f64 / MIB);
        figures.add("maps", "MiB", self.map_bytes as f64 / MIB);
        println!(
            "{:<20} {:>8} {:>10} {:>8} {:>8} {:>9}",
            "", "samples", "complete %", "named %", "chain %", "in order %"
        );
        for (program, shown) in load.programs.iter().zip(&self.shown) {
            println!(
                "{:<20} {:>8} {:>10.2} {:>8.2} {:>8.2} {:>9.2}",
                program.title,
                shown.samples,
                shown.complete(),
                shown.named(),
                shown.whole(),
                shown.in_order()
            );
            figures.table(&format!("{}: what is shown", program.title));
            figures.row(&row);
            figures.add("samples", "", shown.samples as f64);
            for (name, value) in [("complete", shown.complete()), ("named", shown.named())] {
                let figure = figures.add(name, "%", value);
                if is_ours {
                    figure.at_least(99.5);
                }
            }
            figures.add("chain", "%", shown.whole());
            figures.add("in order", "%", shown.in_order());
        }
    }
}
