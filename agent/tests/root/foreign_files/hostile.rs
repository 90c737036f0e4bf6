//! Processes that would make the agent wait for ever, or read what they could not.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::may_mount;
use super::whose::chain;
use crate::accounting::check_account;
use crate::ground_truth::fast;
use crate::program::Program;
use crate::recording::{Recording, possible, take_turn};

/// A child that does not outlive its test, nor does what it has mounted.
struct Stuck(Child, PathBuf);

impl Drop for Stuck {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        let _ = Command::new("umount").arg("-l").arg(&self.1).output();
    }
}

/// Starts a program of whose mapped files one is served by nobody; none where that can't be done here.
fn start_stuck(program: &Path, point: &Path) -> Option<Stuck> {
    std::fs::create_dir_all(point).unwrap();
    let mut command = Command::new(program);
    let mut child = command.arg(point).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let output = child.stdout.take().unwrap();
    let stuck = Stuck(child, point.into());
    BufReader::new(output).read_line(&mut line).unwrap();
    if line != "ready\n" {
        println!("SKIPPED, since there is no FUSE here");
        return None;
    }
    Some(stuck)
}

#[test]
fn memory_and_files_that_nobody_serves_hold_up_nobody() {
    if !possible() || !may_mount() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = Program::compile("foreign_files/served.c", "whose-arguments-nobody-serves");
    // Of other tests, too, an agent would wait for the first read that nobody serves.
    let turn = take_turn();
    let Some(before) = start_stuck(&program.path, &folder.path().join("before")) else {
        return;
    };
    let recording = Recording::start_in(turn, fast());
    let Some(after) = start_stuck(&program.path, &folder.path().join("after")) else {
        return;
    };
    recording.wait_for("the stuck program", |seen| seen.process.tgid == after.0.id());
    // Who comes then is sampled and named as ever.
    let other = chain("comes-while-others-are-stuck", "outer_free", "inner_free", 64);
    let tgid = super::whose::run(&other.path, 1500);
    recording.wait_for("another program's own names", |seen| {
        seen.process.tgid == tgid && seen.has("inner_free") && seen.has("main")
    });
    // And so are those, once the agent has gone on without what nobody serves.
    let ids = [before.0.id(), after.0.id()];
    for id in ids {
        recording.wait_for("the stuck program's own names", |seen| {
            seen.process.tgid == id && seen.has("compute")
        });
    }
    drop((before, after));
    let recorded = recording.stop();
    check_account(&recorded);
    for id in ids {
        let seen = recorded.of_tgid(id);
        assert!(seen.len() > 20, "{} samples", seen.len());
        assert!(
            seen.iter()
                .all(|seen| &*seen.process.executable == "whose-arguments-nobody-serves")
        );
    }
    let limits = recorded
        .batches
        .iter()
        .map(|batch| batch.report.limits.get("reads_abandoned"));
    assert!(limits.flatten().max().is_some_and(|count| *count > 0), "it is told");
}

/// Names the code that a program made by its perf map, if that is read.
fn name_of(tgid: u32, address: u64, now_s: u64, table: &mut stakeout_agent::process::Table) -> Option<String> {
    use stakeout_agent::frames::ProgramKey;
    use stakeout_agent::process::Sighting;
    let stat = std::fs::read_to_string(format!("/proc/{tgid}/stat")).unwrap();
    let ticks = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap();
    let key = ProgramKey {
        tgid,
        start_ticks: ticks.parse().unwrap(),
        exec_id: 1,
    };
    let now_ns = now_s * 1_000_000_000;
    table.program(&Sighting::of(key, now_ns), now_ns);
    let location = table.location(key, address, true, now_ns);
    let source = table.source(key, location.source, now_ns)?;
    let mut namer = stakeout_agent::symbolize::Namer::new(stakeout_agent::symbolize::NamerConfig::default());
    let sources = std::collections::HashMap::from([(location.source, source)]);
    let named = namer.name(&[location], &sources, now_ns);
    named[0].last()?.function.as_deref().map(str::to_owned)
}

#[test]
fn a_perf_map_of_another_user_or_behind_a_link_is_not_read() {
    if !possible() {
        return;
    }
    use stakeout_agent::metadata::Resolver;
    use stakeout_agent::process::{CommandLines, ModuleTable, Table};
    const SOURCE: &str = "
        #include <stdio.h>
        #include <sys/mman.h>
        #include <unistd.h>
        int main(void) {
            printf(\"%p\\n\", mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
            fflush(stdout);
            return pause();
        }";
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("waits.c"), folder.path().join("waits"));
    std::fs::write(&source, SOURCE).unwrap();
    assert!(
        Command::new("cc")
            .arg("-o")
            .arg(&program)
            .arg(&source)
            .status()
            .unwrap()
            .success()
    );
    let mut child = Command::new(&program).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let address = u64::from_str_radix(line.trim().trim_start_matches("0x"), 16).unwrap();
    let tgid = child.id();
    let child = Stuck(child, folder.path().join("nothing"));
    let map = PathBuf::from(format!("/tmp/perf-{tgid}.map"));
    let text = format!("{address:x} 1000 told\n");
    let mut table = Table::new(16, ModuleTable::new(64, 64), Resolver::default(), CommandLines::Off);

    std::fs::write(&map, &text).unwrap();
    let may_give = chown(&map, Some(12_345), None).is_ok();
    if may_give {
        assert_eq!(name_of(tgid, address, 10, &mut table), None, "another user's");
    }
    std::fs::remove_file(&map).unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, &text).unwrap();
    symlink(&secret, &map).unwrap();
    assert_eq!(name_of(tgid, address, 20, &mut table), None, "a link");
    std::fs::remove_file(&map).unwrap();
    std::fs::write(&map, &text).unwrap();
    assert_eq!(
        name_of(tgid, address, 30, &mut table).as_deref(),
        Some("told"),
        "its own"
    );
    std::fs::remove_file(&map).unwrap();
    drop(child);
}
