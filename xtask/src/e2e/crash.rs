//! The server dies at random moments under load, alone or with the machine's power: what was acknowledged is stored,
//! once.
//!
//! A power cut is ext4's own: `EXT4_IOC_SHUTDOWN` without a flush of its journal, by which xfstests cuts the power
//! too. What the server has not synced by then never reaches the device, and the next mount finds what a start after
//! a power cut finds.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use super::outage::{Load, check_load, until};
use super::scene::Scene;
use crate::stack::{self, Alone};
use crate::{packages, repo, run};

/// Several agents, each with several batches in flight, faster than the server commits.
const LOAD: [&str; 12] = [
    "--agents",
    "6",
    "--batches",
    "0",
    "--samples",
    "200",
    "--in-flight",
    "4",
    "--pace-ms",
    "60",
    "--interval-ms",
    "1000",
];
const SERVER: [&str; 4] = ["--commit-interval", "100ms", "--min-free", "1MiB"];
/// The server lives for as long as this after it is ready, at least and at most. Maintenance begins after a second.
const LIFE_MS: (u64, u64) = (50, 2500);
const DISK_MIB: u64 = 1024;

/// kill -9.
pub(crate) fn killed_at_random_moments(scene: &Scene<'_>) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut alone = Alone::start(scene.options(dir.path(), 20), &SERVER, scene.stop)?;
    let load = Load::start(alone.client.base(), &LOAD)?;
    let rounds = scene.rounds(5, 100);
    for round in 0..rounds {
        live(scene, &mut alone, round)?;
        alone.server.signal(Signal::SIGKILL);
        alone.restart(scene.stop)?;
    }
    until_more(&alone, 1)?;
    println!("  {rounds} kills");
    check_load(&alone.client, &load.finish()?)?;
    alone.stop()
}

/// The power is cut; first without syncing, which must be seen.
pub(crate) fn power_cut_at_random_moments(scene: &Scene<'_>) -> Result<()> {
    let lost = unsynced(scene)?;
    println!("  without syncing: {lost}");
    let dir = tempfile::tempdir()?;
    let disk = Disk::make(dir.path())?;
    let mut alone = Alone::start(scene.options(dir.path(), 20), &SERVER, scene.stop)?;
    let load = Load::start(alone.client.base(), &LOAD)?;
    let rounds = scene.rounds(3, 20);
    for round in 0..rounds {
        live(scene, &mut alone, round)?;
        disk.cut(&mut alone)?;
        alone.restart(scene.stop)?;
    }
    until_more(&alone, 1)?;
    println!("  {rounds} power cuts");
    let report = load.finish()?;
    check_load(&alone.client, &report)?;
    let damaged = alone.client.get_ok("/metrics")?.text();
    let damaged = damaged
        .lines()
        .find(|line| line.starts_with("stakeout_store_damaged_files "));
    ensure!(
        damaged == Some("stakeout_store_damaged_files 0"),
        "a power cut left damaged files: {damaged:?}"
    );
    alone.stop()
}

/// A server whose syncs do nothing. The error of what must then be missing.
fn unsynced(scene: &Scene<'_>) -> Result<String> {
    let dir = tempfile::tempdir()?;
    let disk = Disk::make(dir.path())?;
    let mut options = scene.options(dir.path(), 20);
    options.binaries.server = preloaded(&options.binaries.server, dir.path(), "no_sync.c", &[])?;
    let mut alone = Alone::start(options, &SERVER, scene.stop)?;
    let load = Load::start(alone.client.base(), &LOAD)?;
    until_more(&alone, 10_000)?;
    disk.cut(&mut alone)?;
    alone.options.binaries.server = scene.binaries.server.clone();
    alone.restart(scene.stop)?;
    until_more(&alone, 1)?;
    let outcome = check_load(&alone.client, &load.finish()?);
    let error = outcome
        .err()
        .context("without syncing nothing was lost either: this test tests nothing")?;
    Ok(format!("{error:#}"))
}

