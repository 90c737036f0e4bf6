//! What it costs that several servers count one question together: the same hour on one bucket, asked of 1, 2 and 4
//! servers.
//!
//! In: how large the fleet is. Out: CPU time of all servers, what of it is not counting, bytes that travel between
//! them, whether the answers are those of one server byte for byte; and what many machines would take, by calculation.

mod simulate;

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::fleet_size::Fleet;
use super::report::Figures;
use super::servers::{Servers, until_calm};
use super::store::{HOUR_MS, MIB, begin, fill};
use super::{Measured, median};
use crate::bucket::Relay;
use crate::http::path;
use crate::signals::Stop;
use simulate::{Costs, Machines};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    fleet: Fleet,
    /// Servers, in this order; the first number is 1
    #[arg(long, default_values_t = [1_usize, 2, 4], value_delimiter = ',', value_name = "N")]
    servers: Vec<usize>,
    /// Repetitions of each question, once it was asked; of one that is quick as many as take two CPU seconds
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// How much later each request reaches the bucket
    #[arg(long, default_value_t = 20, value_name = "MS")]
    latency: u64,
    /// Committed rows from which on several servers count
    #[arg(long, default_value_t = 4_000_000, value_name = "COUNT")]
    spread_rows: u64,
    /// Memory that each of these servers may take, as it is told. A sixth of what queries have of it keeps pages of the
    /// bucket: with less than all of the hour one server fetches again and again what several have in memory
    #[arg(long, default_value = "16GiB", value_name = "SIZE")]
    servers_memory: String,
    #[command(flatten)]
    machines: Machines,
}

/// More CPU time than one server's that a question may cost.
const MOST_MORE_PERCENT: f64 = 15.0;
/// Characters that are shown of a refusal.
const MOST_SAID: usize = 200;
/// For so long servers that are asked nothing are watched.
const IDLE: Duration = Duration::from_secs(15);
/// Times are told in hundredths of a second, of each server: a question is asked until all took so much together, or
/// so often.
const LEAST_CPU_S: f64 = 2.0;
const MOST_REPEATS: usize = 50;

