//! Programs of languages with a runtime, each with a known mix, against what is sampled of them.
//!
//! Prints one table, for `cargo xtask stacks`. With `STAKEOUT_RUNTIMES` every version is tried that lies in a folder of
//! its own there, else those that are installed.

mod churn;
mod java;
mod php;
mod python;
mod requests;
mod ruby;
mod sleeping;
mod v8;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Instant;

use stakeout_agent::agent::AgentConfig;
use stakeout_agent::frames::{Frame, FrameKind};
use stakeout_agent::kernel;

use crate::accounting::check_account;
use crate::program::behind_others;
use crate::recording::{Recorded, Recording, Seen, possible};

const FREQUENCY_HZ: u32 = 199;
/// Of a program's samples; a program that starts and ends takes some without any stack.
const WHOLE_PERCENT: f64 = 99.5;
/// Two points, and what chance adds: three standard deviations, and five among other tests.
const SHARE_POINTS: f64 = 2.0;
/// Among all other tests, on whatever machine CI has.
const LESS_AMONG_OTHERS: f64 = 1.0;
const SHOWN_STACKS: usize = 8;
/// Among all other tests, where there are as many CPUs.
const MOST_AT_A_TIME: usize = 2;

/// A program of the table.
struct Program {
    title: String,
    command: Command,
    /// Functions from the outermost to the innermost, of the part that takes seven tenths and of the other. Others may
    /// lie between two of them.
    chains: [Vec<String>; 2],
    /// What its own frames say of their language.
    language: &'static str,
    /// Of its language's frames so many have names, and of its samples so many are in a chain, in percent.
    named: f64,
    in_chain: f64,
    /// Of code that was inlined into itself debug information tells the depth by the nearest place only.
    agree: f64,
    /// The first part's share is known.
    has_share: bool,
}

#[derive(Default)]
struct Found {
    samples: usize,
    without_user: usize,
    whole: usize,
    frames: usize,
    named: usize,
    spoken_of: usize,
    agree: usize,
    of_chain: [usize; 2],
    failing: BTreeMap<String, usize>,
}

fn percent(part: usize, all: usize) -> f64 {
    if all == 0 {
        100.0
    } else {
        part as f64 * 100.0 / all as f64
    }
}

#[test]
fn programs_of_languages_with_a_runtime_have_their_own_names() {
    if !possible() {
        return;
    }
    let only = std::env::var("STAKEOUT_STACKS").unwrap_or_default();
    let folder = tempfile::tempdir().unwrap();
    let programs = java::programs(folder.path()).into_iter().chain(python::programs());
    let programs = programs.chain(php::programs(folder.path()));
    let programs = programs.chain(ruby::programs());
    let programs = programs.chain(v8::programs(folder.path()));
    let programs: Vec<Program> = programs.filter(|program| program.title.contains(&only)).collect();
    let begun = Instant::now();
    let recording = Recording::start(AgentConfig {
        frequency_hz: FREQUENCY_HZ,
        cpu_limit: 1.0,
        memory_limit_bytes: 1 << 30,
        ..AgentConfig::default()
    });
    let ran = run_all(programs);
    let recorded = recording.stop();
    check_account(&recorded);
    println!("{:?}", recorded.totals.unwinding);
    let failures = print_table(&ran, &recorded);
    println!("after {:.0} s", begun.elapsed().as_secs_f64());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Runs the programs, each as long as it takes; gives them in their order, with their process ids.
///
/// Two on two CPUs would leave the agent none for what it has to find out of each in its first moments, and a row of
/// seconds would be short by that. So where the table is asked for they run one after the other, and else two at a time
/// behind whoever else wants a CPU: the agent's threads come before them, and of a program's time it has all the same
/// samples.
fn run_all(programs: Vec<Program>) -> Vec<(Program, u32)> {
    let is_table = std::env::var_os("STAKEOUT_STACKS").is_some();
    let lanes = if is_table {
        1
    } else {
        kernel::online_cpus().unwrap().len().min(MOST_AT_A_TIME)
    };
    let run = |mut program: Program| {
        if lanes > 1 {
            program.command = behind_others(&program.command);
        }
        let mut child = program.command.stdout(Stdio::null()).spawn().unwrap();
        let tgid = child.id();
        assert!(child.wait().unwrap().success(), "{}", program.title);
        (program, tgid)
    };
    let waiting = Mutex::new(programs.into_iter().enumerate());
    let ran = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().unwrap().next();
                    let Some((number, program)) = next else { return };
                    let done = run(program);
                    ran.lock().unwrap().push((number, done));
                }
            });
        }
    });
    let mut ran = ran.into_inner().unwrap();
    ran.sort_by_key(|(number, _)| *number);
    ran.into_iter().map(|(_, done)| done).collect()
}

