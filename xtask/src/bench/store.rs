//! What a stored sample costs, and how long a person waits for an answer, over a synthetic fleet's past hours.

use std::collections::BTreeMap;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::fleet_size::{FREQUENCY_HZ, Fleet, IN_FLIGHT};
use super::report::{Figure, Figures};
use super::{Measured, drop_page_cache, group_by, growth, live_files, median};
use crate::bucket::{Bucket, Traffic};
use crate::http::{Client, integer, path};
use crate::proc::{cpu_seconds, size_bytes};
use crate::run;
use crate::service::Service;
use crate::signals::Stop;
use crate::stack::now_ms;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) fleet: Fleet,
    /// Warm repetitions of each query, of which the median is shown
    #[arg(long, default_value_t = 5, value_name = "N")]
    repeat: u32,
    /// Ask all questions over and over while the fleet sends, and say how they were answered
    #[arg(long)]
    asked_meanwhile: bool,
    /// Measure at once, twice, four and eight times --hours, and print how each figure grows
    #[arg(long, conflicts_with_all = ["asked_meanwhile", "engines"])]
    growth: bool,
    /// Count by stack with plain DataFusion and with DuckDB too, over the same files
    #[arg(long)]
    engines: bool,
    /// Keep the data in a bucket of an S3 server of this machine, and count requests and bytes
    #[arg(long, conflicts_with = "engines")]
    bucket: bool,
    /// How much later each request reaches the bucket
    #[arg(long, default_value_t = 20, value_name = "MS", requires = "bucket")]
    bucket_latency_ms: u64,
}

pub(super) const HOUR_MS: i64 = 3_600_000;
pub(super) const MIB: f64 = 1_048_576.0;

/// Fills a store over HTTP, waits for compaction, restarts the server on it, asks.
pub(crate) fn run(args: &Args, figures: &mut Figures) -> Result<()> {
    // The hours are over: they are rewritten and rolled up as soon as nothing comes any more, and not while the load
    // makes its next turn.
    let latency = args.bucket.then(|| Duration::from_millis(args.bucket_latency_ms));
    let mut measured = Measured::start_on(
        latency,
        &["--settle", "15s", "--memory-limit", &args.fleet.memory_limit],
    )?;
    if args.growth {
        growth::run(args, &mut measured, figures)?;
        return measured.alone.stop();
    }
    let from = begin(args.fleet.hours);
    let until = from + (args.fleet.hours * HOUR_MS as f64) as i64;
    let filled = fill(&args.fleet, &mut measured, [from, until], args.asked_meanwhile)?;
    report(args, &filled, figures);
    queries(args, &mut measured, from, until, figures)?;
    if args.engines {
        group_by::run(&measured.alone, args.repeat, filled.samples, [from, until], figures)?;
    }
    measured.alone.stop()
}

/// Unix milliseconds from which so many hours lie in whole hours that are over, so that they are compacted as old
/// hours are.
pub(super) fn begin(hours: f64) -> i64 {
    now_ms() / HOUR_MS * HOUR_MS - (hours.ceil() as i64 + 1) * HOUR_MS
}

/// What filling the store took.
#[derive(Debug, Default)]
pub(super) struct Filled {
    pub(super) samples: i64,
    sent_bytes: i64,
    took_s: f64,
    /// Until the last acknowledgement; with compaction.
    cpu_s: f64,
    pub(super) total_cpu_s: f64,
    pub(super) peak_bytes: u64,
    /// By table: bytes and files, when the last batch was acknowledged and when all was settled.
    fresh: Vec<(String, u64, u64)>,
    pub(super) settled: Vec<(String, u64, u64)>,
    /// Questions that were asked meanwhile, by how they were answered.
    answers: BTreeMap<String, u64>,
    /// Of the bucket, where there is one: until the last acknowledgement, and with compaction.
    bucket: Option<[Traffic; 2]>,
}

