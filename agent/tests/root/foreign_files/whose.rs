//! Which file a mapping shows, where /proc says the same of two.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{Mount, may_mount};
use crate::accounting::check_account;
use crate::ground_truth::fast;
use crate::program::{Program, Running};
use crate::recording::{Recorded, Recording, possible};

/// A program whose stack is `main`, `outer`, `inner`, without frame pointers.
pub(super) fn chain(name: &str, outer: &str, inner: &str, frame: u32) -> Program {
    let defines = [
        format!("-DOUTER={outer}"),
        format!("-DINNER={inner}"),
        format!("-DFRAME={frame}"),
    ];
    let mut flags = vec!["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];
    flags.extend(defines.iter().map(String::as_str));
    Program::compile_with(&flags, "foreign_files/chain.c", name)
}

/// Runs a program to its end; gives its process id.
pub(super) fn run(program: &Path, cpu_milliseconds: u32) -> u32 {
    let mut command = Command::new(program);
    command.arg(cpu_milliseconds.to_string()).stdout(Stdio::piped());
    let running = Running::spawn(&mut command);
    let tgid = running.tgid();
    running.finish();
    tgid
}

/// Of a process's samples, the percentage whose stack holds these, innermost first, one calling the other.
pub(super) fn percent(recorded: &Recorded, tgid: u32, called: &[&str]) -> usize {
    let seen = recorded.of_tgid(tgid);
    assert!(seen.len() > 50, "{} samples", seen.len());
    let whole = seen
        .iter()
        .filter(|seen| seen.functions().windows(called.len()).any(|part| part == called));
    whole.count() * 100 / seen.len()
}

/// Device and inode of a program's mapping, as the kernel prints them.
fn told(tgid: u32, path: &Path) -> Option<String> {
    let maps = std::fs::read_to_string(format!("/proc/{tgid}/maps")).ok()?;
    let line = maps
        .lines()
        .find(|line| line.contains(" r-xp ") && line.ends_with(path.to_str().unwrap()))?;
    Some(line.split_whitespace().skip(3).take(2).collect::<Vec<_>>().join(" "))
}

#[test]
fn two_programs_of_an_overlay_with_the_same_numbers_have_their_own_names_and_tables() {
    if !possible() || !may_mount() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let lower = ["one", "two"].map(|name| folder.path().join(name));
    let _lower = lower.each_ref().map(|path| Mount::new("tmpfs", "size=16m", path));
    let programs = [
        chain("first-of-an-overlay", "carries_first", "first_inner", 24),
        chain("second-of-an-overlay", "carries_second", "second_inner", 1400),
    ];
    for (program, lower) in programs.iter().zip(&lower) {
        let name = program.path.file_name().unwrap();
        std::fs::copy(&program.path, lower.join(name)).unwrap();
    }
    let merged = folder.path().join("merged");
    let options = format!("lowerdir={}:{}", lower[0].display(), lower[1].display());
    let _overlay = Mount::new("overlay", &options, &merged);
    let recording = Recording::start(fast());
    let tgids = programs.each_ref().map(|program| {
        let path = merged.join(program.path.file_name().unwrap());
        let mut command = Command::new(&path);
        let running = Running::spawn(command.arg("1500").stdout(Stdio::piped()));
        let tgid = running.tgid();
        let mut numbers = None;
        super::wait_until("the program is mapped", 10, || {
            numbers = told(tgid, &path);
            numbers.is_some()
        });
        println!("{} is told as {}", path.display(), numbers.unwrap());
        running.finish();
        tgid
    });
    let recorded = recording.stop();
    check_account(&recorded);
    let first = percent(&recorded, tgids[0], &["first_inner", "carries_first", "main"]);
    let second = percent(&recorded, tgids[1], &["second_inner", "carries_second", "main"]);
    assert!(
        first >= 90 && second >= 90,
        "{first} and {second} % are whole and named"
    );
    assert_eq!(percent(&recorded, tgids[1], &["first_inner"]), 0);
}

#[test]
fn a_program_under_the_numbers_of_one_that_was_unmounted_is_another_one() {
    if !possible() || !may_mount() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let programs = [
        chain("one-of-the-same-place", "carries_one", "inner_one", 24),
        chain("two-of-the-same-place", "carries_two", "inner_two", 1400),
    ];
    let recording = Recording::start(fast());
    let point = folder.path().join("mounted");
    let tgids = programs.each_ref().map(|program| {
        let mount = Mount::new("tmpfs", "size=16m", &point);
        let path = point.join("program");
        std::fs::copy(&program.path, &path).unwrap();
        let tgid = run(&path, 1000);
        super::wait_until("the filesystem is free", 12, || mount.unmount());
        tgid
    });
    let recorded = recording.stop();
    check_account(&recorded);
    let one = percent(&recorded, tgids[0], &["inner_one", "carries_one", "main"]);
    let two = percent(&recorded, tgids[1], &["inner_two", "carries_two", "main"]);
    assert!(one >= 90 && two >= 90, "{one} and {two} %");
}