/// Names and paths.
type Question = (&'static str, String);

/// What so many servers took for a question.
#[derive(Clone, Debug, Default)]
struct Taken {
    wall_ms: f64,
    /// Of all servers, and of the one that was asked, for one time.
    cpu_s: f64,
    asked_cpu_s: f64,
    /// Between servers, both ways, for one time.
    moved_bytes: f64,
    received_bytes: f64,
    shares: f64,
    share_rows: f64,
    again: f64,
    /// From the bucket, for one time.
    fetched_bytes: f64,
    body: Vec<u8>,
    /// What was said where there was no answer.
    refused: Option<String>,
}

/// All questions, asked of so many servers.
struct Round {
    servers: usize,
    /// CPU seconds of all servers in a second without questions, which is taken off.
    idle_cpu_s: f64,
    taken: Vec<Taken>,
}

pub(crate) fn run(args: &Args, figures: &mut Figures) -> Result<()> {
    ensure!(
        args.servers.first() == Some(&1) && args.servers.iter().all(|count| (1..=16).contains(count)),
        "--servers begins with 1, and has numbers up to 16: others are compared with one server"
    );
    let latency = Duration::from_millis(args.latency);
    let filling = ["--settle", "15s", "--memory-limit", &args.fleet.memory_limit];
    let mut measured = Measured::start_on(Some(latency), &filling)?;
    let from = begin(args.fleet.hours);
    let until = from + (args.fleet.hours * HOUR_MS as f64) as i64;
    let filled = fill(&args.fleet, &mut measured, [from, until], false)?;
    measured.alone.stop()?;
    println!("{} samples are in the bucket", filled.samples);
    let questions = questions(from, until);
    let spread_rows = args.spread_rows.to_string();
    let more = [
        "--exchange-listen",
        "127.0.0.1:0",
        "--spread-rows",
        spread_rows.as_str(),
        "--memory-limit",
        args.servers_memory.as_str(),
    ];
    let bucket = measured.bucket.as_ref().context("there is no bucket")?;
    let (options, stop) = (&measured.alone.options, &measured.stop);
    let on = (&options.binaries, bucket, options.state_dir.as_path(), stop);
    let (mut rounds, mut rolled_up) = (Vec::<Round>::new(), 0);
    for count in &args.servers {
        let servers = Servers::start(on, *count, &more)?;
        until_calm(bucket.relay(), stop)?;
        rolled_up = servers.all[0].client.sql_number("SELECT count(*) FROM samples_hour")?;
        rounds.push(round(args, &servers, bucket.relay(), &questions, stop)?);
        servers.stop()?;
    }
    report(args, &questions, &rounds, figures);
    let (one, several) = (&rounds[0], &rounds[rounds.len() - 1]);
    match Costs::of(&one.taken, &several.taken, [filled.samples as f64, rolled_up as f64]) {
        Some(costs) => simulate::report(&args.machines, args.fleet.cpus, &costs, figures),
        None => println!("no share was counted by another server, or the hour has no roll-up: nothing is calculated"),
    }
    let others = rounds.iter().flat_map(|round| differing(&questions, one, round));
    let others: Vec<String> = others.collect();
    ensure!(
        others.is_empty(),
        "several servers answer otherwise than one:\n{}",
        others.join("\n")
    );
    Ok(())
}

/// Windows that begin and end a millisecond within the hour: no roll-up tells those apart, so that all samples are
/// read. The second question alone is of the very hour, which a roll-up answers: of it and the first one, whose trees
/// are the same, what many machines take is calculated.
fn questions(from: i64, until: i64) -> Vec<Question> {
    let hour = [("from", from), ("until", until)];
    let half = from + (until - from) / 2 + 1;
    let (from, until) = (from + 1, until - 1);
    let ask = |at: &str, window: &[(&str, i64)], more: &[(&str, &str)]| {
        let times: Vec<(&str, String)> = window.iter().map(|(name, at)| (*name, at.to_string())).collect();
        let mut pairs: Vec<(&str, &str)> = times.iter().map(|(name, at)| (*name, at.as_str())).collect();
        pairs.extend(more);
        path(&format!("/api/v1/{at}"), &pairs)
    };
    let whole = [("from", from), ("until", until)];
    let share = ("min_share", "0.0001");
    let one = ("query", "{service=\"service-7\"}");
    vec![
        ("flamegraph, everything", ask("flamegraph", &whole, &[share])),
        ("flamegraph, everything, by roll-up", ask("flamegraph", &hour, &[share])),
        ("flamegraph, one service", ask("flamegraph", &whole, &[share, one])),
        (
            "flamegraph by service and thread",
            ask("flamegraph", &whole, &[share, ("group", "service,thread")]),
        ),
        (
            "difference, everything",
            ask(
                "diff",
                &[
                    ("base_from", from),
                    ("base_until", half),
                    ("from", half),
                    ("until", until),
                ],
                &[share],
            ),
        ),
        (
            "series by service",
            ask("series", &whole, &[("by", "service"), ("step", "10s")]),
        ),
        ("top functions", ask("top", &whole, &[("by", "function")])),
        ("heatmap", ask("heatmap", &whole, &[("step", "60s"), ("rows", "10")])),
        ("timeline", ask("timeline", &whole, &[("limit", "50")])),
    ]
}

/// Asks the first server.
fn round(args: &Args, servers: &Servers, relay: &Relay, questions: &[Question], stop: &Stop) -> Result<Round> {
    let before = servers.cpu_seconds()?;
    thread::sleep(IDLE);
    let idle_cpu_s = (servers.cpu_seconds()? - before) / IDLE.as_secs_f64();
    let mut taken = Vec::new();
    for question in questions {
        stop.check()?;
        taken.push(ask(args, servers, relay, question, idle_cpu_s)?);
    }
    Ok(Round {
        servers: servers.all.len(),
        idle_cpu_s,
        taken,
    })
}

fn ask(args: &Args, servers: &Servers, relay: &Relay, (_, question): &Question, idle_cpu_s: f64) -> Result<Taken> {
    let asked = &servers.all[0];
    // The first one fetches pages and makes what is kept.
    let first = asked.client.get(question)?;
    if first.status != 200 {
        let said: String = first.text().chars().take(MOST_SAID).collect();
        return Ok(Taken {
            refused: Some(format!("{} {said}", first.status)),
            ..Taken::default()
        });
    }
    // In the second one each server has what of it the first one had others do.
    let body = asked.client.get_ok(question)?.body;
    ensure!(first.body == body, "{question} has another answer the second time");
    let counters = || -> Result<[f64; 6]> {
        let of = |name: &str| servers.metric(name);
        Ok([
            of("stakeout_query_share_sent_bytes_total")?,
            of("stakeout_query_share_received_bytes_total")?,
            of("stakeout_query_shares_total")?,
            of("stakeout_query_share_rows_total")?,
            of("stakeout_query_share_retries_total")? + of("stakeout_query_shares_taken_back_total")?,
            relay.traffic().received_bytes as f64,
        ])
    };
    let (counted, cpu_s, of_each) = (counters()?, servers.cpu_seconds()?, servers.cpu_seconds_of_each()?);
    let mut walls = Vec::new();
    while walls.len() < args.repeat as usize
        || (walls.len() < MOST_REPEATS && servers.cpu_seconds()? - cpu_s < LEAST_CPU_S)
    {
        let begun = Instant::now();
        let again = asked.client.get_ok(question)?.body;
        walls.push(begun.elapsed().as_secs_f64() * 1e3);
        ensure!(again == body, "{question} has another answer later");
    }
    let idle_s = idle_cpu_s * walls.iter().sum::<f64>() / 1e3;
    let all_cpu_s = servers.cpu_seconds()? - cpu_s - idle_s;
    let asked_cpu_s = servers.cpu_seconds_of_each()?[0] - of_each[0] - idle_s / servers.all.len() as f64;
    let now = counters()?;
    let times = walls.len() as f64;
    let since = |at: usize| (now[at] - counted[at]) / times;
    Ok(Taken {
        wall_ms: median(walls),
        cpu_s: all_cpu_s / times,
        asked_cpu_s: asked_cpu_s / times,
        moved_bytes: since(0) + since(1),
        received_bytes: since(1),
        shares: since(2),
        share_rows: since(3),
        again: since(4),
        fetched_bytes: since(5),
        body,
        refused: None,
    })
}

/// Answers of several servers that are not those of one to the byte.
fn differing(questions: &[Question], one: &Round, several: &Round) -> Vec<String> {
    let answers = questions.iter().zip(&one.taken).zip(&several.taken);
    let others =
        answers.filter(|((_, one), taken)| one.body != taken.body || one.refused.is_some() != taken.refused.is_some());
    others
        .map(|(((name, _), one), taken)| {
            format!(
                "{name}: one server {} bytes, {:?}; {} servers {} bytes, {:?}",
                one.body.len(),
                one.refused,
                several.servers,
                taken.body.len(),
                taken.refused
            )
        })
        .collect()
}

fn is_spread(taken: &Taken) -> bool {
    taken.shares >= 0.5
}

fn remark(servers: usize, taken: &Taken) -> &'static str {
    if taken.fetched_bytes > MIB {
        "  (some of it was fetched again: --servers-memory is too small)"
    } else if servers > 1 && !is_spread(taken) {
        "  (not spread)"
    } else if taken.again > 0.0 {
        "  (some were asked again or taken back)"
    } else {
        ""
    }
}

