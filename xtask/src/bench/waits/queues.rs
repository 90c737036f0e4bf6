//! Waits for a CPU as the agent counts them and as `perf sched` records them, of the same program at the same time.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{Bench, Beside, compiled, ended};
use crate::bench::report::Figures;
use crate::http::{self, integer};
use crate::run;
use crate::service::Service;
use crate::stack::{alive, now_ms};

/// How long the program runs.
const SECONDS: u64 = 20;
/// perf has begun to record after so long, and ends so long after the program.
const AROUND: Duration = Duration::from_secs(2);
/// A percentile is told within its bucket, a quarter of its length.
const BUCKET: f64 = 25.0;
/// What two who look at the same waits may differ by in their number and sum.
const APART: f64 = 1.0;

/// Lengths of waits, in nanoseconds.
#[derive(Debug)]
struct Lengths {
    waits: f64,
    total: f64,
    p50: f64,
    p99: f64,
    longest: f64,
}

impl Lengths {
    fn of(mut waits: Vec<f64>) -> Lengths {
        waits.sort_by(f64::total_cmp);
        let rank = |share: f64| {
            let rank = (waits.len() as f64 * share).ceil() as usize;
            waits.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
        };
        Lengths {
            waits: waits.len() as f64,
            total: waits.iter().sum(),
            p50: rank(0.5),
            p99: rank(0.99),
            longest: rank(1.0),
        }
    }
}

/// Waits for a CPU of the threads of this name in what `perf script` says: from the wake-up, or from when a thread was
/// preempted, until it runs.
fn recorded(script: &str, name: &str) -> Vec<f64> {
    let mut ready: HashMap<&str, f64> = HashMap::new();
    let mut waits = Vec::new();
    for line in script.lines() {
        let Some((front, event)) = line.split_once(": sched:") else {
            continue;
        };
        let Some(time) = front.rsplit(' ').next().and_then(|time| time.parse::<f64>().ok()) else {
            continue;
        };
        let word = |key: &str| {
            event
                .split_whitespace()
                .find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
        };
        let is_ours = |comm: &str| word(comm) == Some(name);
        if event.starts_with("sched_wakeup") {
            if let (true, Some(pid)) = (is_ours("comm"), word("pid")) {
                ready.insert(pid, time);
            }
        } else if event.starts_with("sched_switch") {
            if let (true, Some(pid)) = (is_ours("prev_comm"), word("prev_pid")) {
                if word("prev_state").is_some_and(|state| state.starts_with('R')) {
                    ready.insert(pid, time);
                } else {
                    ready.remove(pid);
                }
            }
            if let (true, Some(pid)) = (is_ours("next_comm"), word("next_pid"))
                && let Some(since) = ready.remove(pid)
            {
                waits.push((time - since) * 1e9);
            }
        }
    }
    waits
}

impl Bench<'_> {
    /// Compares them.
    pub(super) fn queues(&self, figures: &mut Figures) -> Result<()> {
        figures.table("Waits for a CPU, beside perf sched");
        if Command::new("perf").arg("--version").output().is_err() {
            println!("perf: not on this machine, nothing to compare with");
            return Ok(());
        }
        let dir = &self.options.state_dir;
        let program = compiled("queues", &["-pthread"], dir)?;
        let data = dir.join("perf.data");
        let mut agent = self.start(Beside::WaitsOn)?.context("no agent")?;
        let mut perf = record(&data)?;
        thread::sleep(AROUND);
        let from = now_ms();
        run::run(Command::new(program).arg(SECONDS.to_string()))?;
        let until = now_ms();
        thread::sleep(AROUND);
        perf.signal(nix::sys::signal::Signal::SIGINT);
        perf.wait(Duration::from_secs(60)).context("perf doesn't end")?;
        // Intervals that the window's end lies in are stored.
        for _ in 0..10 {
            self.stop.check()?;
            alive(&mut agent)?;
            thread::sleep(Duration::from_secs(1));
        }
        ended(Some(agent))?;
        let script = run::output(Command::new("perf").args(["script", "--ns", "-i"]).arg(&data))?;
        let theirs = Lengths::of(recorded(&script, "queues"));
        ensure!(theirs.waits > 0.0, "perf recorded no waits: {}", perf.last_lines(3));
        let ours = self.counted(from, until)?;
        tell(&theirs, &ours, figures);
        println!("{}", latency(&data)?);
        Ok(())
    }

    /// What the server knows of the program. Batches around it are asked for, too: nothing else has its name.
    fn counted(&self, from: i64, until: i64) -> Result<Lengths> {
        let window = [(from - 10_000).to_string(), (until + 10_000).to_string()];
        let answer = self.client.get_json(&http::path(
            "/api/v1/run_queue",
            &[
                ("query", "{process=\"queues\"}"),
                ("by", "process"),
                ("from", &window[0]),
                ("until", &window[1]),
            ],
        ))?;
        let all = &answer["all"];
        let number = |key: &str| integer(&all[key]) as f64;
        Ok(Lengths {
            waits: number("waits"),
            total: number("total_ns"),
            p50: number("p50_ns"),
            p99: number("p99_ns"),
            longest: number("longest_ns"),
        })
    }
}

