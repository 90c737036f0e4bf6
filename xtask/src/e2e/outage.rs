//! The server is killed under load, the network path is cut: what was acknowledged is stored, once.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::proxy::Path;
use super::scene::Scene;
use crate::artifacts::{self, Profile};
use crate::http::{Client, integer, samples_lost};
use crate::stack::{self, Alone, now_ms, start_agent};

/// How long the path stays cut; the whole two minutes of the acceptance list with `STAKEOUT_LONG=1`.
fn cut_time() -> Duration {
    Duration::from_secs(if std::env::var_os("STAKEOUT_LONG").is_some() {
        120
    } else {
        15
    })
}

/// Ten synthetic agents and the real one ship through a proxy; the server is killed three times without warning, and
/// the path is cut once. Every agent's samples are stored exactly once.
pub(crate) fn loses_and_repeats_nothing(scene: &Scene<'_>) -> Result<()> {
    let dir = tempfile::tempdir()?;
    // What is waited for is stored with some commits: the more often, the sooner.
    let more = ["--commit-interval", "500ms"];
    let mut alone = Alone::start(scene.options(dir.path(), 99), &more, scene.stop)?;
    let client = alone.client.clone();
    let path = Path::to(&alone.options.listen)?;
    let mut agent = start_agent(&alone.options, &path.url(), &[])?;
    let load = Load::start(
        &path.url(),
        &[
            "--agents",
            "10",
            "--batches",
            "0",
            "--samples",
            "400",
            "--pace-ms",
            "50",
        ],
    )?;
    let stored = || client.sql_number("SELECT count(*) FROM samples");
    for round in 1..=3 {
        // More than before: the load runs again, and there is something to lose.
        let before = stored()?;
        until("more samples are stored", || Ok(stored()? > before + 20_000))?;
        alone.server.signal(Signal::SIGKILL);
        alone.restart(scene.stop)?;
        println!("round {round}: server killed with at least {before} samples stored");
        ensure!(
            stored()? >= before,
            "after the restart fewer samples are stored than had been answered before"
        );
    }
    let before = stored()?;
    until("the load runs again", || Ok(stored()? > before + 20_000))?;
    path.cut();
    let end = Instant::now() + cut_time();
    while Instant::now() < end {
        scene.stop.check()?;
        stack::alive(&mut agent)?;
        thread::sleep(Duration::from_millis(200));
    }
    path.mend();
    let before = stored()?;
    until("the load runs again after the cut", || Ok(stored()? > before + 20_000))?;
    let report = load.finish()?;
    let status = agent.stop(Duration::from_secs(60));
    ensure!(
        status.is_some_and(|status| status.success()),
        "the agent ended badly: {}",
        agent.last_lines(10)
    );
    let met = path.met();
    println!(
        "path cut for {} s; {met} open connections met the cut",
        cut_time().as_secs()
    );
    ensure!(
        met > 0,
        "no connection was open during the cut: this test tested nothing"
    );
    check_load(&client, &report)?;
    check_agent(&client)?;
    alone.stop()
}

/// What was sent equals what is stored, though some of it was sent more than once.
pub(super) fn check_load(client: &Client, report: &[Value]) -> Result<()> {
    let repeats = check_stored(client, report)?;
    ensure!(repeats > 0, "no batch was ever sent twice: this test tested nothing");
    Ok(())
}

/// What was sent equals what is stored, agent by agent; no sample's time stamp occurs twice. How many batches were
/// sent again.
pub(super) fn check_stored(client: &Client, report: &[Value]) -> Result<i64> {
    let rows = client
        .sql("SELECT node, count(*), count(DISTINCT ts_ns) FROM samples WHERE node LIKE 'load-%' GROUP BY node")?;
    ensure!(
        rows.len() == report.len(),
        "{} agents sent, {} are stored",
        report.len(),
        rows.len()
    );
    let (mut sent, mut repeats) = (0, 0);
    for agent in report {
        let row = rows
            .iter()
            .find(|row| row.first() == Some(&agent["node"]))
            .context("a node is missing")?;
        let (stored, distinct) = (row.get(1).map_or(0, integer), row.get(2).map_or(0, integer));
        let acknowledged = integer(&agent["samples"]);
        ensure!(
            stored == acknowledged && distinct == acknowledged,
            "{}: {acknowledged} samples acknowledged, {stored} stored, {distinct} of them distinct",
            agent["node"]
        );
        sent += acknowledged;
        repeats += integer(&agent["attempts"]) - integer(&agent["batches"]);
    }
    println!("synthetic agents: {sent} samples acknowledged = stored = distinct; {repeats} batches sent again");
    Ok(repeats)
}

