//! Thousands of agents on two servers that share a bucket, one of which is killed in the middle and comes back.
//!
//! In: how many agents, for how long. Out: how long acknowledgements took, what servers and bucket had to do for it,
//! and what one core carries; an error where an acknowledged sample is lost, or there twice.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::fleet_size::BATCH_SECONDS;
use super::report::Figures;
use super::servers::{Ground, Servers};
use super::shipping::{Agents, MAX_CONNECTIONS, Shipped, Shipping, check_once, raise_descriptors};
use super::store::{MIB, row};
use super::{live_files, metric};
use crate::bucket::Traffic;
use crate::proc::cpu_seconds;
use crate::stack::now_ms;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Agents, one a node
    #[arg(long, default_value_t = 5000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    agents: u64,
    /// For how long they ship
    #[arg(long, default_value_t = 10, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..=1440))]
    minutes: u64,
    #[command(flatten)]
    shipping: Agents,
    /// Servers
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=16))]
    servers: u64,
    /// How much later each request reaches the bucket
    #[arg(long, default_value_t = 20, value_name = "MS")]
    latency: u64,
    /// For how long the server that is killed in the middle is away
    #[arg(long, default_value_t = 20, value_name = "SECONDS")]
    away: u64,
    /// Memory that each server may take, as it is told
    #[arg(long, default_value = "1GiB", value_name = "SIZE")]
    memory_limit: String,
}

const PREFIX: &str = "fleet";
/// Of this one is killed.
const VICTIM: usize = 0;
/// Counters of servers, which end with their processes.
const COUNTERS: [&str; 5] = [
    "stakeout_store_commits_total",
    "stakeout_store_failed_commits_total",
    "stakeout_store_commit_conflicts_total",
    "stakeout_store_duplicate_batches_total",
    "stakeout_ingest_busy_requests_total",
];

/// What became of the time in which agents shipped.
struct Watched {
    shipped: Shipped,
    took_s: f64,
    cpu_s: f64,
    /// Of the S3 server.
    bucket_cpu_s: f64,
    traffic: Traffic,
    /// Of processes that ended, too.
    counters: BTreeMap<&'static str, f64>,
    peak_bytes: u64,
    /// From kill -9 until the server was ready again.
    away_s: f64,
}

pub(crate) fn run(args: &Args, figures: &mut Figures) -> Result<()> {
    raise_descriptors()?;
    let ground = Ground::prepare(Duration::from_millis(args.latency))?;
    let more = [&["--memory-limit", &args.memory_limit], &MAX_CONNECTIONS[..]].concat();
    let mut servers = Servers::start_on(&ground, args.servers as usize, &more)?;
    // No batch begins earlier.
    let from_ms = now_ms() - 60_000;
    let watched = watch(args, &ground, &mut servers)?;
    let until_ms = now_ms() + 60_000;
    let files = live_files(&servers.all[0].client)?;
    // To look for each sample takes minutes: whatever comes of it, this much is told.
    report(args, &watched, &files, figures);
    for alone in &servers.all {
        check_once(
            &alone.client,
            &watched.shipped,
            PREFIX,
            [from_ms, until_ms],
            &ground.stop,
        )?;
    }
    servers.stop()
}

fn count(servers: &Servers, at: usize, counters: &mut BTreeMap<&'static str, f64>) -> Result<()> {
    let text = servers.all[at].client.get_ok("/metrics")?.text();
    for name in COUNTERS {
        let value = metric(&text, name).with_context(|| format!("/metrics has no {name}"))?;
        *counters.entry(name).or_default() += value;
    }
    Ok(())
}

/// Agents ship; in the middle one server is killed, and started again.
fn watch(args: &Args, ground: &Ground, servers: &mut Servers) -> Result<Watched> {
    let seconds = args.minutes * 60;
    let mut command = args
        .shipping
        .command(&ground.load, &servers.urls(), PREFIX, args.agents, seconds);
    let (cpu_s, bucket_cpu_s) = (servers.cpu_seconds()?, cpu_seconds(ground.bucket.pid())?);
    let traffic = ground.bucket.traffic();
    let mut counters = BTreeMap::new();
    let begun = Instant::now();
    let mut shipping = Shipping::begin(&mut command, ground.dir(), PREFIX)?;
    let middle = Duration::from_secs(seconds / 2);
    let (mut away_s, mut killed) = (f64::NAN, None::<Instant>);
    while !shipping.is_over() {
        ground.stop.check()?;
        if killed.is_none() && begun.elapsed() >= middle {
            count(servers, VICTIM, &mut counters)?;
            servers.kill(VICTIM)?;
            println!("server {VICTIM} is killed after {} s", begun.elapsed().as_secs());
            killed = Some(Instant::now());
        }
        if let Some(at) = killed
            && away_s.is_nan()
            && at.elapsed() >= Duration::from_secs(args.away)
        {
            servers.all[VICTIM].restart(&ground.stop)?;
            away_s = at.elapsed().as_secs_f64();
            println!("it is back after {away_s:.1} s");
        }
        thread::sleep(Duration::from_millis(200));
    }
    let took_s = begun.elapsed().as_secs_f64();
    let shipped = shipping.told()?;
    ensure!(
        !away_s.is_nan(),
        "the agents ended before the server was back: --minutes has to be longer"
    );
    for at in 0..servers.all.len() {
        count(servers, at, &mut counters)?;
    }
    Ok(Watched {
        shipped,
        took_s,
        cpu_s: servers.cpu_seconds()? - cpu_s,
        bucket_cpu_s: cpu_seconds(ground.bucket.pid())? - bucket_cpu_s,
        traffic: ground.bucket.traffic().since(traffic),
        counters,
        peak_bytes: servers.peak_bytes()?,
        away_s,
    })
}

