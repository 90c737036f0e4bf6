//! Whether the agent and a language's own profiler tell the same of one real program that both watch at the same time.
//!
//! In: five programs of other people's code over this repository's texts, and the profilers of their languages. Out:
//! shares of functions and stacks of both. Frames of other languages, of C and of the kernel are not compared.

mod compare;
pub(super) mod fetch;
mod notes;
mod ours;
mod profile;
mod programs;
mod theirs;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::languages::{self, Language, Runtime};
use super::receiver::Receiver;
use super::report::Figures;
use super::stacks::Stacks;
use crate::e2e::check_agent;
use crate::http::Client;
use crate::packages;
use crate::service::{POLL, Service};
use crate::signals::Stop;
use crate::stack::{alive, start_agent};
use compare::{Function, Share};
use profile::Profile;
use programs::{Program, RunTiming, Window};

/// What the figures mean, below the flags.
const MEANING: &str = "\
A program of each language is watched by the agent and by the language's own profiler in the same seconds, at the same
rate. Compared are the frames of the language alone, under names that both can give.

A function's own share is that of the samples whose innermost frame of the language it is. Of the twenty largest, by self
and by total, each may differ by 3 points.

Of the function with most samples of its own, a stack is equal if the other one has the very same frames in the same order
at least once. Of all its samples, the share with such a stack must be 98 in a hundred of what chance gives, less two
standard deviations. Chance is told by dealing the samples of both to them anew at random: rare stacks are missing in one
of them by chance alone. The overlap also compares how often each stack was seen; it is printed and not judged.

Where the other one can't tell a share rightly, a program with a known share decides, and a note says so.";

#[derive(Debug, clap::Args)]
#[command(after_help = MEANING)]
pub(crate) struct Args {
    /// Only this language
    #[arg(long, value_name = "LANGUAGE")]
    only: Option<Tongue>,
    /// How long both watch
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    seconds: u64,
    /// How long a program runs before, so that what is hot is compiled
    #[arg(long, default_value_t = 15, value_name = "SECONDS")]
    warm_up: u64,
    /// Rate of both
    #[arg(long, default_value_t = 199, value_name = "HZ")]
    frequency: u32,
    /// What the programs need is downloaded into this folder once (from PyPI, Maven Central, npm and Debian, 120 MB);
    /// what the other profilers write goes there too
    #[arg(long, value_name = "FOLDER")]
    folder: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Tongue {
    Python,
    Java,
    Node,
    Ruby,
    Php,
}

impl Tongue {
    fn language(self) -> Language {
        match self {
            Tongue::Python => Language::Python,
            Tongue::Java => Language::Java,
            Tongue::Node => Language::Node,
            Tongue::Ruby => Language::Ruby,
            Tongue::Php => Language::Php,
        }
    }
}

/// The targets: points of a share, percent of what chance gives.
const MOST_POINTS: f64 = 3.0;
const LEAST_EQUAL: f64 = 98.0;
const NAME_WIDTH: usize = 76;

/// Compares each language; a target that is missed is a limit that was not kept.
pub(crate) fn run(args: &Args, figures: &mut Figures) -> Result<()> {
    ensure!(packages::is_root(), "the agent needs root here: run this as root");
    let Receiver {
        options,
        client,
        mut server,
        stop,
        dir: _dir,
    } = Receiver::start(args.frequency)?;
    fs::create_dir_all(&args.folder).with_context(|| format!("can't make {}", args.folder.display()))?;
    let folder = args.folder.canonicalize()?;
    let runtimes = languages::newest(None)?;
    let wanted = |runtime: &&Runtime| args.only.is_none_or(|only| only.language() == runtime.language);
    let runtimes: Vec<&Runtime> = runtimes.iter().filter(wanted).collect();
    ensure!(!runtimes.is_empty(), "no program to run: which runtimes are there?");
    // The whole rate, whatever that costs.
    let mut watched = Watched {
        agent: start_agent(&options, client.base(), &["--cpu-limit", "100"])?,
        client: &client,
        stop: &stop,
    };
    figures.print_note(format!(
        "both at {} Hz for {} s, after {} s; shares in percent of the samples with a frame of the language; by chance: two \
         standard deviations of the difference, for as many independent samples",
        args.frequency, args.seconds, args.warm_up
    ));
    figures.table("");
    for runtime in runtimes {
        let timing = RunTiming {
            warm_up: args.warm_up,
            seconds: args.seconds,
            frequency_hz: args.frequency,
        };
        let compared = watched
            .compare(runtime, &folder, timing)
            .with_context(|| runtime.title())?;
        compared.tell(runtime, figures);
    }
    let ended = watched.agent.stop(Duration::from_secs(30));
    ensure!(ended.is_some_and(|status| status.success()), "the agent ended badly");
    check_agent(&client).context("the account is not exact")?;
    server.stop(Duration::from_secs(20));
    Ok(())
}

/// The agent that watches all programs.
struct Watched<'a> {
    client: &'a Client,
    agent: Service,
    stop: &'a Stop,
}

