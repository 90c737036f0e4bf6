//! BPF programs that are loaded one after the other, where the kernel likes to put the next one in the place of the
//! last.

use std::io::BufRead;
use std::process::{Command, Stdio};

use crate::ground_truth::fast;
use crate::program::Program;
use crate::recording::{Recording, possible};

/// Where in its place code begins is the kernel's dice: this close together it is the same place.
const SAME_PLACE_BYTES: u64 = 512;
const ROUNDS: usize = 6;
const NAMES: [&str; 2] = ["case_first", "case_second"];

/// Loads and runs a program for a while; gives the address of its code.
fn run(program: &Program, name: &str, number: &str) -> Option<u64> {
    let mut command = Command::new(&program.path);
    let mut child = command
        .args([name, number, "500"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let status = child.wait().unwrap();
    if status.code() == Some(77) {
        return None;
    }
    assert!(status.success());
    Some(u64::from_str_radix(line.trim(), 16).unwrap())
}

#[test]
fn bpf_programs_have_their_own_names_wherever_they_are_loaded() {
    if !possible() {
        return;
    }
    let programs = ["runs-first", "runs-second"].map(|name| Program::compile("identity/bpf_run.c", name));
    let recording = Recording::start(fast());
    let mut places = Vec::new();
    for _ in 0..ROUNDS {
        for (program, (name, number)) in programs.iter().zip(NAMES.into_iter().zip(["1234567", "7654321"])) {
            let Some(place) = run(program, name, number) else {
                assert!(
                    std::env::var("CI").as_deref() != Ok("true"),
                    "with CI=true BPF programs can be run"
                );
                println!("SKIPPED: BPF programs cannot be loaded and run here");
                return;
            };
            places.push(place);
        }
    }
    let recorded = recording.stop();
    let shared = places
        .windows(2)
        .filter(|pair| pair[0].abs_diff(pair[1]) < SAME_PLACE_BYTES)
        .count();
    println!("{shared} of {} programs were where the one before was", places.len());
    for (executable, (own, other)) in ["runs-first", "runs-second"]
        .into_iter()
        .zip([(NAMES[0], NAMES[1]), (NAMES[1], NAMES[0])])
    {
        let seen = recorded
            .samples()
            .filter(|seen| &*seen.process.executable == executable);
        let seen: Vec<_> = seen
            .filter(|seen| seen.frames().any(|frame| &*frame.module == "[bpf]"))
            .collect();
        let called = |name: &str| {
            let has = |function: &&str| function.starts_with("bpf_prog_") && function.ends_with(name);
            seen.iter().filter(|seen| seen.functions().iter().any(has)).count()
        };
        println!(
            "{executable}: {} samples in BPF code, {} as itself, {} as the other",
            seen.len(),
            called(own),
            called(other)
        );
        assert!(seen.len() > 100, "{executable}: {} samples", seen.len());
        assert_eq!((called(own), called(other)), (seen.len(), 0), "{executable}");
    }
}
