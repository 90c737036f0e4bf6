//! An attack on the server's doors, while two agents ship: nothing of theirs is lost or held up, and the server stays
//! small and alive.
//!
//! In CI a short form of some seconds; `cargo xtask faults --doors` has 2,000 slow connections and takes longer.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};

use super::outage::Load;
use super::scene::Scene;
use crate::http::{Answer, Client, integer, path};
use crate::proc::size_bytes;
use crate::stack::{self, Alone};

const SHIPS: &str = "token-of-the-agents-of-the-drill";
const ATTACKS: &str = "token-of-somebody-else-in-the-drill";
const VIEWS: &str = "token-of-a-viewer-of-the-drill";

const PROFILES: &str = "/v1development/profiles";
const INSTANCE: &str = "6f1f2b7c-6f0f-4a53-9df0-3f3e3f2b7c01";

/// Longest time until a batch is acknowledged.
const ACKNOWLEDGED: Duration = Duration::from_secs(2);
/// What the server may take in all, and how much more it may take in fact: unoptimised code and threads' stacks.
const MEMORY_MIB: u64 = 512;
const MORE_MIB: u64 = 256;

/// See the module.
pub(crate) fn hold(scene: &Scene<'_>) -> Result<()> {
    let crowd = usize::try_from(scene.rounds(300, 2_000))?;
    let guesses = usize::try_from(scene.rounds(60, 500))?;
    let dir = tempfile::tempdir()?;
    let file = |name: &str, text: String| -> Result<String> {
        let path = dir.path().join(name);
        fs::write(&path, text)?;
        Ok(path.to_string_lossy().into_owned())
    };
    let (ingest, view) = (
        file("ingest", format!("{SHIPS}\n{ATTACKS}\n"))?,
        file("view", VIEWS.to_owned())?,
    );
    let memory = format!("{MEMORY_MIB}MiB");
    let arguments = [
        ("--ingest-token-file", ingest.as_str()),
        ("--view-token-file", &view),
        ("--commit-interval", "300ms"),
        ("--memory-limit", &memory),
    ];
    let arguments: Vec<&str> = arguments.iter().flat_map(|(flag, value)| [*flag, *value]).collect();
    let mut alone = Alone::start(scene.options(dir.path(), 20), &arguments, scene.stop)?;
    let client = alone.client.clone();
    let agents = [
        "--agents",
        "2",
        "--batches",
        "0",
        "--samples",
        "200",
        "--pace-ms",
        "200",
    ];
    let agents = Load::start(
        client.base(),
        &[&agents[..], &["--token", SHIPS, "--node-prefix", "true"]].concat(),
    )?;
    acknowledged(&client, 1, SHIPS)?;
    // Whoever had the right token from this address before others guess is let in all the same.
    for (asked, token) in [("/api/v1/nodes", VIEWS), ("/api/v1/ingest-check", ATTACKS)] {
        let answer = get(&client, asked, token)?;
        ensure!(answer.status < 300, "{asked} is answered with {}", answer.status);
    }

    let over = AtomicBool::new(false);
    let slowest = thread::scope(|threads| -> Result<Duration> {
        let probe = threads.spawn(|| ships_until(&client, &over));
        let attacked = attack(&client, &alone.options.listen, crowd, guesses);
        over.store(true, Ordering::Relaxed);
        let slowest = probe.join().map_err(|_| anyhow::anyhow!("the probe panicked"))?;
        attacked.and(slowest)
    })?;
    stack::alive(&mut alone.server)?;
    println!("  slowest acknowledgement beside it: {:.2} s", slowest.as_secs_f64());
    ensure!(slowest < ACKNOWLEDGED, "an acknowledgement took {slowest:?}");

    let reports = agents.finish()?;
    let shipped: i64 = reports.iter().map(|report| integer(&report["samples"])).sum();
    let stored = sql(&client, "select count(*) from samples where node like 'true-%'")?;
    ensure!(stored.status == 200, "the samples cannot be counted: {}", stored.text());
    let stored = integer(&stored.json()?["rows"][0][0]);
    println!("  {shipped} samples shipped by two agents, {stored} stored");
    ensure!(shipped > 0 && shipped == stored, "{shipped} shipped, {stored} stored");
    let resident = size_bytes(alone.server.pid(), "VmHWM")? >> 20;
    println!("  the server took {resident} MiB at most, {MEMORY_MIB} allowed");
    ensure!(resident < MEMORY_MIB + MORE_MIB, "the server took {resident} MiB");
    let panics = get(&client, "/metrics", VIEWS)?.text();
    ensure!(panics.contains("stakeout_panics_total 0"), "something panicked");
    alone.stop()
}

