//! What a profiler costs inside of the kernel: how much less work a CPU second holds while it samples.
//!
//! The timer's interrupt, the walk and the copies run in the time of whatever program they interrupt, and no
//! statistics tell them from it. So programs count their own work, and rounds with and without each profiler take
//! turns, so that a machine whose speed drifts drifts for all.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::perf::{self, MODES};
use super::{Args, Figures, median};
use crate::http::Client;
use crate::run;
use crate::service::Service;
use crate::signals::Stop;
use crate::stack::{Options, alive, start_agent};

/// High enough that what one sample costs stands out of the machine's noise.
const FREQUENCY_HZ: u32 = 999;
const WINDOW: Duration = Duration::from_secs(6);
/// From a profiler's start to its window: by then the agent has the tables.
const SETTLES: Duration = Duration::from_secs(4);

/// Goes 30 calls down and back for ever; how often, and its CPU time in ns, stand in a file that it shares with the
/// reader.
const WORKER: &str = r#"
#include <cstdint>
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static volatile std::uint64_t sink;
template <int LEVEL> __attribute__((noinline)) std::uint64_t level(std::uint64_t x) {
    std::uint64_t y = level<LEVEL - 1>(x ^ LEVEL);
    sink = y;
    return y + (x >> 7);
}
template <> __attribute__((noinline)) std::uint64_t level<0>(std::uint64_t x) {
    for (int i = 0; i < 400; i++) x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    return x;
}
int main(int, char **arguments) {
    int file = open(arguments[1], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 16) != 0) return 1;
    void *place = mmap(nullptr, 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (place == MAP_FAILED) return 1;
    volatile std::uint64_t *told = static_cast<std::uint64_t *>(place);
    for (;;) {
        for (int i = 0; i < 1000; i++) sink = level<30>(sink);
        timespec used;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
        told[0] = told[0] + 1000;
        told[1] = used.tv_sec * 1000000000ULL + used.tv_nsec;
    }
}
"#;

/// A program that counts its work.
struct Worker {
    child: Child,
    told: PathBuf,
}

impl Worker {
    fn start(program: &Path, cpu: usize) -> Result<Worker> {
        let told = program.with_extension(cpu.to_string());
        let mut command = Command::new("taskset");
        command.args(["-c", &cpu.to_string()]).arg(program).arg(&told);
        let child = command.stdin(Stdio::null()).spawn().context("can't start taskset")?;
        Ok(Worker { child, told })
    }

    /// Work done, and CPU time in ns, since its start.
    fn done(&self) -> Result<[f64; 2]> {
        let bytes = fs::read(&self.told).with_context(|| format!("can't read {}", self.told.display()))?;
        let told: [u8; 16] = bytes.try_into().ok().context("the worker has not begun")?;
        Ok([0, 8].map(|at| {
            told[at..]
                .first_chunk()
                .map_or(0.0, |bytes| u64::from_ne_bytes(*bytes) as f64)
        }))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Work of each kind of worker, with and without frame pointers, in a nanosecond of CPU time.
type Speeds = [f64; 2];

/// Prints what each profiler takes from a CPU second, per sample.
pub(super) fn measure(
    args: &Args,
    options: &Options,
    client: &Client,
    stop: &Stop,
    figures: &mut Figures,
) -> Result<()> {
    let source = options.state_dir.join("worker.cpp");
    fs::write(&source, WORKER)?;
    let mut workers: [Vec<Worker>; 2] = [vec![], vec![]];
    for (kind, frames) in ["-fno-omit-frame-pointer", "-fomit-frame-pointer"].iter().enumerate() {
        let program = options.state_dir.join(format!("worker-{kind}"));
        run::output(
            Command::new("c++")
                .args(["-O1", frames, "-o"])
                .arg(&program)
                .arg(&source),
        )?;
        for cpu in 0..thread::available_parallelism()?.get() {
            workers[kind].push(Worker::start(&program, cpu)?);
        }
    }
    let data = options.state_dir.join("perf.data");
    let options = Options {
        frequency_hz: FREQUENCY_HZ,
        ..options.clone()
    };
    let agent = || start_agent(&options, client.base(), &["--cpu-limit", "100"]);
    let mut losses: Vec<[Vec<f64>; 2]> = vec![Default::default(); 1 + MODES.len()];
    for _ in 0..args.rounds {
        for (profiler, losses) in losses.iter_mut().enumerate() {
            let without = window(&workers, None, stop)?;
            let with = if let Some(mode) = profiler.checked_sub(1) {
                let mut perf = perf::record(MODES[mode], FREQUENCY_HZ, &data)?;
                let with = window(&workers, Some(&mut perf), stop)?;
                perf::finish(&mut perf)?;
                with
            } else {
                let mut agent = agent()?;
                let with = window(&workers, Some(&mut agent), stop)?;
                agent.stop(Duration::from_secs(30)).context("the agent doesn't end")?;
                with
            };
            for kind in 0..2 {
                losses[kind].push((1.0 - with[kind] / without[kind]) * 1e6 / f64::from(FREQUENCY_HZ));
            }
        }
    }
    report(args, &losses, figures);
    Ok(())
}

/// The workers' speeds, with a profiler once it has settled.
fn window(workers: &[Vec<Worker>; 2], mut profiler: Option<&mut Service>, stop: &Stop) -> Result<Speeds> {
    let mut wait = |time: Duration| {
        thread::sleep(time);
        stop.check()?;
        profiler.as_mut().map_or(Ok(()), |service| alive(service))
    };
    wait(SETTLES)?;
    let read = || -> Result<[[f64; 2]; 2]> {
        let mut sums = [[0.0; 2]; 2];
        for (sum, workers) in sums.iter_mut().zip(workers) {
            for worker in workers {
                let [work, time_ns] = worker.done()?;
                *sum = [sum[0] + work, sum[1] + time_ns];
            }
        }
        Ok(sums)
    };
    let before = read()?;
    wait(WINDOW)?;
    let after = read()?;
    Ok([0, 1].map(|kind| (after[kind][0] - before[kind][0]) / (after[kind][1] - before[kind][1])))
}

fn report(args: &Args, losses: &[[Vec<f64>; 2]], figures: &mut Figures) {
    figures.table("Inside of the kernel, by the work that is left to a program 30 calls deep");
    println!(
        "\ninside of the kernel, by the work that a CPU second of a program 30 calls deep holds: us/sample at {FREQUENCY_HZ} Hz, median of \
         {} rounds, each beside one without (lowest to highest)",
        args.rounds
    );
    println!("{:<24} {:>28} {:>28}", "", "with frame pointers", "without");
    let titles = ["stakeout-agent"].into_iter().chain(MODES.map(|mode| mode.title));
    for (title, losses) in titles.zip(losses) {
        let columns = losses.each_ref().map(|losses| {
            let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
            let most = losses.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            format!("{:.1} ({least:.1} to {most:.1})", median(losses.clone()))
        });
        println!("{title:<24} {:>28} {:>28}", columns[0], columns[1]);
        figures.row(title);
        for (name, losses) in ["with frame pointers", "without"].into_iter().zip(losses) {
            figures.add(name, "us a sample", median(losses.clone()));
        }
    }
    figures.note(format!(
        "inside of the kernel: at {FREQUENCY_HZ} Hz, medians of {} rounds, each beside one without a profiler",
        args.rounds
    ));
    figures.print_note(
        "the timer's interrupt is part of it for all three; perf -g finds one or two frames without frame pointers, dwarf copies \
         8 KiB and walks nothing. Where the kernel accounts interrupts apart (CONFIG_IRQ_TIME_ACCOUNTING), this shows too little.",
    );
}
