//! Synthetic agents that ship in real time, and whether all that they were told is stored is there, once.
//!
//! In: how many agents, for how long. Out: how long acknowledgements took; an error where a sample is lost, or there
//! twice.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::Value;

use super::fleet_size::{BATCH_SECONDS, IN_FLIGHT};
use crate::http::{Client, integer};
use crate::service::within;
use crate::signals::Stop;

/// A statement that tells samples apart looks at about so many at a time.
const TOLD_APART: u64 = 1_000_000;
/// Connections that a server takes: agents have theirs open between two batches.
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
    /// In milliseconds, from the first try of a batch on.
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) p999_ms: f64,
    pub(super) max_ms: f64,
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

/// Whether a server has all of it, each once: samples of each node, the ledger's batches, and samples that can be told
/// apart, of this window in Unix milliseconds.
pub(super) fn check_once(
    client: &Client,
    shipped: &Shipped,
    prefix: &str,
    [from_ms, until_ms]: [i64; 2],
    stop: &Stop,
) -> Result<()> {
    let of_nodes = format!("node LIKE '{prefix}-%'");
    let counted = format!("SELECT count(*) FROM samples WHERE {of_nodes}");
    let seen = within(SEEN_BY_ALL, || {
        stop.check()?;
        Ok(client.sql_number(&counted)? >= shipped.samples)
    })?;
    ensure!(
        seen,
        "{}: {} samples were acknowledged, {} are there",
        client.base(),
        shipped.samples,
        client.sql_number(&counted)?
    );
    let rows = client.sql(&format!(
        "SELECT node, count(*) FROM samples WHERE {of_nodes} GROUP BY node"
    ))?;
    let ledger = client.sql(&format!(
        "SELECT node, sum(samples), count(*), count(DISTINCT number) FROM batches WHERE {of_nodes} GROUP BY node"
    ))?;
    let by_node = |rows: &[Vec<Value>]| -> BTreeMap<String, Vec<i64>> {
        let row = |row: &Vec<Value>| {
            let (node, numbers) = row.split_first()?;
            Some((node.as_str()?.to_owned(), numbers.iter().map(integer).collect()))
        };
        rows.iter().filter_map(row).collect()
    };
    let (stored, told) = (by_node(&rows), by_node(&ledger));
    ensure!(
        stored.len() == shipped.by_node.len() && told.len() == stored.len(),
        "{} nodes have shipped, {} have samples, {} are in the ledger",
        shipped.by_node.len(),
        stored.len(),
        told.len()
    );
    for (node, (samples, batches)) in &shipped.by_node {
        let (stored, told) = (stored.get(node), told.get(node));
        ensure!(
            stored == Some(&vec![*samples]) && told == Some(&vec![*samples, *batches, *batches]),
            "{node}: {samples} samples of {batches} batches were acknowledged; stored: {stored:?}; samples, batches and their numbers \
             in the ledger: {told:?}"
        );
    }
    let distinct = told_apart(client, &of_nodes, shipped, [from_ms, until_ms], stop)?;
    ensure!(
        distinct == shipped.samples,
        "{} samples were acknowledged, {distinct} can be told apart",
        shipped.samples
    );
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

/// Samples of different node or time, some seconds at a time: each sample of a node has a time of its own.
fn told_apart(
    client: &Client,
    of_nodes: &str,
    shipped: &Shipped,
    [from_ms, until_ms]: [i64; 2],
    stop: &Stop,
) -> Result<i64> {
    let rate = shipped.samples as u64 * 1000 / ((until_ms - from_ms).max(1) as u64);
    let step_ms = i64::try_from(TOLD_APART * 1000 / rate.max(1))?.max(1000);
    let (mut at_ms, mut distinct) = (from_ms, 0);
    while at_ms < until_ms {
        stop.check()?;
        let next_ms = (at_ms + step_ms).min(until_ms);
        distinct += client.sql_number(&format!(
            "SELECT count(*) FROM (SELECT DISTINCT node, ts_ns FROM samples WHERE {of_nodes} AND ts_ns >= {at_ms}000000 \
             AND ts_ns < {next_ms}000000)"
        ))?;
        at_ms = next_ms;
    }
    Ok(distinct)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_shipped_is_the_sum_of_all_agents() {
        let printed = "{\"node\":\"a-0\",\"samples\":300,\"batches\":3,\"attempts\":4,\"sent_bytes\":10}\n\
                       {\"node\":\"a-1\",\"samples\":200,\"batches\":2,\"attempts\":2,\"sent_bytes\":7}\n\
                       {\"acknowledgements\":{\"count\":5,\"p50_ms\":7,\"p99_ms\":90,\"p999_ms\":90,\"max_ms\":91}}\n";
        let shipped = Shipped::of(printed).unwrap();
        assert_eq!(
            (shipped.samples, shipped.batches, shipped.again, shipped.sent_bytes),
            (500, 5, 1, 17)
        );
        assert_eq!(shipped.by_node["a-1"], (200, 2));
        assert_eq!([shipped.p50_ms, shipped.p99_ms, shipped.max_ms], [7.0, 90.0, 91.0]);
        assert!(Shipped::of("").is_err());
    }
}