/// Sends the fleet's samples of a window in Unix milliseconds, and waits until the server has come to rest.
/// `asked_meanwhile`: all questions of the window are asked until the last batch is acknowledged.
pub(super) fn fill(
    fleet: &Fleet,
    measured: &mut Measured,
    [from, until]: [i64; 2],
    asked_meanwhile: bool,
) -> Result<Filled> {
    let Measured {
        alone,
        load,
        stop,
        bucket,
        ..
    } = measured;
    let traffic = || bucket.as_ref().map(Bucket::traffic);
    let (seconds, batch) = fleet.batch();
    let batches = ((until - from) as u64 / (seconds * 1000)).max(1);
    let before = cpu_seconds(alone.server.pid())?;
    let stored_before = alone.client.sql_number("SELECT count(*) FROM samples")?;
    let traffic_before = traffic();
    let begin = Instant::now();
    let mut sender = Command::new(load);
    sender.args(["--url", alone.client.base(), "--by-turns"]);
    for (flag, number) in [
        ("--agents", fleet.nodes),
        ("--batches", batches),
        ("--samples", batch),
        ("--interval-ms", seconds * 1000),
        ("--in-flight", IN_FLIGHT),
        ("--services", fleet.services),
        ("--stacks", fleet.stacks),
        // From the very start of the hour: what came later would be in the next one, and outside of the window that
        // is asked for.
        ("--start-ms", from as u64),
    ] {
        sender.args([flag, &number.to_string()]);
    }
    let mut filled = Filled::default();
    let sent = thread::scope(|scope| {
        let sending = scope.spawn(|| run::output(&mut sender));
        while asked_meanwhile && !sending.is_finished() {
            for question in &questions(from, until) {
                *filled
                    .answers
                    .entry(outcome(&alone.client, &question.path))
                    .or_default() += 1;
            }
        }
        sending.join()
    });
    let sent = sent.map_err(|_| anyhow::anyhow!("the load panicked"))??;
    filled.took_s = begin.elapsed().as_secs_f64();
    filled.cpu_s = cpu_seconds(alone.server.pid())? - before;
    let traffic_acknowledged = traffic();
    for line in sent.lines() {
        let agent: serde_json::Value = serde_json::from_str(line).context("the load's report is not JSON")?;
        filled.samples += integer(&agent["samples"]);
        filled.sent_bytes += integer(&agent["sent_bytes"]);
    }
    filled.fresh = live_files(&alone.client)?;
    settle(&mut alone.server, fleet.settle, stop)?;
    filled.total_cpu_s = cpu_seconds(alone.server.pid())? - before;
    filled.peak_bytes = size_bytes(alone.server.pid(), "VmHWM")?;
    filled.settled = live_files(&alone.client)?;
    if let (Some(before), Some(acknowledged), Some(settled)) = (traffic_before, traffic_acknowledged, traffic()) {
        filled.bucket = Some([acknowledged.since(before), settled.since(before)]);
    }
    let stored = alone.client.sql_number("SELECT count(*) FROM samples")? - stored_before;
    let samples = filled.samples;
    ensure!(
        stored == samples,
        "{samples} samples were acknowledged, {stored} are stored"
    );
    Ok(filled)
}

/// How a question was answered: by status and error code.
pub(super) fn outcome(client: &Client, query: &str) -> String {
    match client.get(query) {
        Ok(answer) if answer.status == 200 => "200".to_owned(),
        Ok(answer) => {
            let code = answer.json().map(|body| body["error"]["code"].to_string());
            format!("{} {}", answer.status, code.unwrap_or_default())
        }
        Err(error) => format!("{error:#}"),
    }
}

