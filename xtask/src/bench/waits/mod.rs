//! What it costs to see threads wait, and whether waits for a CPU are told as others tell them.
//!
//! BPF time of a switch; what threads that switch all the time take longer, with nothing, with the agent and without
//! waits, and beside bcc's `offcputime` and OpenTelemetry's profiler, by turns; waits for a CPU beside `runqlat`; a
//! thousand threads that sleep.

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
use serde_json::Value;

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
/// What is counted of it: a reader of the figures has no other place for that.
const COUNTED: &str = "BPF time of a switch is the run time of all of a process's BPF programs by the kernel's \
    statistics (`kernel.bpf_stats_enabled`), less that of the agent with `--waits off` in a window of its own, less \
    what the statistics count of empty programs at `sched_switch`, `sched_waking` and `sched_wakeup`, by all switches \
    of the machine (`ctxt` of /proc/stat). So a switch's wake-up is part of it, and so are visits of threads that \
    sleep; the kernel's way to a program is not, but is in the slow-down. Nor are user stacks where threads take \
    their own, from Linux 6.18 on, of which the statistics do not know: the agent's own account has these, but no \
    visits: it is its BPF time as its batches tell it, less the same with `--waits off`. Without a stack: the agent \
    runs with a sample each 10 s of a thread's waits, and the time is by the switches of those turns that were \
    observed, as its batches tell them.";
/// So long a period that nearly no switch has a stack, in milliseconds.
const SELDOM_MS: &str = "10000";
/// Programs at the places of the agent's, and those of others: OpenTelemetry's has one more at the end of a switch.
const EMPTY_PROGRAMS: f64 = 3.0;
const OFFCPUTIMES_PROGRAMS: f64 = 1.0;
const PEERS_PROGRAMS: f64 = 2.0;
/// The last batch is stored after so long.
const STORED_AFTER: Duration = Duration::from_secs(10);
/// What waits may take of the machine's CPU time.
const MOST_SHARE: f64 = 0.5;

/// What runs beside the switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Beside {
    Nothing,
    WaitsOff,
    WaitsOn,
    /// With nearly no stack.
    WaitsSeldom,
    /// Of bcc: it takes a stack at each switch, counts in the kernel, and ships nothing.
    Offcputime,
    PeerWithout,
    Peer,
}

