//! Code that programs make or move, in memory of any kind.
#![cfg(target_arch = "x86_64")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::whose::percent;
use crate::accounting::check_account;
use crate::ground_truth::fast;
use crate::program::{Program, at_a_time, behind_others};
use crate::recording::{Recording, possible};

const FLAGS: [&str; 3] = ["-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls"];

#[test]
fn code_is_named_by_its_perf_map_or_jitdump_in_memory_of_any_kind_and_when_it_comes_late() {
    if !possible() {
        return;
    }
    let program = Program::compile_with(&FLAGS, "foreign_files/made.c", "makes-code-somewhere");
    let recording = Recording::start(fast());
    let kinds = ["shared", "memfd", "file", "sysv", "hugetlb", "late", "pieces", "dump"];
    let start = |kind: &&str| {
        let mut command = Command::new(&program.path);
        command.args([*kind, "1200"]);
        let mut command = behind_others(&command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    };
    let is_done = |mut child: Child| {
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        (child, line == "done\n")
    };
    let mut children = Vec::new();
    for together in kinds.chunks(at_a_time()) {
        let running: Vec<Child> = together.iter().map(start).collect();
        children.extend(running.into_iter().map(is_done));
    }
    // They wait with their maps until all is named.
    let recorded = recording.stop();
    check_account(&recorded);
    let end = |(mut child, done): (Child, bool)| {
        drop(child.stdin.take());
        let status = child.wait().unwrap();
        assert!(
            status.success() == done && (done || status.code() == Some(77)),
            "{status}"
        );
        done.then_some(child.id())
    };
    let tgids: Vec<Option<u32>> = children.into_iter().map(end).collect();
    for (kind, tgid) in kinds.iter().zip(tgids) {
        let Some(tgid) = tgid else {
            println!("SKIPPED: there is no memory of the kind {kind}");
            continue;
        };
        let name = format!("made_in_{kind}");
        let named = percent(&recorded, tgid, &[&name, "run", "main"]);
        // A quarter of its time lies before the code came.
        let least = if *kind == "late" { 65 } else { 90 };
        assert!(named >= least, "{kind}: {named} % are whole and named");
        if *kind == "dump" {
            let frames = recorded.of_tgid(tgid).into_iter().flat_map(|seen| seen.frames());
            let made = frames.filter(|frame| frame.function.as_deref() == Some(&name));
            let lines: Vec<_> = made.map(|frame| (frame.file.as_deref(), frame.line)).collect();
            let in_loop = lines.iter().filter(|line| **line == (Some("made.source"), 9)).count();
            assert!(in_loop * 10 > lines.len() * 9, "{in_loop} of {}", lines.len());
        }
    }
}

#[test]
fn code_that_was_copied_to_its_own_place_keeps_its_names_and_tables() {
    if !possible() {
        return;
    }
    let flags = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];
    let program = Program::compile_with(&flags, "foreign_files/made.c", "moves-its-own-code");
    let recording = Recording::start(fast());
    let mut command = Command::new(&program.path);
    let mut child = command
        .args(["remapped", "2000"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let tgid = child.id();
    super::wait_until("its code lies in other memory", 30, || {
        let maps = std::fs::read_to_string(format!("/proc/{tgid}/maps")).unwrap_or_default();
        let of_program = |line: &&str| line.contains("r-xp") && line.ends_with("moves-its-own-code");
        !maps.is_empty() && !maps.lines().any(|line| of_program(&line))
    });
    assert!(child.wait().unwrap().success());
    let recorded = recording.stop();
    check_account(&recorded);
    let named = percent(&recorded, tgid, &["work_of_a_file", "main"]);
    assert!(named >= 92, "{named} % are whole and named");
}
