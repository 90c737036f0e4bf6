//! Synthetic agents that ship in real time, and whether all that they were told is stored is there, once.
//!
//! In: how many agents, for how long. Out: how long acknowledgements took; an error where a sample is lost, or there
//! twice.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::Value;

use super::fleet_size::{BATCH_SECONDS, IN_FLIGHT};
use crate::http::{Client, integer};
use crate::service::{POLL, Service, within};
use crate::signals::Stop;

/// A statement that tells samples apart looks at about so many at a time: it has to end within the server's time.
const TOLD_APART: u64 = 500_000;
/// Connections that a server takes: each batch that waits for its acknowledgement has one.
pub(super) const MAX_CONNECTIONS: [&str; 2] = ["--max-connections", "20000"];
/// Descriptors that the load wants: a connection for each batch on the way.
const DESCRIPTORS: u64 = 65_536;
/// What one server has committed all others have in their answers by then.
const SEEN_BY_ALL: Duration = Duration::from_secs(60);

/// Agents that ship in real time.
#[derive(Debug, clap::Args)]
pub(super) struct Agents {
    /// Samples of a batch, which an agent sends every five seconds
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub(super) samples: u64,
    /// Services of these agents, of which ten run on each node
    #[arg(long, default_value_t = 200, value_name = "N")]
    live_services: u64,
    /// Distinct stacks of such a service, by Zipf's law
    #[arg(long, default_value_t = 2000, value_name = "N")]
    live_stacks: u64,
}

impl Agents {
    /// So many, for so long, each of them to one of these servers.
    pub(super) fn command(&self, load: &Path, urls: &str, prefix: &str, agents: u64, seconds: u64) -> Command {
        let mut command = Command::new(load);
        command.args(["--url", urls, "--live", "--stay", "--acknowledgements"]);
        command.args(["--node-prefix", prefix, "--patience", "600"]);
        for (flag, number) in [
            ("--agents", agents),
            ("--batches", (seconds / BATCH_SECONDS).max(1)),
            ("--samples", self.samples),
            ("--interval-ms", BATCH_SECONDS * 1000),
            ("--in-flight", IN_FLIGHT),
            ("--services", self.live_services),
            ("--stacks", self.live_stacks),
        ] {
            command.args([flag, &number.to_string()]);
        }
        command
    }
}

/// Agents at work. Dropping it ends them: nobody waits for an hour of them after Ctrl-C, or after an error.
pub(super) struct Shipping {
    load: Service,
}

impl Shipping {
    /// What they print goes into a file of this folder, by this name.
    pub(super) fn begin(command: &mut Command, dir: &Path, name: &str) -> Result<Shipping> {
        let log = dir.join(format!("load-{name}.log"));
        Ok(Shipping {
            load: Service::start("load", command, &log)?,
        })
    }

    /// They end by themselves: when all is acknowledged, or when a batch is not for as long as they have patience.
    pub(super) fn is_over(&mut self) -> bool {
        self.load.ended().is_some()
    }

    /// What they say at the end.
    pub(super) fn told(&mut self) -> Result<Shipped> {
        let status = self.load.ended().context("agents ship still")?;
        ensure!(
            status.success(),
            "the load ended with {status}:\n{}",
            self.load.last_lines(10)
        );
        Shipped::of(&self.load.output())
    }

    /// Waits for that.
    pub(super) fn until_over(mut self, stop: &Stop) -> Result<Shipped> {
        while !self.is_over() {
            stop.check()?;
            thread::sleep(POLL);
        }
        self.told()
    }
}

/// As many descriptors as this process, and what it starts, may have.
pub(super) fn raise_descriptors() -> Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let wanted = DESCRIPTORS.min(hard).max(soft);
    setrlimit(Resource::RLIMIT_NOFILE, wanted, hard).context("can't raise the limit of open files")
}

/// What agents were told is stored.
#[derive(Debug, Default)]
pub(super) struct Shipped {
    /// Samples and batches by node.
    by_node: BTreeMap<String, (i64, i64)>,
    pub(super) samples: i64,
    pub(super) batches: i64,
    /// Batches that were sent again.
    pub(super) again: i64,
    pub(super) sent_bytes: i64,
    /// In milliseconds, from the end of a batch's time on.
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) p999_ms: f64,
    pub(super) max_ms: f64,
    /// The same until the first try that was the latest: what the load itself was late by.
    pub(super) latest_try_ms: f64,
}

impl Shipped {
    /// Of what the load has printed.
    pub(super) fn of(printed: &str) -> Result<Shipped> {
        let mut shipped = Shipped::default();
        for line in printed.lines() {
            let line: Value = serde_json::from_str(line).context("the load's report is not JSON")?;
            if let Some(told) = line.get("acknowledgements") {
                let ms = |name: &str| told[name].as_f64().unwrap_or(f64::NAN);
                (shipped.p50_ms, shipped.p99_ms) = (ms("p50_ms"), ms("p99_ms"));
                (shipped.p999_ms, shipped.max_ms) = (ms("p999_ms"), ms("max_ms"));
                shipped.latest_try_ms = ms("latest_try_ms");
                continue;
            }
            let node = line["node"].as_str().context("an agent without a node")?.to_owned();
            let [samples, batches, attempts, sent_bytes] =
                ["samples", "batches", "attempts", "sent_bytes"].map(|name| integer(&line[name]));
            shipped.samples += samples;
            shipped.batches += batches;
            shipped.again += attempts - batches;
            shipped.sent_bytes += sent_bytes;
            shipped.by_node.insert(node, (samples, batches));
        }
        ensure!(shipped.batches > 0, "no agent has shipped anything");
        Ok(shipped)
    }
}

