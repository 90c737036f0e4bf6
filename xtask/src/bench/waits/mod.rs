//! What it costs to see threads wait, and whether waits for a CPU are told as others tell them.
//!
//! BPF time of a switch; what threads that switch all the time take longer, with nothing, with the agent and without
//! waits, and beside OpenTelemetry's profiler, by turns; waits for a CPU beside `runqlat`; a thousand threads that
//! sleep.

mod queues;
mod sleepers;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::agent::{BpfStatistics, start_peer, this_node};
use super::median;
use super::receiver::Receiver;
use super::report::Figures;
use crate::http::{Client, integer};
use crate::proc::{bpf, last_cpu};
use crate::service::Service;
use crate::signals::Stop;
use crate::stack::{Options, alive, now_ms, start_agent};
use crate::{packages, repo, run};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to measure, separated by commas; by default all
    #[arg(long, value_delimiter = ',', value_enum, value_name = "PART")]
    only: Vec<Part>,
    /// Length of a window
    #[arg(long, default_value_t = 10, value_name = "SECONDS")]
    seconds: u32,
    /// Rounds in which all take their turns
    #[arg(long, default_value_t = 5, value_name = "N")]
    rounds: usize,
    /// Switches a second, separated by commas, in multiples of 200; 0: as many as there can be
    #[arg(long, value_delimiter = ',', default_value = "1000,20000,200000", value_name = "N")]
    switches: Vec<u32>,
    /// The program of OpenTelemetry's eBPF profiler, which takes turns with the agent, once with its off-CPU mode
    #[arg(long, value_name = "FILE")]
    peer: Option<PathBuf>,
    /// The probability with which the peer takes a switch
    #[arg(long, default_value_t = 0.01, value_name = "SHARE")]
    peer_share: f64,
    /// Threads of a Java program that sleep
    #[arg(long, default_value_t = 1000, value_name = "N")]
    sleepers: u32,
    /// How long they are watched
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    sleep_seconds: u32,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// BPF time of a switch
    Switch,
    /// What threads that switch all the time take longer
    SlowDown,
    /// Waits for a CPU, beside the kernel's account and runqlat
    Queues,
    /// What the agent takes where a thousand threads sleep
    Sleepers,
}

/// Time from a profiler's start to the first window.
const WARM_UP: Duration = Duration::from_secs(10);
/// A switch without a stack takes at most so much BPF time, on average, its wake-up included.
const MOST_NS: f64 = 150.0;
/// What waits may take of the machine's CPU time.
const MOST_SHARE: f64 = 0.5;

/// What runs beside the switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Beside {
    Nothing,
    WaitsOff,
    WaitsOn,
    PeerWithout,
    Peer,
}

impl Beside {
    fn title(self) -> &'static str {
        match self {
            Beside::Nothing => "nothing",
            Beside::WaitsOff => "--waits off",
            Beside::WaitsOn => "--waits on",
            Beside::PeerWithout => "OpenTelemetry",
            Beside::Peer => "its off-CPU mode",
        }
    }
}

/// What a window gave.
#[derive(Debug, Clone, Copy)]
struct Window {
    /// CPU time of a round trip, of both threads.
    trip_ns: f64,
    /// Of the whole machine, in a second.
    switches: f64,
    bpf_seconds: f64,
    /// Of empty programs at the same places.
    empty_seconds: f64,
}

/// Empty BPF programs at the places where the agent's see threads wait.
struct Empty(Child);

impl Empty {
    fn start(dir: &Path) -> Result<Empty> {
        let program = compiled("empty_programs", &[], dir)?;
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("no standard output")?;
        BufReader::new(stdout).read_line(&mut line)?;
        ensure!(line == "ready\n", "the kernel takes no empty BPF programs");
        Ok(Empty(child))
    }

    fn seconds(&self) -> Result<f64> {
        Ok(bpf(self.0.id())?.seconds)
    }
}

impl Drop for Empty {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Bench<'a> {
    args: &'a Args,
    options: Options,
    client: Client,
    program: PathBuf,
    cpu: usize,
    stop: Stop,
}

