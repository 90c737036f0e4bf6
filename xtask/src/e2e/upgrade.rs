//! One version to the next: a store that the programs of the version before have filled is opened by those of this
//! clone, with the servers first and with the agents first. Counts are equal before and after.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::outage::{Load, check_agent, check_stored, until};
use super::scene::Scene;
use crate::artifacts::Binaries;
use crate::http::{Client, integer, path};
use crate::packages;
use crate::service::{Service, make_dir};
use crate::stack::{Alone, Options, start_agent};

const LOAD: [&str; 12] = [
    "--agents",
    "10",
    "--batches",
    "0",
    "--samples",
    "400",
    "--in-flight",
    "4",
    "--pace-ms",
    "100",
    "--interval-ms",
    "1000",
];
const SERVER: [&str; 4] = ["--commit-interval", "500ms", "--settle", "5s"];
/// Samples of the synthetic agents before a program is changed.
const ENOUGH: i64 = 200_000;
/// Tables whose rows do not change by maintenance.
const TABLES: [&str; 3] = ["samples", "batches", "waits"];

/// What a store tells.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    /// By table.
    rows: Vec<i64>,
    ledger: i64,
    /// Samples of the load in a flamegraph.
    graph: i64,
}

/// Nothing to do where `--before` names no programs: that is told.
pub(crate) fn from_the_version_before(scene: &Scene<'_>) -> Result<()> {
    let Some(folder) = scene.faults.as_ref().and_then(|faults| faults.before.clone()) else {
        println!("  SKIPPED: `cargo xtask faults --before DIR` names the programs of the version before");
        return Ok(());
    };
    let before = Binaries {
        agent: folder.join("stakeout-agent"),
        server: folder.join("stakeout-server"),
    };
    for program in [&before.agent, &before.server] {
        ensure!(program.is_file(), "there is no {}", program.display());
    }
    servers_first(scene, &before).context("servers first")?;
    agents_first(scene, &before).context("agents first")
}

fn options(scene: &Scene<'_>, state_dir: &Path, binaries: &Binaries) -> Result<Options> {
    make_dir(state_dir)?;
    Ok(Options {
        binaries: binaries.clone(),
        ..scene.options(state_dir, 99)
    })
}

/// Where agents can run here: only root may.
fn agent(options: &Options, url: &str) -> Result<Option<Service>> {
    if packages::is_root() {
        return start_agent(options, url, &[]).map(Some);
    }
    println!("  without the real agent, which needs root");
    Ok(None)
}

fn end(agent: Option<Service>) -> Result<bool> {
    let Some(mut agent) = agent else { return Ok(false) };
    let status = agent.stop(Duration::from_secs(60));
    ensure!(
        status.is_some_and(|status| status.success()),
        "the agent ended badly:\n{}",
        agent.last_lines(10)
    );
    Ok(true)
}

fn counts(client: &Client) -> Result<Counts> {
    let rows = TABLES
        .iter()
        .map(|table| client.sql_number(&format!("SELECT count(*) FROM {table}")));
    let graph = path(
        "/api/v1/flamegraph",
        &[("from", "now-24h"), ("until", "now"), ("query", "{node=~\"load-.*\"}")],
    );
    Ok(Counts {
        rows: rows.collect::<Result<_>>()?,
        ledger: client.sql_number("SELECT sum(samples) FROM batches")?,
        graph: integer(&client.get_json(&graph)?["samples"]),
    })
}

fn enough(client: &Client, more_than: i64) -> Result<()> {
    until("the load has come", || {
        Ok(client.sql_number("SELECT count(*) FROM samples WHERE node LIKE 'load-%'")? > more_than + ENOUGH)
    })
}

/// The server is the first that changes: the store is opened, agents of the version before go on.
fn servers_first(scene: &Scene<'_>, before: &Binaries) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut alone = Alone::start(options(scene, dir.path(), before)?, &SERVER, scene.stop)?;
    let client = alone.client.clone();
    let load = Load::start(client.base(), &LOAD)?;
    let running = agent(&alone.options, client.base())?;
    enough(&client, 0)?;
    // The older server stops, which commits what it has; agents keep theirs until the newer one is there.
    let stored = client.sql_number("SELECT count(*) FROM samples")?;
    alone.stop()?;
    alone.options.binaries.server.clone_from(&scene.binaries.server);
    alone.restart(scene.stop)?;
    let opened = client.sql_number("SELECT count(*) FROM samples")?;
    ensure!(
        opened >= stored,
        "{stored} samples were stored before, {opened} are there now"
    );
    enough(&client, stored)?;
    let report = load.finish()?;
    let had_agent = end(running)?;
    check_stored(&client, &report)?;
    if had_agent {
        check_agent(&client)?;
    }
    println!(
        "  servers first: {stored} samples of the older server, {} in the end",
        counts(&client)?.rows[0]
    );
    // Now that nothing comes: the same counts by its next process, and what the older one says to the newer store.
    let newer = counts(&client)?;
    alone.stop()?;
    alone.restart(scene.stop)?;
    ensure!(
        counts(&client)? == newer,
        "{newer:?} before the restart, {:?} after it",
        counts(&client)?
    );
    alone.stop()?;
    back(scene, &mut alone, before, &newer)
}

/// The older server opens the newer store and counts the same, or it refuses that in words.
fn back(scene: &Scene<'_>, alone: &mut Alone, before: &Binaries, newer: &Counts) -> Result<()> {
    alone.options.binaries.server.clone_from(&before.server);
    match alone.restart(scene.stop) {
        Ok(()) => {
            let older = counts(&alone.client)?;
            ensure!(
                older == *newer,
                "{newer:?} by the newer server, {older:?} by the older one"
            );
            println!("  the older server opens the newer store, and counts the same");
            alone.stop()
        }
        Err(error) => {
            let said = alone.server.last_lines(3);
            ensure!(
                said.contains("format") || said.contains("version"),
                "the older server does not say why it refuses the newer store: {error:#}"
            );
            println!("  the older server refuses the newer store:\n{said}");
            Ok(())
        }
    }
}

/// Agents are the first that change: the server of the version before takes what they ship, and then changes itself.
fn agents_first(scene: &Scene<'_>, before: &Binaries) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mixed = Binaries {
        agent: scene.binaries.agent.clone(),
        server: before.server.clone(),
    };
    let mut alone = Alone::start(options(scene, dir.path(), &mixed)?, &SERVER, scene.stop)?;
    let client = alone.client.clone();
    let load = Load::start(client.base(), &LOAD)?;
    let running = agent(&alone.options, client.base())?;
    enough(&client, 0)?;
    let report = load.finish()?;
    let had_agent = end(running)?;
    check_stored(&client, &report)?;
    if had_agent {
        check_agent(&client)?;
    }
    let older = counts(&client)?;
    alone.stop()?;
    alone.options.binaries.server.clone_from(&scene.binaries.server);
    alone.restart(scene.stop)?;
    let newer = counts(&client)?;
    ensure!(
        newer == older,
        "{older:?} by the older server, {newer:?} by the newer one"
    );
    println!("  agents first: {} samples before and after", newer.rows[0]);
    alone.stop()
}