impl Watched<'_> {
    fn compare(&mut self, runtime: &Runtime, folder: &Path, timing: RunTiming) -> Result<Compared> {
        println!("\n{}: {}", runtime.title(), notes::what(runtime.language));
        let out = folder.join("profiles");
        fs::create_dir_all(&out).with_context(|| format!("can't make {}", out.display()))?;
        let program = Program::new(runtime, folder, &out, timing, self.stop);
        let (window, theirs) = program.measure(|window| self.wait_stored(window.until_ms))?;
        let ours = self.ours(runtime.language, window)?;
        for (name, profile) in [("agent", &ours), ("other", &theirs)] {
            let path = out.join(format!("{}.{name}.collapsed", runtime.language.kind()));
            fs::write(&path, profile.collapsed()).with_context(|| format!("can't write {}", path.display()))?;
        }
        ensure!(theirs.samples() > 0, "the other profiler has no samples");
        let known = program.measure_known(|window| self.wait_stored(window.until_ms))?;
        let known = match known {
            None => None,
            Some(known) => Some(KnownShares::of(
                runtime.language,
                &self.stacks(known.window)?,
                &known.theirs,
                known.percent,
            )),
        };
        Ok(Compared { ours, theirs, known })
    }

    fn ours(&self, language: Language, window: Window) -> Result<Profile> {
        Ok(ours::profile(language, &self.stacks(window)?))
    }

    fn stacks(&self, window: Window) -> Result<Stacks> {
        let query = format!("{{tgid=\"{}\"}}", window.tgid);
        Stacks::get(self.client, &query, window.from_ms, window.until_ms)
    }

    fn wait_stored(&mut self, until_ms: i64) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(120);
        let stored = "SELECT max(until_ns) FROM batches";
        while self.client.sql_number(stored)? / 1_000_000 < until_ms {
            self.stop.check()?;
            alive(&mut self.agent)?;
            ensure!(Instant::now() < deadline, "the agent has shipped nothing for 120 s");
            thread::sleep(POLL);
        }
        Ok(())
    }
}

/// One language's outcome.
struct Compared {
    ours: Profile,
    theirs: Profile,
    known: Option<KnownShares>,
}

/// Shares of the function whose share is known, in percent.
struct KnownShares {
    truth: f64,
    ours: f64,
    theirs: f64,
}

impl KnownShares {
    fn of(language: Language, stacks: &Stacks, theirs: &Profile, truth: f64) -> KnownShares {
        // Of our own stacks nothing is changed to be like the other one's.
        let ours = ours::unchanged(language, stacks);
        let share = |profile: &Profile| {
            let (function, share) = notes::known(language);
            let weight = profile.functions().get(function).copied().unwrap_or_default();
            share.of(Some(&weight)) as f64 * 100.0 / profile.samples().max(1) as f64
        };
        KnownShares {
            truth,
            ours: share(&ours),
            theirs: share(theirs),
        }
    }