impl Beside {
    fn title(self) -> &'static str {
        match self {
            Beside::Nothing => "nothing",
            Beside::WaitsOff => "--waits off",
            Beside::WaitsOn => "--waits on",
            Beside::WaitsSeldom => "--wait-period 10000",
            Beside::Offcputime => "bcc's offcputime",
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
    /// When it was, Unix milliseconds.
    from_ms: i64,
    until_ms: i64,
}

/// What the windows gave, by what ran beside them.
#[derive(Default)]
struct Costs {
    of: BTreeMap<Beside, Vec<Window>>,
    /// Which part of a window's time waits were observed.
    observed: BTreeMap<Beside, Vec<f64>>,
    /// Seconds of BPF a second by the agent's own account.
    own: BTreeMap<Beside, Vec<f64>>,
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

/// Seconds of BPF a second in the batches whose middle lies in a window; none where no batch's does, or its account is
/// not whole. Each batch has when it began and ended, and what was taken by its end.
fn own_account(batches: &[Vec<Value>], (from_ms, until_ms): (i64, i64)) -> Option<f64> {
    let (mut taken, mut length_ns) = (0.0, 0);
    for both in batches.windows(2) {
        let [before, batch] = both else { continue };
        let (begin_ns, end_ns) = (integer(batch.first()?), integer(batch.get(1)?));
        if (from_ms * 2_000_000..=until_ms * 2_000_000).contains(&(begin_ns + end_ns)) {
            taken += batch.get(2)?.as_f64()? - before.get(2)?.as_f64()?;
            length_ns += end_ns - begin_ns;
        }
    }
    (length_ns > 0).then(|| taken / (length_ns as f64 / 1e9))
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
            Beside::WaitsSeldom => {
                let flags = ["--waits", "on", "--wait-period", SELDOM_MS];
                start_agent(&self.options, self.client.base(), &flags)?
            }
            Beside::Offcputime => {
                let program = offcputime().context("there is no offcputime")?;
                let log = self.options.state_dir.join("offcputime.log");
                Service::start("offcputime", Command::new(program).arg("86400"), &log)?
            }
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
            let from_ms = now_ms();
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
                from_ms,
                until_ms: now_ms(),
            });
        }
        Ok(windows)
    }

    /// How much of a window's time an agent observed waits, as the batches say whose middle lies in it.
    fn observed(&self, instance: &str, window: &Window) -> Result<f64> {
        let rows = self.client.sql(&format!(
            "SELECT sum(waits_observed_ns), sum(until_ns - from_ns) FROM batches WHERE instance = '{instance}' \
             AND from_ns + until_ns BETWEEN {} AND {}",
            window.from_ms * 2_000_000,
            window.until_ms * 2_000_000
        ))?;
        let row = rows.first().context("no row")?;
        let (observed_ns, all_ns) = (integer(&row[0]) as f64, integer(&row[1]) as f64);
        ensure!(
            observed_ns > 0.0,
            "no batch of a window says that waits were observed: longer windows have more batches (--seconds)"
        );
        Ok(observed_ns / all_ns)
    }

    /// BPF time of a switch: see [`COUNTED`].
    fn cost(&self, figures: &mut Figures) -> Result<()> {
        figures.note(COUNTED);
        let _statistics = BpfStatistics::on()?;
        let empty = Empty::start(&self.options.state_dir)?;
        let mut costs = Costs::default();
        let mut all = vec![Beside::WaitsOff, Beside::WaitsOn, Beside::WaitsSeldom];
        match offcputime() {
            Some(_) => all.push(Beside::Offcputime),
            None => println!("offcputime: not on this machine (Debian: apt install libbpf-tools)"),
        }
        match self.args.peer {
            Some(_) => all.extend([Beside::PeerWithout, Beside::Peer]),
            None => println!("OpenTelemetry's profiler: not given (--peer FILE)"),
        }
        for beside in &all {
            let started = now_ms();
            let mut service = self.start(*beside)?;
            let windows = self.windows(&mut service, Some(&empty))?;
            let sees_waits = matches!(beside, Beside::WaitsOn | Beside::WaitsSeldom);
            let is_own = sees_waits || *beside == Beside::WaitsOff;
            let node = is_own.then(|| this_node(&self.client, started)).transpose()?;
            end(*beside, service)?;
            if let Some(node) = node {
                thread::sleep(STORED_AFTER);
                let (samples, lengthened) = (
                    integer(&node["samples_stored"]),
                    integer(&node["limits"]["wait_turns_lengthened"]),
                );
                println!(
                    "{}: {samples} samples stored meanwhile; turns were lengthened {lengthened} times",
                    beside.title()
                );
                ensure!(samples > 0, "nothing was stored");
                let instance = node["instance"].as_str().context("the agent has no instance")?;
                if sees_waits {
                    let shares = windows.iter().map(|window| self.observed(instance, window));
                    costs.observed.insert(*beside, shares.collect::<Result<_>>()?);
                }
                costs.own.insert(*beside, self.own_accounts(instance, &windows)?);
            }
            costs.of.insert(*beside, windows);
        }
        self.tell_costs(&costs, figures)
    }

    fn tell_costs(&self, costs: &Costs, figures: &mut Figures) -> Result<()> {
        figures.table("BPF time");
        let cpus = thread::available_parallelism()?.get() as f64;
        let seconds = f64::from(self.args.seconds);
        println!(
            "{:>12} {:>12} {:>22} {:>16} {:>12} {:>12} {:>18} {:>14} {:>12} {:>16}",
            "wanted",
            "switches/s",
            "ns without a stack",
            "ns with stacks",
            "own account",
            "observed, %",
            "% of the machine",
            "own account, %",
            "offcputime",
            "OpenTelemetry"
        );
        for (at, rate) in self.args.switches.iter().enumerate() {
            let window = |beside: Beside| costs.of[&beside][at];
            let off = window(Beside::WaitsOff);
            let more = |window: Window| window.bpf_seconds - off.bpf_seconds - window.empty_seconds;
            let of_switch = |taken: f64, window: Window| taken / (window.switches * seconds) * 1e9;
            let (on, seldom) = (window(Beside::WaitsOn), window(Beside::WaitsSeldom));
            let without_ns = of_switch(more(seldom), seldom) / costs.observed[&Beside::WaitsSeldom][at];
            let (with_ns, share) = (of_switch(more(on), on), more(on) / seconds / cpus * 100.0);
            let own = costs.own[&Beside::WaitsOn][at] - costs.own[&Beside::WaitsOff][at];
            let (own_ns, own_share) = (own / on.switches * 1e9, own / cpus * 100.0);
            let observed = costs.observed[&Beside::WaitsOn][at] * 100.0;
            figures.row(&format!("{rate} switches a second"));
            figures
                .add("of a switch without a stack", "ns", without_ns)
                .at_most(MOST_NS);
            figures.add("with stacks, and turns that are not observed", "ns", with_ns);
            figures.add("the same by the agent's own account", "ns", own_ns);
            figures.add("of the time observed", "%", observed);
            figures.add("of the machine's CPU time", "%", share).at_most(MOST_SHARE);
            figures
                .add("the same by the agent's account", "%", own_share)
                .at_most(MOST_SHARE);
            let beside = |beside: Beside, base_seconds: f64, programs: f64| {
                let window = costs.of.get(&beside)?[at];
                let taken = window.bpf_seconds - base_seconds - window.empty_seconds * programs / EMPTY_PROGRAMS;
                Some(of_switch(taken, window))
            };
            let without = costs.of.get(&Beside::PeerWithout).map_or(0.0, |of| of[at].bpf_seconds);
            let others = [
                (
                    "bcc's offcputime",
                    beside(Beside::Offcputime, 0.0, OFFCPUTIMES_PROGRAMS),
                ),
                (
                    "OpenTelemetry's off-CPU mode",
                    beside(Beside::Peer, without, PEERS_PROGRAMS),
                ),
            ];
            for (name, ns) in others {
                if let Some(ns) = ns {
                    figures.add(&format!("of a switch in {name}"), "ns", ns);
                }
            }
            let [offcputime, peer] = others.map(|(_, ns)| ns.map_or("-".to_owned(), |ns| format!("{ns:.0}")));
            println!(
                "{rate:>12} {:>12.0} {without_ns:>22.0} {with_ns:>16.0} {own_ns:>12.0} {observed:>12.1} {share:>18.2} \
                 {own_share:>14.2} {offcputime:>12} {peer:>16}",
                on.switches
            );
        }
        Ok(())
    }

    /// Of each window, see [`own_account`].
    fn own_accounts(&self, instance: &str, windows: &[Window]) -> Result<Vec<f64>> {
        let batches = self.client.sql(&format!(
            "SELECT from_ns, until_ns, bpf_seconds FROM batches WHERE instance = '{instance}' ORDER BY number"
        ))?;
        let accounts = windows.iter().map(|window| {
            own_account(&batches, (window.from_ms, window.until_ms))
                .context("no batch of a window tells of BPF time: longer windows have more batches (--seconds)")
        });
        accounts.collect()
    }

    /// What a round trip takes longer.
    fn slow_down(&self, figures: &mut Figures) -> Result<()> {
        let mut all = vec![Beside::Nothing, Beside::WaitsOff, Beside::WaitsOn];
        all.extend(offcputime().map(|_| Beside::Offcputime));
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
                end(*beside, service)?;
            }
        }
        figures.table("CPU time of a round trip, two switches");
        println!(
            "{:>12} {:>20} {:>10} {:>10} {:>14}",
            "wanted", "beside it", "ns", "more, %", "than off, %"
        );
        for (at, rate) in self.args.switches.iter().enumerate() {
            let of = |beside: Beside| median(trips[&(at, beside)].clone());
            figures.row(&format!("{rate} switches a second"));
            for beside in &all {
                let more_than = |base: Beside| (of(*beside) / of(base) - 1.0) * 100.0;
                let (ns, more, than_off) = (of(*beside), more_than(Beside::Nothing), more_than(Beside::WaitsOff));
                println!(
                    "{rate:>12} {:>20} {ns:>10.0} {more:>10.1} {than_off:>14.1}",
                    beside.title()
                );
                figures.add(&format!("more beside {}", beside.title()), "%", more);
            }
            let on = (of(Beside::WaitsOn) / of(Beside::WaitsOff) - 1.0) * 100.0;
            figures.add("more with waits than without", "%", on);
        }
        Ok(())
    }
}