fn report(args: &Args, watched: &Watched, files: &[(String, u64, u64)], figures: &mut Figures) {
    let Watched {
        shipped,
        took_s,
        cpu_s,
        traffic,
        counters,
        ..
    } = watched;
    let counter = |name: &str| counters.get(name).copied().unwrap_or(f64::NAN);
    let (samples, batches) = (shipped.samples as f64, shipped.batches as f64);
    figures.table("");
    println!("{:<44}{:>14}  target", "", "measured");
    row(
        figures,
        "acknowledgement, half of them at most",
        "ms",
        shipped.p50_ms,
        "",
    );
    row(figures, "acknowledgement, 99 of 100 at most", "ms", shipped.p99_ms, "");
    row(
        figures,
        "acknowledgement, 999 of 1000 at most",
        "ms",
        shipped.p999_ms,
        "",
    );
    row(figures, "acknowledgement, longest", "ms", shipped.max_ms, "");
    row(figures, "first try, latest", "ms", shipped.latest_try_ms, "");
    row(figures, "batches a second", "", batches / took_s, "");
    row(figures, "samples a second", "", samples / took_s, "");
    row(figures, "batches that came again", "", shipped.again as f64, "");
    row(
        figures,
        "requests that were asked to come again",
        "",
        counter(COUNTERS[4]),
        "",
    );
    row(figures, "CPU of all servers in a second", "s", cpu_s / took_s, "");
    row(
        figures,
        "agents that one core carries",
        "",
        // By what came of them: a load that is late ships for fewer than it was told.
        batches * BATCH_SECONDS as f64 / cpu_s,
        "",
    );
    row(figures, "samples per CPU second", "", samples / cpu_s, "");
    row(
        figures,
        "CPU of the S3 server in a second",
        "s",
        watched.bucket_cpu_s / took_s,
        "",
    );
    let peak = row(
        figures,
        "a server's peak RSS",
        "MiB",
        watched.peak_bytes as f64 / MIB,
        &args.memory_limit,
    );
    let limit = args
        .memory_limit
        .strip_suffix("GiB")
        .and_then(|gib| gib.parse::<f64>().ok());
    if let Some(limit) = limit {
        peak.at_most(limit * 1024.0);
    }
    row(figures, "commits", "", counter(COUNTERS[0]), "");
    row(figures, "commits that failed", "", counter(COUNTERS[1]), "");
    row(
        figures,
        "entries that another server had put first",
        "",
        counter(COUNTERS[2]),
        "",
    );
    row(figures, "batches that were known", "", counter(COUNTERS[3]), "");
    row(
        figures,
        "requests to the bucket a second",
        "",
        traffic.requests as f64 / took_s,
        "",
    );
    row(
        figures,
        "requests a million samples",
        "",
        traffic.requests as f64 * 1e6 / samples,
        "",
    );
    row(figures, "of them writes", "", traffic.writes as f64 * 1e6 / samples, "");
    row(
        figures,
        "signs of life and leases a second",
        "",
        traffic.by_time as f64 / took_s,
        "",
    );
    row(
        figures,
        "sent to the bucket",
        "bytes a sample",
        traffic.sent_bytes as f64 / samples,
        "",
    );
    row(
        figures,
        "received from the bucket",
        "bytes a sample",
        traffic.received_bytes as f64 / samples,
        "",
    );
    row(figures, "from kill -9 until ready again", "s", watched.away_s, "");
    let (mut bytes, mut count) = (0, 0);
    for (table, size, number) in files {
        row(figures, &format!("files of {table}"), "", *number as f64, "");
        bytes += size;
        count += number;
    }
    row(figures, "files", "", count as f64, "");
    row(figures, "all tables", "bytes a sample", bytes as f64 / samples, "");
    figures.print_note(format!(
        "{} agents with a batch of {} samples every {BATCH_SECONDS} s for {} min on {} servers, one of which was killed in the middle and \
         started again {} s later; load, servers and S3 server share this machine, and each request to the bucket comes {} ms later; an \
         acknowledgement takes from the end of a batch's time on, repeats included, and so does its first try: where that is late, the \
         load itself had too little of the CPUs; agents share connections that wait for nothing; one core carries as many agents as \
         shipped in a CPU second of the servers, without the S3 server; counters of the killed process are up to the last look before; \
         every acknowledged sample was there once by each server, and in the ledger, or this bench fails",
        args.agents, args.shipping.samples, args.minutes, args.servers, args.away, args.latency
    ));
}
