//! Backups of a store that agents ship to, and what is restored of them: each is one moment, and the last one is all.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::outage::{FIVE_AGENTS, Load, check_stored, until};
use super::scene::Scene;
use crate::bucket::{Bucket, environment, url};
use crate::http::integer;
use crate::run;
use crate::service::make_dir;
use crate::stack::{Alone, Elsewhere};
use crate::tools::{Ready, S3_SERVER};

const SERVER: [&str; 6] = ["--commit-interval", "300ms", "--min-free", "1MiB", "--settle", "5s"];
/// More than are made, so that all of them stay.
const KEEP: &str = "100";

/// Where a store, its backups, and what is restored are.
struct Places {
    store: String,
    backups: String,
    restored: String,
    environment: Vec<(&'static str, String)>,
}

/// In folders, and in a bucket where there is an S3 server.
pub(crate) fn under_load(scene: &Scene<'_>) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let below = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let folders = Places {
        store: below("store"),
        backups: below("backups"),
        restored: below("restored"),
        environment: vec![],
    };
    drill(scene, &dir.path().join("of-folders"), &folders).context("in folders")?;
    if let Ready::Missing(why) = S3_SERVER.ready_or_missing()? {
        println!("  in a bucket: SKIPPED: there is no S3 server: {why}");
        return Ok(());
    }
    let bucket = Bucket::start(dir.path(), Duration::ZERO)?;
    let places = Places {
        store: url("store"),
        backups: url("backups"),
        restored: url("restored"),
        environment: environment(bucket.relay().address()),
    };
    drill(scene, &dir.path().join("of-bucket"), &places).context("in a bucket")
}

fn drill(scene: &Scene<'_>, logs: &Path, places: &Places) -> Result<()> {
    let mut alone = server(scene, &logs.join("store"), places, &places.store)?;
    let load = Load::start(alone.client.base(), &FIVE_AGENTS)?;
    let rounds = scene.rounds(2, 10);
    let mut before = 0;
    for round in 0..rounds {
        scene.stop.check()?;
        until("more samples are stored", || Ok(committed(&alone)? > before))?;
        let least = committed(&alone)?;
        command(
            scene,
            places,
            &["backup", &places.store, &places.backups, "--keep", KEEP],
        )?;
        let most = stored(&alone)?;
        command(scene, places, &["check", &places.backups])?;
        let to = format!("{}-{round}", places.restored);
        command(scene, places, &["restore", &places.backups, &to])?;
        let mut restored = server(scene, &logs.join(format!("restored-{round}")), places, &to)?;
        let [rows, distinct, ledger] = told(&restored)?;
        ensure!(
            (least..=most).contains(&rows) && rows == distinct && rows == ledger,
            "a backup between {least} and {most} samples has {rows} rows, {distinct} distinct ones, {ledger} in the ledger"
        );
        before = rows;
        restored.stop()?;
    }
    let report = load.finish()?;
    let sent: i64 = report.iter().map(|agent| integer(&agent["samples"])).sum();
    check_stored(&alone.client, &report)?;
    alone.stop()?;
    command(scene, places, &["check", &places.store])?;
    command(
        scene,
        places,
        &["backup", &places.store, &places.backups, "--keep", KEEP],
    )?;
    let to = format!("{}-last", places.restored);
    command(scene, places, &["restore", &places.backups, &to])?;
    let mut restored = server(scene, &logs.join("restored-last"), places, &to)?;
    ensure!(
        told(&restored)? == [sent; 3],
        "{sent} samples were acknowledged; rows, distinct rows and ledger of the last backup: {:?}",
        told(&restored)?
    );
    check_stored(&restored.client, &report)?;
    println!("  {rounds} backups under load, and one of all {sent} samples");
    restored.stop()
}

fn server(scene: &Scene<'_>, state_dir: &Path, places: &Places, data: &str) -> Result<Alone> {
    make_dir(state_dir)?;
    let elsewhere = Elsewhere {
        data: data.to_owned(),
        environment: places.environment.clone(),
    };
    Alone::start_on(scene.options(state_dir, 20), Some(elsewhere), &SERVER, scene.stop)
}

/// A command of the server's program, which has to find nothing wrong.
fn command(scene: &Scene<'_>, places: &Places, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(&scene.binaries.server);
    let environment = places.environment.iter().map(|(key, value)| (key, value));
    run::output(command.args(arguments).envs(environment)).map(drop)
}

/// Samples that are taken in, also those that wait for their commit, which no backup has.
fn stored(alone: &Alone) -> Result<i64> {
    alone.client.sql_number("SELECT count(*) FROM samples")
}

/// Samples that are committed since the server's start: each of them is in a backup that begins now.
fn committed(alone: &Alone) -> Result<i64> {
    let text = alone.client.get_ok("/metrics")?.text();
    let mut lines = text.lines();
    let number = lines.find_map(|line| line.strip_prefix("stakeout_store_samples_total "));
    let number = number.context("/metrics does not say how many samples are stored")?;
    number
        .trim()
        .parse::<i64>()
        .with_context(|| format!("no number: {number}"))
}

/// Rows, rows that can be told apart, and samples by the agents' ledger.
fn told(alone: &Alone) -> Result<[i64; 3]> {
    let client = &alone.client;
    let of_times = "SELECT node, ts_ns, count(*) AS n FROM samples GROUP BY node, ts_ns";
    let rows = client.sql(&format!("SELECT sum(n), count(*) FROM ({of_times}) AS of_times"))?;
    let rows = rows.first().context("no count")?;
    let number = |at: usize| rows.get(at).map_or(0, integer);
    let ledger = client.sql_number("SELECT sum(samples) FROM batches")?;
    Ok([number(0), number(1), ledger])
}
