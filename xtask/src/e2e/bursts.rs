//! Closer looks in a row, with the agent, the server and the network failing in between: the usual rate always comes
//! back, and no sample is lost or told twice.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::outage::until;
use super::proxy::Path;
use super::scene::Scene;
use crate::http::{Answer, Client, integer, path};
use crate::stack::{Alone, alive, start_agent};

const NODE: &str = "drill";
const TOKEN: &str = "look-closer";
const HZ: i64 = 999;
/// What a sample of a burst stands for.
const BURST_NS: i64 = 1_000_000_000 / HZ;
/// Clocks of samples and of bursts are read apart from each other.
const SLACK_MS: i64 = 50;
/// In which samples are looked at: a burst is longer.
const STEP_NS: i64 = 100_000_000;
/// How soon an agent is to hear of it.
const HEARD_WITHIN_MS: i64 = 2_000;

/// A program that always runs: without one a CPU may be idle, and has no samples.
struct Burner(Child);

impl Burner {
    fn start() -> Result<Burner> {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        Ok(Burner(command.spawn().context("can't start a program that runs")?))
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ask(client: &Client, token: &str, body: &Value) -> Result<Answer> {
    let bearer = format!("Bearer {token}");
    let mut headers = vec![("content-type", "application/json")];
    if !token.is_empty() {
        headers.push(("authorization", bearer.as_str()));
    }
    client.send("POST", "/api/v1/bursts", &headers, body.to_string().as_bytes())
}

fn burst(seconds: u32) -> Value {
    json!({"node": NODE, "frequency_hz": HZ, "seconds": seconds})
}

/// Asks until an agent is there that can; the burst's id.
fn begin(client: &Client, seconds: u32) -> Result<String> {
    let mut id = String::new();
    until("an agent takes a burst", || {
        let answer = ask(client, TOKEN, &burst(seconds))?;
        ensure!(answer.status == 201, "{}: {}", answer.status, answer.text());
        id = answer.json()?["bursts"][0]["id"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        Ok(true)
    })?;
    Ok(id)
}

fn all(client: &Client) -> Result<Vec<Value>> {
    let list = client.get_json("/api/v1/bursts")?["bursts"].take();
    serde_json::from_value(list).context("no list of bursts")
}

fn find(client: &Client, id: &str) -> Result<Value> {
    let list = all(client)?;
    let found = list.into_iter().find(|burst| burst["id"] == id);
    found.with_context(|| format!("the burst {id} is forgotten"))
}

/// Waits until it is in one of these states.
fn wait_for(client: &Client, id: &str, states: &[&str]) -> Result<Value> {
    let mut last = Value::Null;
    let reached = until("a burst comes to its end", || {
        last = find(client, id)?;
        let state = last["state"].as_str().unwrap_or_default();
        Ok(states.contains(&state))
    });
    reached.with_context(|| format!("{states:?}: {last}"))?;
    Ok(last)
}

/// One of a second, from the question to its end.
fn whole(client: &Client) -> Result<Value> {
    for _ in 0..5 {
        let ended = wait_for(client, &begin(client, 1)?, &["ended", "lost"])?;
        if ended["state"] == "ended" {
            return Ok(ended);
        }
        // The agent had just gone, and its successor took longer to come than such a question is good for.
        println!("lost: {}", ended["reason"]);
    }
    anyhow::bail!("five in a row are lost")
}

/// What nobody may have is refused, and says why.
fn refusals(client: &Client) -> Result<()> {
    let mut fast = burst(1);
    fast["frequency_hz"] = json!(4_000);
    let mut nowhere = burst(1);
    nowhere["node"] = json!("nowhere");
    for (token, body, status, words) in [
        ("", burst(1), 401, "a token for bursts is needed"),
        ("guess", burst(1), 401, "a token for bursts is not valid here"),
        (TOKEN, fast, 400, "above the limit of drill, 999 Hz"),
        (TOKEN, nowhere, 404, "no agent of a node `nowhere` is known"),
    ] {
        let answer = ask(client, token, &body)?;
        ensure!(
            answer.status == status && answer.text().contains(words),
            "{body} answered {}: {}",
            answer.status,
            answer.text()
        );
    }
    Ok(())
}

/// One after the other; in one of them the agent is started anew, in one the server is killed, in one nothing gets
/// through.
pub(super) fn come_back(scene: &Scene<'_>) -> Result<()> {
    let rounds = scene.rounds(12, 100);
    let dir = tempfile::tempdir()?;
    let tokens = dir.path().join("burst-tokens");
    std::fs::write(&tokens, TOKEN)?;
    let tokens = tokens.to_string_lossy();
    let more = ["--burst-token-file", &*tokens, "--commit-interval", "500ms"];
    let mut alone = Alone::start(scene.options(dir.path(), 20), &more, scene.stop)?;
    let client = alone.client.clone();
    let cable = Path::to(&alone.options.listen)?;
    let agent_flags = ["--node", NODE, "--interval", "1"];
    let mut agent = start_agent(&alone.options, &cable.url(), &agent_flags)?;
    let _burner = Burner::start()?;
    whole(&client)?;
    refusals(&client)?;

    let (restart, kill, cut) = (rounds / 4, rounds / 2, rounds * 3 / 4);
    let (mut slowest_ms, mut samples, mut cpu_seconds) = (0, 0, 0.0);
    for round in 1..=rounds {
        scene.stop.check()?;
        let ended = if round == restart {
            let id = begin(&client, 30)?;
            wait_for(&client, &id, &["running"])?;
            let status = agent.stop(Duration::from_secs(60));
            ensure!(
                status.is_some_and(|status| status.success()),
                "{}",
                agent.last_lines(10)
            );
            agent = start_agent(&alone.options, &cable.url(), &agent_flags)?;
            let ended = wait_for(&client, &id, &["cancelled", "lost"])?;
            println!(
                "round {round}: agent started anew: {} ({})",
                ended["state"], ended["reason"]
            );
            ended
        } else if round == kill {
            let id = begin(&client, 4)?;
            wait_for(&client, &id, &["running"])?;
            alone.server.signal(Signal::SIGKILL);
            alone.restart(scene.stop)?;
            let ended = wait_for(&client, &id, &["ended", "cancelled"])?;
            println!("round {round}: server killed: {} ({})", ended["state"], ended["reason"]);
            ended
        } else if round == cut {
            let id = begin(&client, 60)?;
            wait_for(&client, &id, &["running"])?;
            cable.cut();
            let silent = Instant::now();
            while silent.elapsed() < Duration::from_secs(15) {
                scene.stop.check()?;
                alive(&mut agent)?;
                thread::sleep(Duration::from_millis(200));
            }
            cable.mend();
            let ended = wait_for(&client, &id, &["cancelled"])?;
            let lasted_ms = integer(&ended["until_ms"]) - integer(&ended["from_ms"]);
            println!(
                "round {round}: network gone: ended after {lasted_ms} ms ({})",
                ended["reason"]
            );
            ensure!(lasted_ms < 20_000, "nobody could end it, and it went on: {ended}");
            ended
        } else {
            let ended = whole(&client)?;
            let heard_ms = integer(&ended["from_ms"]) - integer(&ended["created_ms"]);
            slowest_ms = slowest_ms.max(heard_ms);
            ensure!(
                heard_ms <= HEARD_WITHIN_MS,
                "round {round}: heard after {heard_ms} ms: {ended}"
            );
            ended
        };
        samples += integer(&ended["samples"]);
        cpu_seconds += ended["cpu_seconds"].as_f64().unwrap_or(0.0);
    }
    // Some more at the usual rate, which are after all of them.
    let last_ms = all(&client)?
        .iter()
        .map(|burst| integer(&burst["until_ms"]))
        .max()
        .unwrap_or(0);
    let after = format!(
        "SELECT count(*) FROM samples WHERE ts_ns > {}",
        (last_ms + SLACK_MS) * 1_000_000
    );
    until("samples come after the last burst", || {
        Ok(client.sql_number(&after)? > 50)
    })?;
    let status = agent.stop(Duration::from_secs(60));
    ensure!(
        status.is_some_and(|status| status.success()),
        "{}",
        agent.last_lines(10)
    );
    println!(
        "{rounds} bursts: {samples} samples told at {HZ} Hz, {cpu_seconds:.1} CPU seconds of the agent; heard within \
         {slowest_ms} ms"
    );
    check_rates(&client)?;
    check_accounts(&client)?;
    alone.stop()
}

/// Within bursts samples are of the bursts' period, and nowhere else.
fn check_rates(client: &Client) -> Result<()> {
    let bursts = all(client)?;
    let windows: Vec<(i64, i64)> = bursts
        .iter()
        .map(|burst| (integer(&burst["from_ms"]), integer(&burst["until_ms"])))
        .filter(|(from_ms, _)| *from_ms > 0)
        .collect();
    // Steps, since an answer has at most 10,000 rows.
    let rows = client.sql(&format!(
        "SELECT ts_ns / {STEP_NS} AS step, count(*), min(ts_ns), max(ts_ns) FROM samples WHERE value = {BURST_NS} \
         GROUP BY 1"
    ))?;
    ensure!(rows.len() < 10_000, "{} steps of {STEP_NS} ns", rows.len());
    let (mut inside, mut outside) = (0, 0);
    for row in &rows {
        let [_, count, first_ns, last_ns] = [0, 1, 2, 3].map(|column| row.get(column).map_or(0, integer));
        // Each end of a step's samples lies in a burst, of which there may be two.
        let is_inside = |ns: i64| {
            let at = ns / 1_000_000;
            let mut windows = windows.iter();
            windows.any(|(from_ms, until_ms)| (from_ms - SLACK_MS..=until_ms + SLACK_MS).contains(&at))
        };
        if is_inside(first_ns) && is_inside(last_ns) {
            inside += count;
        } else {
            outside += count;
        }
    }
    let told: i64 = bursts.iter().map(|burst| integer(&burst["samples"])).sum();
    println!(
        "{inside} samples of bursts within their {} windows, {outside} outside",
        windows.len()
    );
    ensure!(inside > 0 && outside == 0, "the usual rate did not come back");
    ensure!(inside == told, "the agents have told of {told}");
    let shown = path(
        "/api/v1/markers",
        &[("kinds", "burst"), ("from", "now-1h"), ("until", "now+1h")],
    );
    let markers = client.get_json(&shown)?;
    let count = markers["markers"].as_array().map_or(0, Vec::len);
    ensure!(count == windows.len(), "{count} markers of {} bursts", windows.len());
    Ok(())
}

/// Of each run of the agent: what was taken is stored, nothing was lost, and nothing is stored twice.
fn check_accounts(client: &Client) -> Result<()> {
    let nodes = client.get_json("/api/v1/nodes")?;
    let runs: Vec<&Value> = nodes["nodes"].as_array().into_iter().flatten().collect();
    ensure!(runs.len() == 2, "{} runs of the agent are listed", runs.len());
    let mut all = 0;
    for run in runs {
        let lost = run["samples_lost"].as_object().into_iter().flatten();
        let lost: i64 = lost.map(|(_, count)| integer(count)).sum();
        let (taken, stored) = (integer(&run["samples_taken"]), integer(&run["samples_stored"]));
        println!("{}: {taken} taken, {lost} lost, {stored} stored", run["instance"]);
        ensure!(
            taken > 0 && lost == 0 && taken == stored,
            "these numbers don't agree: {run}"
        );
        ensure!(
            integer(&run["frequency_hz"]) == 20,
            "the usual rate is another one: {run}"
        );
        all += stored;
    }
    let (rows, distinct) = (client.stored_rows("true")?, client.distinct_rows("true")?);
    ensure!(
        rows == all && rows == distinct,
        "{all} by the ledger, {rows} rows, {distinct} distinct"
    );
    Ok(())
}