    fn tell(&self, runtime: &Runtime, figures: &mut Figures) {
        let other = notes::profiler(runtime.language);
        let (function, share) = notes::known(runtime.language);
        println!(
            "a program whose {function} has a known {} share: {:.1} %, agent {:.1} %, {other} {:.1} %",
            share.title(),
            self.truth,
            self.ours,
            self.theirs
        );
        figures.row(&format!("{}, known share", runtime.title()));
        figures.add("truth", "%", self.truth);
        figures
            .add("agent beside the truth", "points", (self.ours - self.truth).abs())
            .at_most(MOST_POINTS);
        figures.add("other beside the truth", "points", (self.theirs - self.truth).abs());
    }
}

impl Compared {
    fn tell(&self, runtime: &Runtime, figures: &mut Figures) {
        let Compared { ours, theirs, known } = self;
        let other = notes::profiler(runtime.language);
        println!(
            "samples: agent {} (left out: {}), {other} {} (left out: {})",
            ours.samples(),
            ours.left_out(),
            theirs.samples(),
            theirs.left_out()
        );
        println!(
            "compared without their innermost function, as {other} sees them: {:.1} % of the agent's",
            ours.cut_back as f64 * 100.0 / ours.samples().max(1) as f64
        );
        figures.row(&format!("{}, {other}", runtime.title()));
        figures.add("samples of the agent", "", ours.samples() as f64);
        figures.add("samples of the other", "", theirs.samples() as f64);
        let mut hottest = None;
        for share in [Share::Own, Share::Total] {
            let functions = compare::largest(ours, theirs, share);
            print(&functions, share, other);
            let differences = functions.iter().map(|function| function.difference().abs());
            let name = format!("largest difference, {}", share.title());
            let figure = figures.add(&name, "points", differences.fold(0.0, f64::max));
            if notes::is_judged(runtime.language, share) {
                figure.at_most(MOST_POINTS);
            }
            if share == Share::Own {
                hottest = functions.into_iter().next();
            }
        }
        let Some(hottest) = hottest else {
            return;
        };
        let equality = compare::equality(ours, theirs, &hottest.name);
        let (seen, chance) = (equality.seen, equality.by_chance);
        let least = equality.least(LEAST_EQUAL);
        println!(
            "stacks of {}: agent {}, {other} {}; equal {:.1} % (by chance {:.1}, at least {least:.1}), overlap {:.1} % (by chance \
             {:.1})",
            hottest.name, equality.ours, equality.theirs, seen.found, chance.found, seen.overlap, chance.overlap
        );
        figures
            .add("equal stacks of the hottest", "%", seen.found)
            .at_least(least);
        figures.add("by chance", "%", chance.found);
        figures.add("overlap", "%", seen.overlap);
        figures.add("overlap by chance", "%", chance.overlap);
        if let Some(known) = known {
            known.tell(runtime, figures);
        }
        for note in notes::verified(runtime.language) {
            figures.print_note(format!("{}: {note}", runtime.language.title()));
        }
    }
}

fn print(functions: &[Function], share: Share, other: &str) {
    println!(
        "{:<NAME_WIDTH$} {:>8} {other:>14} {:>8} {:>10}",
        format!("by {}", share.title()),
        "agent %",
        "points",
        "by chance"
    );
    for function in functions {
        let difference = function.difference();
        let mark = if difference.abs() > MOST_POINTS { " <" } else { "" };
        println!(
            "{:<NAME_WIDTH$} {:>8.2} {:>14.2} {difference:>+8.2} {:>10.2}{mark}",
            shortened(&function.name),
            function.ours,
            function.theirs,
            function.by_chance
        );
    }
}

/// The end of a long name tells more than its beginning.
fn shortened(name: &str) -> String {
    let count = name.chars().count();
    match count > NAME_WIDTH {
        true => format!("…{}", name.chars().skip(count - NAME_WIDTH + 1).collect::<String>()),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_its_end() {
        assert_eq!(shortened("main"), "main");
        let long = format!("{}end", "a".repeat(200));
        let short = shortened(&long);
        assert!(short.starts_with('…') && short.ends_with("end"));
        assert_eq!(short.chars().count(), NAME_WIDTH);
    }
}
