//! The agent's program: it stops cleanly, and says what is wrong where it cannot start.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::recording::{possible, take_turn};

fn agent(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stakeout-agent"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn run(arguments: &[&str]) -> (Output, String) {
    let output = agent(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, text)
}

fn batches_below(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).map(|entries| entries.flatten().map(|entry| entry.path()));
    let count = |path: PathBuf| match path.is_dir() {
        true => batches_below(&path),
        false => usize::from(path.extension().is_some_and(|extension| extension == "batch")),
    };
    entries.map_or(0, |paths| paths.map(count).sum())
}

/// A port of this machine where nobody listens.
fn closed_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

#[test]
fn without_a_server_it_spools_and_a_signal_ends_it_cleanly() {
    if !possible() {
        return;
    }
    let _turn = take_turn();
    let state = tempfile::tempdir().unwrap();
    let server = format!("http://127.0.0.1:{}", closed_port());
    let mut child = agent(&[
        "--server",
        &server,
        "--state-dir",
        state.path().to_str().unwrap(),
        "--frequency",
        "99",
        "--interval",
        "1",
    ])
    .spawn()
    .unwrap();
    let spooled = || batches_below(state.path());
    let deadline = Instant::now() + Duration::from_secs(60);
    while spooled() < 2 {
        if Instant::now() >= deadline || child.try_wait().unwrap().is_some() {
            // It may have ended by itself.
            let _ = child.kill();
            let said = child.wait_with_output().unwrap().stderr;
            panic!("two batches must be spooled: {}", String::from_utf8_lossy(&said));
        }
        std::thread::yield_now();
    }
    let before = spooled();
    assert!(
        Command::new("kill")
            .arg("-TERM")
            .arg(child.id().to_string())
            .status()
            .unwrap()
            .success()
    );
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("stopped"), "{text}");
    assert!(spooled() > before, "the last interval is in the spool too");
}

#[test]
fn what_cannot_work_is_said_and_ends_it() {
    if !possible() {
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let state = state.path().to_str().unwrap();
    let (output, text) = run(&["--server", "stakeout.example", "--state-dir", state]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("stakeout.example") && text.contains("http://"), "{text}");

    let (output, text) = run(&["--state-dir", "/proc/nobody-can-write-here"]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("/proc/nobody-can-write-here") && text.contains("--state-dir"),
        "{text}"
    );

    let (output, text) = run(&["--state-dir", state, "--token-file", "/nowhere/token"]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("/nowhere/token"), "{text}");

    let (output, text) = run(&["--frequency", "0"]);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("--frequency"), "{text}");
}

/// Ends before it needs any privilege.
#[test]
fn a_log_in_json_has_an_object_a_line_and_says_why_it_ends() {
    let (output, log) = run(&["--log-format", "json", "--token-file", "/nonexistent/token"]);
    assert!(!output.status.success(), "{log}");
    let objects: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for object in &objects {
        for name in ["timestamp", "level", "target", "message"] {
            assert!(object[name].is_string(), "no {name}: {object}");
        }
    }
    let last = objects.last().unwrap();
    assert_eq!(last["level"], "ERROR");
    assert!(last["cause"].as_str().unwrap().contains("/nonexistent/token"), "{last}");
}
