//! The kubelet jump: S1 with real samples of this machine.
//!
//! A small program named `kubelet` does steady work and walks a folder every second. After a while the folder gets a
//! tree more than ten times as deep. The link shows the two windows side by side, and the same numbers are asked from
//! the server to see that the walk, and not the rest, stands out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::link::{Link, Times};
use super::programs::{Programs, wait_covered};
use crate::http::{Client, integer, path};
use crate::signals::Stop;
use crate::{repo, run, stack};

/// The program's name, which is also its label `process`.
const PROCESS: &str = "kubelet";

/// The function that grows.
const WALK: &str = "tree::walk";

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

/// Plays it and says the walk's figures.
pub(super) fn show(client: &Client, times: Times, stop: &Stop) -> Result<(Vec<Link>, Result<()>)> {
    let windows = play(client, times.before, times.after, stop)?;
    let outcome = judge(client, &windows);
    Ok((
        vec![Link {
            about: "before and after",
            path: link(&windows),
        }],
        outcome,
    ))
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
    let mut programs = Programs::default();
    let tgid = programs.start(PROCESS, Command::new(&program).arg(&root))?;
    // What a program does to start, and the first walk of a cold folder, belong to neither window.
    programs.pause(Duration::from_secs(2), stop)?;
    println!("{PROCESS} runs (tgid {tgid}) and walks a folder 4 levels deep, for {before} s ...");
    let base_from = stack::now_ms();
    programs.pause(Duration::from_secs(before), stop)?;
    let base_until = stack::now_ms();
    let begin = Instant::now();
    let files = grow(&root.join("deep"), 60, 14, 22)?;
    println!(
        "a container leaves a tree 60 levels deep behind ({files} files, made in {:.1} s)",
        begin.elapsed().as_secs_f64()
    );
    programs.pause(Duration::from_secs(2), stop)?;
    println!("{PROCESS} walks on, for {after} s ...");
    let from = stack::now_ms();
    programs.pause(Duration::from_secs(after), stop)?;
    let until = stack::now_ms();
    wait_covered(client, &format!("process = '{PROCESS}'"), until, stop)?;
    Ok(Windows {
        base_from,
        base_until,
        from,
        until,
    })
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
