//! What the agent's start costs on a machine where much runs already: each of its first seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::agent::{BpfStatistics, this_node};
use super::median;
use super::receiver::Receiver;
use super::report::Figures;
use crate::http::{self, Client, integer};
use crate::proc::{Threads, bpf, memory};
use crate::service::{Service, within};
use crate::signals::Stop;
use crate::stack::{alive, now_ms, start_agent};
use crate::{packages, repo};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Processes that run before the agent starts
    #[arg(long, default_value_t = 300, value_name = "N")]
    processes: usize,
    /// For how long they have run then: what lives for long need not be opened at once
    #[arg(long, default_value_t = 20, value_name = "SECONDS")]
    age: u64,
    /// Seconds that are looked at
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    seconds: usize,
    /// Samples per second and CPU
    #[arg(long, default_value_t = 20, value_name = "HZ")]
    frequency: u32,
    /// As the agent's --cpu-limit
    #[arg(long, default_value_t = 1.0, value_name = "PERCENT")]
    cpu_limit: f64,
    /// Let dozens of the processes end and start again, so that there are new programs all the time
    #[arg(long)]
    restarting: bool,
    /// Print every second, and which thread's CPU time it was
    #[arg(long)]
    every_second: bool,
}

/// Programs that work on text without end as `yes` writes it, and gather none of it. Those that are missing are left
/// out.
const FILTERS: &[&str] = &[
    "cat",
    "grep x",
    "sed s/y/x/",
    "mawk {print}",
    "gawk {print}",
    "tr y x",
    "wc",
    "tee",
    "od",
    "xxd",
    "gzip",
    "bzip2",
    "xz",
    "zstd",
    "sha256sum",
    "md5sum",
    "b2sum",
    "sha512sum",
    "cksum",
    "sum",
    "base64",
    "base32",
    "cut -c1",
    "paste",
    "uniq -c",
    "nl",
    "fold",
    "fmt",
    "expand",
    "unexpand",
    "pr",
    "strings",
    "hexdump",
    "iconv -f latin1 -t utf-16",
    "c++filt",
    "numfmt --invalid=ignore",
    "dd bs=64k",
    "busybox md5sum",
    "tail -n1",
    "head -c1T",
    "openssl enc -aes-256-ctr -pass pass:x -pbkdf2",
    "openssl dgst -sha3-256",
    "stdbuf -oL cat",
    "env cat",
    "dash -c 'while read -r x; do :; done'",
    "bash -c 'while read -r x; do :; done'",
    "perl -ne 's/y/x/'",
    "perl -MPOSIX -MSocket -MData::Dumper -ne 's/y/x/'",
    "jq .x?",
    "gpg --enarmor",
    "ssh-keygen -lf /dev/null",
    "look x /dev/stdin",
    "rev",
    "column -x -c 80",
    "comm - /dev/null",
    "join - /dev/null",
    "diff -q - /dev/zero",
];
/// Programs that work by themselves.
const WORKERS: &[&str] = &[
    "python3 -c 'while True: sum(range(1000))'",
    "python3 -c 'import ssl, sqlite3, ctypes, decimal, lzma, bz2, zlib\nwhile True: decimal.Decimal(2).sqrt(); zlib.crc32(bytes(9999))'",
    "node -e 'for (;;) JSON.parse(JSON.stringify([1, 2, {x: 3}]))'",
    "perl -e 'while (1) { $x = join(q(,), 1..99) }'",
];
/// What starts again and again: whatever the agent does then is no start of its own.
const RESTARTING: &[&str] = &[
    "while :; do rustc -vV; clang --version; done",
    "while :; do go version; gofmt -h; git --version; done",
    "while :; do java -version; done",
    "while :; do gdb --version; perf --version; curl --version; sqlite3 --version; file --version; make --version; done",
];

/// Processes that all get their turn; dropping it ends them.
struct Crowd(Vec<Child>);

