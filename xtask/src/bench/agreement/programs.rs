//! The real programs, each with its language's own profiler beside it.
//!
//! In: a runtime and the folder of what was fetched. Out: the window that both watched, and what the other profiler saw
//! in it. A program lives until the agent's samples of the window are stored, since frames are named while it does.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::fetch;
use super::profile::Profile;
use super::theirs;
use crate::bench::crowd::end;
use crate::bench::languages::{Language, Runtime};
use crate::http::Client;
use crate::service::POLL;
use crate::signals::Stop;
use crate::stack::{free_address, now_ms};
use crate::{repo, run};

/// How long a program may take for its first line, and for what it writes at its end.
const PATIENCE: Duration = Duration::from_secs(120);
/// Those who ask the service at once: so many that it never waits for one.
const CLIENTS: u64 = 4;
const LINE_BYTES: u64 = 1024;
/// A program with a known share is small, and differs by much.
const KNOWN_WARM_UP: u64 = 5;
const KNOWN_SECONDS: u64 = 20;
const CPU_PROFILE: &str = "node.cpuprofile";
const ORDER: &str = r#"{"customer":"somebody","offers":[{"name":"a","price":3,"words":["b","c"]},{"name":"d","price":5.5,"words":[]}]}"#;

/// How long and how often.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunTiming {
    pub(super) warm_up: u64,
    pub(super) seconds: u64,
    pub(super) frequency_hz: u32,
}

impl RunTiming {
    fn interval_us(self) -> u64 {
        1_000_000 / u64::from(self.frequency_hz.max(1))
    }
}

/// What both watched: a process, in Unix milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) tgid: u32,
    pub(super) from_ms: i64,
    pub(super) until_ms: i64,
}

/// What a program says that begins and ends its profiler itself.
struct Told {
    window: Window,
    begun: String,
    ended: String,
    truth: Option<String>,
}

/// A function's known share in percent, beside what the other profiler saw.
pub(super) struct KnownShare {
    pub(super) window: Window,
    pub(super) theirs: Profile,
    pub(super) percent: f64,
}

/// A language's program and profiler.
pub(super) struct Program<'a> {
    runtime: &'a Runtime,
    /// Of what was fetched.
    folder: &'a Path,
    /// Where this run's files go.
    out: &'a Path,
    timing: RunTiming,
    stop: &'a Stop,
}

impl<'a> Program<'a> {
    pub(super) fn new(
        runtime: &'a Runtime,
        folder: &'a Path,
        out: &'a Path,
        timing: RunTiming,
        stop: &'a Stop,
    ) -> Self {
        Program {
            runtime,
            folder,
            out,
            timing,
            stop,
        }
    }

    /// Runs it; `stored` waits until what the agent saw of the window has come, while the program still lives.
    pub(super) fn measure(&self, stored: impl FnOnce(Window) -> Result<()>) -> Result<(Window, Profile)> {
        match self.runtime.language {
            Language::Python => self.python(stored),
            Language::Java => self.java(stored),
            Language::Node => self.node(stored),
            Language::Ruby => self.ruby(stored),
            Language::Php => self.php(stored),
        }
    }

