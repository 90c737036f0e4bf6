//! Whether a name is ever another one's: programs whose functions come and go all the time, and whose names tell who
//! calls whom.

mod judge;
mod rows;
mod servers;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::agent::this_node;
use super::languages;
use super::receiver::Receiver;
use super::report::Figures;
use super::stacks::Stacks;
use crate::e2e::check_agent;
use crate::http::{Client, integer};
use crate::packages;
use crate::service::POLL;
use crate::signals::Stop;
use crate::stack::{alive, now_ms, start_agent, stored_ms, wait_stored};
use judge::Counts;
use rows::{Programs, Row};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Judged samples of each program
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    samples: u64,
    /// Rate of the agent
    #[arg(long, default_value_t = 999, value_name = "HZ")]
    frequency: u32,
    /// A folder with a folder for each version of a runtime to try (`bin/java` in it), instead of what is installed
    #[arg(long, value_name = "FOLDER")]
    runtimes: Option<PathBuf>,
    /// Only the rows whose title contains this
    #[arg(long, default_value = "", value_name = "TEXT")]
    only: String,
}

/// How often what has come is judged.
const LOOK: Duration = Duration::from_secs(5);
/// A row lasts so many times as long as its samples take at most, and this longer.
const PATIENCE: u32 = 4;
const LEAST: Duration = Duration::from_secs(120);
/// What the agent counts where a language's frame has no name, of which the row's part is printed.
const REASONS: [&str; 4] = [
    "runtime_code_replaced",
    "runtime_frames_put_off",
    "runtime_frames_put_off_own",
    "runtime_frames_unreadable",
];

/// The agent, and what it has said so far.
struct Watched<'a> {
    client: &'a Client,
    agent: crate::service::Service,
    started_ms: i64,
    stop: &'a Stop,
}

/// Runs each program until enough of it was sampled; a wrong name is a limit that was not kept.
pub(crate) fn run(args: &Args, figures: &mut Figures) -> Result<()> {
    ensure!(packages::is_root(), "the agent needs root here: run this as root");
    let Receiver {
        options,
        client,
        mut server,
        stop,
        dir,
    } = Receiver::start(args.frequency)?;
    let runtimes = languages::found(args.runtimes.as_deref())?;
    let programs = Programs::new(&runtimes, dir.path())?;
    let rows = runtimes.iter().flat_map(|runtime| programs.rows(runtime));
    // For what is installed alone there are packages.
    let servers = match args.runtimes {
        None => programs.servers(&runtimes),
        Some(_) => Vec::new(),
    };
    let rows: Vec<Row> = rows
        .chain(programs.prefork(&runtimes))
        .chain(servers)
        .filter(|row| row.title.contains(&args.only))
        .collect();
    ensure!(!rows.is_empty(), "no program to run: which runtimes are there?");
    let started_ms = now_ms();
    // The whole rate, whatever that costs.
    let mut watched = Watched {
        agent: start_agent(&options, client.base(), &["--cpu-limit", "100"])?,
        client: &client,
        started_ms,
        stop: &stop,
    };
    watched.wait_stored(now_ms())?;
    figures.print_note(format!(
        "each program until {} samples were judged, at {} Hz; judged: with a function of a generation or its caller; without a \
         name: of the language's own frames; missing: samples in which a frame between two others lacks",
        args.samples, args.frequency
    ));
    figures.table("");
    println!(
        "{:<34} {:>8} {:>8} {:>10} {:>7} {:>7}  why nameless, in the agent's words",
        "program", "samples", "judged", "nameless %", "wrong", "missing"
    );
    for row in &rows {
        watched.measure(args, row)?.tell(row, figures);
    }
    let ended = watched.agent.stop(Duration::from_secs(30));
    ensure!(ended.is_some_and(|status| status.success()), "the agent ended badly");
    check_agent(&client).context("the account is not exact")?;
    let node = this_node(&client, 0)?;
    figures.print_note(format!(
        "limits that were reached: {}; lost: {}",
        node["limits"], node["samples_lost"]
    ));
    server.stop(Duration::from_secs(20));
    Ok(())
}

/// One row's outcome.
struct Outcome {
    counts: Counts,
    reasons: BTreeMap<&'static str, i64>,
}

impl Watched<'_> {
    fn measure(&mut self, args: &Args, row: &Row) -> Result<Outcome> {
        let before = self.reasons()?;
        let rate = f64::from(args.frequency) * thread::available_parallelism()?.get() as f64;
        let patience = Duration::from_secs_f64(args.samples as f64 / rate) * PATIENCE + LEAST;
        let begun = Instant::now();
        let (mut from_ms, mut next_look, mut counts) = (now_ms(), begun + LOOK, Counts::default());
        let mut running = row.start()?;
        while counts.judged < args.samples && begun.elapsed() < patience {
            // Nobody names what no agent knows.
            if counts.judged == 0 && begun.elapsed() > LEAST {
                break;
            }
            thread::sleep(POLL / 10);
            self.stop.check()?;
            alive(&mut self.agent)?;
            running.keep().with_context(|| row.title.clone())?;
            if Instant::now() >= next_look {
                next_look += LOOK;
                let until_ms = stored_ms(self.client)?;
                if until_ms > from_ms {
                    let stacks = Stacks::get(self.client, &row.query(), from_ms, until_ms)?;
                    stacks.each(|frames, samples| counts.take(&row.tongues, frames, samples));
                    from_ms = until_ms;
                }
            }
        }
        drop(running);
        // What is left of it does not count for the next one.
        self.wait_stored(now_ms())?;
        let after = self.reasons()?;
        let reasons = REASONS.map(|reason| (reason, after[reason] - before[reason])).into();
        Ok(Outcome { counts, reasons })
    }

    fn wait_stored(&mut self, until_ms: i64) -> Result<()> {
        wait_stored(self.client, until_ms, &mut self.agent, self.stop)
    }

    fn reasons(&self) -> Result<BTreeMap<&'static str, i64>> {
        let node = this_node(self.client, self.started_ms)?;
        Ok(REASONS.map(|reason| (reason, integer(&node["limits"][reason]))).into())
    }
}

impl Outcome {
    fn tell(&self, row: &Row, figures: &mut Figures) {
        let counts = &self.counts;
        let nameless = counts.unnamed as f64 * 100.0 / counts.frames.max(1) as f64;
        let reasons: Vec<String> = self
            .reasons
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(reason, count)| format!("{reason} {count}"))
            .collect();
        println!(
            "{:<34} {:>8} {:>8} {nameless:>10.2} {:>7} {:>7}  {}",
            row.title,
            counts.samples,
            counts.judged,
            counts.wrong,
            counts.missing,
            reasons.join(", ")
        );
        for (example, samples) in &counts.examples {
            println!("    {samples:>6} {example}");
        }
        figures.row(&row.title);
        figures.add("samples", "", counts.samples as f64);
        figures.add("judged", "", counts.judged as f64);
        figures.add("frames without a name", "%", nameless);
        figures.add("wrong", "samples", counts.wrong as f64).at_most(0.0);
        figures.add("missing", "samples", counts.missing as f64);
        for (reason, count) in &self.reasons {
            figures.add(reason, "", *count as f64);
        }
    }
}