/// The real agent's own counters: taken - lost = stored = rows of the table, each of another instant of its CPU.
pub(crate) fn check_agent(client: &Client) -> Result<()> {
    let nodes = client.get_json("/api/v1/nodes")?;
    let real = nodes["nodes"].as_array().into_iter().flatten();
    let mut real = real.filter(|node| !node["node"].as_str().unwrap_or("").starts_with("load-"));
    let node = real.next().context("the real agent is not listed")?;
    ensure!(real.next().is_none(), "more than one instance of the real agent");
    let name = node["node"].as_str().context("no name")?;
    let lost = samples_lost(node);
    let (taken, stored) = (integer(&node["samples_taken"]), integer(&node["samples_stored"]));
    let own = format!("node = '{name}'");
    let (rows, distinct) = (client.stored_rows(&own)?, client.distinct_rows(&own)?);
    println!("real agent: {taken} taken, {lost} lost, {stored} stored by its ledger, {rows} rows, {distinct} distinct");
    ensure!(taken > 0, "the agent took no sample");
    if distinct != rows {
        let twins = format!(
            "SELECT ts_ns, type, cpu, tid, thread, mode, stack_id, process_id, value, \
             count(*) OVER (PARTITION BY ts_ns, type, cpu, tid) AS n \
             FROM (SELECT * FROM samples UNION ALL SELECT * FROM waits) WHERE {own} QUALIFY n > 1 LIMIT 20"
        );
        println!("same instant, CPU and thread: {:?}", client.sql(&twins));
    }
    ensure!(
        taken - lost == stored && stored == rows && rows == distinct,
        "these numbers don't agree"
    );
    Ok(())
}

/// Waits up to two minutes; errors of the connection count as "not yet".
pub(super) fn until(what: &str, mut holds: impl FnMut() -> Result<bool>) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let answer = holds();
        if matches!(answer, Ok(true)) {
            return Ok(());
        }
        if Instant::now() > deadline {
            answer?;
            anyhow::bail!("not within two minutes: {what}");
        }
        thread::sleep(Duration::from_millis(200));
    }
}

/// Several batches of each are in flight, for as long as nobody ends them.
pub(super) const FIVE_AGENTS: [&str; 12] = [
    "--agents",
    "5",
    "--batches",
    "0",
    "--samples",
    "200",
    "--in-flight",
    "4",
    "--pace-ms",
    "100",
    "--interval-ms",
    "1000",
];

/// The synthetic fleet as a background process.
pub(crate) struct Load {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Load {
    /// Builds and starts it.
    pub(crate) fn start(url: &str, arguments: &[&str]) -> Result<Load> {
        let mut command = Command::new(load_program(Profile::Debug)?);
        // Two hours ago: however fast the batches come, none is from the future.
        let start_ms = (now_ms() - 7_200_000).to_string();
        command.args(["--url", url, "--start-ms", &start_ms]).args(arguments);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("can't start the load")?;
        let stdin = child.stdin.take();
        Ok(Load { child, stdin })
    }

    /// Tells it to end once everything is acknowledged; one report an agent.
    pub(crate) fn finish(mut self) -> Result<Vec<Value>> {
        self.stdin = None;
        let stdout = self.child.stdout.take().context("no output")?;
        let lines: Vec<String> = BufReader::new(stdout).lines().collect::<Result<_, _>>()?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the load ended with {status}");
        lines
            .iter()
            .map(|line| serde_json::from_str(line).context("not JSON"))
            .collect()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The synthetic fleet, which is built with the two programs. The folder of `STAKEOUT_BIN_DIR` need not have it: a
/// release does not.
pub(crate) fn load_program(profile: Profile) -> Result<std::path::PathBuf> {
    let beside = std::env::var_os("STAKEOUT_BIN_DIR").map(|dir| std::path::PathBuf::from(dir).join("stakeout-load"));
    if let Some(program) = beside.filter(|program| program.is_file()) {
        return Ok(program);
    }
    let program = artifacts::folder(profile)?.join("stakeout-load");
    ensure!(program.is_file(), "there is no {}", program.display());
    Ok(program)
}
