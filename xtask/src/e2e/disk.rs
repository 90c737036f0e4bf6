//! A full disk: ingest says so and is asked again, queries go on, and what was acknowledged is stored once.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::Signal;

use super::bad_input::refused;
use super::outage::{Load, check_load, load_program, until};
use super::scene::Scene;
use crate::artifacts::Profile;
use crate::http::{Answer, Client, integer, path};
use crate::stack::Alone;
use crate::{packages, run};

/// Samples of one probe.
const SAMPLES: i64 = 1000;

/// The disk fills up to the last byte, and then so that one step after the other of a commit is the first that finds
/// no room.
pub(crate) fn full_at_every_step(scene: &Scene<'_>) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let disk = Disk::mount(&dir.path().join("data"), 64)?;
    let more = ["--min-free", "0", "--commit-interval", "50ms"];
    let mut alone = Alone::start(scene.options(dir.path(), 20), &more, scene.stop)?;
    let client = alone.client.clone();
    let mut probes = vec![Probe::new(0)?];
    let first = probes.last().context("no probe")?.send(&client)?;
    ensure!(first.status == 200, "with room: {} {}", first.status, first.text());

    let mut ballast = disk.ballast()?;
    let mut steps = BTreeSet::new();
    let mut pages = 0;
    // Compaction, which also writes, may take the one page that a step was to fail for: then again from a little less
    // room.
    while !steps.contains("write a commit of table samples") {
        ensure!(probes.len() < 8, "no commit failed at its very end, only at: {steps:?}");
        probes.push(Probe::new(probes.len())?);
        let probe = probes.last().context("no probe")?;
        loop {
            scene.stop.check()?;
            ballast.leave(pages)?;
            let answer = probe.send(&client)?;
            if answer.status == 200 {
                break;
            }
            let step = refusal(&answer)?;
            reads(&client, (probes.len() as i64 - 1) * SAMPLES)?;
            if step == "too little space is left" {
                // The failure before this one; the server looks again with its next commit.
                thread::sleep(Duration::from_millis(20));
            } else {
                steps.insert(step);
                pages += 1;
            }
        }
        println!("  with {pages} pages of room a batch is stored");
        pages = pages.saturating_sub(4);
    }
    println!("  no room to: {}", steps.iter().cloned().collect::<Vec<_>>().join("; "));
    for what in [
        "write a file of table samples",
        "write a file of table batches",
        "write a commit of table batches",
    ] {
        ensure!(steps.contains(what), "nothing failed to {what}");
    }
    ensure!(
        steps.iter().any(|step| step.ends_with("table stacks")),
        "no dictionary failed to be written"
    );
    drop(ballast);
    probes.push(Probe::new(probes.len())?);
    let last = probes.last().context("no probe")?;
    until("there is room again", || Ok(last.send(&client)?.status == 200))?;
    holds_once(&client, &probes)?;
    alone.server.signal(Signal::SIGKILL);
    alone.restart(scene.stop)?;
    holds_once(&client, &probes)?;
    alone.stop()
}

/// The free space falls below what the server is to leave, while a fleet ships.
pub(crate) fn full_under_load(scene: &Scene<'_>) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let disk = Disk::mount(&dir.path().join("data"), 256)?;
    let more = ["--min-free", "64MiB", "--commit-interval", "500ms"];
    let mut alone = Alone::start(scene.options(dir.path(), 20), &more, scene.stop)?;
    let client = alone.client.clone();
    let load = [
        "--agents",
        "5",
        "--batches",
        "0",
        "--samples",
        "200",
        "--pace-ms",
        "100",
    ];
    let load = Load::start(client.base(), &load)?;
    let stored = || client.sql_number("SELECT count(*) FROM samples");
    until("the load runs", || Ok(stored()? > 5_000))?;
    let mut ballast = disk.ballast()?;
    ballast.leave((32 << 20) / ballast.page)?;
    let probe = Probe::new(0)?;
    let mut answer = probe.send(&client)?;
    until("the disk counts as full", || {
        if answer.status == 200 {
            answer = probe.send(&client)?;
        }
        Ok(answer.status != 200 || client.get("/readyz")?.status != 200)
    })?;
    // The batch may have come in before the server looked: then another one is refused.
    let late = Probe::new(1)?;
    let step = refusal(&late.send(&client)?)?;
    println!("  refused: {step}");
    let ready = client.get("/readyz")?;
    refused("/readyz", &ready, 503, "disk_full", "queries")?;
    ensure!(client.get("/healthz")?.status == 200, "/healthz fails on a full disk");
    // What is in is in, and nothing more comes; all of it can be asked for.
    let before = stored()?;
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        scene.stop.check()?;
        reads(&client, before)?;
        thread::sleep(Duration::from_millis(200));
    }
    drop(ballast);
    until("the load runs again", || Ok(stored()? > before + 5_000))?;
    until("the refused batch is taken", || Ok(late.send(&client)?.status == 200))?;
    check_load(&client, &load.finish()?)?;
    alone.stop()
}

