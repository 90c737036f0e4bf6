//! What a stored sample costs, and how long a person waits for an answer, over a synthetic fleet's past hours.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::{Measured, live_bytes, median};
use crate::http::{integer, path};
use crate::proc::{cpu_seconds, size_bytes};
use crate::run;
use crate::service::Service;
use crate::signals::Stop;
use crate::stack::now_ms;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Hours of the fleet
    #[arg(long, default_value_t = 1.0, value_name = "HOURS")]
    hours: f64,
    /// Nodes, all CPUs of which are busy
    #[arg(long, default_value_t = 100, value_name = "N")]
    nodes: u64,
    /// CPUs of a node
    #[arg(long, default_value_t = 8, value_name = "N")]
    cpus: u64,
    /// Services of the fleet, of which ten run on each node
    #[arg(long, default_value_t = 60, value_name = "N")]
    services: u64,
    /// Distinct stacks of a service, by Zipf's law
    #[arg(long, default_value_t = 5000, value_name = "N")]
    stacks: u64,
    /// Warm repetitions of each query, of which the median is shown
    #[arg(long, default_value_t = 5, value_name = "N")]
    repeat: u32,
    /// Wait at most so long for compaction to come to rest
    #[arg(long, default_value_t = 1200, value_name = "SECONDS")]
    settle: u64,
    /// Memory that the server may take, as it is told
    #[arg(long, default_value = "1GiB", value_name = "SIZE")]
    memory_limit: String,
}

const FREQUENCY_HZ: u64 = 20;
const BATCH_SECONDS: u64 = 5;
const HOUR_MS: i64 = 3_600_000;
const MIB: f64 = 1_048_576.0;

/// Fills a store over HTTP, waits for compaction, restarts the server on it, asks.
pub(crate) fn run(args: &Args) -> Result<()> {
    // The hours are over: they are rewritten and rolled up as soon as nothing comes any more.
    let mut measured = Measured::start(&["--settle", "5s", "--memory-limit", &args.memory_limit])?;
    // Whole hours that are over, so that they are compacted as old hours are.
    let from = now_ms() / HOUR_MS * HOUR_MS - (args.hours.ceil() as i64 + 1) * HOUR_MS;
    let until = from + (args.hours * HOUR_MS as f64) as i64;
    ingest(args, &mut measured, from)?;
    queries(args, &mut measured, from, until)?;
    measured.alone.stop()
}

fn ingest(args: &Args, measured: &mut Measured, from: i64) -> Result<()> {
    let Measured { alone, load, stop, .. } = measured;
    let data = alone.options.state_dir.join("data");
    let batch = args.cpus * FREQUENCY_HZ * BATCH_SECONDS;
    let batches = ((args.hours * 3600.0) as u64 / BATCH_SECONDS).max(1);
    let before = cpu_seconds(alone.server.pid())?;
    let begin = Instant::now();
    let number = |number: u64| number.to_string();
    let report = run::output(Command::new(load).args([
        "--url".to_owned(),
        alone.client.base().to_owned(),
        "--agents".to_owned(),
        number(args.nodes),
        "--batches".to_owned(),
        number(batches),
        "--samples".to_owned(),
        number(batch),
        "--interval-ms".to_owned(),
        number(BATCH_SECONDS * 1000),
        "--services".to_owned(),
        number(args.services),
        "--stacks".to_owned(),
        number(args.stacks),
        "--in-flight".to_owned(),
        number(16),
        // From the very start of the hour, to the second.
        "--start-ago".to_owned(),
        ((now_ms() - from) / 1000).to_string(),
    ]))?;
    let took = begin.elapsed().as_secs_f64();
    let cpu = cpu_seconds(alone.server.pid())? - before;
    let (mut samples, mut bytes) = (0, 0);
    for line in report.lines() {
        let agent: serde_json::Value = serde_json::from_str(line).context("the load's report is not JSON")?;
        samples += integer(&agent["samples"]);
        bytes += integer(&agent["sent_bytes"]);
    }
    let fresh = live_bytes(&data)?;
    settle(&mut alone.server, args.settle, stop)?;
    let total_cpu = cpu_seconds(alone.server.pid())? - before;
    let peak = size_bytes(alone.server.pid(), "VmHWM")?;
    let settled = live_bytes(&data)?;
    let stored = alone.client.sql_number("SELECT count(*) FROM samples")?;
    ensure!(
        stored == samples,
        "{samples} samples were acknowledged, {stored} are stored"
    );
    println!(
        "{samples} samples: {} nodes of {} CPUs at {FREQUENCY_HZ} Hz, {} hours, {} services of {} stacks each; batches of {batch}, {:.1} bytes a \
         sample on the wire",
        args.nodes,
        args.cpus,
        args.hours,
        args.services,
        args.stacks,
        bytes as f64 / samples as f64
    );
    println!("{:<44}{:>14}  target", "", "measured");
    let row = |name: &str, value: String, target: &str| println!("{name:<44}{value:>14}  {target}");
    let rate = |cpu: f64| format!("{:.0}", samples as f64 / cpu);
    row("wall time until the last acknowledgement, s", format!("{took:.1}"), "");
    row("samples per CPU second until then", rate(cpu), "");
    row("samples per CPU second, with compaction", rate(total_cpu), "1000000");
    row("server's peak RSS, MiB", format!("{:.0}", peak as f64 / MIB), "1024");
    let mut sum = 0;
    for (table, size, files) in &settled {
        let (fresh_size, fresh_files) = fresh
            .iter()
            .find(|(name, ..)| name == table)
            .map_or((0, 0), |(_, size, files)| (*size, *files));
        row(
            &format!("{table}: bytes a sample, {files} files"),
            format!("{:.2}", *size as f64 / samples as f64),
            &format!(
                "(before: {:.2}, {fresh_files} files)",
                fresh_size as f64 / samples as f64
            ),
        );
        sum += size;
    }
    row(
        "all tables: bytes a sample",
        format!("{:.2}", sum as f64 / samples as f64),
        "6",
    );
    Ok(())
}