fn print_table(ran: &[(Program, u32)], recorded: &Recorded) -> Vec<String> {
    let mut failures = Vec::new();
    let mut lines = Vec::new();
    for (program, tgid) in ran {
        let found = Found::of(program, recorded.of_tgid(*tgid).into_iter());
        let failing = found.shortfalls(program);
        if !failing.is_empty() || std::env::var_os("STAKEOUT_STACKS").is_some() {
            println!("\n{}: {}", program.title, failing.join("; "));
            let mut stacks: Vec<_> = found.failing.iter().collect();
            // A wrong name is worse than none.
            stacks.sort_by_key(|(stack, count)| (!stack.starts_with("does not agree"), std::cmp::Reverse(**count)));
            for (stack, count) in stacks.into_iter().take(SHOWN_STACKS) {
                println!("  {count:>5} {stack}");
            }
        }
        failures.extend(
            failing
                .into_iter()
                .map(|failing| format!("{}: {failing}", program.title)),
        );
        lines.push(format!(
            "{:<28}{:>8}{:>8}{:>8.2}%{:>8.2}%{:>8.2}%{:>7}{:>8.1}%",
            program.title,
            found.samples,
            found.without_user,
            percent(found.whole, found.samples),
            percent(found.named, found.frames),
            percent(found.agree, found.spoken_of),
            found.spoken_of,
            found.share(),
        ));
    }
    println!(
        "\n{:<28}{:>8}{:>8}{:>9}{:>9}{:>9}{:>7}{:>9}\n{}",
        "program",
        "samples",
        "none",
        "whole",
        "named",
        "agree",
        "of",
        "of a",
        lines.join("\n")
    );
    println!(
        "none: without a user stack. whole: not cut, up to the thread's first function. named: of the language's own frames.\n\
         agree: with the order of calls, of the stacks in a chain. of a: its share of both chains' samples, in truth 70 %.\n"
    );
    failures
}

impl Found {
    fn of<'a>(program: &Program, samples: impl Iterator<Item = Seen<'a>>) -> Self {
        let mut found = Self::default();
        for seen in samples {
            let frames: Vec<&Frame> = seen.frames().filter(|frame| frame.kind != FrameKind::Kernel).collect();
            if frames.is_empty() {
                found.without_user += 1;
            } else {
                found.take(program, seen, &frames);
            }
        }
        found
    }

    fn take(&mut self, program: &Program, seen: Seen<'_>, frames: &[&Frame]) {
        self.samples += 1;
        // A virtual thread that has waited is cut in the middle, where its callers are in the heap, and says so.
        let is_marked = frames.iter().any(|frame| name(frame) == "[… frames]");
        let is_cut = seen.stack.truncated && !is_marked;
        let is_whole = !is_cut && frames.iter().rev().take(3).any(|frame| is_start(frame));
        self.whole += usize::from(is_whole);
        let mut is_named = true;
        for frame in frames {
            // What was made at run time and has no owner would be the language's own.
            let is_own = match frame.kind {
                FrameKind::Interpreted(language) => language == program.language,
                FrameKind::Jit => true,
                _ => false,
            };
            self.frames += usize::from(is_own);
            self.named += usize::from(is_own && frame.function.is_some());
            is_named &= !is_own || frame.function.is_some();
        }
        let mut agrees = None;
        for (chain, count) in program.chains.iter().zip(&mut self.of_chain) {
            let (known, is_right) = follows(frames, chain, &program.chains);
            if known {
                agrees = Some(agrees == Some(true) || is_right);
                *count += usize::from(is_right);
            }
        }
        self.spoken_of += usize::from(agrees.is_some());
        self.agree += usize::from(agrees == Some(true));
        if !is_whole || agrees == Some(false) || !is_named {
            let text = frames
                .iter()
                .map(|frame| format!("{}{}", if frame.inlined { "~" } else { "" }, shown(frame)));
            let text: Vec<String> = text.collect();
            let text = if text.len() > 30 {
                let (leaf, root) = (text[..20].join(" < "), text[text.len() - 8..].join(" < "));
                format!("{leaf} < ({} frames) < {root}", text.len())
            } else {
                text.join(" < ")
            };
            let why = match (is_whole, agrees) {
                (false, _) => "not whole: ",
                (true, Some(false)) => "does not agree: ",
                _ => "without all names: ",
            };
            *self.failing.entry(why.to_owned() + &text).or_default() += 1;
        }
    }

    /// Of both chains' samples those of the first, in percent.
    fn share(&self) -> f64 {
        percent(self.of_chain[0], self.of_chain[0] + self.of_chain[1])
    }

    fn shortfalls(&self, program: &Program) -> Vec<String> {
        let less = if std::env::var_os("STAKEOUT_STACKS").is_some() {
            0.0
        } else {
            LESS_AMONG_OTHERS
        };
        let mut failing = Vec::new();
        let mut at_least = |what: &str, is: f64, wanted: f64| {
            if is < wanted {
                failing.push(format!("{what} {is:.2}, not {wanted:.2}"));
            }
        };
        at_least("whole %", percent(self.whole, self.samples), WHOLE_PERCENT - less);
        at_least("named %", percent(self.named, self.frames), program.named - less);
        at_least("agreeing %", percent(self.agree, self.spoken_of), program.agree - less);
        at_least("in a chain %", percent(self.spoken_of, self.samples), program.in_chain);
        let counted = (self.of_chain[0] + self.of_chain[1]) as f64;
        let deviations = if less > 0.0 { 5.0 } else { 3.0 };
        let chance = deviations * (0.7 * 0.3 / counted.max(1.0)).sqrt() * 100.0;
        let off = if program.has_share {
            (self.share() - 70.0).abs()
        } else {
            0.0
        };
        at_least("of the share in points", SHARE_POINTS + chance, off);
        failing
    }
}

