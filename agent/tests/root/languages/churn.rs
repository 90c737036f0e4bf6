//! A Node.js program that makes functions for ever, whose code and objects are thrown away and moved all the time.

use std::process::{Command, Stdio};

use stakeout_agent::agent::AgentConfig;
use stakeout_agent::frames::FrameKind;

use super::v8;
use crate::program::{Running, at_a_time, behind_others};
use crate::recording::{Recording, Seen, possible};

const FREQUENCY_HZ: u32 = 499;
const SECONDS: &str = "9";
/// What decides how code is thrown away and moved.
const ENGINES: [&[&str]; 2] = [&["--max-semi-space-size=1"], &["--no-opt", "--always-sparkplug"]];
/// Of the frames that are JavaScript's; those that were gone before they were asked for have none.
const NAMED_PERCENT: usize = 50;

/// A letter and a number: `g17`.
fn numbered(name: &str) -> Option<(char, u64)> {
    let letter = name.chars().next().filter(|letter| matches!(letter, 'f' | 'g'))?;
    Some((letter, name.get(1..)?.parse().ok()?))
}

#[test]
fn functions_that_are_gone_never_give_their_name_to_others() {
    if !possible() {
        return;
    }
    let versions = v8::versions();
    if versions.is_empty() {
        println!("SKIPPED, since there is no Node.js");
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/root/languages/churn.js");
    for (version, path) in versions {
        let recording = Recording::start(AgentConfig {
            frequency_hz: FREQUENCY_HZ,
            cpu_limit: 1.0,
            memory_limit_bytes: 1 << 30,
            ..AgentConfig::default()
        });
        let start = |options: &'static [&'static str]| {
            let mut command = Command::new(&path);
            command.args(options).args([script, SECONDS]);
            let mut command = behind_others(&command);
            (options, Running::spawn(command.stdout(Stdio::null())))
        };
        let mut ran = Vec::new();
        for together in ENGINES.chunks(at_a_time()) {
            let running: Vec<_> = together.iter().copied().map(start).collect();
            ran.extend(running.iter().map(|(options, running)| (*options, running.tgid())));
            running.into_iter().for_each(|(_, running)| running.wait());
        }
        let recorded = recording.stop();
        for (options, tgid) in ran {
            check_names(&format!("{version} {options:?}"), &recorded.of_tgid(tgid));
        }
    }
}

/// An inner function is called by the outer one of its number alone.
fn check_names(what: &str, samples: &[Seen<'_>]) {
    let (mut pairs, mut named, mut all) = (0, 0, 0);
    for seen in samples {
        let frames: Vec<_> = seen
            .frames()
            .filter(|frame| frame.kind == FrameKind::Interpreted("v8js"))
            .collect();
        all += frames.len();
        named += frames.iter().filter(|frame| frame.function.is_some()).count();
        for pair in frames.windows(2) {
            let [Some(inner), Some(outer)] = [&pair[0], &pair[1]].map(|frame| frame.function.as_deref()) else {
                continue;
            };
            if let Some(('g', number)) = numbered(inner) {
                assert_eq!(numbered(outer), Some(('f', number)), "{what}: {inner} of {outer}");
                pairs += 1;
            }
        }
    }
    println!("Node.js {what}: {pairs} calls, {named} of {all} frames with names");
    assert!(pairs > 100, "{what}: {pairs} calls");
    assert!(
        named * 100 >= all * NAMED_PERCENT,
        "{what}: {named} of {all} have names"
    );
}