/// bcc's program that tells where threads wait; its stacks at the end are of no use here.
fn offcputime() -> Option<PathBuf> {
    repo::find_program("offcputime")
}

fn end(beside: Beside, service: Option<Service>) -> Result<()> {
    match service {
        Some(mut service) if beside == Beside::Offcputime => {
            service.kill();
            Ok(())
        }
        service => ended(service),
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_agents_own_account_of_a_window_is_that_of_the_batches_in_it() {
        let second = |at: i64| at * 1_000_000_000;
        let batch = |from: i64, until: i64, taken: f64| vec![json!(second(from)), json!(second(until)), json!(taken)];
        let batches = [
            batch(0, 5, 0.5),
            // Numbers beyond 2^53 come as texts.
            vec![json!(second(5).to_string()), json!(second(10).to_string()), json!(0.6)],
            batch(10, 14, 0.7),
            batch(14, 20, 2.0),
        ];
        let of = |from_s: i64, until_s: i64| own_account(&batches, (from_s * 1000, until_s * 1000));
        let is = |found: Option<f64>, right: f64| found.is_some_and(|found| (found - right).abs() < 1e-9);
        assert!(is(of(6, 15), 0.2 / 9.0), "{:?}", of(6, 15));
        assert!(is(of(15, 20), 1.3 / 6.0), "{:?}", of(15, 20));
        // What the first had taken before it began is not known.
        assert_eq!((of(0, 4), of(30, 40)), (None, None));
    }
}