fn report(args: &Args, filled: &Filled, figures: &mut Figures) {
    let samples = filled.samples as f64;
    figures.print_note(format!(
        "{samples} samples: {} nodes of {} CPUs at {FREQUENCY_HZ} Hz, {} hours, {} services of {} stacks each; batches of {}, {:.1} bytes a \
         sample on the wire",
        args.fleet.nodes,
        args.fleet.cpus,
        args.fleet.hours,
        args.fleet.services,
        args.fleet.stacks,
        args.fleet.batch().1,
        filled.sent_bytes as f64 / samples
    ));
    figures.table("Ingest");
    println!("{:<44}{:>14}  target", "", "measured");
    row(
        figures,
        "wall time until the last acknowledgement",
        "s",
        filled.took_s,
        "",
    );
    row(
        figures,
        "samples per CPU second until then",
        "",
        samples / filled.cpu_s,
        "",
    );
    row(
        figures,
        "samples per CPU second, with compaction",
        "",
        samples / filled.total_cpu_s,
        "1000000",
    )
    .at_least(1e6);
    let peak = row(
        figures,
        "server's peak RSS",
        "MiB",
        filled.peak_bytes as f64 / MIB,
        &args.fleet.memory_limit,
    );
    if let Some(limit) = args
        .fleet
        .memory_limit
        .strip_suffix("GiB")
        .and_then(|gib| gib.parse::<f64>().ok())
    {
        peak.at_most(limit * 1024.0);
    }
    for (until, traffic) in ["until then", "with compaction"]
        .iter()
        .zip(filled.bucket.iter().flatten())
    {
        for (name, unit, value) in [
            ("requests", "", traffic.requests as f64),
            ("sent", "MiB", traffic.sent_bytes as f64 / MIB),
            ("received", "MiB", traffic.received_bytes as f64 / MIB),
        ] {
            let name = format!("bucket: {name} a million samples {until}");
            row(figures, &name, unit, value * 1e6 / samples, "");
        }
    }
    for (answer, count) in &filled.answers {
        row(
            figures,
            &format!("questions meanwhile: {answer}"),
            "",
            *count as f64,
            "",
        );
    }
    let mut sum = 0;
    for (table, size, files) in &filled.settled {
        let before = filled.fresh.iter().find(|(name, ..)| name == table);
        let (fresh_size, fresh_files) = before.map_or((0, 0), |(_, size, files)| (*size, *files));
        row(
            figures,
            &format!("{table}, {files} files"),
            "bytes a sample",
            *size as f64 / samples,
            &format!("(before: {:.2}, {fresh_files} files)", fresh_size as f64 / samples),
        );
        sum += size;
    }
    row(figures, "all tables", "bytes a sample", sum as f64 / samples, "6").at_most(6.0);
}

/// Prints a figure beside a target, and keeps it.
pub(super) fn row<'f>(figures: &'f mut Figures, name: &str, unit: &str, value: f64, target: &str) -> &'f mut Figure {
    let digits = if value < 100.0 { 2 } else { 0 };
    let shown = if unit.is_empty() {
        name.to_owned()
    } else {
        format!("{name}, {unit}")
    };
    println!("{shown:<44}{value:>14.digits$}  {target}");
    figures.add(name, unit, value)
}

/// Waits until the server has used less than 2 % of a CPU for so long that a round of maintenance, which comes every
/// ten seconds once an hour has settled, had nothing to do.
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

/// One that is asked.
struct Question {
    name: &'static str,
    path: String,
    target: Target,
}

/// In milliseconds, and in flamegraphs of the same data, warm.
#[derive(Clone, Copy, Debug, Default)]
struct Target {
    cold: Option<f64>,
    warm: Option<f64>,
    flamegraphs: Option<f64>,
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            (self.cold, "cold"),
            (self.warm, "warm"),
            (self.flamegraphs, "flamegraphs"),
        ];
        let parts = parts
            .iter()
            .filter_map(|(target, of)| Some(format!("{} {of}", (*target)?)));
        write!(f, "{}", parts.collect::<Vec<_>>().join(", "))
    }
}

