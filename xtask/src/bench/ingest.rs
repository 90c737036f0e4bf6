//! What a stored sample costs the server.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::{Measured, live_bytes};
use crate::http::integer;
use crate::proc::{cpu_seconds, size_bytes};
use crate::run;
use crate::signals::Stop;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Samples in all
    #[arg(long, default_value_t = 5_000_000, value_name = "N")]
    samples: u64,
    /// Agents that ship at the same time
    #[arg(long, default_value_t = 50, value_name = "N")]
    agents: u64,
    /// Samples a batch; an agent of 20 Hz on 10 busy CPUs has 1,000 in its 5 s
    #[arg(long, default_value_t = 1000, value_name = "N")]
    batch: u64,
    /// Wait at most so long for the store to come to rest after the last batch
    #[arg(long, default_value_t = 180, value_name = "SECONDS")]
    settle: u64,
}

/// Ships a fleet's past hours over HTTP, waits for compaction, prints both costs.
pub(crate) fn run(args: &Args) -> Result<()> {
    let Measured {
        mut alone,
        load,
        stop,
        _dir,
    } = Measured::start()?;
    let batches = args.samples.div_ceil(args.agents * args.batch).max(1);
    let before = cpu_seconds(alone.server.pid())?;
    let begin = Instant::now();
    let report = run::output(Command::new(load).args([
        "--url",
        alone.client.base(),
        "--agents",
        &args.agents.to_string(),
        "--batches",
        &batches.to_string(),
        "--samples",
        &args.batch.to_string(),
        // Hours that are over, so that they are compacted now rather than in an hour.
        "--start-ago",
        &(7200 + batches * 5).to_string(),
    ]))?;
    let took = begin.elapsed().as_secs_f64();
    let cpu = cpu_seconds(alone.server.pid())? - before;
    let (mut samples, mut bytes) = (0, 0);
    for line in report.lines() {
        let agent: serde_json::Value = serde_json::from_str(line).context("the load's report is not JSON")?;
        samples += integer(&agent["samples"]);
        bytes += integer(&agent["sent_bytes"]);
    }
    let peak = size_bytes(alone.server.pid(), "VmHWM")?;
    let fresh = live_bytes(&alone.options.state_dir.join("data"))?;
    settle(&mut alone.server, args.settle, &stop)?;
    let total_cpu = cpu_seconds(alone.server.pid())? - before;
    let settled = live_bytes(&alone.options.state_dir.join("data"))?;
    let stored = alone.client.sql_number("SELECT count(*) FROM samples")?;
    ensure!(
        stored == samples,
        "{samples} samples were acknowledged, {stored} are stored"
    );
    let rate = |cpu: f64| samples as f64 / cpu;
    println!(
        "{samples} samples of {} agents in {} batches of {}, over HTTP",
        args.agents,
        batches * args.agents,
        args.batch
    );
    println!("on the wire: {:.1} bytes/sample", bytes as f64 / samples as f64);
    println!(
        "until the last acknowledgement: {took:.1} s, {cpu:.2} CPU s, {:.0} samples per CPU second",
        rate(cpu)
    );
    println!(
        "with compaction: {total_cpu:.2} CPU s, {:.0} samples per CPU second (target 1000000)",
        rate(total_cpu)
    );
    println!("server's peak RSS: {:.0} MiB", peak as f64 / 1_048_576.0);
    println!(
        "{:<12}{:>14}{:>8}{:>14}{:>8}{:>16}",
        "table", "fresh bytes", "files", "bytes", "files", "bytes/sample"
    );
    let mut sum = 0;
    for (table, size, files) in &settled {
        let (fresh_size, fresh_files) = fresh
            .iter()
            .find(|(name, ..)| name == table)
            .map_or((0, 0), |(_, size, files)| (*size, *files));
        println!(
            "{table:<12}{fresh_size:>14}{fresh_files:>8}{size:>14}{files:>8}{:>16.2}",
            *size as f64 / samples as f64
        );
        sum += size;
    }
    println!("all tables: {:.2} bytes/sample (target 6)", sum as f64 / samples as f64);
    alone.stop()
}

/// Waits until the server has used less than 2 % of a CPU for ten seconds.
pub(crate) fn settle(server: &mut crate::service::Service, limit: u64, stop: &Stop) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(limit);
    let (mut calm, mut before) = (0, cpu_seconds(server.pid())?);
    while calm < 10 {
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