/// All at once, as far as one thread can; each is answered as it should be.
fn attack(client: &Client, listen: &str, crowd: usize, guesses: usize) -> Result<()> {
    let slow = slow_connections(listen, crowd)?;
    println!("  {} slow connections", slow.len());
    let mut statuses = [0; 2];
    for guess in 0..guesses {
        let status = get(client, "/api/v1/nodes", &format!("guess-{guess}"))?.status;
        ensure!(matches!(status, 401 | 429), "a guess is answered with {status}");
        statuses[usize::from(status == 429)] += 1;
    }
    println!(
        "  {guesses} wrong log-ins: {} refused, {} told to wait",
        statuses[0], statuses[1]
    );
    ensure!(statuses[1] > statuses[0], "guesses are not slowed down");
    deep_questions(client)?;
    poisoned_numbers(client)?;
    let names = [
        "--agents",
        "1",
        "--batches",
        "1",
        "--samples",
        "10000",
        "--services",
        "10000",
        "--services-per-node",
        "10000",
        "--stacks",
        "1",
        "--token",
        ATTACKS,
        "--node-prefix",
        "names",
    ];
    let named = Load::start(client.base(), &names)?.finish()?;
    println!("  {} samples of 10,000 services", integer(&named[0]["samples"]));
    drop(slow);
    Ok(())
}

/// Connections that begin a form and say no more.
fn slow_connections(listen: &str, count: usize) -> Result<Vec<TcpStream>> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let wanted = (count as u64 + 500).min(hard);
    if soft < wanted {
        setrlimit(Resource::RLIMIT_NOFILE, wanted, hard)?;
    }
    let address = listen.parse()?;
    let mut open = vec![];
    for _ in 0..count {
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(5));
        let mut stream = stream.context("the server takes no more connections")?;
        let _ = stream.write_all(b"POST /login HTTP/1.1\r\nhost: localhost\r\ncontent-length: 900\r\n\r\ntoken=");
        open.push(stream);
    }
    Ok(open)
}

fn deep_questions(client: &Client) -> Result<()> {
    let statements = [
        format!("select {}", vec!["1"; 1_500].join("+")),
        format!("select 1{}", "::int".repeat(400)),
        vec!["select 1"; 800].join(" union all "),
        format!("explain select {}", vec!["1"; 1_500].join("+")),
        format!("select {}1{}", "(".repeat(5_000), ")".repeat(5_000)),
        format!("{}select 1", "explain ".repeat(2_000)),
        format!("select {}'1'", "interval ".repeat(2_000)),
    ];
    for statement in &statements {
        let answer = sql(client, statement)?;
        ensure!(
            answer.status == 400,
            "{statement:.60}: {} {}",
            answer.status,
            answer.text()
        );
    }
    let pattern = format!("{}a{}", "(".repeat(2_000), ")".repeat(2_000));
    let selectors = [
        format!("{{service=~\"{pattern}\"}}"),
        format!("{{{}}}", "service=\"a\",".repeat(900)),
        "{service=~\"((a{1000}){1000}){1000}\"}".to_owned(),
    ];
    for selector in &selectors {
        let asked = path("/api/v1/flamegraph", &[("query", selector)]);
        let answer = get(client, &asked, VIEWS)?;
        ensure!(answer.status == 400, "{selector:.60}: {}", answer.status);
    }
    println!(
        "  {} deep statements and {} selectors refused",
        statements.len(),
        selectors.len()
    );
    Ok(())
}

/// Somebody else's token under an agent's instance, and numbers that would make its next ones pass for repeats.
fn poisoned_numbers(client: &Client) -> Result<()> {
    for (token, number) in [(ATTACKS, 1 << 62), (ATTACKS, 2), (SHIPS, 1 << 40)] {
        let answer = report(client, number, token)?;
        ensure!(
            answer.status == 400,
            "number {number} is answered with {}",
            answer.status
        );
    }
    println!("  3 poisoned numbers refused");
    Ok(())
}

/// Ships small batches one after the other; the longest that one took.
fn ships_until(client: &Client, over: &AtomicBool) -> Result<Duration> {
    let mut slowest = Duration::ZERO;
    for number in 2.. {
        slowest = slowest.max(acknowledged(client, number, SHIPS)?);
        if over.load(Ordering::Relaxed) {
            break;
        }
    }
    Ok(slowest)
}

fn acknowledged(client: &Client, number: i64, token: &str) -> Result<Duration> {
    let begin = Instant::now();
    let answer = report(client, number, token)?;
    ensure!(
        answer.status == 200,
        "batch {number}: {} {}",
        answer.status,
        answer.text()
    );
    Ok(begin.elapsed())
}

/// A batch of no samples: it is acknowledged with its commit like any other.
fn report(client: &Client, number: i64, token: &str) -> Result<Answer> {
    let (bearer, number) = (format!("Bearer {token}"), number.to_string());
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/x-protobuf"),
        ("stakeout-instance", INSTANCE),
        ("stakeout-batch", &number),
    ];
    client.send("POST", PROFILES, &headers, b"")
}

fn get(client: &Client, path: &str, token: &str) -> Result<Answer> {
    client.send("GET", path, &[("authorization", &format!("Bearer {token}"))], b"")
}

fn sql(client: &Client, statement: &str) -> Result<Answer> {
    let body: Value = json!({ "query": statement });
    let bearer = format!("Bearer {VIEWS}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    client.send("POST", "/api/v1/sql", &headers, body.to_string().as_bytes())
}
