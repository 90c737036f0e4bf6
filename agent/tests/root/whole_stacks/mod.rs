//! Stacks are whole: programs of many kinds, each with what is known of it by construction, against what is sampled.
//!
//! Prints one table, for `cargo xtask stacks`. A stack is whole if it is not cut and ends in the first function of the
//! program or the thread. Nothing is left out but samples without a user stack, which are counted beside.

mod build;
mod container;
mod judge;
mod rows;

use std::collections::VecDeque;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use stakeout_agent::agent::AgentConfig;
use stakeout_agent::kernel;

use crate::accounting::check_account;
use crate::recording::{Recorded, Recording, Seen, possible, take_turn};
use build::{Workshop, find_program};
use judge::{Found, percent};
use rows::{Row, Truth, rows};

/// Of all samples of a program, where the table is asked for.
const WHOLE_PERCENT: f64 = 99.5;
/// Among all other tests, on whatever machine CI has at that moment: of 600 samples three more than the half percent
/// are a burst of lost turns while a table was being made, and not a defect.
const WHOLE_PERCENT_AMONG_OTHERS: f64 = 98.5;
const FREQUENCY_HZ: u32 = 99;
/// Times CPUs: so many stacks that wait for their tables find room, were it all of them.
const INTERVAL_CPUS: Duration = Duration::from_secs(2);
/// Samples of a program at least; six seconds are 600.
const FEWEST_SAMPLES: usize = 250;
/// Of a program's samples at least so many are not excluded.
const FEWEST_COUNTED_PERCENT: f64 = 95.0;
/// Failing stacks that are printed of a program.
const SHOWN_STACKS: usize = 6;

/// A program that is ready to run.
struct Ready {
    row: Row,
    truth: Truth,
    shop: Workshop,
    /// Base name of the executable where that is not the compiled program.
    executable: Option<String>,
    _directory: tempfile::TempDir,
}

impl Ready {
    fn is_of(&self, seen: &Seen<'_>, tgid: u32) -> bool {
        let executable = &*seen.process.executable;
        match &self.executable {
            // Many programs have such a name.
            Some(name) => seen.process.tgid == tgid && **name == *executable,
            // Where it runs in a namespace, another process was started.
            None => *self.shop.name == *executable,
        }
    }
}

/// A program that has run.
struct Ran {
    ready: Ready,
    tgid: u32,
}

#[test]
fn stacks_of_all_kinds_of_programs_are_whole() {
    if !possible() {
        return;
    }
    let begun = Instant::now();
    let only = std::env::var("STAKEOUT_STACKS").unwrap_or_default();
    let wanted: Vec<Row> = rows()
        .into_iter()
        .filter(|row| row.title.contains(&only) && is_possible(row))
        .collect();
    // Compilers take both CPUs for a minute or more: another test's agent would come too late to the short-lived.
    let turn = take_turn();
    let ready = side_by_side(wanted, |number, row, _| build_row(number, row));
    drop(turn);
    println!("built after {:.0} s", begun.elapsed().as_secs_f64());
    let recording = Recording::start(AgentConfig {
        frequency_hz: FREQUENCY_HZ,
        interval: INTERVAL_CPUS / kernel::online_cpus().unwrap().len() as u32,
        // A test's build is slow and large; for tables there is as much room as the default --memory-limit gives.
        cpu_limit: 1.0,
        memory_limit_bytes: 1 << 30,
        ..AgentConfig::default()
    });
    let mut ran = side_by_side(ready, |number, ready, cpu| (number, run_row(ready, cpu)));
    let recorded = recording.stop();
    ran.sort_by_key(|(number, _)| *number);
    check_account(&recorded);
    println!("{:?}", recorded.totals.unwinding);
    println!("{:?}", recorded.totals.kernel);
    let rows: Vec<Ran> = ran.into_iter().map(|(_, ran)| ran).collect();
    let failures = print_table(&rows, &recorded);
    println!("after {:.0} s", begun.elapsed().as_secs_f64());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// False, with a word of why, where a compiler is missing.
fn is_possible(row: &Row) -> bool {
    let missing = row.needs.iter().find(|(program, _)| find_program(program).is_none());
    let Some((program, package)) = missing else { return true };
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "with CI=true {program} must be there (Debian: apt install {package})"
    );
    println!(
        "SKIPPED: {}, since there is no {program} (Debian: apt install {package})",
        row.title
    );
    false
}

