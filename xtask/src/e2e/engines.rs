//! Other engines read the tables: the same counts as the server's, after compaction, checkpoints and clean-up of the
//! logs.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::outage::{Load, check_stored, until};
use super::scene::Scene;
use crate::http::integer;
use crate::stack::Alone;
use crate::{repo, run};

/// From the Python package index, by version.
const PACKAGES: [&str; 2] = ["deltalake==1.6.6", "duckdb==2.0.0"];
const LOAD: [&str; 12] = [
    "--agents",
    "2",
    "--stacks",
    "50",
    "--batches",
    "0",
    "--samples",
    "200",
    "--pace-ms",
    "40",
    "--interval-ms",
    "10000",
];

/// A log whose first entries are gone and whose files have been rewritten is still any Delta reader's table.
pub(crate) fn other_engines_read_the_tables(scene: &Scene<'_>) -> Result<()> {
    let python = python()?;
    let dir = tempfile::tempdir()?;
    let mut alone = Alone::start(
        scene.options(dir.path(), 20),
        &["--commit-interval", "30ms", "--min-free", "1MiB"],
        scene.stop,
    )?;
    let load = Load::start(alone.client.base(), &LOAD)?;
    let log = dir.path().join("data/samples/_delta_log");
    until("the log has a checkpoint", || Ok(log.join("_last_checkpoint").exists()))?;
    until("the log's first entries are gone", || {
        Ok(!log.join(format!("{:020}.json", 1)).exists())
    })?;
    let report = load.finish()?;
    check_stored(&alone.client, &report)?;
    let mut read = Command::new(&python);
    read.arg(repo::root().join("xtask/src/e2e/engines.py"));
    read.arg(dir.path().join("data"));
    let said = run::output(read.arg(repo::root().join("server/docs/tables.md")))?;
    let theirs: Value = serde_json::from_str(&said).context("not JSON")?;
    let samples = &theirs["tables"]["samples"];
    ensure!(
        integer(&samples["first_entry"]) > 1,
        "the log was read from its first entry on: this test tested nothing"
    );
    ensure!(
        integer(&samples["files"]) < integer(&samples["version"]) / 2,
        "nothing was compacted: this test tested nothing"
    );
    compare(&alone, &theirs, &report)?;
    check_examples(&theirs)?;
    alone.stop()
}

/// What the document's examples print is what was counted. Each prints a table, of which it may leave out the middle.
fn check_examples(theirs: &Value) -> Result<()> {
    let mut counts: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for group in theirs["groups"].as_array().context("no groups")? {
        let text = |at: usize| group[at].as_str().unwrap_or("");
        *counts.entry((text(0), text(1))).or_default() += integer(&group[3]);
    }
    let examples = theirs["examples"].as_array().context("no examples")?;
    let printed: Vec<&str> = examples.iter().filter_map(Value::as_str).collect();
    let [seconds, groups] = printed[..] else {
        bail!("the document has {} examples, and two are looked at", printed.len());
    };
    let mut shown = [0, 0];
    for line in seconds.lines() {
        if let ["", service, number, ""] = cells(line, '|')[..]
            && let Ok(seconds) = number.parse::<f64>()
        {
            let is_known = counts.keys().any(|(_, known)| *known == service);
            ensure!(is_known && seconds > 0.0, "an example prints {line}");
            shown[0] += 1;
        }
    }
    for line in groups.lines() {
        if let ["", hour, service, number, ""] = cells(line, '│')[..]
            && let Ok(count) = number.parse::<i64>()
        {
            ensure!(counts.get(&(hour, service)) == Some(&count), "an example prints {line}");
            shown[1] += 1;
        }
    }
    println!("  the document's examples print {shown:?} rows of what was counted");
    ensure!(
        shown.iter().all(|rows| *rows > 0),
        "examples print nothing:\n{seconds}\n{groups}"
    );
    Ok(())
}

/// The cells of a printed table's row.
fn cells(line: &str, edge: char) -> Vec<&str> {
    line.split(edge).map(str::trim).collect()
}

/// What the other engines count is what the server counts, and what was sent.
fn compare(alone: &Alone, theirs: &Value, report: &[Value]) -> Result<()> {
    let sent: i64 = report.iter().map(|agent| integer(&agent["samples"])).sum();
    // Each group as one text, so that no answer has more rows than it may.
    let query = "SELECT hour, service, string_agg(line, ';' ORDER BY line) FROM (SELECT hour, service, \
                 concat(CAST(stack_id AS VARCHAR), '=', CAST(count(*) AS VARCHAR)) AS line FROM samples GROUP BY hour, service, stack_id) \
                 GROUP BY hour, service ORDER BY hour, service";
    let mut ours = vec![];
    for row in alone.client.sql(query)? {
        let text = |at: usize| row.get(at).and_then(Value::as_str).unwrap_or("").to_owned();
        ours.extend(text(2).split(';').map(|line| format!("{} {} {line}", text(0), text(1))));
    }
    let groups = theirs["groups"].as_array().context("no groups")?;
    let mut other: Vec<String> = groups
        .iter()
        .map(|group| {
            let text = |at: usize| group[at].as_str().unwrap_or("");
            format!("{} {} {}={}", text(0), text(1), text(2), integer(&group[3]))
        })
        .collect();
    ours.sort();
    other.sort();
    let counted: i64 = groups.iter().map(|group| integer(&group[3])).sum();
    println!(
        "  {sent} samples sent = {counted} counted by another engine, in {} groups by hour, service and stack; {}",
        other.len(),
        theirs["tables"]
    );
    ensure!(
        sent == counted,
        "{sent} samples were sent, another engine counts {counted}"
    );
    let differs = ours.iter().zip(&other).find(|(ours, other)| ours != other);
    ensure!(
        ours.len() == other.len() && differs.is_none(),
        "{} groups here, {} there; the first that differs: {differs:?}",
        ours.len(),
        other.len()
    );
    ensure!(
        integer(&theirs["joined"]) == sent,
        "another engine finds stacks of {} samples only",
        theirs["joined"]
    );
    Ok(())
}

/// Begins to make that Python, where there is none: mostly it waits for the package index, beside what others compute.
/// Where that fails, whoever asks for it tries again, and tells.
pub(crate) fn make_python_meanwhile() {
    thread::spawn(|| drop(python()));
}

/// A Python with the packages, made once, and by one at a time.
pub(crate) fn python() -> Result<PathBuf> {
    static MAKING: Mutex<()> = Mutex::new(());
    let _one = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let cache = repo::cache_dir("engines")?;
    let (python, done) = (cache.join("venv/bin/python"), cache.join(PACKAGES.join("-")));
    if !done.is_file() {
        let venv = cache.join("venv");
        let mut make = Command::new("python3");
        make.args(["-m", "venv", "--clear"]).arg(&venv);
        run::run(&mut run::behind_others(&make))?;
        let mut install = Command::new(&python);
        install
            .args(["-m", "pip", "install", "-q", "--disable-pip-version-check"])
            .args(PACKAGES);
        run::run(&mut run::behind_others(&install))?;
        File::create(&done)?;
    }
    Ok(python)
}
