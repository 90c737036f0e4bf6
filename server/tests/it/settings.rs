//! Settings and the log of the real binary: a file beside flags and variables, and lines that machines read.

use crate::support::eventually;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn server() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stakeout-server"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("STAKEOUT_") {
            command.env_remove(name);
        }
    }
    command
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

fn written(dir: &Path, text: &str) -> String {
    let path = dir.join("server.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn flag_variable_file_and_default_count_in_this_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = written(
        dir.path(),
        "data = \"of-the-file\"\nsettle = \"1m\"\nclock-wait = \"1m\"\nmin-free = \"1MiB\"\ninsecure-no-tls = true\n",
    );
    let output = server()
        .args(["--print-config", "--settle", "3m"])
        .env("STAKEOUT_CONFIG", &path)
        .env("STAKEOUT_SETTLE", "2m")
        .env("STAKEOUT_CLOCK_WAIT", "2m")
        .env("STAKEOUT_INSECURE_NO_TLS", "false")
        .output()
        .unwrap();
    let (printed, errors) = texts(&output);
    assert!(output.status.success() && errors.is_empty(), "{errors}");
    for lines in [
        format!("# From: {path}.\ndata = \"of-the-file\"\n"),
        "# From: the command line.\nsettle = \"3m\"\n".to_owned(),
        "# From: the environment, STAKEOUT_CLOCK_WAIT.\nclock-wait = \"2m\"\n".to_owned(),
        "# From: the environment, STAKEOUT_INSECURE_NO_TLS.\ninsecure-no-tls = false\n".to_owned(),
        format!("# From: {path}.\nmin-free = \"1MiB\"\n"),
        "# From: the default.\ncommit-interval = \"2s\"\n".to_owned(),
    ] {
        assert!(printed.contains(&lines), "{lines:?} is not in {printed}");
    }
}

#[test]
fn a_wrong_file_is_told_whole_and_nothing_starts() {
    let dir = tempfile::tempdir().unwrap();
    let path = written(dir.path(), "data = \"x\"\nsetle = \"1m\"\nmax-connections = \"x\"\n");
    let output = server().args(["--config", &path]).output().unwrap();
    let (_, errors) = texts(&output);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    let lines: Vec<&str> = errors.lines().collect();
    assert_eq!(lines.len(), 2, "{errors}");
    assert!(
        lines[0].starts_with(&format!("stakeout-server: {path}:2:1: ")),
        "{errors}"
    );
    assert!(
        lines[1].starts_with(&format!("stakeout-server: {path}:3:19: ")),
        "{errors}"
    );
    assert!(!dir.path().join("x").exists());
}

/// Every line as an object that says when, how grave, whence and what.
fn objects(log: &str) -> Vec<serde_json::Value> {
    let object = |line: &str| {
        let object: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        for name in ["timestamp", "level", "target"] {
            assert!(object[name].is_string(), "no {name}: {line}");
        }
        // Libraries have events of fields alone.
        let is_own = object["target"]
            .as_str()
            .is_some_and(|target| target.starts_with("stakeout_server"));
        assert!(!is_own || object["message"].is_string(), "no message: {line}");
        let timestamp = object["timestamp"].as_str().unwrap();
        assert!(chrono::DateTime::parse_from_rfc3339(timestamp).is_ok(), "{line}");
        object
    };
    log.lines().map(object).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_line_of_a_log_in_json_is_an_object() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let log = std::fs::File::create(&path).unwrap();
    let mut child = server()
        .args([
            "--listen",
            "127.0.0.1:0",
            "--log-format",
            "json",
            "--log",
            "debug",
            "--data",
        ])
        .arg(dir.path().join("data"))
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    let read = || std::fs::read_to_string(&path).unwrap();
    eventually("the server listens", async || read().contains("\"listening\"")).await;
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    let objects = objects(&read());
    let listening = objects.iter().find(|object| object["message"] == "listening").unwrap();
    assert_eq!(listening["level"], "INFO");
    assert_eq!(listening["target"], "stakeout_server");
    assert!(
        listening["url"].as_str().unwrap().starts_with("http://127.0.0.1:"),
        "{listening}"
    );
    assert!(listening["memory_limit_bytes"].is_u64(), "{listening}");
    assert!(objects.iter().any(|object| object["message"] == "stopped"));
}

#[test]
fn a_start_that_fails_is_told_in_json_too() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "no directory").unwrap();
    let output = server()
        .args(["--listen", "127.0.0.1:0", "--log-format", "json", "--data"])
        .arg(&file)
        .output()
        .unwrap();
    let (_, log) = texts(&output);
    let objects = objects(&log);
    let last = objects.last().unwrap();
    assert_eq!((&last["level"], output.status.code()), (&"ERROR".into(), Some(1)));
    assert!(last["cause"].as_str().unwrap().contains("--data"), "{last}");
}
