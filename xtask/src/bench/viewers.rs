//! Whether people wait for agents, or agents for people: viewers ask without a pause, each something else, while agents
//! ship; and each of both alone.
//!
//! In: how many of each, and what history there is. Out: how long acknowledgements and answers took, alone and
//! together; an error where an acknowledged sample is lost, or there twice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use super::fleet_size::Fleet;
use super::report::Figures;
use super::servers::{Servers, until_calm};
use super::shipping::{Agents, MAX_CONNECTIONS, Shipped, Shipping, check_once, raise_descriptors};
use super::store::{HOUR_MS, begin, fill, outcome, row};
use super::{Measured, per_mille};
use crate::http::{Client, path};
use crate::service::within;
use crate::signals::Stop;
use crate::stack::now_ms;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    // The history that is asked for.
    #[command(flatten)]
    fleet: Fleet,
    /// Agents that ship meanwhile, one a node
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    agents: u64,
    #[command(flatten)]
    shipping: Agents,
    /// Viewers, who ask one after the other without a pause
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    viewers: u64,
    /// How long each part takes: agents alone, viewers alone, both
    #[arg(long, default_value_t = 3, value_name = "MINUTES", value_parser = clap::value_parser!(u64).range(1..=240))]
    minutes: u64,
    /// Servers
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=16))]
    servers: u64,
    /// How much later each request reaches the bucket
    #[arg(long, default_value_t = 20, value_name = "MS")]
    latency: u64,
}

/// Kinds of questions; one in so many is of the last minutes; windows that begin at different times.
const KINDS: u64 = 8;
const WINDOWS: u64 = 3;
const OTHER_WINDOWS: u64 = 60_000;

/// What viewers got.
#[derive(Debug, Default)]
struct Answers {
    ms: Vec<f64>,
    /// Answers of whoever got the fewest.
    fewest: usize,
    /// How questions were answered otherwise.
    refused: BTreeMap<String, u64>,
}

/// Viewers of one part of the bench, and where they ask.
struct Viewers<'a> {
    clients: &'a [Client],
    count: u64,
    services: u64,
    /// The history's begin in Unix milliseconds; its end is now, or that of the history.
    window: [i64; 2],
}

pub(crate) fn run(args: &Args, figures: &mut Figures) -> Result<()> {
    raise_descriptors()?;
    let memory = ["--memory-limit", args.fleet.memory_limit.as_str()];
    let latency = Duration::from_millis(args.latency);
    let mut measured = Measured::start_on(Some(latency), &[&["--settle", "15s"], &memory[..]].concat())?;
    let from = begin(args.fleet.hours);
    let until = from + (args.fleet.hours * HOUR_MS as f64) as i64;
    let history = fill(&args.fleet, &mut measured, [from, until], false)?;
    measured.alone.stop()?;
    println!("{} samples of history are in the bucket", history.samples);
    let bucket = measured.bucket.as_ref().context("there is no bucket")?;
    let options = &measured.alone.options;
    let on = (&options.binaries, bucket, options.state_dir.as_path(), &measured.stop);
    let more = [&memory[..], &MAX_CONNECTIONS].concat();
    let servers = Servers::start(on, args.servers as usize, &more)?;
    until_calm(bucket.relay(), &measured.stop)?;
    let clients: Vec<Client> = servers.all.iter().map(|alone| alone.client.clone()).collect();
    let viewers = Viewers {
        clients: &clients,
        count: args.viewers,
        services: args.fleet.services,
        window: [from, until],
    };
    let seconds = args.minutes * 60;
    let begun_ms = now_ms() - 60_000;
    let ship = |prefix: &str| -> Result<Shipped> {
        let mut command = args
            .shipping
            .command(&measured.load, &servers.urls(), prefix, args.agents, seconds);
        Shipping::begin(&mut command, &options.state_dir, prefix)?.until_over(&measured.stop)
    };
    let agents_alone = ship("alone")?;
    viewers.warm(&measured.stop)?;
    let ((), viewers_alone) = viewers.ask_until(|| {
        within(Duration::from_secs(seconds), || {
            measured.stop.check()?;
            Ok(false)
        })
        .map(drop)
    })?;
    let (agents_both, viewers_both) = viewers.ask_until(|| ship("beside"))?;
    // To look for each sample takes a while: whatever comes of it, this much is told.
    let shipped = [&agents_alone, &agents_both];
    report(args, shipped, [viewers_alone, viewers_both], figures);
    for (prefix, shipped) in [("alone", &agents_alone), ("beside", &agents_both)] {
        let window = [begun_ms, now_ms() + 60_000];
        check_once(&clients[0], shipped, prefix, window, &measured.stop)?;
    }
    servers.stop()
}

