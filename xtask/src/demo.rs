//! `cargo xtask demo`: the kubelet jump with real samples of this machine.
//!
//! A small program named `kubelet` does steady work and walks a folder every second. After a while the folder gets a
//! tree more than ten times as deep. The link at the end shows the two windows side by side, and the same numbers are
//! asked from the server to see that the walk, and not the rest, stands out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::artifacts;
use crate::http::{Client, integer, path};
use crate::service::POLL;
use crate::signals::Stop;
use crate::stack::{self, Options, Stack};
use crate::{repo, run, up};

/// The program's name, which is also its label `process`.
const PROCESS: &str = "kubelet";

/// The function that grows.
const WALK: &str = "tree::walk";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Length of the window before the jump
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    before: u64,
    /// Length of the window after the jump
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    after: u64,
    /// A running server to use, if an agent of this machine ships to it; otherwise both are started there
    #[arg(long, default_value = "http://127.0.0.1:7373", value_name = "URL")]
    url: String,
    /// Folder for the samples and logs, if server and agent are started [default: .stakeout in the clone]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Samples per second and CPU, if the agent is started
    #[arg(long, default_value_t = 20, value_name = "HZ")]
    frequency: u32,
    #[command(flatten)]
    build: artifacts::Choice,
    /// End after printing the link, also where server and agent were started for the demo
    #[arg(long)]
    no_wait: bool,
}

/// Two windows in Unix milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Windows {
    pub(crate) base_from: i64,
    pub(crate) base_until: i64,
    pub(crate) from: i64,
    pub(crate) until: i64,
}

impl Windows {
    fn texts(&self) -> [String; 4] {
        [self.base_from, self.base_until, self.from, self.until].map(|time| time.to_string())
    }
}

/// Plays it, prints the link and the walk's figures.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut own = None;
    let (stop, client) = if let Some(running) = running(&args.url)? {
        println!("using the server at {}", running.base());
        (Stop::install()?, running)
    } else {
        println!("no server at {}: starting one with an agent", args.url);
        let listen = args.url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        stack::free_address(&listen)?;
        let binaries = artifacts::all(args.build.profile())?;
        let state_dir = stack::state_dir(args.state_dir.as_deref())?;
        let options = Options {
            binaries,
            state_dir,
            listen,
            frequency_hz: args.frequency,
        };
        let stop = Stop::install()?;
        let mut stack = Stack::start(&options, &stop)?;
        stack.wait_samples(stack::FIRST_SAMPLES, &stop)?;
        let client = stack.client.clone();
        own = Some(stack);
        (stop, client)
    };
    let played = play(&client, args.before, args.after, &stop).and_then(|windows| {
        let outcome = judge(&client, &windows);
        println!("\n  {}{}\n", client.base(), link(&windows));
        outcome
    });
    if let Some(stack) = &mut own {
        if played.is_ok() && !args.no_wait {
            println!("Ctrl-C stops the server and the agent");
            up::stay(stack, &stop)?;
        }
        stack.stop()?;
    }
    played
}

/// The server at this URL, if it is one and an agent has shipped to it in the last half minute.
fn running(url: &str) -> Result<Option<Client>> {
    let client = Client::new(url);
    let Ok(answer) = client.get("/api/v1/nodes") else {
        return Ok(None);
    };
    ensure!(
        answer.status == 200,
        "{url} answers, but not as a Stakeout server: {} for /api/v1/nodes",
        answer.status
    );
    let nodes = answer
        .json()
        .with_context(|| format!("{url} answers, but not as a Stakeout server"))?;
    let since = stack::now_ms() - 30_000;
    let alive = nodes["nodes"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|node| integer(&node["last_seen"]) > since);
    ensure!(
        alive,
        "there is a server at {url}, but no agent has shipped to it in the last 30 s: start one, or use --url"
    );
    Ok(Some(client))
}