/// Does something with each of many things, one at a time on each CPU. Results come in the order of the things.
fn side_by_side<T: Send, R: Send>(things: Vec<T>, work: impl Fn(usize, T, u32) -> R + Sync) -> Vec<R> {
    let count = things.len();
    let queue: Mutex<VecDeque<(usize, T)>> = Mutex::new(things.into_iter().enumerate().collect());
    let results = Mutex::new(Vec::with_capacity(count));
    std::thread::scope(|scope| {
        for cpu in kernel::online_cpus().unwrap() {
            let (queue, results, work) = (&queue, &results, &work);
            scope.spawn(move || {
                loop {
                    let next = queue.lock().unwrap().pop_front();
                    let Some((number, thing)) = next else { break };
                    let result = work(number, thing, cpu);
                    results.lock().unwrap().push((number, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap();
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

fn build_row(number: usize, row: Row) -> Ready {
    let directory = tempfile::tempdir().unwrap();
    let shop = Workshop {
        directory: directory.path().canonicalize().unwrap(),
        name: format!("whole-stacks-row-{number:02}"),
    };
    let truth = (row.build)(&shop);
    let executable = row.executable.map(|name| name());
    Ready {
        executable,
        row,
        truth,
        shop,
        _directory: directory,
    }
}

fn start(ready: &Ready, cpu: u32) -> Child {
    let command = (ready.row.command)(&ready.shop);
    let mut pinned = Command::new("taskset");
    pinned
        .args(["-c", &cpu.to_string()])
        .arg(command.get_program())
        .args(command.get_args());
    // Some leave files where they run.
    pinned
        .current_dir(&ready.shop.directory)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn run_row(ready: Ready, cpu: u32) -> Ran {
    let mut child = start(&ready, cpu);
    let tgid = child.id();
    (ready.row.meanwhile)(&ready.shop);
    let status = child.wait().unwrap();
    // Node.js leaves it; the agent has it open.
    let _ = std::fs::remove_file(format!("/tmp/perf-{tgid}.map"));
    assert!(status.success(), "{}: {status}", ready.row.title);
    Ran { ready, tgid }
}

/// Prints the table, and of each row that falls short its failing stacks. Gives what falls short.
fn print_table(rows: &[Ran], recorded: &Recorded) -> Vec<String> {
    let found: Vec<Found> = rows.iter().map(|ran| find(ran, recorded)).collect();
    let mut failures = Vec::new();
    for (ran, found) in rows.iter().zip(&found) {
        let failing = shortfalls(ran, found);
        if !failing.is_empty() || std::env::var_os("STAKEOUT_STACKS").is_some() {
            println!("\n{}: {}", ran.ready.row.title, failing.join("; "));
            let mut stacks: Vec<_> = found.failing.iter().collect();
            stacks.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            for (stack, count) in stacks.into_iter().take(SHOWN_STACKS) {
                println!("  {count:>5} {stack}");
            }
        }
        failures.extend(
            failing
                .into_iter()
                .map(|failing| format!("{}: {failing}", ran.ready.row.title)),
        );
    }
    println!(
        "\n{:<24}{:>8}{:>9}{:>9}{:>9}{:>10}{:>9}{:>6}  beside",
        "program", "samples", "excluded", "whole", "named", "own named", "agree", "of"
    );
    for (ran, found) in rows.iter().zip(&found) {
        println!(
            "{:<24}{:>8}{:>9}{:>8.2}%{:>8.2}%{:>9.2}%{:>8.2}%{:>6}  {}",
            ran.ready.row.title,
            found.samples,
            found.without_user + found.excluded,
            percent(found.whole, found.samples),
            percent(found.named, found.frames),
            percent(found.own_named, found.own_frames),
            percent(found.agree, found.spoken_of),
            found.spoken_of,
            beside(ran, found),
        );
    }
    println!(
        "samples: of the program, from its exec to its exit. excluded: for what stands beside; without a user stack is what\n\
         was taken in exec or exit. whole: not cut, up to the program's or thread's first function. named: of all user frames.\n\
         own named: of those in the program's own file. agree: with what is known by construction, of the stacks that it\n\
         speaks of.\n"
    );
    failures
}

fn find(ran: &Ran, recorded: &Recorded) -> Found {
    let Ran { ready, tgid } = ran;
    let samples = recorded.samples().filter(|seen| ready.is_of(seen, *tgid));
    Found::judge(&ready.row, &ready.truth, samples)
}

fn beside(ran: &Ran, found: &Found) -> String {
    let row = &ran.ready.row;
    let shows = row
        .shows
        .map(|(feature, _)| format!("{} in {:.0} %", feature.text(), percent(found.shows, found.samples)));
    let excluded = row.excludes.filter(|_| found.excluded > 0);
    let excluded = excluded.map(|why| format!("{} excluded {}", found.excluded, why.text()));
    let without = (found.without_user > 0).then(|| format!("{} without a user stack", found.without_user));
    // Where a row is short of names, whose they are: mostly those of a library that its distribution ships without
    // symbols.
    let is_short = percent(found.named, found.frames) < 99.5;
    let most = found
        .unnamed
        .iter()
        .max_by_key(|(_, frames)| **frames)
        .filter(|_| is_short);
    let unnamed = most.map(|(module, frames)| {
        format!(
            "{:.0} % of the unnamed: {module}",
            percent(*frames, found.frames - found.named)
        )
    });
    let parts = [
        shows.unwrap_or_default(),
        excluded.unwrap_or_default(),
        without.unwrap_or_default(),
        unnamed.unwrap_or_default(),
        row.note.to_owned(),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("; ")
}

fn shortfalls(ran: &Ran, found: &Found) -> Vec<String> {
    let row = &ran.ready.row;
    let mut failing = Vec::new();
    let all = found.samples + found.excluded + found.without_user;
    let mut at_least = |what: &str, is: f64, wanted: f64| {
        if is < wanted {
            failing.push(format!("{what} {is:.2}, not {wanted}"));
        }
    };
    let asked_for = std::env::var_os("STAKEOUT_STACKS").is_some();
    let whole = if asked_for {
        WHOLE_PERCENT
    } else {
        WHOLE_PERCENT_AMONG_OTHERS
    };
    at_least("samples", found.samples as f64, FEWEST_SAMPLES as f64);
    at_least("whole %", percent(found.whole, found.samples), whole);
    at_least(
        "own named %",
        percent(found.own_named, found.own_frames),
        row.named * whole / WHOLE_PERCENT * 100.0,
    );
    at_least("not excluded %", percent(found.samples, all), FEWEST_COUNTED_PERCENT);
    at_least("agreeing %", percent(found.agree, found.spoken_of), whole);
    if let Some((feature, share)) = row.shows {
        at_least(feature.text(), percent(found.shows, found.samples), share * 100.0);
    }
    failing
}