/// What a server has of a node: samples, those that can be told apart, and by the ledger samples, batches and their
/// numbers.
type Has = [i64; 5];

/// Whether a server has all of it, each once, in this window in Unix milliseconds.
pub(super) fn check_once(
    client: &Client,
    shipped: &Shipped,
    prefix: &str,
    window: [i64; 2],
    stop: &Stop,
) -> Result<()> {
    let mut stored: BTreeMap<String, Has> = BTreeMap::new();
    // A look takes as long as it takes; the first one finds all, unless this server is behind another.
    within(SEEN_BY_ALL, || {
        stored = by_node(client, shipped, prefix, window, stop)?;
        Ok(stored.values().map(|has| has[0]).sum::<i64>() >= shipped.samples)
    })?;
    ensure!(
        stored.len() == shipped.by_node.len(),
        "{}: {} nodes have shipped, {} are there",
        client.base(),
        shipped.by_node.len(),
        stored.len()
    );
    for (node, (samples, batches)) in &shipped.by_node {
        let has = stored.get(node);
        ensure!(
            has == Some(&[*samples, *samples, *samples, *batches, *batches]),
            "{}: {node}: {samples} samples of {batches} batches were acknowledged; samples that are there, that can be told \
             apart, and samples, batches and their numbers in the ledger: {has:?}",
            client.base()
        );
    }
    println!(
        "{}: {} samples of {} nodes and {} batches were acknowledged = stored = told apart = in the ledger; {} batches came again",
        client.base(),
        shipped.samples,
        shipped.by_node.len(),
        shipped.batches,
        shipped.again
    );
    Ok(())
}

/// What is there of each node, looked at some seconds at a time. Each sample of a node has a time of its own, and one
/// that is there twice has the same time, so that both are looked at together.
fn by_node(
    client: &Client,
    shipped: &Shipped,
    prefix: &str,
    [from_ms, until_ms]: [i64; 2],
    stop: &Stop,
) -> Result<BTreeMap<String, Has>> {
    let rate = shipped.samples as u64 * 1000 / ((until_ms - from_ms).max(1) as u64);
    let step_ms = i64::try_from(TOLD_APART * 1000 / rate.max(1))?.max(1000);
    let (mut at_ms, mut all) = (from_ms, BTreeMap::<String, Has>::new());
    while at_ms < until_ms {
        stop.check()?;
        let next_ms = (at_ms + step_ms).min(until_ms);
        let these =
            |time: &str| format!("node LIKE '{prefix}-%' AND {time} >= {at_ms}000000 AND {time} < {next_ms}000000 ");
        let of_times = format!(
            "SELECT node, ts_ns, count(*) AS n FROM samples WHERE {}GROUP BY node, ts_ns",
            these("ts_ns")
        );
        let samples = format!("SELECT node, sum(n), count(*) FROM ({of_times}) AS of_times GROUP BY node");
        let ledger = format!(
            "SELECT node, sum(samples), count(*), count(DISTINCT number) FROM batches WHERE {}GROUP BY node",
            these("until_ns")
        );
        for (query, first) in [(samples, 0), (ledger, 2)] {
            for row in client.sql(&query)? {
                let (node, numbers) = row.split_first().context("a row without a node")?;
                let node = node.as_str().context("a node that is no text")?;
                let has = all.entry(node.to_owned()).or_default();
                for (sum, number) in has.iter_mut().skip(first).zip(numbers) {
                    *sum += integer(number);
                }
            }
        }
        at_ms = next_ms;
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_shipped_is_the_sum_of_all_agents() {
        let printed = "{\"node\":\"a-0\",\"samples\":300,\"batches\":3,\"attempts\":4,\"sent_bytes\":10}\n\
                       {\"node\":\"a-1\",\"samples\":200,\"batches\":2,\"attempts\":2,\"sent_bytes\":7}\n\
                       {\"acknowledgements\":{\"count\":5,\"p50_ms\":7,\"p99_ms\":90,\"p999_ms\":90,\"max_ms\":91,\
                       \"latest_try_ms\":3}}\n";
        let shipped = Shipped::of(printed).unwrap();
        assert_eq!(
            (shipped.samples, shipped.batches, shipped.again, shipped.sent_bytes),
            (500, 5, 1, 17)
        );
        assert_eq!(shipped.by_node["a-1"], (200, 2));
        let told = [shipped.p50_ms, shipped.p99_ms, shipped.max_ms, shipped.latest_try_ms];
        assert_eq!(told, [7.0, 90.0, 91.0, 3.0]);
        assert!(Shipped::of("").is_err());
    }
}
