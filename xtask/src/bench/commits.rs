//! Whether a commit costs as much after a hundred thousand commits as after a hundred: many tiny batches, each a
//! commit of its own, through the real HTTP path, with compaction, checkpoints and clean-up going on.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::report::Figures;
use super::{Measured, metric};
use crate::proc::{cpu_seconds, size_bytes};
use crate::run;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Commits in all
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    commits: u64,
    /// Agents that send by turns; a commit holds what has gathered
    #[arg(long, default_value_t = 1, value_name = "N")]
    agents: u64,
}

/// Commits and what they took, as the server's metrics have them.
#[derive(Clone, Copy, Debug, Default)]
struct ServerTotals {
    commits: f64,
    milliseconds: f64,
    cpu_s: f64,
}

/// What the store takes on the disk.
#[derive(Clone, Copy, Debug, Default)]
struct DiskUsage {
    data_files: u64,
    data_bytes: u64,
    log_files: u64,
    log_bytes: u64,
}

const MIB: f64 = 1_048_576.0;

/// Commits, and prints a row at every power of ten and at the end.
pub(crate) fn run(args: &Args, figures: &mut Figures) -> Result<()> {
    let mut measured = Measured::start(&["--commit-interval", "1ms", "--settle", "5s"])?;
    let Measured { alone, load, stop, .. } = &mut measured;
    let data = alone.options.state_dir.join("data");
    let mut sender = Command::new(load);
    sender.args([
        "--url",
        alone.client.base(),
        "--samples",
        "20",
        "--stacks",
        "50",
        "--interval-ms",
        "20",
    ]);
    sender.args(["--agents", &args.agents.to_string()]);
    sender.args(["--batches", &args.commits.div_ceil(args.agents).to_string()]);
    println!(
        "{:>9}{:>14}{:>12}{:>13}{:>13}{:>12}{:>11}{:>10}",
        "commits", "ms a commit", "CPU ms", "data files", "MiB", "log files", "log MiB", "RSS MiB"
    );
    let tgid = alone.server.pid();
    let look = || -> Result<ServerTotals> {
        let text = alone.client.get_ok("/metrics")?.text();
        let of = |name: &str| metric(&text, name).with_context(|| format!("/metrics has no {name}"));
        Ok(ServerTotals {
            commits: of("stakeout_store_commits_total")?,
            milliseconds: of("stakeout_store_commit_seconds_sum")? * 1e3,
            cpu_s: cpu_seconds(tgid)?,
        })
    };
    figures.table("");
    let mut print = |from: ServerTotals, now: ServerTotals| -> Result<()> {
        let count = (now.commits - from.commits).max(1.0);
        let disk_usage = disk_usage(&data)?;
        println!(
            "{:>9.0}{:>14.2}{:>12.2}{:>13}{:>13.1}{:>12}{:>11.2}{:>10.0}",
            now.commits,
            (now.milliseconds - from.milliseconds) / count,
            (now.cpu_s - from.cpu_s) * 1e3 / count,
            disk_usage.data_files,
            disk_usage.data_bytes as f64 / MIB,
            disk_usage.log_files,
            disk_usage.log_bytes as f64 / MIB,
            size_bytes(tgid, "VmRSS")? as f64 / MIB
        );
        figures.row(&format!("{:.0} commits", now.commits));
        for (name, unit, value) in [
            ("a commit", "ms", (now.milliseconds - from.milliseconds) / count),
            ("CPU", "ms", (now.cpu_s - from.cpu_s) * 1e3 / count),
            ("data files", "", disk_usage.data_files as f64),
            ("of them", "MiB", disk_usage.data_bytes as f64 / MIB),
            ("log files", "", disk_usage.log_files as f64),
            ("log", "MiB", disk_usage.log_bytes as f64 / MIB),
            ("RSS", "MiB", size_bytes(tgid, "VmRSS")? as f64 / MIB),
        ] {
            figures.add(name, unit, value);
        }
        Ok(())
    };
    thread::scope(|scope| -> Result<()> {
        let sending = scope.spawn(|| run::output(&mut sender));
        let (mut from, mut next) = (ServerTotals::default(), 100.0);
        while !sending.is_finished() {
            stop.check()?;
            let now = look()?;
            // The second half of the commits up to here: neither the start nor what was smaller counts.
            if now.commits < next / 2.0 {
                from = now;
            }
            if now.commits >= next {
                print(from, now)?;
                (from, next) = (now, next * 10.0);
            }
            thread::sleep(Duration::from_millis(20));
        }
        let said = sending.join().map_err(|_| anyhow::anyhow!("the load panicked"))?;
        said.map(drop)?;
        print(from, look()?)
    })?;
    figures.print_note(
        "a commit: from the first table's file to the last table's log entry, synced; CPU: the whole server's, per commit",
    );
    measured.alone.stop()
}

/// All files below the tables, and those of their logs.
fn disk_usage(data: &Path) -> Result<DiskUsage> {
    fn add(disk_usage: &mut DiskUsage, dir: &Path, is_log: bool) -> Result<()> {
        // A folder or a file may go while it is looked at.
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                add(disk_usage, &entry.path(), entry.file_name() == "_delta_log")?;
            } else if is_log {
                disk_usage.log_files += 1;
                disk_usage.log_bytes += metadata.len();
            } else {
                disk_usage.data_files += 1;
                disk_usage.data_bytes += metadata.len();
            }
        }
        Ok(())
    }
    let mut sum = DiskUsage::default();
    add(&mut sum, data, false)?;
    Ok(sum)
}