/// A disk on which every sync takes long: batches wait or are asked to come again, queries answer, nothing is lost.
pub(crate) fn slow_disk(scene: &Scene<'_>) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut options = scene.options(dir.path(), 20);
    options.binaries.server = preloaded(&options.binaries.server, dir.path(), "slow_sync.c", &[])?;
    let mut alone = Alone::start(options, &SERVER, scene.stop)?;
    let load = Load::start(alone.client.base(), &LOAD)?;
    until_more(&alone, 10_000)?;
    // In the midst of a commit, of which each takes seconds.
    for _ in 0..5 {
        let before = stored(&alone)?;
        let graph = alone.client.get_json("/api/v1/flamegraph?from=now-3h&until=now")?;
        ensure!(
            crate::http::integer(&graph["samples"]) >= before,
            "a flamegraph has fewer samples than were counted before"
        );
    }
    alone.server.signal(Signal::SIGKILL);
    alone.restart(scene.stop)?;
    until_more(&alone, 1)?;
    check_load(&alone.client, &load.finish()?)?;
    alone.stop()
}

fn stored(alone: &Alone) -> Result<i64> {
    alone.client.sql_number("SELECT count(*) FROM samples")
}

fn until_more(alone: &Alone, samples: i64) -> Result<()> {
    let before = stored(alone)?;
    until("more samples are stored", || Ok(stored(alone)? >= before + samples))
}

/// Lets the server run for a random time, from its start or, in every other round, from when it has stored something:
/// on a busy machine no commit would end in any of them otherwise.
fn live(scene: &Scene<'_>, alone: &mut Alone, round: u32) -> Result<()> {
    if round % 2 == 1 {
        until_more(alone, 1)?;
    }
    let (least, most) = LIFE_MS;
    let random = RandomState::new().build_hasher().finish();
    let end = Instant::now() + Duration::from_millis(least + random % (most - least));
    while Instant::now() < end {
        scene.stop.check()?;
        stack::alive(&mut alone.server)?;
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// A program that starts the server with a library of ours before the C library. `more`: arguments of the compiler.
pub(super) fn preloaded(server: &Path, dir: &Path, source: &str, more: &[&str]) -> Result<PathBuf> {
    let (library, program) = (dir.join("preloaded.so"), dir.join("stakeout-server"));
    let source = repo::root().join("xtask/src/e2e").join(source);
    run::run(
        Command::new("cc")
            .args(["-shared", "-fPIC", "-O1"])
            .args(more)
            .arg("-o")
            .arg(&library)
            .arg(source)
            .arg("-ldl"),
    )?;
    let (library, server) = (library.display(), server.display());
    fs::write(
        &program,
        format!("#!/bin/sh\nLD_PRELOAD='{library}' exec '{server}' \"$@\"\n"),
    )?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    Ok(program)
}

/// A file system of its own for the data directory, on a device that is a file.
struct Disk {
    image: PathBuf,
    at: PathBuf,
}

/// By number: `_IOR('X', 125, __u32)`, and the flag that the journal is not flushed (fs/ext4/ext4.h of Linux).
const SHUT_DOWN: &str = "import fcntl, os, struct, sys\n\
    fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack('I', 2))";

impl Disk {
    fn make(dir: &Path) -> Result<Disk> {
        let disk = Disk {
            image: dir.join("disk"),
            at: dir.join("data"),
        };
        File::create(&disk.image)?.set_len(DISK_MIB << 20)?;
        fs::create_dir(&disk.at)?;
        run::output(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&disk.image))?;
        disk.mount()?;
        run::run(packages::as_root("")?.args(["chmod", "0777"]).arg(&disk.at))?;
        // The server's folders, and nothing of the file system's own, are in the data directory.
        run::run(packages::as_root("")?.arg("rmdir").arg(disk.at.join("lost+found")))?;
        Ok(disk)
    }

    fn mount(&self) -> Result<()> {
        let mut mount = packages::as_root("a small disk is mounted, whose power is then cut")?;
        // What is not synced stays in memory for a minute, rather than for the usual five seconds.
        let mount = mount.args(["mount", "-o", "loop,commit=60"]);
        run::run(mount.arg(&self.image).arg(&self.at))
    }

    /// Cuts the power: the disk first, then the server, which may live a moment longer and reach nothing. The disk is
    /// back then.
    fn cut(&self, alone: &mut Alone) -> Result<()> {
        let mut cut = packages::as_root("")?;
        run::run(cut.args(["python3", "-c", SHUT_DOWN]).arg(&self.at))?;
        alone.server.signal(Signal::SIGKILL);
        ensure!(
            alone.server.wait(Duration::from_secs(30)).is_some(),
            "the server does not end"
        );
        run::run(packages::as_root("")?.arg("umount").arg(&self.at))?;
        self.mount()
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