fn name(frame: &Frame) -> &str {
    frame.function.as_deref().unwrap_or("?")
}

/// Its name, else where it lies.
fn shown(frame: &Frame) -> Cow<'_, str> {
    match (&frame.function, frame.offset) {
        (None, Some(offset)) => {
            let file = frame.module.rsplit('/').next().unwrap_or_default();
            format!("{file}+{offset:#x}").into()
        }
        _ => name(frame).into(),
    }
}

/// The launcher's `_start` has no name.
fn is_start(frame: &Frame) -> bool {
    let name = name(frame);
    let plain = name.split('@').next().unwrap_or(name);
    [
        "_start",
        "__libc_start_main",
        "start_thread",
        "clone",
        "__clone",
        "clone3",
        "__clone3",
        // Of a fiber of Ruby, which has a stack of its own.
        "fiber_entry",
    ]
    .contains(&plain)
        || frame.function.is_none() && frame.module.contains("/libruby")
        // Of a greenlet, which has its own, too; and of the change from one to another.
        || [
            "greenlet::UserGreenlet::inner_bootstrap",
            "greenlet::Greenlet::g_switchstack",
            "slp_switch",
        ]
        .iter()
        .any(|own| plain.starts_with(*own))
        || frame.function.is_none() && frame.module.contains("/_greenlet.")
        // A C library without symbols; its linker, while it makes a large library ready.
        || frame.function.is_none() && ["/libc.so", "/ld-linux"].iter().any(|file| frame.module.contains(file))
}

/// Whether a stack has functions of any chain, and whether these are the beginning of this one, from the root on.
fn follows(frames: &[&Frame], chain: &[String], chains: &[Vec<String>]) -> (bool, bool) {
    let is_known = |name: &&str| chains.iter().flatten().any(|known| known == name);
    let own: Vec<&str> = frames.iter().rev().map(|frame| name(frame)).filter(is_known).collect();
    let is_right = own.len() <= chain.len() && own.iter().zip(chain).all(|(own, expected)| own == expected);
    let is_complete = |frame: &&Frame| frame.function.is_some() && name(frame) != "[… frames]";
    if is_right || frames.iter().all(is_complete) {
        return (!own.is_empty(), is_right);
    }
    // Functions without names were replaced before they could be asked for: what is left has the order of the chain.
    let mut rest = chain.iter();
    (true, own.iter().all(|own| rest.any(|expected| expected == own)))
}