impl Crowd {
    fn start(wanted: usize, restarting: bool) -> Result<Crowd> {
        let filters = FILTERS.iter().filter(|filter| {
            filter
                .split(' ')
                .next()
                .is_some_and(|name| repo::find_program(name).is_some())
        });
        let restarting = if restarting { RESTARTING } else { &[] };
        let workers = restarting.iter().chain(WORKERS);
        let mut commands: Vec<String> = workers.map(|worker| (*worker).to_owned()).collect();
        commands.extend(filters.map(|filter| format!("yes | {filter}")));
        let mut crowd = Crowd(vec![]);
        // Some of what was started has ended at once, and a pipe is more than one process.
        for command in commands.iter().cycle().take(commands.len() * wanted) {
            if crowd.members()?.len() >= wanted {
                break;
            }
            crowd.spawn(command)?;
        }
        Ok(crowd)
    }

    fn spawn(&mut self, command: &str) -> Result<()> {
        use std::os::unix::process::CommandExt;
        let child = Command::new("nice")
            .args(["-n", "19", "sh", "-c", command])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        self.0.push(child.with_context(|| format!("can't start `{command}`"))?);
        Ok(())
    }

    /// Process ids of what runs of it.
    fn members(&self) -> Result<Vec<u32>> {
        let groups: BTreeSet<u32> = self.0.iter().map(Child::id).collect();
        let processes = fs::read_dir("/proc")?.flatten();
        let tgids = processes.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok());
        Ok(tgids
            .filter(|tgid| group_of(*tgid).is_some_and(|group| groups.contains(&group)))
            .collect())
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.0 {
            if let Ok(group) = i32::try_from(child.id()) {
                let _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(group), nix::sys::signal::Signal::SIGKILL);
            }
            let _ = child.wait();
        }
    }
}

/// The process group: the third field after the name, which may hold anything. None where it runs no more.
fn group_of(tgid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{tgid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    fields.nth(1)?.parse().ok().filter(|_| state != "Z")
}

/// Files that these processes have mapped as code.
fn code_files(tgids: &[u32]) -> BTreeSet<String> {
    let maps = tgids
        .iter()
        .filter_map(|tgid| fs::read_to_string(format!("/proc/{tgid}/maps")).ok());
    let file = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let code = fields.next()?.contains('x');
        let path = fields.nth(3)?;
        (code && path.starts_with('/')).then(|| path.to_owned())
    };
    maps.flat_map(|maps| maps.lines().filter_map(file).collect::<Vec<_>>())
        .collect()
}

/// One second of the agent's life.
struct Second {
    /// Of the machine's CPU time, in percent, BPF programs included.
    share: f64,
    rss_bytes: u64,
    map_bytes: i64,
}

