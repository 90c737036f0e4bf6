//! How long the first question waits for a bucket: the same hour in a bucket and on the local disk, asked by servers
//! that know nothing of it yet, and again.
//!
//! In: how large the fleet is, and how much later each request comes. Out: milliseconds, requests, and the floor: no
//! more times the delay than requests waited for one another.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::fleet_size::Fleet;
use super::report::Figures;
use super::servers::until_calm;
use super::store::{HOUR_MS, MIB, begin, fill};
use super::{Measured, drop_page_cache, median};
use crate::bucket::{Bucket, Relay, Timed};
use crate::http::path;
use crate::service::{make_dir, within};
use crate::stack::{Alone, Elsewhere, Options};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    fleet: Fleet,
    /// How much later each request reaches the bucket
    #[arg(long, default_value_t = 20, value_name = "MS")]
    latency: u64,
    /// Servers that are asked for the first time, of which the median is shown
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    first: u32,
    /// Warm repetitions of each question, of which the median is shown
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
}

/// A question, its path, and what it may take cold from the bucket, in milliseconds.
type Question = (&'static str, String, Option<f64>);

/// Warm from the bucket, in times from the local disk.
const WARM_IN_LOCAL: f64 = 1.1;
/// The first of several servers does the maintenance by then.
const MAINTAINS: Duration = Duration::from_secs(60);

/// What a question took in one place.
#[derive(Debug)]
struct Asked {
    cold_ms: f64,
    warm_ms: f64,
    /// Of the bucket, for one time, where there is one: cold and warm.
    bucket: Option<[OfBucket; 2]>,
    dropped: bool,
    body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
struct OfBucket {
    requests: f64,
    mib: f64,
    /// Requests that followed one another, at most.
    chain: f64,
}

pub(crate) fn run(args: &Args, figures: &mut Figures) -> Result<()> {
    let from = begin(args.fleet.hours);
    let until = from + (args.fleet.hours * HOUR_MS as f64) as i64;
    let questions = questions(from, until);
    let latency = Duration::from_millis(args.latency);
    let disk = measure(args, None, [from, until], &questions)?;
    let bucket = measure(args, Some(latency), [from, until], &questions)?;
    report(args, &questions, &disk, &bucket, figures);
    for (((name, ..), disk), bucket) in questions.iter().zip(&disk).zip(&bucket) {
        ensure!(
            disk.body == bucket.body,
            "{name}: the bucket's answer is another one than the local disk's"
        );
    }
    Ok(())
}

/// As a person asks first: everything, and one service, of the whole hour, which a roll-up answers; and of all but two
/// milliseconds of it, for which all samples are read.
fn questions(from: i64, until: i64) -> Vec<Question> {
    let ask = |from: i64, until: i64, query: &str| {
        let (from, until) = (from.to_string(), until.to_string());
        let pairs = [
            ("from", &*from),
            ("until", &*until),
            ("query", query),
            ("min_share", "0.0001"),
        ];
        path("/api/v1/flamegraph", &pairs)
    };
    let one = "{service=\"service-7\"}";
    vec![
        ("flamegraph, everything", ask(from, until, "{}"), Some(3000.0)),
        ("flamegraph, one service", ask(from, until, one), Some(1000.0)),
        ("all samples, everything", ask(from + 1, until - 1, "{}"), Some(3000.0)),
        ("all samples, one service", ask(from + 1, until - 1, one), Some(1000.0)),
    ]
}

/// Fills a store, and asks all of it.
fn measure(args: &Args, latency: Option<Duration>, window: [i64; 2], questions: &[Question]) -> Result<Vec<Asked>> {
    let more = ["--settle", "15s", "--memory-limit", &args.fleet.memory_limit];
    let mut measured = Measured::start_on(latency, &more)?;
    let filled = fill(&args.fleet, &mut measured, window, false)?;
    let place = if latency.is_some() {
        "the bucket"
    } else {
        "the local disk"
    };
    println!("{} samples are in {place}", filled.samples);
    let way = measured.bucket.as_ref().map(Bucket::another_way).transpose()?;
    let mut keeper = match &way {
        Some(way) => Some(beside_another(args, &mut measured, way)?),
        None => None,
    };
    let asked = questions
        .iter()
        .map(|(_, path, _)| ask(args, &mut measured, path))
        .collect();
    measured.alone.stop()?;
    keeper.as_mut().map_or(Ok(()), Alone::stop)?;
    asked
}

/// In place of the server that filled the bucket two that share it. The first, which comes back and is asked nothing,
/// does the maintenance: whoever does compares all files after its start, and would be asked meanwhile.
fn beside_another(args: &Args, measured: &mut Measured, way: &Relay) -> Result<Alone> {
    measured.alone.stop()?;
    let stop = measured.stop.clone();
    let more = ["--shared", "--memory-limit", &args.fleet.memory_limit];
    let start = |measured: &Measured, name: &str, place: Elsewhere| -> Result<Alone> {
        let options = measured.alone.options.clone();
        let options = Options {
            state_dir: options.state_dir.join(name),
            listen: "127.0.0.1:0".to_owned(),
            ..options
        };
        make_dir(&options.state_dir)?;
        Alone::start_on(options, Some(place), &more, &measured.stop)
    };
    let bucket = measured.bucket.as_ref().context("there is no bucket")?;
    let keeper = start(measured, "keeper", bucket.place_by(way))?;
    let maintains = within(MAINTAINS, || {
        stop.check()?;
        Ok(keeper.client.get_json("/api/v1/servers")?["maintains"] == true)
    })?;
    ensure!(
        maintains,
        "no server does the maintenance after {} s",
        MAINTAINS.as_secs()
    );
    until_calm(way, &stop)?;
    measured.alone = start(measured, "asked", bucket.place())?;
    Ok(keeper)
}

/// Asks new servers, and the last of them again.
fn ask(args: &Args, measured: &mut Measured, path: &str) -> Result<Asked> {
    let (mut colds, mut of_bucket, mut body, mut dropped) = (vec![], vec![], vec![], true);
    for _ in 0..args.first {
        let Measured { alone, stop, .. } = &mut *measured;
        alone.stop()?;
        dropped &= drop_page_cache();
        alone.restart(stop)?;
        let (took_ms, asked, answer) = timed(measured, path)?;
        colds.push(took_ms);
        of_bucket.push(asked);
        body = answer;
    }
    let (mut warms, mut of_warm) = (vec![], vec![]);
    for _ in 0..args.repeat {
        measured.stop.check()?;
        let (took_ms, asked, answer) = timed(measured, path)?;
        warms.push(took_ms);
        of_warm.push(asked);
        ensure!(answer == body, "{path} has another answer the second time");
    }
    let bucket = measured.bucket.as_ref().map(|_| [middle(&of_bucket), middle(&of_warm)]);
    Ok(Asked {
        cold_ms: median(colds),
        warm_ms: median(warms),
        bucket,
        dropped,
        body,
    })
}

/// Milliseconds, what the bucket was asked meanwhile, and the answer.
fn timed(measured: &Measured, path: &str) -> Result<(f64, OfBucket, Vec<u8>)> {
    let relay = measured.bucket.as_ref().map(Bucket::relay);
    if let Some(relay) = relay {
        relay.begin_timing();
    }
    let begun = Instant::now();
    let answer = measured.alone.client.get_ok(path)?;
    let took_ms = begun.elapsed().as_secs_f64() * 1e3;
    let Some(relay) = relay else {
        return Ok((took_ms, OfBucket::default(), answer.body));
    };
    let Timed {
        requests,
        received_bytes,
        chain,
    } = relay.end_timing().context("there were too many requests to keep")?;
    let of_bucket = OfBucket {
        requests: requests as f64,
        mib: received_bytes as f64 / MIB,
        chain: chain as f64,
    };
    Ok((took_ms, of_bucket, answer.body))
}

fn middle(all: &[OfBucket]) -> OfBucket {
    let of = |value: fn(&OfBucket) -> f64| median(all.iter().map(value).collect());
    OfBucket {
        requests: of(|asked| asked.requests),
        mib: of(|asked| asked.mib),
        chain: of(|asked| asked.chain),
    }
}

fn report(args: &Args, questions: &[Question], disk: &[Asked], bucket: &[Asked], figures: &mut Figures) {
    println!(
        "\n{:<28}{:>10}{:>10}{:>8}{:>9}{:>9}{:>10}{:>10}{:>9}  target",
        "ms", "cold", "requests", "MiB", "chain", "floor", "cold,disk", "warm", "disk"
    );
    figures.table("Cold and warm");
    let latency_ms = args.latency as f64;
    for (((name, _, most), disk), bucket) in questions.iter().zip(disk).zip(bucket) {
        let [cold, warm] = bucket.bucket.unwrap_or_default();
        let cold_disk = format!("{:.0}{}", disk.cold_ms, if disk.dropped { "" } else { "*" });
        println!(
            "{name:<28}{:>10.0}{:>10.0}{:>8.1}{:>9.0}{:>9.0}{cold_disk:>10}{:>10.0}{:>9.0}  {} cold, warm {WARM_IN_LOCAL}",
            bucket.cold_ms,
            cold.requests,
            cold.mib,
            cold.chain,
            cold.chain * latency_ms,
            bucket.warm_ms,
            disk.warm_ms,
            most.map_or("no target".to_owned(), |most| format!("{most:.0}"))
        );
        figures.row(name);
        let cold_ms = figures.add("cold", "ms", bucket.cold_ms);
        if let Some(most) = most {
            cold_ms.at_most(*most);
        }
        for (name, unit, value) in [
            ("requests, cold", "", cold.requests),
            ("received, cold", "MiB", cold.mib),
            ("one after the other, at most", "", cold.chain),
            ("floor: these times the delay", "ms", cold.chain * latency_ms),
            ("cold, local disk", "ms", disk.cold_ms),
            ("warm", "ms", bucket.warm_ms),
            ("requests, warm", "", warm.requests),
            ("received, warm", "MiB", warm.mib),
            ("warm, local disk", "ms", disk.warm_ms),
        ] {
            figures.add(name, unit, value);
        }
        figures
            .add("warm in warm of the local disk", "", bucket.warm_ms / disk.warm_ms)
            .at_most(WARM_IN_LOCAL);
    }
    figures.print_note(format!(
        "cold: the first question of a new server, the median of {}; with the page cache dropped, of the local disk and of the S3 server's \
         (*: it could not be); warm: the median of {}; each request to the bucket, an S3 server of this machine, comes {} ms later; \
         requests: of data files, since a question reads nothing else; of two servers on the bucket the one that is asked does no \
         maintenance; one after the other: the most requests of which each began after the one before had ended, and so no fewer than \
         waited for one another; floor: what these take, however fast all else is, and less where some of them could have been asked \
         together; answers of both places are equal byte for byte, or this bench fails",
        args.first, args.repeat, args.latency
    ));
}