/// What a question took, in milliseconds.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) name: &'static str,
    target: Target,
    pub(super) cold: f64,
    pub(super) warm: f64,
    max: f64,
    /// CPU time of the server for a warm one.
    pub(super) cpu: f64,
    bytes: usize,
    /// The server's, in bytes.
    pub(super) peak_bytes: u64,
    /// The page cache was dropped before the cold one.
    dropped: bool,
    /// Of the bucket, where there is one: for the cold one, and for all the warm ones together.
    bucket: Option<[Traffic; 2]>,
}

/// Asks a question of a new server, and then again.
fn ask(args: &Args, measured: &mut Measured, question: &Question) -> Result<Asked> {
    let Measured {
        alone, stop, bucket, ..
    } = measured;
    let traffic = || bucket.as_ref().map(Bucket::traffic);
    let Question { name, path, target } = question;
    // Cold: a new server, and nothing of the files in memory where that can be asked for.
    alone.stop()?;
    let dropped = drop_page_cache();
    alone.restart(stop)?;
    let ask = || -> Result<(f64, usize)> {
        let begin = Instant::now();
        let answer = alone.client.get_ok(path)?;
        Ok((begin.elapsed().as_secs_f64() * 1e3, answer.body.len()))
    };
    let traffic_before = traffic();
    let (cold, bytes) = ask()?;
    let traffic_cold = traffic();
    let mut warm = vec![];
    let before = cpu_seconds(alone.server.pid())?;
    for _ in 0..args.repeat {
        stop.check()?;
        warm.push(ask()?.0);
    }
    let cpu = (cpu_seconds(alone.server.pid())? - before) * 1e3 / f64::from(args.repeat.max(1));
    let bucket = match (traffic_before, traffic_cold, traffic()) {
        (Some(before), Some(cold), Some(warm)) => Some([cold.since(before), warm.since(cold)]),
        _ => None,
    };
    Ok(Asked {
        name,
        target: *target,
        cold,
        max: warm.iter().copied().fold(0.0, f64::max),
        warm: median(warm),
        cpu,
        bytes,
        peak_bytes: size_bytes(alone.server.pid(), "VmHWM")?,
        dropped,
        bucket,
    })
}

/// Asks all questions of a window.
pub(super) fn ask_all(args: &Args, measured: &mut Measured, from: i64, until: i64) -> Result<Vec<Asked>> {
    let questions = questions(from, until);
    questions.iter().map(|question| ask(args, measured, question)).collect()
}

fn queries(args: &Args, measured: &mut Measured, from: i64, until: i64, figures: &mut Figures) -> Result<()> {
    println!(
        "\n{:<28}{:>9}{:>9}{:>9}{:>9}{:>12}{:>9}  target, ms",
        "ms", "cold", "warm", "max", "CPU", "bytes", "MiB"
    );
    let asked = ask_all(args, measured, from, until)?;
    figures.table("Questions");
    for row in &asked {
        figures.row(row.name);
        tell(row, &asked, figures);
        let cold = format!("{:.0}{}", row.cold, if row.dropped { "" } else { "*" });
        println!(
            "{:<28}{cold:>9}{:>9.0}{:>9.0}{:>9.0}{:>12}{:>9.0}  {}",
            row.name,
            row.warm,
            row.max,
            row.cpu,
            row.bytes,
            row.peak_bytes as f64 / MIB,
            row.target
        );
    }
    figures.print_note(format!(
        "cold: first query of a new server, page cache dropped (*: could not be dropped); warm: median of {}; CPU: of a warm one; MiB: the \
         server's peak RSS; the targets are for 58 M samples of an hour, of one service 1000 ms for 7 days of 2 nodes (--hours 168 --nodes 2)",
        args.repeat
    ));
    if args.bucket {
        tell_bucket(args, &asked, figures);
    }
    Ok(())
}

