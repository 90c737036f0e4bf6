//! `cargo xtask bench`: measures what design and users ask for, on release builds, and prints it beside the targets.
//!
//! Nothing here but `churn`, whose limits hold on every machine, fails because a figure is bad: figures belong to the machine and
//! the day. They are printed as they are.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Subcommand;

use crate::artifacts::{self, Profile};
use crate::e2e::load_program;
use crate::signals::Stop;
use crate::stack::{Alone, Options};

mod agent;
mod churn;
mod crowd;
mod mixed;
mod start;
mod store;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// CPU time of BPF and user space per delivered sample, memory, at 20 and 99 Hz under a mixed load, beside perf record
    Agent(agent::Args),
    /// CPU time and memory of each of the agent's first seconds, where 300 processes run already
    Start(start::Args),
    /// The agent's memory and descriptors, peaks included, while hundreds of programs start and end; fails where a limit is broken
    Churn(churn::Args),
    /// Samples per CPU second of the server over HTTP, stored bytes per sample, and times of queries, over a synthetic fleet
    Store(store::Args),
}

/// Runs one of them.
pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.what {
        What::Agent(args) => agent::run(args),
        What::Start(args) => start::run(args),
        What::Churn(args) => churn::run(args),
        What::Store(args) => store::run(args),
    }
}

/// A server of the optimised build on an empty folder, and the load that it is measured by.
struct Measured {
    alone: Alone,
    load: PathBuf,
    stop: Stop,
    _dir: tempfile::TempDir,
}

impl Measured {
    /// `server`: more arguments of the server.
    fn start(server: &[&str]) -> Result<Measured> {
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
        let alone = Alone::start(options, server, &stop)?;
        Ok(Measured {
            alone,
            load,
            stop,
            _dir: dir,
        })
    }
}

/// Bytes of the files that each table's newest version consists of: the log's additions without its removals.
///
/// Read from the JSON commits alone, which are all there in the minutes that a measurement takes.
fn live_bytes(data: &Path) -> Result<Vec<(String, u64, usize)>> {
    let mut tables = vec![];
    for table in std::fs::read_dir(data)?.flatten() {
        let log = table.path().join("_delta_log");
        let Ok(commits) = std::fs::read_dir(&log) else { continue };
        let mut commits: Vec<_> = commits.flatten().map(|commit| commit.path()).collect();
        commits.retain(|commit| commit.extension().is_some_and(|extension| extension == "json"));
        commits.sort();
        let mut files = std::collections::HashMap::new();
        for commit in commits {
            for line in std::fs::read_to_string(&commit)?.lines() {
                let action: serde_json::Value = serde_json::from_str(line)?;
                if let Some(path) = action["remove"]["path"].as_str() {
                    files.remove(path);
                }
                if let Some(path) = action["add"]["path"].as_str() {
                    files.insert(path.to_owned(), action["add"]["size"].as_u64().unwrap_or(0));
                }
            }
        }
        tables.push((
            table.file_name().to_string_lossy().into_owned(),
            files.values().sum(),
            files.len(),
        ));
    }
    tables.sort();
    Ok(tables)
}

/// The middle one of some times.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