fn report(args: &Args, questions: &[Question], rounds: &[Round], figures: &mut Figures) {
    for round in rounds {
        let title = match round.servers {
            1 => "One server".to_owned(),
            count => format!("{count} servers"),
        };
        figures.table(&title);
        println!(
            "\n{title}, {:.3} CPU s a second without questions\n{:<36}{:>9}{:>9}{:>9}{:>9}{:>12}{:>10}{:>8}  target: at most \
             {MOST_MORE_PERCENT} % more",
            round.idle_cpu_s, "", "CPU s", "wall ms", "fetched", "more, %", "exchange %", "MiB", "shares"
        );
        for (((name, _), taken), one) in questions.iter().zip(&round.taken).zip(&rounds[0].taken) {
            if let Some(refused) = &taken.refused {
                println!("{name:<36} no answer: {refused}");
                continue;
            }
            let more_s = taken.cpu_s - one.cpu_s;
            let values = [
                ("CPU", "s", taken.cpu_s),
                ("wall", "ms", taken.wall_ms),
                ("from the bucket", "MiB", taken.fetched_bytes / MIB),
                ("more than one server", "%", more_s * 100.0 / one.cpu_s),
                ("exchange's share", "%", more_s.max(0.0) * 100.0 / taken.cpu_s),
                ("moved", "MiB", taken.moved_bytes / MIB),
                ("shares", "", taken.shares),
            ];
            println!(
                "{name:<36}{:>9.3}{:>9.0}{:>9.2}{:>9.1}{:>12.1}{:>10.2}{:>8.1}{}",
                values[0].2,
                values[1].2,
                values[2].2,
                values[3].2,
                values[4].2,
                values[5].2,
                values[6].2,
                remark(round.servers, taken)
            );
            figures.row(name);
            for (at, (name, unit, value)) in values.into_iter().enumerate() {
                if at > 2 && round.servers == 1 {
                    continue;
                }
                let figure = figures.add(name, unit, value);
                // What one server answers alone costs no distribution.
                if at == 3 && is_spread(taken) {
                    figure.at_most(MOST_MORE_PERCENT);
                }
            }
        }
    }
    figures.print_note(format!(
        "all servers and the bucket are on this machine, so that walls do not fall; CPU: of all servers, a question, the mean of {} or \
         more, without what they take unasked, and without S3 server and network; each may keep all pages of the hour, so that none \
         comes from the bucket again; exchange's share: what several take more than one, of all that they take, nothing where they take \
         less: cutting, encoding, sending, adding up; answers are those of one server byte for byte, or this bench fails; windows begin \
         and end within the hour, so that all samples are read and no roll-up, but for the one that is by roll-up; each request to the \
         bucket {} ms later",
        args.repeat, args.latency
    ));
}