/// What the questions asked of the bucket.
fn tell_bucket(args: &Args, asked: &[Asked], figures: &mut Figures) {
    println!(
        "\n{:<28}{:>9}{:>9}{:>10}{:>10}{:>9}{:>10}",
        "bucket", "cold s", "warm s", "requests", "MiB", "warm", "MiB"
    );
    figures.table("Requests of questions");
    for row in asked {
        let Some([cold, warm]) = row.bucket else { continue };
        let repeat = f64::from(args.repeat.max(1));
        let values = [
            cold.requests as f64,
            cold.received_bytes as f64 / MIB,
            warm.requests as f64 / repeat,
            warm.received_bytes as f64 / MIB / repeat,
        ];
        println!(
            "{:<28}{:>9.2}{:>9.2}{:>10.0}{:>10.2}{:>9.1}{:>10.2}",
            row.name,
            row.cold / 1e3,
            row.warm / 1e3,
            values[0],
            values[1],
            values[2],
            values[3]
        );
        figures.row(row.name);
        let names = [
            ("cold", "requests"),
            ("cold", "MiB"),
            ("warm", "requests"),
            ("warm", "MiB"),
        ];
        for ((name, unit), value) in names.into_iter().zip(values) {
            figures.add(name, unit, value);
        }
    }
    figures.print_note(format!(
        "a bucket of an S3 server of this machine, each request {} ms later; requests and bytes of the first question of a new server, and \
         of each later one; what maintenance asks meanwhile is among them, what renews the lease is not",
        args.bucket_latency_ms
    ));
}

/// The figures of a question; a difference also in flamegraphs of the same data.
fn tell(row: &Asked, all: &[Asked], figures: &mut Figures) {
    let mut add = |name: &str, unit: &str, value: f64, most: Option<f64>| {
        let figure = figures.add(name, unit, value);
        if let Some(most) = most {
            figure.at_most(most);
        }
    };
    add("cold", "ms", row.cold, row.target.cold);
    add("warm", "ms", row.warm, row.target.warm);
    add("CPU, warm", "ms", row.cpu, None);
    add("answer", "bytes", row.bytes as f64, None);
    add("peak RSS", "MiB", row.peak_bytes as f64 / MIB, None);
    let of_same_data = row.name.replace("difference", "flamegraph");
    if let (Some(most), Some(flamegraph)) = (
        row.target.flamegraphs,
        all.iter().find(|asked| asked.name == of_same_data),
    ) {
        add("in flamegraphs", "", row.warm / flamegraph.warm, Some(most));
    }
}

/// Those of a window.
fn questions(from: i64, until: i64) -> Vec<Question> {
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
    // What a difference of two halves does twice: less than whole hours is read from the roll-up by minute.
    let of_half = window("/api/v1/flamegraph", "{}", &halves[1..], &share);
    let diff = |query| window("/api/v1/diff", query, &halves, &share);
    let series = |query, by| window("/api/v1/series", query, &whole, &[("by", by)]);
    let none = Target::default();
    let warm = |ms: f64| Target { warm: Some(ms), ..none };
    let both = |cold: f64, ms: f64| Target {
        cold: Some(cold),
        ..warm(ms)
    };
    let flamegraphs = Target {
        flamegraphs: Some(2.5),
        ..none
    };
    let question = |name, path, target| Question { name, path, target };
    let top = window("/api/v1/top", "{}", &whole, &[("by", "function")]);
    let services = "/api/v1/labels/service/values".to_owned();
    vec![
        question("flamegraph, everything", flamegraph("{}"), both(1000.0, 300.0)),
        question("flamegraph, one half of it", of_half, none),
        question("flamegraph, one service", flamegraph(one), warm(100.0)),
        question("difference, everything", diff("{}"), flamegraphs),
        question("difference, one service", diff(one), flamegraphs),
        question("series by service", series("{}", "service"), warm(200.0)),
        question("series of one service", series(one, "process"), none),
        question("top functions", top, none),
        question("services", services, none),
    ]
}