/// Starts the processes, then the agent, and prints what its first seconds cost.
pub(crate) fn run(args: &Args, figures: &mut Figures) -> Result<()> {
    ensure!(
        packages::is_root(),
        "the kernel's BPF statistics are root's: run this as root"
    );
    let Receiver {
        options,
        client,
        mut server,
        stop,
        dir: _dir,
    } = Receiver::start(args.frequency)?;
    let _statistics = BpfStatistics::on()?;
    let crowd = Crowd::start(args.processes, args.restarting)?;
    for _ in 0..args.age {
        thread::sleep(Duration::from_secs(1));
        stop.check()?;
    }
    let members = crowd.members()?;
    let programs: BTreeSet<_> = members
        .iter()
        .filter_map(|tgid| fs::read_link(format!("/proc/{tgid}/exe")).ok())
        .collect();
    let cpus = thread::available_parallelism()?.get();
    figures.print_note(format!(
        "{} processes of {} programs, at work for {} s, {} files mapped as code; {cpus} CPUs, all busy; {} Hz, --cpu-limit {}",
        members.len(),
        programs.len(),
        args.age,
        code_files(&members).len(),
        args.frequency,
        args.cpu_limit
    ));
    let started = now_ms();
    let mut agent = start_agent(&options, client.base(), &["--cpu-limit", &args.cpu_limit.to_string()])?;
    until_it_samples(&mut agent, &stop)?;
    let mut threads = Threads::of(agent.pid());
    let mut before = threads.read()?;
    let loading: f64 = before.values().sum();
    let mut seconds = vec![];
    let (mut used, mut at) = (loading, Instant::now());
    for number in 1..=args.seconds {
        thread::sleep(Duration::from_secs(1));
        stop.check()?;
        alive(&mut agent)?;
        let bpf = bpf(agent.pid())?;
        let (by_thread, now) = (threads.read()?, Instant::now());
        let used_now = by_thread.values().sum::<f64>() + bpf.seconds;
        let second = Second {
            share: (used_now - used) / (now - at).as_secs_f64() / cpus as f64 * 100.0,
            rss_bytes: memory(agent.pid())?.resident,
            map_bytes: bpf.map_bytes,
        };
        (used, at) = (used_now, now);
        if args.every_second {
            println!(
                "{number:>3} s {:>7.2} % {:>7.1} MiB{}",
                second.share,
                mib(second.rss_bytes as f64 + second.map_bytes as f64),
                by_name(&before, &by_thread)
            );
        }
        before = by_thread;
        seconds.push(second);
    }
    println!("CPU time until it samples: {loading:.2} s, the kernel's check of its BPF programs; not in what follows");
    figures.table("");
    figures.add("CPU time until it samples", "s", loading);
    report(args, &seconds, used - loading, cpus, figures);
    cut_stacks(&client, started, args.seconds, figures)?;
    ensure!(
        agent
            .stop(Duration::from_secs(30))
            .is_some_and(|status| status.success()),
        "the agent ended badly"
    );
    server.stop(Duration::from_secs(20));
    Ok(())
}

/// Milliseconds of CPU time of each thread between two readings.
fn by_name(before: &BTreeMap<String, f64>, after: &BTreeMap<String, f64>) -> String {
    let of_thread = |(name, seconds): (&String, &f64)| {
        let ms = (seconds - before.get(name).unwrap_or(&0.0)) * 1e3;
        (ms >= 0.1).then(|| format!("  {} {ms:.1} ms", name.trim_start_matches("stakeout-")))
    };
    after.iter().filter_map(of_thread).collect()
}

