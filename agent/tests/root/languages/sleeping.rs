//! Threads that sleep on in the functions of a language with a runtime: whoever visits them tells these.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use stakeout_agent::agent::AgentConfig;
use stakeout_agent::frames::SampleKind;
use stakeout_agent::kernel::Waits;

use crate::accounting::check_account;
use crate::recording::{Recorded, Recording, possible};

const INTERVAL: Duration = Duration::from_secs(1);
const SECONDS: u64 = 10;
/// Of the time that is told; in the first moments nothing is known of a runtime.
const WHOLE_SHARE: f64 = 0.7;

/// Name, program, its argument for what follows, and functions that call each other and sleep.
const SLEEPERS: [(&str, &[&str], &str); 4] = [
    (
        "python3",
        &["-c"],
        "import time\ndef inner(): time.sleep(60)\ndef middle(): inner()\ndef outer(): middle()\nouter()\n",
    ),
    (
        "ruby",
        &["-e"],
        "def inner; sleep 60; end\ndef middle; inner; end\ndef outer; middle; end\nouter\n",
    ),
    (
        "php",
        &["-n", "-r"],
        "function inner() { sleep(60); } function middle() { inner(); } function outer() { middle(); } outer();",
    ),
    (
        "node",
        &["-e"],
        "const cell = new Int32Array(new SharedArrayBuffer(4));\nfunction inner() { Atomics.wait(cell, 0, 0, 60000); }\n\
         function middle() { inner(); }\nfunction outer() { middle(); }\nouter();\n",
    ),
];
const SLEEPER_IN_JAVA: &str = "public class Sleeper {\n\
    static void inner() throws Exception { Thread.sleep(60000); }\n\
    static void middle() throws Exception { inner(); }\n\
    static void outer() throws Exception { middle(); }\n\
    public static void main(String[] a) throws Exception { outer(); }\n}\n";

fn spawn(command: &mut Command) -> Option<Child> {
    command.stdout(Stdio::null()).spawn().ok()
}

/// Shares of what is told of a process's sleep: with the functions in their order, and whole besides.
fn told(recorded: &Recorded, name: &str, tgid: u32) -> (f64, f64, f64, Vec<String>) {
    let (mut all, mut right, mut whole, mut other) = (0.0, 0.0, 0.0, Vec::new());
    let seen = recorded.all_of_tgid(tgid);
    // Java's first thread only waits for the one that has `main`.
    let main = match name {
        "java" => seen
            .iter()
            .find(|seen| seen.has("JavaMain"))
            .map(|seen| seen.sample.tid),
        _ => Some(tgid),
    };
    for seen in seen {
        let is_main = Some(seen.sample.tid) == main;
        if !matches!(seen.sample.kind, SampleKind::OffCpu(_)) || !is_main {
            continue;
        }
        let seconds = seen.seconds();
        all += seconds;
        let own = seen.functions();
        let place = |name: &str| {
            own.iter()
                .position(|function| function.rsplit(['.', '#', ':', '\\']).next() == Some(name))
        };
        let is_right = matches!(
            (place("inner"), place("middle"), place("outer")),
            (Some(inner), Some(middle), Some(outer)) if inner < middle && middle < outer
        );
        if is_right {
            right += seconds;
            whole += if seen.stack.truncated { 0.0 } else { seconds };
        } else {
            other.push(format!("{seconds:.2} s: {}", own.join(" < ")));
        }
    }
    (all, right / all, whole / all, other)
}

#[test]
fn threads_that_sleep_have_the_frames_of_their_language() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut sleepers: Vec<(&str, Child)> = Vec::new();
    for (name, arguments, text) in SLEEPERS {
        sleepers.extend(spawn(Command::new(name).args(arguments).arg(text)).map(|child| (name, child)));
    }
    let source = folder.path().join("Sleeper.java");
    std::fs::write(&source, SLEEPER_IN_JAVA).unwrap();
    let mut javac = Command::new("javac");
    if javac
        .arg("-d")
        .arg(folder.path())
        .arg(&source)
        .status()
        .is_ok_and(|status| status.success())
    {
        let mut java = Command::new("java");
        let java = java
            .arg("-XX:+UseSerialGC")
            .arg("-cp")
            .arg(folder.path())
            .arg("Sleeper");
        sleepers.extend(spawn(java).map(|child| ("java", child)));
    }
    assert!(
        sleepers.len() == SLEEPERS.len() + 1 || std::env::var("CI").as_deref() != Ok("true"),
        "with CI=true there must be each language: {} of them are there",
        sleepers.len()
    );
    // Until they sleep.
    std::thread::sleep(Duration::from_secs(2));
    let recording = Recording::start(AgentConfig {
        frequency_hz: 99,
        interval: INTERVAL,
        waits: Waits::On,
        cpu_limit: 1.0,
        memory_limit_bytes: 1 << 30,
        ..AgentConfig::default()
    });
    std::thread::sleep(Duration::from_secs(SECONDS));
    let recorded = recording.stop();
    for (_, child) in &mut sleepers {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    check_account(&recorded);
    let mut failing = Vec::new();
    for (name, child) in &sleepers {
        let (seconds, right, whole, other) = told(&recorded, name, child.id());
        println!("{name:>8}: {seconds:.2} s told; in their functions {right:.3}, whole {whole:.3}");
        for other in &other {
            println!("          {other}");
        }
        if seconds < SECONDS as f64 / 2.0 || whole < WHOLE_SHARE {
            failing.push(*name);
        }
    }
    assert!(failing.is_empty(), "{failing:?}");
}
