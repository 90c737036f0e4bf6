//! `cargo xtask bench`: measures what design and users ask for, on release builds, and prints it beside the targets.
//!
//! Nothing here but `churn`, `names` and `agreement`, whose limits hold on every machine, fails because a figure is
//! bad: figures belong to the machine and the day. They are printed as they are, and the latest of each command are
//! kept for `bench report`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Subcommand;

use crate::artifacts::{self, Profile};
use crate::bucket::Bucket;
use crate::e2e::load_program;
use crate::http::Client;
use crate::signals::Stop;
use crate::stack::{Alone, Options};

mod agent;
mod agreement;
mod churn;
mod cold;
mod commits;
mod crowd;
mod fleet;
mod fleet_size;
mod group_by;
mod growth;
mod languages;
mod lockstep;
mod machine;
mod mixed;
mod names;
mod receiver;
mod report;
mod scale;
mod servers;
mod shipping;
mod short_lives;
mod stacks;
mod start;
mod store;
mod viewers;
mod waits;
mod web;

use report::{Figures, Run};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
    /// Keep nothing of this run for the report
    #[arg(long, global = true)]
    no_record: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// CPU time of BPF and user space per delivered sample, memory, at 20 and 99 Hz under a mixed load, beside perf
    /// record
    Agent(agent::Args),
    /// CPU time and memory of each of the agent's first seconds, where 300 processes run already
    Start(start::Args),
    /// The agent's memory and descriptors, peaks included, while hundreds of programs start and end; fails where a
    /// limit is broken
    Churn(churn::Args),
    /// Samples of programs that work at fixed rates against the CPU time they used: chi-squared, at 20 and 99 Hz
    Lockstep(lockstep::Args),
    /// Wrong names in 100,000 samples of each of several programs whose functions come and go all the time; fails where
    /// there is one
    Names(names::Args),
    /// Shares and stacks of a real program of each language beside those of the language's own profiler; fails where
    /// they differ by more than a target
    Agreement(agreement::Args),
    /// Samples per CPU second of the server over HTTP, stored bytes per sample, and times of queries, over a
    /// synthetic fleet
    Store(store::Args),
    /// BPF time of a switch, and what threads that switch all the time take longer, with waits and without
    Waits(waits::Args),
    /// First picture, frame times and memory of the page in Chromium at 10,000 to 1,000,000 frames, beside other
    /// flamegraphs
    Web(web::Args),
    /// Time, files and bytes of the log per commit, from the hundredth to the hundred thousandth commit
    Commits(commits::Args),
    /// CPU time, bytes and answers of 1, 2 and 4 servers that count together on one bucket, and by calculation what 4
    /// to 64 machines would take
    Scale(scale::Args),
    /// The first question of a new server on a bucket whose requests take 20 ms: milliseconds and requests, beside the
    /// local disk
    Cold(cold::Args),
    /// Thousands of agents on two servers, of which one is killed: acknowledgements, memory, commits, requests; fails
    /// where a sample is lost or there twice
    Fleet(fleet::Args),
    /// Ten viewers with different questions while agents ship: how long each of both waits
    Viewers(viewers::Args),
    /// Write xtask/bench/report.md anew from the latest run of each bench, as every bench does at its end
    Report,
}

