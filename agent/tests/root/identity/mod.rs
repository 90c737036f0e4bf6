//! Who it was: process, program and control group of a sample are those of its moment, whatever became of them since.

mod groups;
mod kernel_code;
mod namespace;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::accounting::check_account;
use crate::ground_truth::fast;
use crate::program::{Program, Running};
use crate::recording::{Recording, possible};

/// Links of a chain of execs, with names that the kernel keeps whole: what a thread was called at a sample's moment
/// is the truth.
const LINKS: [&str; 5] = ["link-a", "link-b", "link-c", "link-d", "link-e"];

/// Two processes that are another program every 4 ms, 400 times.
#[test]
fn a_program_of_a_chain_of_execs_is_the_one_of_the_moment() {
    if !possible() {
        return;
    }
    let links = LINKS.map(|name| Program::compile("identity/relay.c", name));
    let recording = Recording::start(fast());
    let chains = [0, 1].map(|_| {
        let mut command = Command::new(&links[0].path);
        command
            .args(["4", "400", "0"])
            .args(links.iter().map(|link| &link.path));
        Running::spawn(&mut command)
    });
    let tgids = chains.each_ref().map(Running::tgid);
    chains.into_iter().for_each(Running::wait);
    let recorded = recording.stop();
    check_account(&recorded);
    let of_links = |name: &str| LINKS.contains(&name);
    let seen = recorded.samples().filter(|seen| tgids.contains(&seen.process.tgid));
    let seen: Vec<_> = seen.filter(|seen| of_links(&seen.sample.thread)).collect();
    let own = seen
        .iter()
        .filter(|seen| seen.process.executable == seen.sample.thread)
        .count();
    let programs = LINKS.map(|name| seen.iter().filter(|seen| &*seen.process.executable == name).count());
    println!(
        "{own} of {} samples have their own program's name: {programs:?}",
        seen.len()
    );
    assert!(seen.len() > 200, "{} samples", seen.len());
    assert!(
        own * 100 >= seen.len() * 99,
        "{own} of {} have their own program's name",
        seen.len()
    );
    for sample in seen.iter().filter(|seen| !seen.process.executable_path.is_empty()) {
        let path = std::path::Path::new(&*sample.process.executable_path);
        assert_eq!(path.file_name().unwrap().to_str().unwrap(), &*sample.process.executable);
        let code = sample.frames().filter(|frame| frame.module.contains("/link-"));
        for frame in code {
            assert_eq!(frame.module, sample.process.executable_path, "another program's code");
        }
    }
}

/// Waits until the first thread of a process has ended, which leaves its folder in /proc empty.
fn wait_for_end_of_first_thread(tgid: u32) {
    let deadline = Instant::now() + Duration::from_secs(20);
    let ended = || {
        let stat = std::fs::read_to_string(format!("/proc/{tgid}/stat")).unwrap();
        stat.rsplit_once(") ")
            .is_some_and(|(_, fields)| fields.starts_with('Z'))
    };
    while !ended() {
        assert!(Instant::now() < deadline, "the first thread goes on");
        std::thread::yield_now();
    }
}

#[test]
fn a_process_whose_first_thread_has_ended_has_its_names() {
    if !possible() {
        return;
    }
    let program = Program::compile_with(&["-O1", "-g", "-pthread"], "identity/leader.c", "leader-that-has-ended");
    let running = Running::spawn(Command::new(&program.path).stdout(Stdio::null()));
    let tgid = running.tgid();
    wait_for_end_of_first_thread(tgid);
    let recording = Recording::start(fast());
    recording.wait_for("the second thread", |seen| {
        seen.process.tgid == tgid && seen.has("second_thread")
    });
    drop(running);
    let recorded = recording.stop();
    let seen = recorded.of_tgid(tgid);
    let named = seen.iter().filter(|seen| seen.has("second_thread")).count();
    println!("{named} of {} samples are named", seen.len());
    assert!(named * 20 >= seen.len() * 19, "{named} of {}", seen.len());
    let path = program.path.to_string_lossy();
    for sample in &seen {
        assert_eq!(&*sample.process.executable, "leader-that-has-ended");
        assert_eq!(*sample.process.executable_path, *path);
        assert_eq!(*sample.process.command_line, *path);
    }
}