impl Viewers<'_> {
    /// Each question of each kind is asked of each server, and not counted: else viewers beside agents, who come last,
    /// would find what those alone had fetched.
    fn warm(&self, stop: &Stop) -> Result<()> {
        for client in self.clients {
            for round in 0..KINDS * WINDOWS {
                stop.check()?;
                outcome(client, &self.question(0, round));
            }
        }
        Ok(())
    }

    /// They ask as long as something is done.
    fn ask_until<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(T, Answers)> {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let viewing: Vec<_> = (0..self.count)
                .map(|viewer| {
                    scope.spawn({
                        let is_over = &is_over;
                        move || self.ask(viewer, is_over)
                    })
                })
                .collect();
            let done = work();
            is_over.store(true, Relaxed);
            let mut all = Answers {
                fewest: usize::MAX,
                ..Answers::default()
            };
            for viewer in viewing {
                let one = viewer.join().map_err(|_| anyhow!("a viewer panicked"))?;
                all.fewest = all.fewest.min(one.ms.len());
                all.ms.extend(one.ms);
                for (answer, count) in one.refused {
                    *all.refused.entry(answer).or_default() += count;
                }
            }
            Ok((done?, all))
        })
    }

    /// One viewer: one question after the other.
    fn ask(&self, viewer: u64, is_over: &AtomicBool) -> Answers {
        let client = &self.clients[(viewer % self.clients.len() as u64) as usize];
        let mut answers = Answers::default();
        let mut round = 0;
        while !is_over.load(Relaxed) {
            let question = self.question(viewer, round);
            let begun = Instant::now();
            let answer = outcome(client, &question);
            if answer == "200" {
                answers.ms.push(begun.elapsed().as_secs_f64() * 1e3);
            } else {
                *answers.refused.entry(answer).or_default() += 1;
                // As a person who reads what is wrong.
                thread::sleep(Duration::from_secs(1));
            }
            round += 1;
        }
        answers
    }

    /// Each viewer has another one at a time, of other services; every third is of the last minutes, the others of the
    /// history. Windows begin at any millisecond, as those of a person who drags them do: no roll-up tells them apart.
    fn question(&self, viewer: u64, round: u64) -> String {
        let at = viewer + round;
        let query = format!(
            "{{service=\"service-{}\"}}",
            (viewer * 7 + round) % self.services.max(1)
        );
        let [mut from, mut until] = self.window;
        if at.is_multiple_of(WINDOWS) {
            until = now_ms();
            from = until - 300_000;
        }
        // No two of them have the same window, nor has one another time what it had before.
        from += i64::try_from((round * self.count + viewer) % OTHER_WINDOWS).unwrap_or(0);
        let middle = from + (until - from) / 2;
        let [from, middle, until] = [from, middle, until].map(|at| at.to_string());
        let whole = [("from", &*from), ("until", &*until)];
        let ask = |at: &str, more: &[(&str, &str)]| path(&format!("/api/v1/{at}"), &[&whole[..], more].concat());
        let share = ("min_share", "0.0001");
        match at % KINDS {
            0 => ask("flamegraph", &[share]),
            1 => ask("series", &[("by", "service"), ("query", &query)]),
            2 => ask("top", &[("by", "function"), ("query", &query)]),
            3 => ask("flamegraph", &[share, ("query", &query)]),
            4 => path(
                "/api/v1/diff",
                &[
                    ("base_from", &*from),
                    ("base_until", &*middle),
                    ("from", &*middle),
                    ("until", &*until),
                    ("query", &*query),
                    share,
                ],
            ),
            5 => ask("series", &[("by", "node")]),
            6 => ask("heatmap", &[("rows", "20"), ("query", &query)]),
            _ => ask("facets", &[("by", "service,node"), ("query", &query)]),
        }
    }
}

fn report(args: &Args, shipped: [&Shipped; 2], answers: [Answers; 2], figures: &mut Figures) {
    println!("\n{:<44}{:>14}  target", "", "measured");
    let [agents_alone, agents_both] = shipped;
    for (title, shipped) in [("Agents alone", agents_alone), ("Agents beside viewers", agents_both)] {
        println!("{title}");
        figures.table(title);
        row(
            figures,
            "acknowledgement, half of them at most",
            "ms",
            shipped.p50_ms,
            "",
        );
        row(figures, "acknowledgement, 99 of 100 at most", "ms", shipped.p99_ms, "");
        row(figures, "acknowledgement, longest", "ms", shipped.max_ms, "");
        row(figures, "first try, latest", "ms", shipped.latest_try_ms, "");
        row(figures, "batches", "", shipped.batches as f64, "");
        row(figures, "batches that came again", "", shipped.again as f64, "");
    }
    for (title, mut answers) in ["Viewers alone", "Viewers beside agents"].into_iter().zip(answers) {
        println!("{title}");
        figures.table(title);
        let given = answers.ms.len();
        row(
            figures,
            "answer, half of them at most",
            "ms",
            per_mille(&mut answers.ms, 500),
            "",
        );
        row(
            figures,
            "answer, 99 of 100 at most",
            "ms",
            per_mille(&mut answers.ms, 990),
            "",
        );
        row(figures, "answer, longest", "ms", per_mille(&mut answers.ms, 1000), "");
        row(figures, "answers", "", given as f64, "");
        let even = given as f64 / args.viewers as f64;
        row(
            figures,
            "answers of whoever got the fewest",
            "",
            answers.fewest as f64,
            "a quarter of the mean",
        )
        .at_least(even / 4.0);
        let refused: u64 = answers.refused.values().sum();
        row(figures, "questions without an answer", "", refused as f64, "0").at_most(0.0);
        for (answer, count) in &answers.refused {
            println!("  {count} times {answer}");
        }
    }
    figures.print_note(format!(
        "{} agents with a batch of {} samples every 5 s, {} viewers who ask as soon as they have an answer, {} servers on a bucket with \
         {} hours of {} nodes; load, viewers, servers and S3 server share this machine, each request to the bucket comes {} ms later; \
         each part took {} min, after each kind of question had been asked once; times are of questions that were answered; an \
         acknowledgement takes from the end of a batch's time on, and so does its first try: where that is late, the load itself had too \
         little of the CPUs; every acknowledged sample was there once, or this bench fails",
        args.agents,
        args.shipping.samples,
        args.viewers,
        args.servers,
        args.fleet.hours,
        args.fleet.nodes,
        args.latency,
        args.minutes
    ));
}
