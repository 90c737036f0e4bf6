//! End-to-end tests on the real binaries, a real kernel and real files: what the acceptance list asks for
//! beyond one crate. In: the built binaries. Out: a tally and, on failure, what was expected and what was found.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};

use crate::artifacts::Binaries;
use crate::signals::Stop;
use crate::stack::Stack;
use crate::tally::Tally;

mod bad_input;
mod bursts;
mod crash;
mod disk;
mod doors;
pub(crate) mod engines;
mod formats;
mod keep;
mod matrix;
mod names;
mod outage;
mod proxy;
mod scene;
mod several;
mod upgrade;

pub(crate) use outage::{check_agent, load_program};
pub(crate) use scene::{Faults, Scene};

type Case = fn(&Scene<'_>) -> Result<()>;

/// The cases of a stage run at the same time, one stage after the other. Each case wants the machine for itself, but
/// for what mostly waits and has no limit below some tens of seconds.
const STAGES: &[&[(&str, Case)]] = &[
    &[("names_within_20_seconds", names::within_20_seconds)],
    &[("demo_in_every_format", formats::demo_in_every_format)],
    // One has its network cut for a while, the other one waits for a few hundred commits.
    &[
        ("outages_lose_and_repeat_nothing", outage::loses_and_repeats_nothing),
        ("other_engines_read_the_tables", engines::other_engines_read_the_tables),
    ],
    &[("full_disk_at_every_step", disk::full_at_every_step)],
    // A server that looks for room every few moments, and one that lives for two seconds at most, five times.
    &[
        ("full_disk_under_load", disk::full_under_load),
        ("killed_at_random_moments", crash::killed_at_random_moments),
    ],
    // A disk on which each commit waits for seconds, and programs that end after their first words.
    &[("slow_disk", crash::slow_disk), ("bad_starts", bad_input::starts)],
    &[("power_cut_at_random_moments", crash::power_cut_at_random_moments)],
    &[(SEVERAL, several::killed_at_random_moments)],
    &[(MATRIX[0], matrix::of_a_commit)],
    &[(MATRIX[1], matrix::of_a_rewrite)],
    &[(MATRIX[2], matrix::of_a_retention)],
    &[(MATRIX[3], matrix::of_a_copy)],
    &[(BACKUP, keep::under_load)],
    &[(UPGRADE, upgrade::from_the_version_before)],
    &[("bad_queries", bad_input::queries)],
    &[("bad_profiles", bad_input::profiles)],
    &[("bad_data_directory", bad_input::unwritable_as_user)],
    &[(DOORS, doors::hold)],
    &[("no_http", bad_input::no_http)],
    // The server gives silent connections up after half a minute, in which there is nothing to do for anybody.
    &[
        ("bursts_come_back", bursts::come_back),
        ("ten_thousand_connections", bad_input::ten_thousand_connections),
    ],
];

/// Those of faults, which `cargo xtask faults` repeats.
pub(crate) const FAULTS: &[&str] = &[
    "killed_at_random_moments",
    "power_cut_at_random_moments",
    "slow_disk",
    "bursts_come_back",
    "full_disk_at_every_step",
    "full_disk_under_load",
    DOORS,
    SEVERAL,
    MATRIX[0],
    MATRIX[1],
    MATRIX[2],
    MATRIX[3],
    BACKUP,
    UPGRADE,
];

/// Those that `cargo xtask test` leaves to `cargo xtask faults`: in their short form they find what integration tests
/// and the cases before them find sooner, and the last one needs programs of another version.
const LONG_ONLY: &[&str] = &[MATRIX[1], MATRIX[3], BACKUP, UPGRADE];

/// Several servers on one data root.
pub(crate) const SEVERAL: &str = "several_servers_killed_at_random_moments";

/// A server is killed at every request by which it changes a bucket.
pub(crate) const MATRIX: [&str; 4] = [
    "killed_at_every_step_of_a_commit",
    "killed_at_every_step_of_a_rewrite",
    "killed_at_every_step_of_a_retention",
    "killed_at_every_step_of_a_copy",
];

/// Backups of a store that is written, and what is restored of them.
pub(crate) const BACKUP: &str = "backup_and_restore_under_load";

/// A store, and agents, of the version before.
pub(crate) const UPGRADE: &str = "upgrade_from_the_version_before";

/// The attack on the server's doors.
pub(crate) const DOORS: &str = "doors_hold";

/// Runs every case whose name contains `filter`; without one all that are worth it in a short form.
pub(crate) fn run(binaries: &Binaries, filter: Option<&str>) -> Result<Tally> {
    run_chosen(binaries, None, |name| match filter {
        Some(filter) => name.contains(filter),
        None => !LONG_ONLY.contains(&name),
    })
}

/// Runs the chosen cases, stage by stage.
pub(crate) fn run_chosen(binaries: &Binaries, faults: Option<Faults>, chosen: impl Fn(&str) -> bool) -> Result<Tally> {
    let stop = Stop::install()?;
    let is_long = faults.is_some();
    let scene = Scene {
        binaries,
        stop: &stop,
        faults,
    };
    let mut tally = Tally::default();
    for stage in STAGES {
        let cases: Vec<(&str, Case)> = stage.iter().copied().filter(|(name, _)| chosen(name)).collect();
        // In its long form each has the machine for itself.
        let at_a_time = if is_long { 1 } else { stage.len() };
        for together in cases.chunks(at_a_time) {
            stop.check()?;
            tally.add(run_together(together, &scene));
        }
    }
    let word = if tally.failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {word}. {} passed; {} failed",
        tally.passed, tally.failed
    );
    Ok(tally)
}

