//! The same jobs on machines and in pods, by workers in Python: S4 with real samples.
//!
//! Both sides have as many workers, which do the same to the same data. In pods a worker waits until its pod runs and
//! is gone again, by asking again and again. So it does half as many jobs, and part of its CPU time is the asking. The
//! link compares both selections of one window.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::kubelet::frames;
use super::link::{Link, Times};
use super::programs::{Programs, wait_covered};
use crate::http::{Client, path};
use crate::signals::Stop;
use crate::{packages, repo, stack};

/// Each side's service, and how its workers run a job.
const SIDES: [(&str, &str); 2] = [("jobs-machines", "machine"), ("jobs-pods", "pods")];
const WORKERS: u32 = 3;
/// The polling loop, as Python calls it, and what both sides do.
const POLLS: &str = "Pod.wait_until";
const WORKS: &str = "Report.build";

/// Plays both sides at once; the time before is the board's and the workers' to start.
pub(super) fn show(client: &Client, times: Times, stop: &Stop) -> Result<(Vec<Link>, Result<()>)> {
    packages::ensure_scenes()?;
    let sources = repo::root().join("xtask/examples/jobs");
    let mut programs = Programs::default();
    for (service, place) in SIDES {
        let python = |container: &str, file: &str| {
            let mut command = Command::new("python3");
            command.env("OTEL_SERVICE_NAME", service);
            command.env("OTEL_RESOURCE_ATTRIBUTES", format!("container.name={container}"));
            command.arg(sources.join(file));
            command
        };
        let port = programs.start_and_hear(service, &mut python("board", "board.py"))?;
        for worker in 0..WORKERS {
            let name = format!("worker-{worker}");
            let mut command = python(&name, "worker.py");
            programs.start(&name, command.args([&port, place, &worker.to_string()]))?;
        }
    }
    println!(
        "{WORKERS} workers of each side run, for {} s ...",
        times.before + times.after
    );
    programs.pause(Duration::from_secs(times.before), stop)?;
    let from = stack::now_ms();
    programs.pause(Duration::from_secs(times.after), stop)?;
    let until = stack::now_ms();
    for (service, _) in SIDES {
        println!("{service}: {} jobs done", programs.end_and_hear(service)?);
    }
    drop(programs);
    let [base, side] = SIDES.map(|(service, _)| format!("{{service=\"{service}\"}}"));
    wait_covered(client, &format!("service = '{}'", SIDES[1].0), until, stop)?;
    let [from, until] = [from, until].map(|time| time.to_string());
    let window = [("from", from.as_str()), ("until", &until)];
    let both = [&window[..], &[("base_from", &from), ("base_until", &until)]].concat();
    let outcome = judge(
        client,
        &[&both[..], &[("query", &side), ("base_query", &base)]].concat(),
    );
    let shown = |more: &[(&str, &str)]| path("/", &[&window[..], more].concat());
    let whole = "{service=~\"jobs-.*\"}";
    let links = vec![
        Link {
            about: "both sides over time",
            path: shown(&[("query", whole), ("colour", "kind")]),
        },
        Link {
            about: "pods beside machines",
            path: shown(&[
                ("view", "compare"),
                ("query", &side),
                ("baseQuery", &base),
                ("baseFrom", &from),
                ("baseUntil", &until),
            ]),
        },
    ];
    Ok((links, outcome))
}

/// Says what both sides took for the job and for waiting; an error where the polling loop is not only in pods.
fn judge(client: &Client, question: &[(&str, &str)]) -> Result<()> {
    let frames = frames(&client.get_json(&path("/api/v1/diff", question))?)?;
    println!("\n{:<24} {:>8} {:>8}", "samples with", "machines", "pods");
    let largest = |name: &str| {
        let named = frames.iter().filter(|frame| frame.name.contains(name));
        named.max_by_key(|frame| frame.base_total + frame.total)
    };
    for name in [WORKS, POLLS] {
        if let Some(frame) = largest(name) {
            println!("{name:<24} {:>8} {:>8}  {}", frame.base_total, frame.total, frame.state);
        }
    }
    let polls = largest(POLLS).with_context(|| format!("no frame {POLLS} among {} frames", frames.len()))?;
    ensure!(
        polls.base_total == 0 && polls.total > 0 && polls.state == "new",
        "the polling loop is called `{}`; was the window too short?",
        polls.state
    );
    Ok(())
}