/// Runs the program with a small folder, then with a deep one; waits until the server has the samples of both windows.
pub(crate) fn play(client: &Client, before: u64, after: u64, stop: &Stop) -> Result<Windows> {
    let dir = tempfile::Builder::new()
        .prefix("stakeout-demo")
        .tempdir()
        .context("can't make a temporary folder")?;
    let program = compile(dir.path())?;
    let root = dir.path().join("pods");
    grow(&root.join("small"), 4, 14, 18)?;
    let child = Command::new(&program).arg(&root).stdin(Stdio::piped()).spawn();
    let mut workload = Workload(child.with_context(|| format!("can't start {}", program.display()))?);
    // What a program does to start, and the first walk of a cold folder, belong to neither window.
    pause(Duration::from_secs(2), &mut workload, stop)?;
    println!(
        "{PROCESS} runs (tgid {}) and walks a folder 4 levels deep, for {before} s ...",
        workload.0.id()
    );
    let base_from = stack::now_ms();
    pause(Duration::from_secs(before), &mut workload, stop)?;
    let base_until = stack::now_ms();
    let begin = Instant::now();
    let files = grow(&root.join("deep"), 60, 14, 22)?;
    println!(
        "a container leaves a tree 60 levels deep behind ({files} files, made in {:.1} s)",
        begin.elapsed().as_secs_f64()
    );
    pause(Duration::from_secs(2), &mut workload, stop)?;
    println!("{PROCESS} walks on, for {after} s ...");
    let from = stack::now_ms();
    pause(Duration::from_secs(after), &mut workload, stop)?;
    let until = stack::now_ms();
    println!("waiting for the last samples ...");
    let covered = format!(
        "SELECT max(until_ns) FROM batches WHERE node IN (SELECT DISTINCT node FROM series WHERE process = '{PROCESS}')"
    );
    let deadline = Instant::now() + Duration::from_secs(60);
    while client.sql_number(&covered)? < until * 1_000_000 {
        stop.check()?;
        ensure!(
            Instant::now() < deadline,
            "the samples up to {until} (Unix ms) didn't arrive within 60 s"
        );
        thread::sleep(POLL);
    }
    Ok(Windows {
        base_from,
        base_until,
        from,
        until,
    })
}

/// The program under test; dropping it ends it.
struct Workload(Child);

impl Drop for Workload {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits while the program runs and nobody asks to stop.
fn pause(time: Duration, workload: &mut Workload, stop: &Stop) -> Result<()> {
    let end = Instant::now() + time;
    while Instant::now() < end {
        stop.check()?;
        if let Ok(Some(status)) = workload.0.try_wait() {
            bail!("{PROCESS} ended by itself ({status})");
        }
        thread::sleep(POLL.min(end.saturating_duration_since(Instant::now())));
    }
    Ok(())
}

/// Compiles the program with frame pointers, which cargo can't be told for one program of a workspace.
fn compile(dir: &Path) -> Result<PathBuf> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let program = dir.join(PROCESS);
    run::output(
        Command::new(rustc)
            .args(["--edition", "2024", "-O", "-g", "-C", "force-frame-pointers=yes", "-o"])
            .arg(&program)
            .arg(repo::root().join("xtask/examples/kubelet.rs")),
    )?;
    Ok(program)
}

/// Makes a chain of `depth` folders with `width` more folders of `files` files each at every level; returns how many
/// files and folders that are.
fn grow(root: &Path, depth: u32, width: u32, files: u32) -> Result<u32> {
    let mut level = root.to_owned();
    let mut made = 0;
    for _ in 0..depth {
        for folder in 0..width {
            let folder = level.join(format!("layer-{folder}"));
            fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
            for file in 0..files {
                let file = folder.join(format!("f{file}"));
                fs::write(&file, b"").with_context(|| format!("can't make {}", file.display()))?;
            }
            made += 1 + files;
        }
        level.push("d");
        fs::create_dir_all(&level).with_context(|| format!("can't make {}", level.display()))?;
        made += 1;
    }
    Ok(made)
}

/// The selector of both sides.
pub(crate) fn query() -> String {
    format!("{{process=\"{PROCESS}\"}}")
}