/// Waits until the server has used less than 2 % of a CPU for so long that a round of maintenance, which comes every ten seconds once an hour
/// has settled, had nothing to do.
fn settle(server: &mut Service, limit: u64, stop: &Stop) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(limit);
    let (mut calm, mut before) = (0, cpu_seconds(server.pid())?);
    while calm < 30 {
        thread::sleep(Duration::from_secs(1));
        stop.check()?;
        crate::stack::alive(server)?;
        let now = cpu_seconds(server.pid())?;
        calm = if now - before < 0.02 { calm + 1 } else { 0 };
        before = now;
        if Instant::now() > deadline {
            println!("(the server is still busy after {limit} s)");
            break;
        }
    }
    Ok(())
}

/// Asks each question of a new server, and then again.
fn queries(args: &Args, measured: &mut Measured, from: i64, until: i64) -> Result<()> {
    let Measured { alone, stop, .. } = measured;
    println!(
        "\n{:<28}{:>9}{:>9}{:>9}{:>12}  target, ms",
        "ms", "cold", "warm", "max", "bytes"
    );
    let mut peak = 0;
    for (name, query, target) in &questions(from, until) {
        // Cold: a new server, and nothing of the files in memory where that can be asked for.
        alone.stop()?;
        // Best effort: where pages can't be dropped, the table says so.
        let _ = Command::new("sync").status();
        let dropped = fs::write("/proc/sys/vm/drop_caches", "3").is_ok();
        alone.restart(stop)?;
        let ask = || -> Result<(f64, usize)> {
            let begin = Instant::now();
            let answer = alone.client.get_ok(query)?;
            Ok((begin.elapsed().as_secs_f64() * 1e3, answer.body.len()))
        };
        let (cold, bytes) = ask()?;
        let mut warm = vec![];
        for _ in 0..args.repeat {
            stop.check()?;
            warm.push(ask()?.0);
        }
        peak = peak.max(size_bytes(alone.server.pid(), "VmHWM")?);
        let max = warm.iter().copied().fold(0.0, f64::max);
        let cold = format!("{cold:.0}{}", if dropped { "" } else { "*" });
        println!(
            "{name:<28}{cold:>9}{:>9.0}{max:>9.0}{bytes:>12}  {target}",
            median(warm)
        );
    }
    println!(
        "cold: first query of a new server, page cache dropped (*: could not be dropped); warm: median of {}; the targets are for 58 M \
         samples",
        args.repeat
    );
    println!("server's peak RSS: {:.0} MiB", peak as f64 / MIB);
    Ok(())
}

/// Name, path and target of each.
fn questions(from: i64, until: i64) -> Vec<(&'static str, String, &'static str)> {
    let time = |name: &str, from: i64, until: i64| [(format!("{name}from"), from), (format!("{name}until"), until)];
    let window = |at: &str, query: &str, pairs: &[[(String, i64); 2]], more: &[(&str, &str)]| {
        let times: Vec<(String, String)> = pairs
            .iter()
            .flatten()
            .map(|(key, at)| (key.clone(), at.to_string()))
            .collect();
        let mut all: Vec<(&str, &str)> = times.iter().map(|(key, at)| (key.as_str(), at.as_str())).collect();
        all.push(("query", query));
        all.extend(more);
        path(at, &all)
    };
    let half = from + (until - from) / 2;
    let one = "{service=\"service-7\"}";
    let whole = [time("", from, until)];
    let halves = [time("base_", from, half), time("", half, until)];
    let share = [("min_share", "0.0001")];
    let flamegraph = |query| window("/api/v1/flamegraph", query, &whole, &share);
    let diff = |query| window("/api/v1/diff", query, &halves, &share);
    let series = |query, by| window("/api/v1/series", query, &whole, &[("by", by)]);
    vec![
        ("flamegraph, everything", flamegraph("{}"), "1000 cold, 300 warm"),
        ("flamegraph, one service", flamegraph(one), "100"),
        ("difference, everything", diff("{}"), "2.5 flamegraphs"),
        ("difference, one service", diff(one), "2.5 flamegraphs"),
        ("series by service", series("{}", "service"), "200"),
        ("series of one service", series(one, "process"), ""),
        (
            "top functions",
            window("/api/v1/top", "{}", &whole, &[("by", "function")]),
            "",
        ),
        ("services", "/api/v1/labels/service/values".to_owned(), ""),
    ]
}