/// Prints, for each rate of switches, what one costs.
pub(crate) fn run(args: &Args, figures: &mut Figures) -> Result<()> {
    ensure!(packages::is_root(), "the agent needs root here: run this as root");
    let wants = |part| args.only.is_empty() || args.only.contains(&part);
    for rate in &args.switches {
        ensure!(rate % 200 == 0, "{rate} switches a second: give a multiple of 200");
    }
    let Receiver {
        options,
        client,
        mut server,
        stop,
        dir,
    } = Receiver::start(20)?;
    let bench = Bench {
        args,
        client,
        program: compiled("switches", &["-pthread"], dir.path())?,
        cpu: last_cpu()?,
        options,
        stop,
    };
    figures.print_note(format!(
        "two threads hand a byte to each other by pipes on CPU {}; {} rounds of {} s each",
        bench.cpu, args.rounds, args.seconds
    ));
    if wants(Part::Switch) {
        bench.cost(figures)?;
    }
    if wants(Part::SlowDown) {
        bench.slow_down(figures)?;
    }
    if wants(Part::Queues) {
        bench.queues(figures)?;
    }
    if wants(Part::Sleepers) {
        bench.sleepers(figures)?;
    }
    server.stop(Duration::from_secs(20));
    Ok(())
}

/// One of the programs beside this file.
fn compiled(name: &str, flags: &[&str], dir: &Path) -> Result<PathBuf> {
    let program = dir.join(name);
    let source = repo::root().join("xtask/src/bench/waits").join(format!("{name}.c"));
    run::run(
        Command::new("cc")
            .arg("-O1")
            .args(flags)
            .arg("-o")
            .arg(&program)
            .arg(source),
    )?;
    Ok(program)
}

/// Switches of all CPUs since boot.
fn switches() -> Result<f64> {
    let stat = fs::read_to_string("/proc/stat").context("can't read /proc/stat")?;
    let count = stat.lines().find_map(|line| line.strip_prefix("ctxt ")?.parse().ok());
    count.context("/proc/stat has no line that begins with ctxt")
}

