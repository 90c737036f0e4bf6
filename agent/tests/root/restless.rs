//! A program that changes what is read of it while it is read: no end, no growth, no wrong name.

use std::process::Command;

use stakeout_agent::frames::FrameKind;

use crate::accounting::check_account;
use crate::ground_truth::fast;
use crate::program::{Program, Running};
use crate::recording::{Recording, possible};

/// How often the program becomes itself anew.
const EXECS: u32 = 3;
/// Samples with the right name: each of the programs runs two libraries for longer than the second between two looks at
/// it, some 250 samples.
const LEAST_NAMED: usize = 300;
/// More than the agent's tables and names of a small machine take.
const MOST_GROWN_KIB: u64 = 96 * 1024;
/// Of the file that changes, which is another one each time: it is made 160 times.
const MOST_HELD_OPEN: usize = 60;

/// Of a library's own code, what runs while it is loaded and unloaded.
const LOADER_CALLS: [&str; 6] = [
    "_init",
    "_fini",
    "frame_dummy",
    "register_tm_clones",
    "deregister_tm_clones",
    "__do_global_dtors_aux",
];

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Descriptors of this process that lead to a file of this name.
fn held_open(name: &str) -> usize {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let files = descriptors.filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok());
    files.filter(|file| file.to_string_lossy().contains(name)).count()
}

fn library(name: &str) -> Program {
    library_in(name, "librestless-of-one-name.so")
}

fn library_in(name: &str, file: &str) -> Program {
    let define = format!("-DNAME={name}");
    let flags = [
        "-O1",
        "-shared",
        "-fPIC",
        "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls",
        &define,
    ];
    Program::compile_with(&flags, "restless_library.c", file)
}

#[cfg(target_arch = "x86_64")]
#[test]
fn what_changes_while_it_is_read_does_no_harm_and_has_no_wrong_name() {
    if !possible() {
        return;
    }
    let flags = ["-O1", "-fno-omit-frame-pointer", "-pthread"];
    let program = Program::compile_with(&flags, "restless.c", "restless-program-and-files");
    let (right, wrong) = (library("right_name"), library("wrong_name"));
    let changing = program.path.with_file_name("librestless-that-changes.so");
    let recording = Recording::start(fast());
    let before = resident_kib();
    let mut command = Command::new(&program.path);
    command
        .args([&right.path, &wrong.path, &changing])
        .arg(EXECS.to_string());
    let running = Running::spawn(&mut command);
    let tgid = running.tgid();
    running.wait();
    let (after, held) = (resident_kib(), held_open("librestless-that-changes.so"));
    let recorded = recording.stop();
    check_account(&recorded);
    let seen = recorded.of_tgid(tgid);
    let (mut named, mut made) = (0, 0);
    for frame in seen.iter().flat_map(|seen| seen.frames()) {
        let function = frame.function.as_deref();
        assert_ne!(function, Some("wrong_name"), "{frame:?}");
        if frame.module.ends_with("/librestless-that-changes.so") {
            let is_right = |function: &str| {
                ["right_name", "run", "run_later"].contains(&function) || LOADER_CALLS.contains(&function)
            };
            assert!(function.is_none_or(is_right), "{frame:?}");
            named += usize::from(function == Some("right_name"));
        }
        if frame.kind == FrameKind::Jit {
            assert!([None, Some("made_at_run_time")].contains(&function), "{frame:?}");
            made += usize::from(function.is_some());
        }
    }
    let names = recorded.totals.names;
    println!(
        "{} samples, {named} and {made} frames with names, {names:?}, {:?}",
        seen.len(),
        recorded.totals.table
    );
    println!("{before} KiB before, {after} after, {held} descriptors");
    assert!(
        seen.len() > 200 && named > LEAST_NAMED && made > 5,
        "{} samples, {named}, {made}",
        seen.len()
    );
    assert!(after <= before + MOST_GROWN_KIB, "{before} KiB grew to {after}");
    assert!(held <= MOST_HELD_OPEN, "{held} descriptors");
    assert!(names.overwritten_files > 0, "{names:?}");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn who_is_loaded_where_another_one_lay_has_not_its_name() {
    if !possible() {
        return;
    }
    let flags = [
        "-O1",
        "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls",
        "-pthread",
    ];
    let program = Program::compile_with(&flags, "swapped_libraries.c", "swapped-libraries");
    let one = library_in("one", "libswapped-one.so");
    let other = library_in("other", "libswapped-other.so");
    let recording = Recording::start(fast());
    let mut command = Command::new(&program.path);
    command.args([&one.path, &other.path]).arg("6");
    let running = Running::spawn(&mut command);
    let tgid = running.tgid();
    running.wait();
    let recorded = recording.stop();
    check_account(&recorded);
    let (mut called, mut named) = (0, 0);
    for seen in recorded.of_tgid(tgid) {
        let has = |wanted: &str| {
            let mut functions = seen.frames().filter_map(|frame| frame.function.as_deref());
            functions.any(|function| function == wanted)
        };
        for (caller, right, wrong) in [("call_one", "one", "other"), ("call_other", "other", "one")] {
            if has(caller) {
                called += 1;
                named += usize::from(has(right));
                assert!(!has(wrong), "{:?}", seen.frames().collect::<Vec<_>>());
            }
        }
    }
    let table = recorded.totals.table;
    println!("{called} samples, {named} with names, {table:?}");
    // Five of six turns pass before the next look, and who was seen running in that one has its name.
    assert!(called > 300 && named > 30, "{called}, {named}");
    assert!(table.code_replaced > 0, "{table:?}");
}