/// Runs one of them, and keeps its figures.
pub(crate) fn run(args: &Args) -> Result<()> {
    let figures = &mut Figures::default();
    let begin = |bench| Run::begin(bench);
    let run = match &args.what {
        What::Report => return report::run(),
        What::Agent(args) => begin("agent").of(|| agent::run(args, figures))?,
        What::Start(args) => begin("start").of(|| start::run(args, figures))?,
        What::Churn(args) => begin("churn").of(|| churn::run(args, figures))?,
        What::Lockstep(args) => begin("lockstep").of(|| lockstep::run(args, figures))?,
        What::Names(args) => begin("names").of(|| names::run(args, figures))?,
        What::Agreement(args) => begin("agreement").of(|| agreement::run(args, figures))?,
        What::Store(args) => begin("store").of(|| store::run(args, figures))?,
        What::Waits(args) => begin("waits").of(|| waits::run(args, figures))?,
        What::Web(args) => begin("web").of(|| web::run(args, figures))?,
        What::Commits(args) => begin("commits").of(|| commits::run(args, figures))?,
        What::Scale(args) => begin("scale").of(|| scale::run(args, figures))?,
        What::Cold(args) => begin("cold").of(|| cold::run(args, figures))?,
        What::Fleet(args) => begin("fleet").of(|| fleet::run(args, figures))?,
        What::Viewers(args) => begin("viewers").of(|| viewers::run(args, figures))?,
    };
    let is_kept = figures.are_met();
    if !args.no_record {
        run.end(std::mem::take(figures))?;
    }
    let has_limits = matches!(args.what, What::Churn(_) | What::Names(_) | What::Agreement(_));
    ensure!(is_kept || !has_limits, "a limit was not kept");
    Ok(())
}

/// A server of the optimised build on an empty folder, and the load that it is measured by.
struct Measured {
    alone: Alone,
    /// Where its data is, if not in a folder. Ends after it.
    bucket: Option<Bucket>,
    load: PathBuf,
    stop: Stop,
    _dir: tempfile::TempDir,
}

impl Measured {
    /// `server`: more arguments of the server.
    fn start(server: &[&str]) -> Result<Measured> {
        Measured::start_on(None, server)
    }

    /// The same on an empty bucket, each of whose requests takes so much longer, where that is said.
    fn start_on(latency: Option<Duration>, server: &[&str]) -> Result<Measured> {
        let binaries = artifacts::all(Profile::Release)?;
        let load = load_program(Profile::Release)?;
        let stop = Stop::install()?;
        let dir = tempfile::tempdir()?;
        let options = Options {
            binaries,
            state_dir: dir.path().to_owned(),
            listen: "127.0.0.1:0".to_owned(),
            frequency_hz: 20,
        };
        let bucket = latency.map(|latency| Bucket::start(dir.path(), latency)).transpose()?;
        let alone = Alone::start_on(options, bucket.as_ref().map(Bucket::place), server, &stop)?;
        Ok(Measured {
            alone,
            bucket,
            load,
            stop,
            _dir: dir,
        })
    }
}

/// The value of a metric without labels, or with the labels that are given as they stand in the text.
fn metric(text: &str, name: &str) -> Option<f64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}

/// Bytes and number of the files that each table consists of.
fn live_files(client: &Client) -> Result<Vec<(String, u64, u64)>> {
    let text = client.get_ok("/metrics")?.text();
    let tables = text.lines().filter_map(|line| {
        let rest = line.strip_prefix("stakeout_store_table_bytes{table=\"")?;
        let (table, bytes) = rest.split_once("\",state=\"live\"} ")?;
        let files = metric(
            &text,
            &format!("stakeout_store_table_files{{table=\"{table}\",state=\"live\"}}"),
        )?;
        Some((table.to_owned(), bytes.trim().parse().ok()?, files as u64))
    });
    let mut tables: Vec<_> = tables.collect();
    ensure!(!tables.is_empty(), "/metrics says nothing of the tables' files");
    tables.sort();
    Ok(tables)
}

/// Nothing of the files stays in memory. False where that can't be had, which is told with what is measured.
fn drop_page_cache() -> bool {
    // What is not written yet is not dropped.
    let _ = Command::new("sync").status();
    fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}

/// So many of a thousand values are no larger. NaN of none.
fn per_mille(values: &mut [f64], share: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() * share).div_ceil(1000).max(1);
    values.get(rank - 1).copied().unwrap_or(f64::NAN)
}

/// The middle one of some times.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_values_ends_with_one_of_them() {
        let mut values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        assert_eq!(
            [500, 990, 1000].map(|share| per_mille(&mut values, share)),
            [100.0, 198.0, 200.0]
        );
        assert_eq!(per_mille(&mut [7.0], 1), 7.0);
        assert!(per_mille(&mut [], 500).is_nan());
    }
}
