//! Waits for a CPU as the agent counts them, as the kernel accounts them, and as bcc's `runqlat` sees them, of the same
//! program at the same time.
//!
//! The kernel's account (`schedstat`) has their number and sum, `runqlat` their lengths. `perf sched` has both, but
//! where it was tried it saw 13 to 18 % fewer switches than the kernel counts.

use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use super::{Bench, Beside, compiled, ended};
use crate::bench::report::Figures;
use crate::http::{self, integer};
use crate::service::Service;
use crate::stack::{alive, now_ms};
use crate::{repo, run};

/// How long the program runs.
const SECONDS: u64 = 20;
/// `runqlat` has begun after so long, and ends so long after the program.
const AROUND: Duration = Duration::from_secs(3);
/// The last batch is stored after so long.
const STORED_SECONDS: u64 = 10;
/// A percentile is told within its bucket, a quarter of its length.
const BUCKET: f64 = 25.0;
/// What two who look at the same waits may differ by in their number and sum.
const APART: f64 = 1.0;

/// Waits of some lengths, in microseconds: from, up to, how many.
type Buckets = Vec<(f64, f64, f64)>;

/// The histogram of one process in what `runqlat -P` says.
fn histogram(said: &str, pid: &str) -> Buckets {
    let own = said.lines().skip_while(|line| {
        let mut words = line.split_whitespace();
        !(words.next() == Some("pid")
            && line.split('=').nth(1).and_then(|rest| rest.split_whitespace().next()) == Some(pid))
    });
    let rows = own.skip(1).take_while(|line| !line.contains("pid ="));
    let row = |line: &str| {
        let (range, count) = line.split_once(':')?;
        let (from, until) = range.split_once("->")?;
        let number = |text: &str| text.trim().parse::<f64>().ok();
        Some((number(from)?, number(until)? + 1.0, number(count.split('|').next()?)?))
    };
    rows.filter_map(row).collect()
}

/// The bucket of a percentile, by the nearest rank.
fn percentile(buckets: &Buckets, share: f64) -> Option<(f64, f64)> {
    let all: f64 = buckets.iter().map(|(_, _, count)| count).sum();
    let mut left = (all * share).ceil();
    let found = buckets.iter().find(|(_, _, count)| {
        left -= count;
        left <= 0.0
    });
    found.map(|(from, until, _)| (*from, *until))
}

/// How far a length lies outside of a bucket, in percent of the bucket's nearer end.
fn outside(length: f64, (from, until): (f64, f64)) -> f64 {
    if length < from {
        (from - length) / from * 100.0
    } else {
        ((length - until) / until * 100.0).max(0.0)
    }
}

impl Bench<'_> {
    /// Compares them.
    pub(super) fn queues(&self, figures: &mut Figures) -> Result<()> {
        figures.table("Waits for a CPU, beside the kernel's account and runqlat");
        let dir = &self.options.state_dir;
        let program = compiled("queues", &["-pthread"], dir)?;
        let mut agent = self.start(Beside::WaitsOn)?.context("no agent")?;
        let mut runqlat = repo::find_program("runqlat")
            .map(|program| {
                let mut command = Command::new(program);
                command.args(["-P", "3600", "1"]);
                Service::start("runqlat", &mut command, &dir.join("runqlat.log"))
            })
            .transpose()?;
        thread::sleep(AROUND);
        let from = now_ms();
        let said = run::output(Command::new(program).arg(SECONDS.to_string()))?;
        let until = now_ms();
        thread::sleep(AROUND);
        for _ in 0..STORED_SECONDS {
            self.stop.check()?;
            alive(&mut agent)?;
            thread::sleep(Duration::from_secs(1));
        }
        ended(Some(agent))?;
        let mut words = said.split_whitespace();
        let mut next = || words.next().context("the program said too little");
        let (pid, waits, waited_ns) = (next()?, next()?.parse::<f64>()?, next()?.parse::<f64>()?);
        // A name that nothing else has; its batches begin before it does.
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
        let ours = |key: &str| integer(&answer["all"][key]) as f64;
        figures.row("a program of three threads for each CPU");
        println!("{:>10} {:>14} {:>14} {:>10}", "", "the kernel", "ours", "more, %");
        for (name, theirs, ours) in [
            ("waits", waits, ours("waits")),
            ("sum, us", waited_ns / 1e3, ours("total_ns") / 1e3),
        ] {
            let more = (ours / theirs - 1.0) * 100.0;
            println!("{name:>10} {theirs:>14.0} {ours:>14.0} {more:>10.2}");
            let key = name.split(',').next().unwrap_or(name);
            let key = format!("{key}, ours from the kernel's");
            figures.add(&key, "%", more.abs()).at_most(APART);
        }
        let Some(runqlat) = &mut runqlat else {
            println!(
                "runqlat: not on this machine (Debian: apt install libbpf-tools), so that lengths are not compared"
            );
            return Ok(());
        };
        runqlat.signal(Signal::SIGINT);
        runqlat.wait(Duration::from_secs(20)).context("runqlat doesn't end")?;
        let buckets = histogram(&runqlat.output(), pid);
        ensure!(!buckets.is_empty(), "runqlat saw nothing: {}", runqlat.last_lines(3));
        println!("{:>10} {:>14} {:>14} {:>10}", "", "runqlat", "ours", "beside, %");
        for (name, share, ours) in [
            ("p50", 0.5, ours("p50_ns") / 1e3),
            ("p99", 0.99, ours("p99_ns") / 1e3),
            ("longest", 1.0, ours("longest_ns") / 1e3),
        ] {
            let bucket = percentile(&buckets, share).context("no waits")?;
            let beside = outside(ours, bucket);
            let range = format!("{:.0} to {:.0} us", bucket.0, bucket.1);
            println!("{name:>10} {range:>14} {ours:>11.0} us {beside:>10.2}");
            let key = format!("{name}, ours outside of runqlat's bucket");
            figures.add(&key, "%", beside).at_most(BUCKET);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "Tracing run queue latency... Hit Ctrl-C to end.\n\n\
        pid = 7 other\n     usecs               : count    distribution\n         0 -> 1          : 6        |*  |\n\n\
        pid = 71 queues\n     usecs               : count    distribution\n         4 -> 7          : 60       |** |\n\
        \x20        8 -> 15         : 39       |*  |\n        16 -> 31         : 1        |   |\n\n\
        pid = 72 other\n         0 -> 1          : 9        |*  |\n";

    #[test]
    fn a_percentile_lies_in_the_bucket_of_the_right_process() {
        let buckets = histogram(SAID, "71");
        assert_eq!(buckets, [(4.0, 8.0, 60.0), (8.0, 16.0, 39.0), (16.0, 32.0, 1.0)]);
        assert_eq!(percentile(&buckets, 0.5), Some((4.0, 8.0)));
        assert_eq!(percentile(&buckets, 0.99), Some((8.0, 16.0)));
        assert_eq!(percentile(&buckets, 1.0), Some((16.0, 32.0)));
        assert_eq!(histogram(SAID, "1"), []);
        assert_eq!(outside(10.0, (8.0, 16.0)), 0.0);
        assert_eq!(outside(6.0, (8.0, 16.0)), 25.0);
        assert_eq!(outside(20.0, (8.0, 16.0)), 25.0);
    }
}