fn record(data: &Path) -> Result<Service> {
    let mut record = Command::new("perf");
    record
        .args(["record", "-a", "-m", "2048", "-e", "sched:sched_switch"])
        .args(["-e", "sched:sched_wakeup", "-e", "sched:sched_wakeup_new", "-o"])
        .arg(data);
    Service::start("perf", &mut record, &data.with_extension("log"))
}

/// What perf itself makes of the recording.
fn latency(data: &Path) -> Result<String> {
    let told = run::output(Command::new("perf").args(["sched", "latency", "-i"]).arg(data))?;
    let lines = told
        .lines()
        .filter(|line| line.contains("Task") || line.contains("queues"));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

fn tell(theirs: &Lengths, ours: &Lengths, figures: &mut Figures) {
    println!("{:>14} {:>14} {:>14} {:>10}", "", "perf", "ours", "more, %");
    let rows = [
        ("waits", theirs.waits, ours.waits, APART),
        ("sum, us", theirs.total / 1e3, ours.total / 1e3, APART),
        ("p50, us", theirs.p50 / 1e3, ours.p50 / 1e3, BUCKET),
        ("p99, us", theirs.p99 / 1e3, ours.p99 / 1e3, BUCKET),
        ("longest, us", theirs.longest / 1e3, ours.longest / 1e3, APART),
    ];
    figures.row("a program of three threads for each CPU");
    for (name, theirs, ours, most) in rows {
        let more = (ours / theirs - 1.0) * 100.0;
        println!("{name:>14} {theirs:>14.0} {ours:>14.0} {more:>10.2}");
        let key = name.split(',').next().unwrap_or(name);
        figures
            .add(&format!("{key}, ours from perf's"), "%", more.abs())
            .at_most(most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_from_the_wake_up_or_the_preemption_until_the_thread_runs() {
        let script = "\
            swapper 0 [001] 10.000001000: sched:sched_wakeup: comm=queues pid=7 prio=120 target_cpu=001\n\
            swapper 0 [001] 10.000003000: sched:sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=queues next_pid=7 next_prio=120\n\
            queues 7 [001] 10.000010000: sched:sched_switch: prev_comm=queues prev_pid=7 prev_prio=120 prev_state=R+ ==> next_comm=other next_pid=8 next_prio=120\n\
            other 8 [001] 10.000016000: sched:sched_switch: prev_comm=other prev_pid=8 prev_prio=120 prev_state=S ==> next_comm=queues next_pid=7 next_prio=120\n\
            queues 7 [001] 10.000020000: sched:sched_switch: prev_comm=queues prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120\n";
        let lengths = Lengths::of(recorded(script, "queues"));
        assert_eq!(
            (lengths.waits, lengths.p50.round(), lengths.longest.round()),
            (2.0, 2000.0, 6000.0)
        );
        assert_eq!(lengths.total.round(), 8000.0);
        assert!(recorded(script, "another").is_empty());
    }
}