/// The refusal of a batch as the wire promises it. What there was no room for.
fn refusal(answer: &Answer) -> Result<String> {
    let said = answer.text();
    ensure!(
        answer.status == 503 && answer.header("content-type") == Some("application/x-protobuf"),
        "on a full disk: {} {said}",
        answer.status
    );
    let seconds = answer.header("retry-after").and_then(|value| value.parse::<u32>().ok());
    ensure!(
        seconds.is_some_and(|seconds| seconds > 0),
        "no Retry-After: {:?}",
        answer.headers
    );
    ensure!(
        answer.header("stakeout-error") == Some("disk_full") && said.contains("again"),
        "not the error of a full disk: {said}"
    );
    let step = said.split(['(', ')']).nth(1);
    Ok(step
        .with_context(|| format!("doesn't say what there is no room for: {said}"))?
        .to_owned())
}

/// Queries answer, and see so many samples.
fn reads(client: &Client, samples: i64) -> Result<()> {
    let stored = client.sql_number("SELECT count(*) FROM samples")?;
    ensure!(
        stored == samples,
        "on a full disk {stored} samples are seen, {samples} were acknowledged"
    );
    let graph = client.get_json(&path("/api/v1/flamegraph", &[("from", "now-3h"), ("until", "now+1h")]))?;
    let drawn = integer(&graph["samples"]);
    ensure!(
        drawn == samples,
        "on a full disk the flamegraph has {drawn} samples of {samples}"
    );
    Ok(())
}

/// Every probe's samples are stored once, each with its account, and another repeat changes nothing.
fn holds_once(client: &Client, probes: &[Probe]) -> Result<()> {
    for probe in probes {
        let answer = probe.send(client)?;
        ensure!(answer.status == 200, "a repeat: {} {}", answer.status, answer.text());
    }
    let expected = probes.len() as i64;
    let count = |query: &str| client.sql_number(query);
    let (samples, batches, accounted) = (
        count("SELECT count(*) FROM samples")?,
        count("SELECT count(*) FROM batches")?,
        count("SELECT sum(samples) FROM batches")?,
    );
    println!("  {expected} batches acknowledged; stored: {batches} with {samples} samples");
    ensure!(
        batches == expected && samples == expected * SAMPLES && accounted == samples,
        "{expected} batches of {SAMPLES} samples were acknowledged, {batches} batches with {samples} samples are stored"
    );
    Ok(())
}

/// One batch of an agent of its own, sent as often as wanted.
struct Probe {
    body: Vec<u8>,
}

impl Probe {
    /// `place`: which of several; each brings stacks that the others lack.
    fn new(place: usize) -> Result<Probe> {
        let stacks = (5000 + 500 * place).to_string();
        let mut load = Command::new(load_program(Profile::Debug)?);
        load.args(["--spoil", "good", "--stacks", &stacks]);
        let output = load.output().context("can't start the load")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(Probe { body: output.stdout })
    }

    fn send(&self, client: &Client) -> Result<Answer> {
        let headers = [("content-type", "application/x-protobuf")];
        client.send("POST", "/v1development/profiles", &headers, &self.body)
    }
}

/// A small file system in memory; dropping it takes it away.
struct Disk {
    at: PathBuf,
}

impl Disk {
    fn mount(at: &Path, mib: u32) -> Result<Disk> {
        fs::create_dir(at)?;
        let mut mount = packages::as_root("a small disk is mounted, to be filled up")?;
        run::run(
            mount
                .args(["mount", "-t", "tmpfs", "-o", &format!("size={mib}m,mode=0777"), "tmpfs"])
                .arg(at),
        )?;
        Ok(Disk { at: at.to_owned() })
    }

    fn ballast(&self) -> Result<Ballast> {
        let path = self.at.join("ballast");
        let file = File::create(&path)?;
        let page = file.metadata()?.blksize();
        Ok(Ballast { path, file, page })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a server that is being killed may hold it for another moment.
        if let Ok(mut umount) = packages::as_root("") {
            let _ = umount.args(["umount", "-l"]).arg(&self.at).status();
        }
    }
}

/// A file that takes the room; dropping it gives the room back.
struct Ballast {
    path: PathBuf,
    file: File,
    page: u64,
}

impl Ballast {
    /// Grows or shrinks so that so many pages are free.
    fn leave(&mut self, pages: u64) -> Result<()> {
        let mut piece = vec![1; 1 << 20];
        while !piece.is_empty() {
            match self.file.write(&piece) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => piece.truncate(piece.len() / 2),
                Err(error) => bail!("{}: {error}", self.path.display()),
            }
        }
        let length = self.file.metadata()?.len().saturating_sub(pages * self.page);
        self.file.set_len(length)?;
        std::io::Seek::seek(&mut self.file, std::io::SeekFrom::Start(length))?;
        Ok(())
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
