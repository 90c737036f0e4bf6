//! The install script as far as it can be tested without root: what it holds, and that half of it does nothing.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging").join(name)
}

fn script() -> String {
    std::fs::read_to_string(packaging("install.sh")).unwrap()
}

/// Runs `script` as `curl | sh` does, with no program in reach but the shell's own.
fn piped(script: &[u8], arguments: &[&str]) -> Output {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("script");
    std::fs::write(&file, script).unwrap();
    let mut shell = Command::new("/bin/sh");
    shell
        .arg("-s")
        .arg("--")
        .args(arguments)
        .env_clear()
        .env("PATH", dir.path());
    shell.stdin(std::fs::File::open(&file).unwrap()).current_dir(dir.path());
    let output = shell.output().unwrap();
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "the script left something behind: {left:?}");
    output
}

#[test]
fn a_script_that_was_cut_off_does_nothing() {
    let script = script();
    let last = script.trim_end().len();
    // Anywhere, and at every byte near the end, where the call is.
    let cuts = (0..last - 80).step_by(97).chain(last - 80..last);
    for cut in cuts {
        let output = piped(&script.as_bytes()[..cut], &["--help"]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.stdout.is_empty(), "cut at {cut} of {last}: {said}");
        assert!(
            !String::from_utf8_lossy(&output.stderr).contains("stakeout:"),
            "cut at {cut}"
        );
    }
    // The whole one does call something: the test could fail.
    let whole = piped(script.as_bytes(), &["--nonsense"]);
    assert!(String::from_utf8_lossy(&whole.stderr).contains("unknown option --nonsense"));
    assert!(!whole.status.success());
}

#[test]
fn the_script_carries_the_unit_file_and_every_blank_for_the_server() {
    let script = script();
    let unit = script
        .split("cat <<'UNIT'\n")
        .nth(1)
        .unwrap()
        .split("UNIT\n")
        .next()
        .unwrap();
    assert_eq!(
        unit,
        std::fs::read_to_string(packaging("stakeout-agent.service")).unwrap()
    );
    for blank in ["@SERVER_URL@", "@VERSION@", "@SHA256_X86_64@", "@SHA256_AARCH64@"] {
        assert_eq!(script.matches(blank).count(), 1, "{blank}");
    }
}

#[test]
fn the_unit_grants_what_the_agent_needs_and_no_more() {
    let unit = std::fs::read_to_string(packaging("stakeout-agent.service")).unwrap();
    let granted = unit
        .lines()
        .find_map(|line| line.strip_prefix("CapabilityBoundingSet="))
        .unwrap();
    let mut granted: Vec<&str> = granted.split(' ').collect();
    granted.sort_unstable();
    let needed = [
        "CAP_BPF",
        "CAP_CHECKPOINT_RESTORE",
        "CAP_DAC_READ_SEARCH",
        "CAP_PERFMON",
        "CAP_SYSLOG",
        "CAP_SYS_PTRACE",
    ];
    assert_eq!(granted, needed);
    let settings: Vec<&str> = unit.lines().filter(|line| !line.starts_with('#')).collect();
    for hidden in [
        "ProtectKernelTunables",
        "ProtectKernelLogs",
        "PrivateTmp",
        "ProtectProc",
        "PrivateUsers",
    ] {
        assert!(
            !settings.iter().any(|line| line.starts_with(hidden)),
            "{hidden} hides what is profiled"
        );
    }
}

#[test]
fn wrong_arguments_are_named() {
    let script = script();
    for (arguments, expected) in [
        (&["--server"][..], "--server needs a value"),
        (&["--prefix", "relative"], "absolute"),
        (&["--prefix", "/a b"], "only letters"),
        (&["uninstall"], "unknown option uninstall"),
    ] {
        let output = piped(script.as_bytes(), arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.contains(expected) && !output.status.success(),
            "{arguments:?}: {said}"
        );
    }
}
