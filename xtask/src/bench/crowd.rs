//! A crowd: many processes that live at the same time, start and end all the time, and are of hundreds of different
//! executables; now and then a large program among them.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::{repo, run};

/// What comes and goes while the agent is watched.
pub(super) trait Churning {
    /// Takes leave of what has ended, and starts what is due.
    fn turn_over(&mut self) -> Result<()>;

    /// Those that live.
    fn alive(&self) -> usize;

    /// All that were started so far.
    fn started(&self) -> u64;
}

/// Works for as many milliseconds as the first argument says, in functions of its own, and sleeps for as many as the
/// second.
const PROGRAM: &str = r#"
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long sink;
__attribute__((noinline)) static unsigned long leaf(unsigned long x) {
    for (int i = 0; i < 1000; i++) x = x * 6364136223846793005UL + 1442695040888963407UL;
    return x;
}
__attribute__((noinline)) static void work(void) { sink = leaf(sink) + 1; }
static long elapsed_ms(const struct timespec *from) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - from->tv_sec) * 1000 + (now.tv_nsec - from->tv_nsec) / 1000000;
}
int main(int count, char **arguments) {
    struct timespec begin;
    if (count != 3) return 2;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    while (elapsed_ms(&begin) < atol(arguments[1])) work();
    usleep(atol(arguments[2]) * 1000);
    return 0;
}
"#;
/// The build id that the program is linked with, and that each copy has its own number in.
const BUILD_ID: [u8; 20] = *b"stakeout churn copy\0";
/// What each small process works before it sleeps.
const WORK_MS: u32 = 15;
/// How long one sleeps on average; the actual lengths lie between half and one and a half of it.
const SLEEP_MS: u32 = 15_000;
const LARGE_EVERY: Duration = Duration::from_secs(7);
const LARGE_LIFE: Duration = Duration::from_secs(6);

/// A hello world that needs a web server, so that Go's compiler and linker have to do.
const GO: &str = "package main\nimport \"net/http\"\nfunc main() { println(http.StatusOK) }\n";

struct Large {
    name: &'static str,
    program: &'static str,
    arguments: Vec<String>,
}

/// The running programs; dropping it ends them.
pub(super) struct Crowd {
    copies: Vec<PathBuf>,
    processes: usize,
    alive: VecDeque<Child>,
    large: Vec<Large>,
    running_large: Option<(Child, Instant)>,
    next_large: Instant,
    started: u64,
    /// Large ones of them.
    started_large: usize,
}

impl Crowd {
    /// Makes the executables in `dir`, and starts nothing yet.
    pub(super) fn new(dir: &Path, executables: usize, processes: usize) -> Result<Crowd> {
        ensure!(
            executables > 0 && processes > 0,
            "a crowd needs executables and processes"
        );
        Ok(Crowd {
            copies: copies(dir, executables)?,
            processes,
            alive: VecDeque::new(),
            large: large_programs(dir)?,
            running_large: None,
            next_large: Instant::now() + LARGE_EVERY,
            started: 0,
            started_large: 0,
        })
    }

    /// Names of the large programs, for a heading.
    pub(super) fn large_names(&self) -> String {
        let names: Vec<&str> = self.large.iter().map(|large| large.name).collect();
        names.join(", ")
    }

    /// One large program at a time, each for a few seconds, then the next.
    fn change_large(&mut self) -> Result<()> {
        let now = Instant::now();
        if let Some((child, until)) = &mut self.running_large
            && (child.try_wait()?.is_some() || now >= *until)
        {
            end(child);
            self.running_large = None;
        }
        if now >= self.next_large && self.running_large.is_none() && !self.large.is_empty() {
            let large = &self.large[self.started_large % self.large.len()];
            let child = spawn(Command::new(large.program).args(&large.arguments))?;
            self.running_large = Some((child, now + LARGE_LIFE));
            self.next_large = now + LARGE_EVERY;
            self.started_large += 1;
            self.started += 1;
        }
        Ok(())
    }
}