/// Runs cases at the same time, each on a thread of its own. A good end is told as it comes.
fn run_together(cases: &[(&str, Case)], scene: &Scene<'_>) -> Tally {
    let run = |name: &str, case: Case| {
        let begin = Instant::now();
        let outcome = case(scene);
        let took = begin.elapsed().as_secs_f64();
        if outcome.is_ok() {
            println!("test e2e::{name} ... ok ({took:.1} s)");
        }
        (took, outcome)
    };
    let mut tally = Tally::default();
    thread::scope(|scope| {
        let running: Vec<_> = cases
            .iter()
            .map(|&(name, case)| (name, scope.spawn(move || run(name, case))))
            .collect();
        for (name, case) in running {
            let (took, outcome) = case.join().unwrap_or_else(|_| (0.0, Err(anyhow!("it panicked"))));
            match outcome {
                Ok(()) => tally.passed += 1,
                Err(error) => tally.fail(&format!("test e2e::{name} ... FAILED ({took:.1} s)\n{error:#}")),
            }
        }
    });
    tally
}

/// The agent's rate below the page's tests: their own samples stand for multiples of its period, `PERIOD_NS` of
/// `web/e2e/otlp.ts`.
const BROWSED_HZ: u32 = 100;
/// What the page's tests send is acknowledged with its commit, and each of them waits for that.
const BROWSED_SERVER: [&str; 2] = ["--commit-interval", "200ms"];
/// The page shows waits beside CPU time.
const BROWSED_AGENT: [&str; 2] = ["--waits", "on"];

/// Runs something on a server and an agent that have samples, and stops both in order afterwards.
pub(crate) fn with_stack<T>(binaries: &Binaries, work: impl FnOnce(&mut Stack) -> Result<T>) -> Result<T> {
    let stop = Stop::install()?;
    let dir = tempfile::tempdir().context("can't make a temporary folder")?;
    let scene = Scene {
        binaries,
        stop: &stop,
        faults: None,
    };
    let more: [&[&str]; 2] = [&BROWSED_SERVER, &BROWSED_AGENT];
    let mut stack = Stack::start_with(&scene.options(dir.path(), BROWSED_HZ), more, &stop)?;
    stack.wait_samples(Duration::from_secs(60), &stop)?;
    let outcome = work(&mut stack);
    stack.stop()?;
    outcome
}