/// Waits until the agent has loaded its BPF programs. What that takes no agent can spread.
fn until_it_samples(agent: &mut Service, stop: &Stop) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !agent.output().contains("stakeout_agent: sampling") {
        ensure!(
            Instant::now() < deadline,
            "the agent does not sample:\n{}",
            agent.last_lines(10)
        );
        stop.check()?;
        alive(agent)?;
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn mib(bytes: f64) -> f64 {
    bytes / 1_048_576.0
}

fn report(args: &Args, seconds: &[Second], used: f64, cpus: usize, figures: &mut Figures) {
    let shares: Vec<f64> = seconds.iter().map(|second| second.share).collect();
    // Batches of five seconds make one second in five dearer than the others.
    let windows: Vec<f64> = shares.windows(5).map(|five| five.iter().sum::<f64>() / 5.0).collect();
    let steady = median(windows[windows.len() / 2..].to_vec());
    let settled = windows.iter().position(|share| *share <= steady * 1.5);
    let settled = settled.unwrap_or(seconds.len());
    let start: f64 = shares[..settled]
        .iter()
        .map(|share| (share - steady).max(0.0) / 100.0 * cpus as f64)
        .sum();
    let most = |shares: &[f64]| shares.iter().copied().fold(0.0, f64::max);
    println!(
        "share of the machine's CPU time, BPF included: most in 1 s {:.2} %, in 5 s {:.2} %",
        most(&shares),
        most(&windows)
    );
    figures
        .add("most of the machine in one second", "%", most(&shares))
        .at_most(args.cpu_limit);
    figures.add("most of the machine in five seconds", "%", most(&windows));
    let above: Vec<String> = shares
        .iter()
        .enumerate()
        .filter(|(_, share)| **share > args.cpu_limit)
        .map(|(second, share)| format!("{}: +{:.1}", second + 1, share - args.cpu_limit))
        .collect();
    println!(
        "steady: {steady:.2} %, from second {settled} on; target: at no time above --cpu-limit, {} %; above it are {} of {} seconds, in points: {}",
        args.cpu_limit,
        above.len(),
        shares.len(),
        above.join(", ")
    );
    println!(
        "CPU time: {used:.2} s in {} s, {start:.2} s of it for the start",
        seconds.len()
    );
    figures.add("seconds above --cpu-limit", "", above.len() as f64);
    figures.add("steady", "%", steady);
    figures.add("CPU time", "s", used);
    figures.add("of it for the start", "s", start);
    let peak = |bytes: fn(&Second) -> f64| seconds.iter().map(bytes).fold(0.0, f64::max);
    println!(
        "most memory: RSS {:.1} MiB, maps {:.1} MiB, both {:.1} MiB",
        mib(peak(|second| second.rss_bytes as f64)),
        mib(peak(|second| second.map_bytes as f64)),
        mib(peak(|second| second.rss_bytes as f64 + second.map_bytes as f64)),
    );
    figures.add("most RSS", "MiB", mib(peak(|second| second.rss_bytes as f64)));
    figures.add("most maps", "MiB", mib(peak(|second| second.map_bytes as f64)));
    figures.add(
        "most of both",
        "MiB",
        mib(peak(|second| second.rss_bytes as f64 + second.map_bytes as f64)),
    );
}

/// The programs most of whose stacks are cut, for the last line.
const CUT_BY_PROGRAM: &str = "SELECT p.executable, count(*) AS stacks FROM samples AS s
     JOIN (SELECT DISTINCT stack_id FROM stacks WHERE truncated) AS cut ON cut.stack_id = s.stack_id
     JOIN (SELECT DISTINCT process_id, executable FROM processes) AS p ON p.process_id = s.process_id
     GROUP BY p.executable ORDER BY stacks DESC LIMIT 10";

/// Waits for the last batch, and prints which share of the stacks of these seconds is cut, and of which programs.
fn cut_stacks(client: &Client, started: i64, seconds: usize, figures: &mut Figures) -> Result<()> {
    let seconds = i64::try_from(seconds)?;
    let until = started + 1000 * seconds;
    let came = within(Duration::from_secs(60), || {
        Ok(this_node(client, started).map_or(0, |node| integer(&node["last_seen"])) >= until)
    })?;
    ensure!(came, "the last batch does not come");
    for (from, to) in [(0, 10), (10, 30), (30, seconds)] {
        let to = seconds.min(to);
        if from >= to {
            break;
        }
        let window = [from, to].map(|second| (started + second * 1000).to_string());
        let path = http::path(
            "/api/v1/flamegraph",
            &[("format", "json"), ("from", &window[0]), ("until", &window[1])],
        );
        let graph = client.get_json(&path)?;
        println!(
            "seconds {from} to {to}: {} of {} stacks are cut",
            graph["quality"]["truncated_samples"], graph["samples"]
        );
        let (cut, all) = (
            integer(&graph["quality"]["truncated_samples"]),
            integer(&graph["samples"]),
        );
        let share = cut as f64 / all as f64 * 100.0;
        figures.add(&format!("cut stacks, seconds {from} to {to}"), "%", share);
    }
    let programs = client.sql(CUT_BY_PROGRAM)?;
    let programs = programs
        .iter()
        .map(|row| format!("{} {}", row[0].as_str().unwrap_or_default(), row[1]));
    println!("most of them: {}", programs.collect::<Vec<_>>().join(", "));
    println!("limits that were reached: {}", this_node(client, started)?["limits"]);
    Ok(())
}