impl Bench<'_> {
    fn start(&self, beside: Beside) -> Result<Option<Service>> {
        let peer = |more: &[&str]| -> Result<Service> {
            let Some(program) = &self.args.peer else {
                bail!("--peer is not given");
            };
            start_peer(program, &self.options, more)
        };
        let service = match beside {
            Beside::Nothing => return Ok(None),
            Beside::WaitsOff => start_agent(&self.options, self.client.base(), &["--waits", "off"])?,
            Beside::WaitsOn => start_agent(&self.options, self.client.base(), &["--waits", "on"])?,
            Beside::PeerWithout => peer(&[])?,
            Beside::Peer => peer(&["-off-cpu-threshold", &self.args.peer_share.to_string()])?,
        };
        thread::sleep(WARM_UP);
        Ok(Some(service))
    }

    /// One window of each rate.
    fn windows(&self, service: &mut Option<Service>, empty: Option<&Empty>) -> Result<Vec<Window>> {
        let mut windows = vec![];
        for rate in &self.args.switches {
            self.stop.check()?;
            let bpf_seconds = |service: &mut Option<Service>| match service {
                Some(service) => alive(service).and_then(|()| Ok(bpf(service.pid())?.seconds)),
                None => Ok(0.0),
            };
            let empty_seconds = || empty.map_or(Ok(0.0), Empty::seconds);
            let (before, bpf_before, empty_before) = (switches()?, bpf_seconds(service)?, empty_seconds()?);
            let output = Command::new(&self.program)
                .args([self.cpu.to_string(), rate.to_string(), self.args.seconds.to_string()])
                .output()?;
            ensure!(output.status.success(), "the program that switches ended badly");
            let text = String::from_utf8(output.stdout)?;
            let mut numbers = text.split_whitespace().filter_map(|number| number.parse::<f64>().ok());
            let (Some(trips), Some(cpu_ns)) = (numbers.next(), numbers.next()) else {
                bail!("the program that switches said {text:?}");
            };
            windows.push(Window {
                trip_ns: cpu_ns / trips,
                switches: (switches()? - before) / f64::from(self.args.seconds),
                bpf_seconds: bpf_seconds(service)? - bpf_before,
                empty_seconds: empty_seconds()? - empty_before,
            });
        }
        Ok(windows)
    }

    /// BPF time of a switch: what the agent takes more with waits than without by the kernel's statistics, less what
    /// these count of programs that do nothing.
    fn cost(&self, figures: &mut Figures) -> Result<()> {
        let _statistics = BpfStatistics::on()?;
        let empty = Empty::start(&self.options.state_dir)?;
        let mut of = BTreeMap::new();
        let mut samples = 0;
        for beside in [Beside::WaitsOff, Beside::WaitsOn] {
            let started = now_ms();
            let mut service = self.start(beside)?;
            of.insert(beside, self.windows(&mut service, Some(&empty))?);
            if beside == Beside::WaitsOn {
                let node = this_node(&self.client, started)?;
                samples = integer(&node["samples_stored"]);
                let lengthened = integer(&node["limits"]["wait_turns_lengthened"]);
                println!("{samples} samples stored meanwhile; turns were lengthened {lengthened} times");
            }
            ended(service)?;
        }
        ensure!(samples > 0, "nothing was stored");
        figures.table("BPF time");
        let cpus = thread::available_parallelism()?.get() as f64;
        println!(
            "{:>12} {:>12} {:>14} {:>14} {:>18}",
            "wanted", "switches/s", "BPF ns/switch", "empty ones'", "% of the machine"
        );
        for (at, rate) in self.args.switches.iter().enumerate() {
            let (off, on) = (of[&Beside::WaitsOff][at], of[&Beside::WaitsOn][at]);
            let seconds = f64::from(self.args.seconds);
            let more = on.bpf_seconds - off.bpf_seconds - on.empty_seconds;
            let of_switch = |seconds_taken: f64| seconds_taken / (on.switches * seconds) * 1e9;
            let (ns, nothing_ns) = (of_switch(more), of_switch(on.empty_seconds));
            let share = more / seconds / cpus * 100.0;
            println!(
                "{rate:>12} {:>12.0} {ns:>14.0} {nothing_ns:>14.0} {share:>18.2}",
                on.switches
            );
            figures.row(&format!("{rate} switches a second"));
            figures.add("BPF time of a switch", "ns", ns).at_most(MOST_NS);
            figures.add("of the machine's CPU time", "%", share).at_most(MOST_SHARE);
        }
        Ok(())
    }

    /// What a round trip takes longer.
    fn slow_down(&self, figures: &mut Figures) -> Result<()> {
        let mut all = vec![Beside::Nothing, Beside::WaitsOff, Beside::WaitsOn];
        if self.args.peer.is_some() {
            all.extend([Beside::PeerWithout, Beside::Peer]);
        }
        let mut trips: BTreeMap<(usize, Beside), Vec<f64>> = BTreeMap::new();
        for _ in 0..self.args.rounds {
            for beside in &all {
                let mut service = self.start(*beside)?;
                for (at, window) in self.windows(&mut service, None)?.into_iter().enumerate() {
                    trips.entry((at, *beside)).or_default().push(window.trip_ns);
                }
                ended(service)?;
            }
        }
        figures.table("CPU time of a round trip, two switches");
        println!("{:>12} {:>18} {:>10} {:>10}", "wanted", "beside it", "ns", "more, %");
        for (at, rate) in self.args.switches.iter().enumerate() {
            let of = |beside: Beside| median(trips[&(at, beside)].clone());
            figures.row(&format!("{rate} switches a second"));
            for beside in &all {
                let (ns, more) = (of(*beside), (of(*beside) / of(Beside::Nothing) - 1.0) * 100.0);
                println!("{rate:>12} {:>18} {ns:>10.0} {more:>10.1}", beside.title());
                figures.add(&format!("more beside {}", beside.title()), "%", more);
            }
        }
        Ok(())
    }
}

fn ended(service: Option<Service>) -> Result<()> {
    let Some(mut service) = service else { return Ok(()) };
    let status = service.stop(Duration::from_secs(30));
    ensure!(
        status.is_some_and(|status| status.success()),
        "the profiler ended badly:\n{}",
        service.last_lines(10)
    );
    Ok(())
}