/// The address of the compare view.
fn link(windows: &Windows) -> String {
    let [base_from, base_until, from, until] = windows.texts();
    path(
        "/",
        &[
            ("view", "compare"),
            ("query", &query()),
            ("baseFrom", &base_from),
            ("baseUntil", &base_until),
            ("from", &from),
            ("until", &until),
        ],
    )
}

/// The same windows' path of the API, `format` as asked.
pub(crate) fn diff_path(windows: &Windows, format: &str) -> String {
    let [base_from, base_until, from, until] = windows.texts();
    path(
        "/api/v1/diff",
        &[
            ("query", &query()),
            ("base_from", &base_from),
            ("base_until", &base_until),
            ("from", &from),
            ("until", &until),
            ("format", format),
        ],
    )
}

/// One frame of the union tree.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) parent: Option<usize>,
    pub(crate) base_total: i64,
    pub(crate) total: i64,
    pub(crate) base_self: i64,
    pub(crate) own: i64,
    pub(crate) delta: f64,
    pub(crate) state: String,
}

/// The nodes of a `/api/v1/diff` answer, in its order.
pub(crate) fn frames(diff: &Value) -> Result<Vec<Frame>> {
    let nodes = &diff["nodes"];
    let count = nodes["parent"].as_array().context("the difference has no nodes")?.len();
    let column = |name: &str, at: usize| -> Result<&Value> {
        nodes[name]
            .get(at)
            .with_context(|| format!("the column {name} of the difference has no entry {at}"))
    };
    let text = |table: &str, at: &Value| -> Result<String> {
        let text = usize::try_from(integer(at))
            .ok()
            .and_then(|at| diff[table].get(at))
            .and_then(Value::as_str);
        Ok(text
            .with_context(|| format!("the difference's table {table} has no entry {at}"))?
            .to_owned())
    };
    (0..count)
        .map(|at| {
            Ok(Frame {
                name: text("strings", column("name", at)?)?,
                kind: text("kinds", column("kind", at)?)?,
                parent: usize::try_from(integer(column("parent", at)?)).ok(),
                base_total: integer(column("base_total", at)?),
                total: integer(column("total", at)?),
                base_self: integer(column("base_self", at)?),
                own: integer(column("self", at)?),
                delta: column("delta", at)?.as_f64().unwrap_or(0.0),
                state: text("states", column("state", at)?)?,
            })
        })
        .collect()
}

/// The topmost walk with the largest change.
pub(crate) fn walk(frames: &[Frame]) -> Option<&Frame> {
    let walks = frames.iter().filter(|frame| frame.name.contains(WALK));
    walks.max_by(|a, b| a.delta.total_cmp(&b.delta))
}

/// Asks the server for the difference and says what grew; an error if the walk is not among it.
fn judge(client: &Client, windows: &Windows) -> Result<()> {
    let diff = client.get_json(&diff_path(windows, "json"))?;
    let frames = frames(&diff)?;
    let root = frames.first().context("the difference is empty")?;
    println!("\n{:<44} {:>8} {:>8}  {:>9}", "", "before", "after", "cores");
    let show = |name: &str, frame: &Frame| {
        println!(
            "{name:<44} {:>8} {:>8}  {:>+9.4}  {}",
            frame.base_total, frame.total, frame.delta, frame.state
        );
    };
    show(&format!("{PROCESS}, all samples"), root);
    let walk = walk(&frames).with_context(|| format!("no frame {WALK} among {} frames", frames.len()))?;
    show(&walk.name, walk);
    // The steady work, each once and inclusive: what has to be grey.
    for steady in ["sync_loop::sync_pods", "status::report", "metrics::serve"] {
        let largest = frames
            .iter()
            .filter(|frame| frame.name.contains(steady))
            .max_by_key(|frame| frame.total);
        if let Some(frame) = largest {
            show(&frame.name, frame);
        }
    }
    ensure!(
        walk.state == "grew" || walk.state == "new",
        "the walk was expected to have grown, but the server calls it `{}`; were the windows too short?",
        walk.state
    );
    Ok(())
}
