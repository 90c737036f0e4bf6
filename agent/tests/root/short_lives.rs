//! Processes that are gone soon, and process ids that come again.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use stakeout_agent::agent::AgentConfig;
use stakeout_agent::frames::FrameKind;

use crate::accounting::check_account;
use crate::ground_truth::fast;
use crate::program::{Program, Running};
use crate::recording::{Recording, Seen, possible};

/// The test reports what it measures at this rate, whatever it costs.
fn unthrottled() -> AgentConfig {
    AgentConfig {
        cpu_limit: 1.0,
        ..fast()
    }
}

fn has_named_user_frame(seen: &Seen<'_>) -> bool {
    let user = |kind: FrameKind| kind != FrameKind::Kernel;
    seen.frames().any(|frame| user(frame.kind) && frame.function.is_some())
}

/// 20 a second for 20 seconds, each of 20 to 50 ms of CPU time.
#[test]
fn a_stream_of_short_processes_arrives_with_names() {
    if !possible() {
        return;
    }
    let program = Program::burn("burn-in-a-long-stream");
    let recording = Recording::start(unthrottled());
    let (begun, mut running, mut tgids) = (Instant::now(), Vec::new(), Vec::new());
    for number in 0..400u32 {
        let process = program.spawn(20 + number * 7 % 31, None);
        tgids.push(process.tgid());
        running.push(process);
        // Not more at a time than a busy machine can end.
        if running.len() > 8 {
            running.remove(0).finish();
        }
        let due = Duration::from_millis(50) * (number + 1);
        std::thread::sleep(due.saturating_sub(begun.elapsed()));
    }
    running.into_iter().for_each(|process| {
        process.finish();
    });
    let recorded = recording.stop();
    check_account(&recorded);
    let lost: u64 = recorded.totals.lost.values().sum();
    assert_eq!(lost, 0, "{:?}", recorded.totals.lost);
    let all: Vec<Seen<'_>> = recorded
        .samples()
        .filter(|seen| tgids.contains(&seen.process.tgid))
        .collect();
    // Up to its exec the child is this very program.
    let before_exec = all
        .iter()
        .filter(|seen| seen.process.executable.starts_with("root-"))
        .count();
    let named = all
        .iter()
        .filter(|seen| &*seen.process.executable == "burn-in-a-long-stream");
    let kernel_only = named
        .clone()
        .filter(|seen| seen.frames().all(|frame| frame.kind == FrameKind::Kernel))
        .count();
    let framed = named.clone().filter(|seen| has_named_user_frame(seen)).count();
    let (named, counted) = (named.count(), all.len() - before_exec);
    println!(
        "{} samples of 400 processes, {before_exec} before exec; of the other {counted} {named} have the executable's name, \
         {framed} named user frames, {kernel_only} none but the kernel's",
        all.len()
    );
    assert!(counted > 600, "{counted} samples");
    assert!(
        named * 100 >= counted * 99,
        "{named} of {counted} have their executable's name"
    );
    assert!(
        (framed + kernel_only) * 100 >= counted * 99,
        "{framed} of {counted} have named frames"
    );
}

/// Gives the process id that the next process gets, if no other is started meanwhile. False where the kernel cannot.
fn set_next_id(tgid: u32) -> bool {
    std::fs::write("/proc/sys/kernel/ns_last_pid", (tgid - 1).to_string()).is_ok()
}

/// The program under this process id.
fn spawn_as(program: &Program, tgid: u32) -> Option<Running> {
    for _ in 0..500 {
        if !set_next_id(tgid) {
            return None;
        }
        let mut command = Command::new(&program.path);
        let running = Running::spawn(command.arg("1200").stdout(Stdio::piped()));
        if running.tgid() == tgid {
            return Some(running);
        }
    }
    None
}

#[test]
fn a_process_id_that_comes_again_is_another_program() {
    if !possible() {
        return;
    }
    let (first, second) = (
        Program::burn("burn-first-of-this-id"),
        Program::burn("burn-second-of-this-id"),
    );
    let recording = Recording::start(unthrottled());
    let before = first.spawn(1200, None);
    let tgid = before.tgid();
    before.finish();
    let Some(after) = spawn_as(&second, tgid) else {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "with CI=true the id must come again"
        );
        println!("SKIPPED: this kernel does not let a process id come again at will");
        return;
    };
    after.finish();
    let recorded = recording.stop();
    check_account(&recorded);
    let seen = recorded.of_tgid(tgid);
    for (program, name) in [(&first, "burn-first-of-this-id"), (&second, "burn-second-of-this-id")] {
        let own: Vec<_> = seen.iter().filter(|seen| &*seen.process.executable == name).collect();
        assert!(own.len() > 80, "{} samples of {name}", own.len());
        let path = program.path.to_string_lossy();
        for sample in own {
            assert_eq!(*sample.process.executable_path, *path);
            let mut modules = sample.frames().map(|frame| &*frame.module);
            assert!(
                modules.all(|module| *module == *path || !module.contains("-of-this-id")),
                "{name}: {:?}",
                sample.frames().collect::<Vec<_>>()
            );
        }
    }
    let starts: std::collections::BTreeSet<u64> = seen.iter().map(|seen| seen.process.start_ticks).collect();
    println!("{} samples under id {tgid}, started at {starts:?}", seen.len());
    assert!(starts.len() >= 2);
}

/// Works in one function for a quarter of a second, and ends.
const SHORT_PYTHON: &str = "import time\n\
    def inner(end):\n    x = 0\n    while time.monotonic() < end:\n        for i in range(2000):\n            \
    x = (x * 31 + i) & 0xffffff\n    return x\n\
    def outer(end):\n    return inner(end)\n\
    outer(time.monotonic() + 0.25)\n";
const SHORT_PYTHONS: usize = 24;

/// The ring is read twice a second: whoever would be asked then for names has ended.
#[test]
fn functions_of_programs_that_end_soon_have_names() {
    if !possible() {
        return;
    }
    if Command::new("python3").arg("--version").output().is_err() {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "with CI=true there must be a Python (Debian: apt install python3)"
        );
        println!("SKIPPED, since there is no Python (Debian: apt install python3)");
        return;
    }
    let recording = Recording::start(AgentConfig {
        frequency_hz: 199,
        cpu_limit: 1.0,
        memory_limit_bytes: 1 << 30,
        ..AgentConfig::default()
    });
    let run = |_| {
        let mut python = Command::new("python3");
        let mut child = python.args(["-c", SHORT_PYTHON]).spawn().unwrap();
        assert!(child.wait().unwrap().success());
        child.id()
    };
    let tgids: Vec<u32> = (0..SHORT_PYTHONS).map(run).collect();
    let recorded = recording.stop();
    check_account(&recorded);
    let (mut frames, mut named, mut wrong) = (0, 0, 0);
    // Of the first one the interpreter's file is not known yet.
    for seen in tgids[1..].iter().flat_map(|tgid| recorded.of_tgid(*tgid)) {
        for frame in seen.frames() {
            if frame.kind != FrameKind::Interpreted("cpython") {
                continue;
            }
            frames += 1;
            named += usize::from(frame.function.is_some());
            let is_own = frame.file.as_deref() == Some("<string>");
            let is_known = |name: &str| ["inner", "outer", "<module>"].contains(&name);
            wrong += usize::from(is_own && !frame.function.as_deref().is_some_and(is_known));
        }
    }
    println!("{named} of {frames} frames of Python have names, {wrong} wrong ones");
    assert!(frames > 1_000, "{frames} frames");
    assert_eq!(wrong, 0);
    assert!(named * 100 >= frames * 90, "{named} of {frames} frames have names");
}
