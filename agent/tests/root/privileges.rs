//! With exactly its capabilities it works; without, it says what is missing.

use std::process::{Command, Output};

use crate::accounting::check_account;
use crate::ground_truth::fast;
use crate::program::Program;
use crate::recording::{Recording, possible};

/// As setpriv writes them.
pub(crate) const CAPABILITIES: [&str; 6] = [
    "bpf",
    "perfmon",
    "sys_ptrace",
    "checkpoint_restore",
    "dac_read_search",
    "syslog",
];
pub(crate) const INNER: &str = "STAKEOUT_TEST_WITH_CAPABILITIES";

pub(crate) fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.starts_with("Uid:\t0\t0"))
}

/// Runs a program as another user with these capabilities and no way to more.
pub(crate) fn with_capabilities(capabilities: &[&str], program: &std::path::Path, arguments: &[&str]) -> Output {
    let set: String = capabilities.iter().map(|name| format!(",+{name}")).collect();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]);
    for kind in ["--inh-caps", "--ambient-caps", "--bounding-set"] {
        command.arg(format!("{kind}=-all{set}"));
    }
    command
        .arg(program)
        .args(arguments)
        .env(INNER, "1")
        .env("TMPDIR", std::env::temp_dir());
    command.output().expect("setpriv, of util-linux")
}

#[test]
fn the_documented_capabilities_are_enough() {
    if !possible() {
        return;
    }
    if std::env::var_os(INNER).is_some() {
        let program = Program::burn("burn-with-capabilities");
        let recording = Recording::start(fast());
        let burn = program.spawn(1500, None);
        let tgid = burn.tgid();
        burn.finish();
        let recorded = recording.stop();
        check_account(&recorded);
        let seen = recorded.of_tgid(tgid);
        assert!(seen.len() > 100 && seen.iter().filter(|seen| seen.has("main")).count() * 100 > seen.len() * 95);
        // Another user's process and the kernel have names too.
        let named = |executable: &str| {
            recorded
                .samples()
                .any(|seen| seen.has("main") && *seen.process.executable == *executable)
        };
        assert!(named("burn-of-another-user"));
        let kernel = recorded.samples().filter(|seen| seen.in_kernel());
        let (named, all) = kernel.fold((0, 0), |(named, all), seen| {
            (named + u32::from(seen.functions()[0] != "?"), all + 1)
        });
        assert!(named * 100 >= all * 95, "{named} of {all} kernel leaves have names");
        return;
    }
    if !is_root() {
        println!("SKIPPED: only root can give itself exactly these capabilities");
        return;
    }
    let others = Program::burn("burn-of-another-user");
    let other = others.spawn(60_000, None);
    let output = with_capabilities(
        &CAPABILITIES,
        &std::env::current_exe().unwrap(),
        &[
            "--exact",
            "privileges::the_documented_capabilities_are_enough",
            "--nocapture",
        ],
    );
    drop(other);
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("1 passed") && !text.contains("SKIPPED"),
        "{text}"
    );
}

#[test]
fn each_missing_privilege_is_named() {
    if !is_root() {
        println!("SKIPPED: only root can give itself a part of the capabilities");
        return;
    }
    let agent = std::path::Path::new(env!("CARGO_BIN_EXE_stakeout-agent"));
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().to_str().unwrap();
    let output = with_capabilities(&["bpf", "syslog"], agent, &["--state-dir", state]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("CAP_PERFMON") && text.contains("CAP_SYS_PTRACE"),
        "{text}"
    );
    assert!(!text.contains("CAP_BPF") && !text.contains("CAP_SYSLOG"), "{text}");
}
