//! An agent in a process id namespace of its own: the same process ids are others' outside.

use std::process::{Command, Stdio};

use crate::ground_truth::fast;
use crate::program::Program;
use crate::recording::{Recording, possible, take_turn};

const OUTSIDE: &str = "burn-outside-of-the-namespace";
const INSIDE: &str = "burn-inside-of-the-namespace";

/// Runs the other test of this file, in a namespace with a /proc of its own, beside a program that is outside of it.
#[test]
fn in_a_process_id_namespace_nobody_has_anothers_name() {
    if !possible() {
        return;
    }
    let _turn = take_turn();
    let unshare = ["--pid", "--fork", "--mount-proc"];
    let can_unshare = Command::new("unshare")
        .args(unshare)
        .arg("true")
        .stderr(Stdio::null())
        .status();
    if !can_unshare.is_ok_and(|status| status.success()) {
        println!("SKIPPED: no process id namespace can be made here");
        return;
    }
    let outside = Program::burn(OUTSIDE).spawn(60_000, None);
    let mut inner = Command::new("unshare");
    inner.args(unshare).arg(std::env::current_exe().unwrap());
    let name = "identity::namespace::what_is_inside_is_named";
    let output = inner
        .args(["--ignored", "--exact", name, "--nocapture"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    drop(outside);
}

#[test]
#[ignore = "run by the test above, inside of a namespace"]
fn what_is_inside_is_named() {
    let recording = Recording::start(fast());
    Program::burn(INSIDE).spawn(2_000, None).finish();
    let recorded = recording.stop();
    // What a thread is called are the first characters of its program's name, before somebody else had the word.
    let of_thread = |name: &'static str| recorded.samples().filter(move |seen| *seen.sample.thread == name[..15]);
    let inside: Vec<_> = of_thread(INSIDE).collect();
    let named = inside.iter().filter(|seen| seen.has("main")).count();
    let outside: Vec<_> = of_thread(OUTSIDE).collect();
    println!(
        "inside {named} of {} are named; outside {}",
        inside.len(),
        outside.len()
    );
    assert!(inside.len() > 100 && named * 20 >= inside.len() * 19);
    assert!(inside.iter().all(|seen| &*seen.process.executable == INSIDE));
    assert!(!outside.is_empty());
    for seen in outside {
        let executable = &*seen.process.executable;
        assert!(executable == OUTSIDE || executable == &OUTSIDE[..15], "{executable}");
        assert!(seen.process.executable_path.is_empty() && seen.process.command_line.is_empty());
    }
}