impl Churning for Crowd {
    /// As many anew as have ended, at most a tenth of all at once.
    fn turn_over(&mut self) -> Result<()> {
        let mut kept = VecDeque::with_capacity(self.alive.len());
        for mut child in self.alive.drain(..) {
            match child.try_wait()? {
                None => kept.push_back(child),
                Some(status) => ensure!(status.success(), "a process of the crowd ended with {status}"),
            }
        }
        self.alive = kept;
        for _ in 0..(self.processes - self.alive.len()).min(self.processes.div_ceil(10)) {
            let copy = &self.copies[self.started as usize % self.copies.len()];
            // Spread without a generator of numbers: a step that has no factor in common with the range.
            let sleep_ms = SLEEP_MS / 2 + (self.started as u32).wrapping_mul(7919) % SLEEP_MS;
            let mut command = Command::new(copy);
            command.args([WORK_MS.to_string(), sleep_ms.to_string()]);
            self.alive.push_back(spawn(&mut command)?);
            self.started += 1;
        }
        self.change_large()
    }

    /// Small ones alone.
    fn alive(&self) -> usize {
        self.alive.len()
    }

    fn started(&self) -> u64 {
        self.started
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        let large = self.running_large.iter_mut().map(|(child, _)| child);
        self.alive.iter_mut().chain(large).for_each(end);
    }
}

/// In a group of its own: what a shell has started ends with it.
pub(super) fn spawn(command: &mut Command) -> Result<Child> {
    let name = run::line(command);
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    quiet.spawn().with_context(|| format!("can't start {name}"))
}

/// With all that it has started.
pub(super) fn end(child: &mut Child) {
    if let Ok(group) = i32::try_from(child.id()) {
        // It may have ended by itself.
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
    let _ = child.wait();
}

/// Compiles the program, and copies it: each copy is a file of its own with a build id of its own.
fn copies(dir: &Path, count: usize) -> Result<Vec<PathBuf>> {
    let (source, program) = (dir.join("crowd.c"), dir.join("crowd"));
    fs::write(&source, PROGRAM)?;
    let id: String = BUILD_ID.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut compile = Command::new("cc");
    compile.args([
        "-O1",
        "-g",
        "-fomit-frame-pointer",
        &format!("-Wl,--build-id=0x{id}"),
        "-o",
    ]);
    run::output(compile.arg(&program).arg(&source))?;
    let bytes = fs::read(&program)?;
    let at = bytes
        .windows(BUILD_ID.len())
        .position(|part| part == BUILD_ID)
        .context("the linker left no build id")?;
    let copy = |number: usize| {
        let mut bytes = bytes.clone();
        bytes[at..at + 8].copy_from_slice(&(number as u64).to_le_bytes());
        let path = dir.join(format!("crowd-{number}"));
        fs::write(&path, bytes)?;
        fs::set_permissions(&path, fs::metadata(&program)?.permissions())?;
        Ok(path)
    };
    (0..count).map(copy).collect()
}

/// Those that this machine has.
fn large_programs(dir: &Path) -> Result<Vec<Large>> {
    let go = dir.join("hello.go");
    fs::write(&go, GO)?;
    // A cache of its own each time, so that the standard library is compiled too.
    let build = format!(
        "GOCACHE=$(mktemp -d -p {0}) go build -o {0}/hello {1}",
        dir.display(),
        go.display()
    );
    let maps =
        (0..200).map(|n| format!("let m{n}: std::collections::BTreeMap<[u8; {n}], String> = Default::default();"));
    let (rust, rust_program) = (dir.join("maps.rs"), dir.join("maps").display().to_string());
    let prints = (0..200).map(|n| format!("println!(\"{{:?}}\", m{n});"));
    fs::write(
        &rust,
        format!("fn main() {{ {} }}", maps.chain(prints).collect::<String>()),
    )?;
    let rust = rust.display().to_string();
    let all = [
        ("node", "node", vec!["-e", "let x = 0; for (;;) x = Math.sqrt(x + 1)"]),
        (
            "python3",
            "python3",
            vec![
                "-c",
                "import json, ssl, sqlite3\nwhile True: json.dumps(list(range(1000)))",
            ],
        ),
        ("go", "sh", vec!["-c", &build]),
        (
            "perl",
            "perl",
            vec!["-e", "my $x = 0; $x += sqrt($_ % 1000) for 1..1e12"],
        ),
        ("rustc", "rustc", vec!["-O", "-o", &rust_program, &rust]),
    ];
    let there = all.into_iter().filter(|(name, ..)| repo::find_program(name).is_some());
    let large = there.map(|(name, program, arguments)| Large {
        name,
        program,
        arguments: arguments.into_iter().map(str::to_owned).collect(),
    });
    Ok(large.collect())
}
