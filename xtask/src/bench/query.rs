//! How long a person waits for an answer.

use std::fs;
use std::process::Command;
use std::time::Instant;

use anyhow::Result;

use super::ingest::settle;
use super::{Measured, live_bytes, median};
use crate::http::path;
use crate::proc::size_bytes;
use crate::run;
use crate::stack::now_ms;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Samples in all, spread over one hour
    #[arg(long, default_value_t = 10_000_000, value_name = "N")]
    samples: u64,
    /// Nodes
    #[arg(long, default_value_t = 100, value_name = "N")]
    nodes: u64,
    /// Services of the fleet, of which ten run on each node
    #[arg(long, default_value_t = 100, value_name = "N")]
    services: u64,
    /// Warm repetitions, of which the median is shown
    #[arg(long, default_value_t = 5, value_name = "N")]
    repeat: u32,
    /// Wait at most so long for the store to come to rest before asking
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    settle: u64,
}

/// Fills a store, restarts the server on it, asks.
pub(crate) fn run(args: &Args) -> Result<()> {
    let Measured {
        mut alone,
        load,
        stop,
        _dir,
    } = Measured::start()?;
    // The last whole hour but one: it is over, so that it is compacted as an old hour is.
    let hour = 3_600_000;
    let from = now_ms() / hour * hour - 2 * hour;
    let until = from + hour;
    let batches = 60;
    let batch = args.samples.div_ceil(args.nodes * batches).max(1);
    let begin = Instant::now();
    run::output(Command::new(load).args([
        "--url".to_owned(),
        alone.client.base().to_owned(),
        "--agents".to_owned(),
        args.nodes.to_string(),
        "--batches".to_owned(),
        batches.to_string(),
        "--interval-ms".to_owned(),
        "60000".to_owned(),
        "--samples".to_owned(),
        batch.to_string(),
        "--services".to_owned(),
        args.services.to_string(),
        "--start-ago".to_owned(),
        // From the very start of the hour, to the second.
        ((now_ms() - from) / 1000).to_string(),
    ]))?;
    settle(&mut alone.server, args.settle, &stop)?;
    let stored = alone.client.sql_number("SELECT count(*) FROM samples")?;
    println!(
        "{stored} samples of {} nodes and {} services in one hour; filled in {:.0} s",
        args.nodes,
        args.services,
        begin.elapsed().as_secs_f64()
    );
    for (table, size, files) in live_bytes(&alone.options.state_dir.join("data"))? {
        println!("  {table:<10} {files:>5} files {:>8.1} MiB", size as f64 / 1_048_576.0);
    }
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
    let half = from + hour / 2;
    let one = "{service=\"service-7\"}";
    let whole = [time("", from, until)];
    let halves = [time("base_", from, half), time("", half, until)];
    let share = [("min_share", "0.0001")];
    let queries = [
        (
            "flamegraph, everything",
            window("/api/v1/flamegraph", "{}", &whole, &share),
            "1000 cold, 300 warm at 60 M",
        ),
        (
            "flamegraph, one service",
            window("/api/v1/flamegraph", one, &whole, &share),
            "100",
        ),
        (
            "difference, everything",
            window("/api/v1/diff", "{}", &halves, &share),
            "2.5 flamegraphs",
        ),
        (
            "difference, one service",
            window("/api/v1/diff", one, &halves, &share),
            "2.5 flamegraphs",
        ),
        (
            "series by service",
            window("/api/v1/series", "{}", &whole, &[("by", "service")]),
            "",
        ),
        (
            "series of one service",
            window("/api/v1/series", one, &whole, &[("by", "process")]),
            "",
        ),
        (
            "top functions",
            window("/api/v1/top", "{}", &whole, &[("by", "function")]),
            "",
        ),
        ("services", "/api/v1/labels/service/values".to_owned(), ""),
    ];
    println!(
        "\n{:<26}{:>10}{:>10}{:>10}{:>12}  target ms",
        "ms", "cold", "warm", "max", "bytes"
    );
    for (name, query, target) in &queries {
        // Cold: a new server, and nothing of the files in memory where that can be asked for.
        alone.stop()?;
        let _ = Command::new("sync").status();
        let dropped = fs::write("/proc/sys/vm/drop_caches", "3").is_ok();
        alone.restart(&stop)?;
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
        let max = warm.iter().copied().fold(0.0, f64::max);
        let cold = format!("{cold:.0}{}", if dropped { "" } else { "*" });
        println!(
            "{name:<26}{cold:>10}{:>10.0}{max:>10.0}{bytes:>12}  {target}",
            median(warm)
        );
    }
    println!(
        "cold: first query of a new server, page cache dropped (*: could not be dropped); warm: median of {}",
        args.repeat
    );
    println!(
        "server's peak RSS: {:.0} MiB",
        size_bytes(alone.server.pid(), "VmHWM")? as f64 / 1_048_576.0
    );
    alone.stop()
}