    fn python(&self, stored: impl FnOnce(Window) -> Result<()>) -> Result<(Window, Profile)> {
        let programs = fetch::python(self.runtime, self.folder)?;
        let address = free_address("127.0.0.1:0")?;
        let mut command = Command::new(programs.join("python"));
        command.arg(source("shop.py")).arg(port(&address)).args(markdown()?);
        let mut service = Running::start(&mut command)?;
        let asking = Asking::start(&address);
        self.pause(self.timing.warm_up, &mut service)?;
        let out = self.out.join("python.raw");
        // What it says goes to standard error.
        let mut spy = Command::new("sh");
        spy.args(["-c", r#"exec "$0" "$@" 2>&1"#])
            .arg(programs.join("py-spy"))
            .args(["record", "--pid", &service.tgid().to_string()])
            .args(["--duration", &self.timing.seconds.to_string()])
            .args(["--rate", &self.timing.frequency_hz.to_string()])
            .args(["--format", "raw", "--full-filenames", "--output"])
            .arg(&out);
        let mut spy = Running::start(&mut spy)?;
        spy.wait_for("Sampling process")?;
        let from_ms = now_ms();
        self.pause(self.timing.seconds, &mut service)?;
        let window = Window {
            tgid: service.tgid(),
            from_ms,
            until_ms: now_ms(),
        };
        asking.tell()?;
        spy.wait_until_ended(self.stop)?;
        stored(window)?;
        Ok((window, theirs::py_spy(&read(&out)?)?))
    }

    fn java(&self, stored: impl FnOnce(Window) -> Result<()>) -> Result<(Window, Profile)> {
        let (jars, library) = fetch::java(self.runtime, self.folder)?;
        let classes = self.out.join("classes");
        let mut javac = Command::new(self.runtime.program.with_file_name("javac"));
        javac
            .args(["-cp", &jars, "-d"])
            .arg(&classes)
            .arg(source("Searches.java"));
        run::output(&mut javac)?;
        let out = self.out.join("java.collapsed");
        let mut command = self.runtime.command();
        command.args(["-Xmx512m", "-cp", &format!("{}:{jars}", classes.display()), "Searches"]);
        self.times(&mut command, &out);
        command.arg(library).args(markdown()?);
        let told = self.tell_window(&mut command, stored)?;
        Ok((told.window, theirs::async_profiler(&read(&out)?)?))
    }

    fn node(&self, stored: impl FnOnce(Window) -> Result<()>) -> Result<(Window, Profile)> {
        let packages = fetch::node(self.folder)?;
        let mut command = self.node_command(&[], "pages.js");
        command.env("NODE_PATH", packages).args(markdown()?);
        let told = self.tell_window(&mut command, stored)?;
        Ok((told.window, self.node_profile(&told)?))
    }

    fn node_command(&self, options: &[&str], name: &str) -> Command {
        let mut command = self.runtime.command();
        command
            .args(options)
            .args(["--cpu-prof", "--cpu-prof-interval"])
            .arg(self.timing.interval_us().to_string())
            .args(["--cpu-prof-name", CPU_PROFILE, "--cpu-prof-dir"])
            .arg(self.out)
            .arg(source(name))
            .args([self.timing.warm_up.to_string(), self.timing.seconds.to_string()]);
        command
    }

    fn node_profile(&self, told: &Told) -> Result<Profile> {
        let microseconds = |line: &str| -> Result<i64> {
            let time = line.split(' ').nth(1).with_context(|| format!("no time in `{line}`"))?;
            Ok(time.parse::<i64>()? / 1000)
        };
        let text = read(&self.out.join(CPU_PROFILE))?;
        theirs::v8(&text, microseconds(&told.begun)?, microseconds(&told.ended)?)
    }

    fn ruby(&self, stored: impl FnOnce(Window) -> Result<()>) -> Result<(Window, Profile)> {
        let folders = std::env::join_paths(fetch::ruby(self.folder)?)?;
        let out = self.out.join("ruby.json");
        let mut command = self.runtime.command();
        command.env("RUBYLIB", folders).arg(source("pages.rb"));
        self.times(&mut command, &out);
        command.args(markdown()?);
        let told = self.tell_window(&mut command, stored)?;
        Ok((told.window, theirs::stackprof(&read(&out)?)?))
    }

    fn php(&self, stored: impl FnOnce(Window) -> Result<()>) -> Result<(Window, Profile)> {
        let (sources, library) = fetch::php(self.folder)?;
        let out = self.out.join("php.collapsed");
        let mut command = self.php_command("parse.php", &library, &out);
        command.arg(sources);
        let told = self.tell_window(&mut command, stored)?;
        Ok((told.window, theirs::excimer(&read(&out)?)?))
    }

    fn php_command(&self, name: &str, library: &Path, out: &Path) -> Command {
        let mut command = self.runtime.command();
        // Debian builds it apart.
        command.args(["-d", "extension=tokenizer", "-d"]);
        command
            .arg(format!("extension={}", library.display()))
            .arg(source(name));
        self.times(&mut command, out);
        command
    }

    /// The same of a program whose one function has a share that is known; none where nothing is in doubt.
    pub(super) fn measure_known(&self, stored: impl FnOnce(Window) -> Result<()>) -> Result<Option<KnownShare>> {
        let timing = RunTiming {
            warm_up: self.timing.warm_up.min(KNOWN_WARM_UP),
            seconds: self.timing.seconds.min(KNOWN_SECONDS),
            ..self.timing
        };
        Program { timing, ..*self }.known(stored)
    }

    fn known(&self, stored: impl FnOnce(Window) -> Result<()>) -> Result<Option<KnownShare>> {
        let (told, theirs) = match self.runtime.language {
            Language::Node => {
                let told = self.tell_window(&mut self.node_command(&["--allow-natives-syntax"], "known.js"), stored)?;
                let theirs = self.node_profile(&told)?;
                (told, theirs)
            }
            Language::Php => {
                let (_, library) = fetch::php(self.folder)?;
                let out = self.out.join("known.collapsed");
                let told = self.tell_window(&mut self.php_command("known.php", &library, &out), stored)?;
                (told, theirs::excimer(&read(&out)?)?)
            }
            _ => return Ok(None),
        };
        let truth = told.truth.as_deref().context("the program has not told the truth")?;
        let share = truth.rsplit(' ').next().unwrap_or_default();
        Ok(Some(KnownShare {
            window: told.window,
            theirs,
            percent: share.parse().with_context(|| format!("no share in `{truth}`"))?,
        }))
    }

    /// The first arguments of the programs that begin and end their profiler themselves.
    fn times(&self, command: &mut Command, out: &Path) {
        let RunTiming { warm_up, seconds, .. } = self.timing;
        command.args([warm_up.to_string(), seconds.to_string()]).arg(out);
        command.arg(self.timing.interval_us().to_string());
    }

    /// Runs a program that says where the window begins and ends.
    fn tell_window(&self, command: &mut Command, stored: impl FnOnce(Window) -> Result<()>) -> Result<Told> {
        let mut running = Running::start(command)?;
        let begun = running.wait_for("begun")?;
        let from_ms = now_ms();
        let ended = running.wait_for("ended")?;
        let window = Window {
            tgid: running.tgid(),
            from_ms,
            until_ms: now_ms(),
        };
        self.stop.check()?;
        stored(window)?;
        running.wait_until_ended(self.stop)?;
        Ok(Told {
            window,
            begun,
            ended,
            truth: running.wait_for("truth").ok(),
        })
    }

    fn pause(&self, seconds: u64, running: &mut Running) -> Result<()> {
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end {
            self.stop.check()?;
            ensure!(running.child.try_wait()?.is_none(), "the program ended by itself");
            thread::sleep(POLL.min(end.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }
}

fn port(address: &str) -> &str {
    address.rsplit(':').next().unwrap_or_default()
}

fn source(name: &str) -> PathBuf {
    repo::root().join("xtask/src/bench/agreement/programs").join(name)
}

/// This repository's own documents.
fn markdown() -> Result<Vec<PathBuf>> {
    fetch::texts(&["agent/docs", "server/docs", "web/docs"], ".md")
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("the profiler has left no {}", path.display()))
}

/// A program whose lines are heard; dropping it ends it.
struct Running {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Running {
    fn start(command: &mut Command) -> Result<Running> {
        use std::os::unix::process::CommandExt;
        let line = run::line(command);
        let quiet = command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let mut child = quiet.spawn().with_context(|| format!("can't start `{line}`"))?;
        let lines = BufReader::new(child.stdout.take().context("no standard output")?);
        Ok(Running { child, lines })
    }

    fn tgid(&self) -> u32 {
        self.child.id()
    }

    /// The first line with these words.
    fn wait_for(&mut self, words: &str) -> Result<String> {
        loop {
            let mut line = String::new();
            let read = (&mut self.lines).take(LINE_BYTES).read_line(&mut line)?;
            ensure!(read > 0, "a program ended before it said `{words}`");
            if line.contains(words) {
                return Ok(line.trim().to_owned());
            }
        }
    }

    /// Lets it end by itself, as it does once its standard input has.
    fn wait_until_ended(&mut self, stop: &Stop) -> Result<()> {
        drop(self.child.stdin.take());
        let deadline = Instant::now() + PATIENCE;
        loop {
            stop.check()?;
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "a program ended with {status}");
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "a program has not ended in {} s",
                PATIENCE.as_secs()
            );
            thread::sleep(POLL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Who asks the service all the time; dropping it ends that.
struct Asking {
    is_over: Arc<AtomicBool>,
    answers: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Asking {
    fn start(address: &str) -> Asking {
        let (is_over, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let ask = |first: u64| {
            let (is_over, answers) = (Arc::clone(&is_over), Arc::clone(&answers));
            let client = Client::new(&format!("http://{address}"));
            move || {
                let mut number = first;
                while !is_over.load(Ordering::Relaxed) {
                    number += CLIENTS;
                    if request(&client, number) {
                        answers.fetch_add(1, Ordering::Relaxed);
                    } else {
                        // It has not begun, or is being ended.
                        thread::sleep(POLL);
                    }
                }
            }
        };
        let threads = (0..CLIENTS).map(|first| thread::spawn(ask(first))).collect();
        Asking {
            is_over,
            answers,
            threads,
        }
    }

    fn tell(&self) -> Result<()> {
        let answers = self.answers.load(Ordering::Relaxed);
        ensure!(answers > 0, "the service has answered nothing well");
        println!("the service gave {answers} answers");
        Ok(())
    }
}

/// One of the four kinds; whether it was answered well.
fn request(client: &Client, number: u64) -> bool {
    let answer = match number / CLIENTS % 4 {
        0 => client.get("/offers?word=a&count=50"),
        1 => client.get("/page"),
        2 => client.get(&format!("/texts/{number}")),
        _ => client.send(
            "POST",
            "/orders",
            &[("content-type", "application/json")],
            ORDER.as_bytes(),
        ),
    };
    answer.is_ok_and(|answer| answer.status == 200)
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
