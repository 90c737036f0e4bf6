//! Packets that wait: softirqs and a slow reader of `memory.stat` share a CPU, which is looked at 999 times a second.
//! That is S5 with real samples.
//!
//! One CPU sends packets whose receiving is another one's work, in a network namespace of their own. On that one a
//! reader keeps the kernel busy. The links show what ran there before the thread that handles softirqs, and the waits
//! between.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::link::{Link, Times};
use super::programs::{Programs, wait_covered};
use crate::http::{Client, integer, path};
use crate::proc::last_cpu;
use crate::service::POLL;
use crate::signals::Stop;
use crate::{packages, repo, run};

const READER: &str = "cadvisor";
const FLOOD: &str = "flood";
const FREQUENCY_HZ: u32 = 999;
/// A burst takes no longer.
const MOST_SECONDS: u64 = 60;
/// What handles softirqs in a thread of its own.
const HANDLER: &str = "run_ksoftirqd";

/// Plays it. The time before is at the agent's usual rate.
pub(super) fn show(client: &Client, times: Times, stop: &Stop) -> Result<(Vec<Link>, Result<()>)> {
    packages::ensure_scenes()?;
    ensure!(
        packages::is_root(),
        "this scene makes a network device of its own, which takes root: run this as root"
    );
    let dir = tempfile::Builder::new().prefix("stakeout-demo").tempdir()?;
    let sources = repo::root().join("xtask/examples/stalls");
    let flood = compile(&sources, dir.path())?;
    let cpu = last_cpu()?.to_string();
    let mut programs = Programs::default();
    let named = |program: &Path, service: &str| {
        let mut command = Command::new(program);
        command.env("OTEL_SERVICE_NAME", service);
        command
    };
    let mut reader = named(Path::new("python3"), READER);
    programs.start(READER, reader.arg(sources.join("cadvisor.py")).arg(&cpu))?;
    programs.start(FLOOD, named(&flood, FLOOD).arg(&cpu))?;
    println!("{READER} and the softirqs of {FLOOD} share CPU {cpu} ...");
    programs.pause(Duration::from_secs(times.before), stop)?;
    let node = newest_node(client)?;
    let [from, until] = burst(client, &node, &cpu, times.after.min(MOST_SECONDS), stop)?;
    drop(programs);
    wait_covered(client, &format!("service = '{READER}'"), until, stop)?;
    let query = format!("{{node=\"{node}\",cpu=\"{cpu}\"}}");
    let [from, until] = [from, until].map(|time| time.to_string());
    let window = [
        ("from", from.as_str()),
        ("until", until.as_str()),
        ("query", query.as_str()),
    ];
    let outcome = judge(client, &window, &cpu);
    let shown = |more: &[(&str, &str)]| path("/", &[&window[..], more].concat());
    let links = vec![
        Link {
            about: "the CPU while it was looked at closely",
            path: shown(&[]),
        },
        Link {
            about: "what ran there, and what waited between, in order",
            path: shown(&[("view", "timeline")]),
        },
    ];
    Ok((links, outcome))
}

fn compile(sources: &Path, dir: &Path) -> Result<std::path::PathBuf> {
    let program = dir.join(FLOOD);
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-pthread", "-o"]).arg(&program);
    run::run(compiler.arg(sources.join("flood.c")))?;
    Ok(program)
}

/// The node whose agent shipped last: this machine's.
fn newest_node(client: &Client) -> Result<String> {
    let nodes = client.get_json("/api/v1/nodes")?;
    let nodes = nodes["nodes"].as_array().into_iter().flatten();
    let newest = nodes.max_by_key(|node| integer(&node["last_seen"]));
    let name = newest.and_then(|node| node["node"].as_str());
    Ok(name.context("no node")?.to_owned())
}

/// Has the CPU looked at closely, and gives the window of that.
fn burst(client: &Client, node: &str, cpu: &str, seconds: u64, stop: &Stop) -> Result<[i64; 2]> {
    let asked = json!({ "node": node, "cpus": cpu, "frequency_hz": FREQUENCY_HZ, "seconds": seconds });
    let headers = [("Content-Type", "application/json")];
    let answer = client.send("POST", "/api/v1/bursts", &headers, asked.to_string().as_bytes())?;
    ensure!(
        answer.status == 201,
        "the burst was refused ({}): {}",
        answer.status,
        answer.text()
    );
    let id = answer.json()?["bursts"][0]["id"].as_str().context("no id")?.to_owned();
    println!("CPU {cpu} of {node} is looked at {FREQUENCY_HZ} times a second, for {seconds} s ...");
    let deadline = Instant::now() + Duration::from_secs(seconds + 60);
    loop {
        stop.check()?;
        ensure!(Instant::now() < deadline, "the burst did not end");
        let bursts = client.get_json("/api/v1/bursts")?;
        let own = |burst: &&Value| burst["id"].as_str() == Some(&id);
        let burst = bursts["bursts"].as_array().into_iter().flatten().find(own);
        let burst = burst.context("the server forgot the burst")?;
        match burst["state"].as_str() {
            Some("ended") => return Ok(["from_ms", "until_ms"].map(|key| integer(&burst[key]))),
            Some("waiting" | "running") => thread::sleep(POLL),
            _ => anyhow::bail!("the burst did not run to its end: {burst}"),
        }
    }
}

/// Says what ran before softirqs' own thread, and how long that waited; an error where it is not the reader.
fn judge(client: &Client, window: &[(&str, &str)], cpu: &str) -> Result<()> {
    let handler = format!("ksoftirqd/{cpu}");
    let of = |what: &str, table: &str| {
        format!(
            "SELECT {what} FROM {table} WHERE thread = '{handler}' AND ts_ns >= {}000000 AND ts_ns < {}000000",
            window[0].1, window[1].1
        )
    };
    let ran = client.sql_number(&format!("{} AND type = 'cpu'", of("count(*)", "samples")))?;
    let waited = client.sql_number(&format!(
        "{} AND type = 'run_queue'",
        of("coalesce(sum(value), 0)", "waits")
    ))?;
    println!(
        "\n{handler}: {ran} samples, and {:.2} s of waiting for the CPU",
        waited as f64 / 1e9
    );
    let question = [window, &[("before", "100ms"), ("match", HANDLER)]].concat();
    let before = client.get_json(&path("/api/v1/timeline", &question))?;
    let names = before["strings"].as_array().into_iter().flatten();
    let reads = names.filter_map(Value::as_str).find(|name| name.contains("stat_show"));
    println!(
        "in the 100 ms before: {} samples; {}",
        integer(&before["nodes"]["total"][0]),
        reads.unwrap_or("nothing of memory.stat")
    );
    ensure!(
        ran > 0,
        "{handler} did not run: the machine is too fast for these packets"
    );
    ensure!(reads.is_some(), "nothing that reads memory.stat ran before it");
    Ok(())
}
