//! What it costs to see threads wait: BPF time of a switch, and what threads that switch all the time take longer, with
//! nothing, with the agent and without waits, and beside OpenTelemetry's profiler, by turns.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::agent::{BpfStatistics, start_peer, this_node};
use super::median;
use super::report::Figures;
use crate::artifacts::{self, Profile};
use crate::http::{Client, integer};
use crate::proc::bpf;
use crate::service::Service;
use crate::signals::Stop;
use crate::stack::{Options, alive, free_address, now_ms, start_agent, start_server, wait_ready};
use crate::{packages, repo, run};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
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
    for rate in &args.switches {
        ensure!(rate % 200 == 0, "{rate} switches a second: give a multiple of 200");
    }
    let binaries = artifacts::all(Profile::Release)?;
    let stop = Stop::install()?;
    let dir = tempfile::tempdir()?;
    let options = Options {
        binaries,
        state_dir: dir.path().to_owned(),
        listen: free_address("127.0.0.1:0")?,
        frequency_hz: 20,
    };
    let client = Client::new(&format!("http://{}", options.listen));
    let mut server = start_server(&options, &options.listen, &[])?;
    wait_ready(&mut server, &client, &stop)?;
    let bench = Bench {
        args,
        client,
        program: compiled(dir.path())?,
        cpu: thread::available_parallelism()?.get() - 1,
        options,
        stop,
    };
    figures.print_note(format!(
        "two threads hand a byte to each other by pipes on CPU {}; {} rounds of {} s each; the rest of the machine is idle or not",
        bench.cpu, args.rounds, args.seconds
    ));
    bench.cost(figures)?;
    bench.slow_down(figures)?;
    server.stop(Duration::from_secs(20));
    Ok(())
}

fn compiled(dir: &Path) -> Result<PathBuf> {
    let program = dir.join("switches");
    let source = repo::root().join("xtask/src/bench/switches.c");
    run::run(
        Command::new("cc")
            .args(["-O1", "-pthread", "-o"])
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
    fn windows(&self, service: &mut Option<Service>) -> Result<Vec<Window>> {
        let mut windows = vec![];
        for rate in &self.args.switches {
            self.stop.check()?;
            let bpf_seconds = |service: &mut Option<Service>| match service {
                Some(service) => alive(service).and_then(|()| Ok(bpf(service.pid())?.seconds)),
                None => Ok(0.0),
            };
            let (before, bpf_before) = (switches()?, bpf_seconds(service)?);
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
            });
        }
        Ok(windows)
    }

    /// BPF time of a switch: what the agent takes more with waits than without, by the kernel's statistics.
    fn cost(&self, figures: &mut Figures) -> Result<()> {
        let _statistics = BpfStatistics::on()?;
        let mut of = BTreeMap::new();
        let mut samples = 0;
        for beside in [Beside::WaitsOff, Beside::WaitsOn] {
            let started = now_ms();
            let mut service = self.start(beside)?;
            of.insert(beside, self.windows(&mut service)?);
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
            "{:>12} {:>12} {:>14} {:>18}",
            "wanted", "switches/s", "BPF ns/switch", "% of the machine"
        );
        for (at, rate) in self.args.switches.iter().enumerate() {
            let (off, on) = (of[&Beside::WaitsOff][at], of[&Beside::WaitsOn][at]);
            let seconds = f64::from(self.args.seconds);
            let more = on.bpf_seconds - off.bpf_seconds;
            let (ns, share) = (more / (on.switches * seconds) * 1e9, more / seconds / cpus * 100.0);
            println!("{rate:>12} {:>12.0} {ns:>14.0} {share:>18.2}", on.switches);
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
                for (at, window) in self.windows(&mut service)?.into_iter().enumerate() {
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
