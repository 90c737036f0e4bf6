//! The programs whose names tell who calls whom, and how each is kept running.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::Result;

use super::judge::Tongue;
use super::servers::Server;
use crate::bench::crowd::{end, spawn};
use crate::bench::languages::{Language, Runtime};
use crate::http::Client;
use crate::repo;
use crate::stack::free_address;

/// Longer than any row: those that end by themselves are the short ones.
const FOR_EVER: &str = "100000";
/// What a short one works after its start. A Java machine alone takes as long to start.
const SHORT: &str = "0.1";
/// Between the first generations of two processes: without a factor in common with the number of callers.
const STEP: u64 = 1_000_003;
const NUMBERS: u64 = 90_000_000;

/// One line of the table.
pub(super) struct Row {
    pub(super) title: String,
    /// Values of the label `process`.
    pub(super) processes: Vec<String>,
    pub(super) tongues: Vec<Tongue>,
    how: How,
}

enum How {
    /// As many as there are CPUs, each of which gets another number as its last argument and is started again when it
    /// has ended.
    Processes(Vec<Words>),
    /// A server with as many workers, each of which has always something to do.
    Requests(Words),
    /// One whose workers end soon.
    Server(Server),
}

/// A runtime with arguments.
#[derive(Clone)]
struct Words {
    runtime: Runtime,
    arguments: Vec<String>,
}

impl Words {
    fn new(runtime: &Runtime, arguments: &[&str]) -> Words {
        Words {
            runtime: runtime.clone(),
            arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
        }
    }

    fn command(&self) -> Command {
        let mut command = self.runtime.command();
        command.args(&self.arguments);
        command
    }
}

impl Language {
    fn tongue(self) -> Tongue {
        Tongue {
            tag: match self {
                Language::Java => "jv",
                Language::Python => "py",
                Language::Node => "js",
                Language::Ruby => "rb",
                Language::Php => "ph",
            },
            kind: self.kind(),
            // Operators of Ruby are methods in C, as compiled code calls them.
            has_helpers: matches!(self, Language::Java | Language::Node | Language::Ruby),
        }
    }
}

/// Where the sources are, and what was compiled of them.
pub(super) struct Programs {
    sources: PathBuf,
    classes: PathBuf,
    folder: PathBuf,
}

impl Programs {
    /// Compiles what has to be, by the newest compiler that is there.
    pub(super) fn new(runtimes: &[Runtime], dir: &Path) -> Result<Programs> {
        let programs = Programs {
            sources: repo::root().join("xtask/src/bench/names/programs"),
            classes: dir.join("classes"),
            folder: dir.to_owned(),
        };
        fs::create_dir_all(&programs.classes)?;
        if let Some(java) = runtimes.iter().rfind(|runtime| runtime.language == Language::Java) {
            let sources = ["Forever.java", "jv_00000000.java", "jw_00000000.java"];
            let sources = sources.map(|name| programs.sources.join(name));
            java.compile(&sources, &programs.classes)?;
        }
        Ok(programs)
    }

    fn source(&self, name: &str) -> String {
        self.sources.join(name).display().to_string()
    }

    /// What runs for so long, but for the number.
    fn words(&self, runtime: &Runtime, options: &[&str], mode: &str, seconds: &str) -> Words {
        let classes = self.classes.display().to_string();
        let named = |name: &str| self.source(name);
        let arguments: Vec<String> = match runtime.language {
            Language::Java => ["-cp", &classes, "Forever", mode, seconds].map(str::to_owned).into(),
            Language::Python => [named("forever.py"), seconds.to_owned()].into(),
            Language::Node => [named("forever.js"), seconds.to_owned()].into(),
            Language::Ruby => [named("forever.rb"), seconds.to_owned()].into(),
            Language::Php => [named("forever.php"), seconds.to_owned()].into(),
        };
        let mut words = Words::new(runtime, options);
        words.arguments.extend(arguments);
        words
    }

    /// All rows of one runtime.
    pub(super) fn rows(&self, runtime: &Runtime) -> Vec<Row> {
        let row = |title: &str, how: How| Row {
            title: format!("{} {title}", runtime.title()),
            processes: vec![runtime.process()],
            tongues: vec![runtime.language.tongue()],
            how,
        };
        let forever = |title: &str, options: &[&str], mode: &str| {
            row(
                title,
                How::Processes(vec![self.words(runtime, options, mode, FOR_EVER)]),
            )
        };
        let mut rows = match runtime.language {
            Language::Java => vec![
                forever("unloads classes", &["-Xmx256m"], "unload"),
                // Compiled sooner, so that there is more to throw away.
                forever(
                    "deoptimises",
                    &["-Xmx256m", "-XX:CompileThresholdScaling=0.2"],
                    "deoptimise",
                ),
            ],
            Language::Php => {
                let mut server = Words::new(runtime, &["-S"]);
                server.arguments.push(self.source("forever.php"));
                vec![row("requests", How::Requests(server))]
            }
            Language::Ruby => {
                let mut rows = vec![forever("defines and drops", &[], "")];
                if has_yjit(runtime) {
                    rows.push(forever("the same, --yjit", &["--yjit"], ""));
                }
                rows
            }
            Language::Python | Language::Node => vec![forever("defines and drops", &[], "")],
        };
        rows.push(row(
            "short lives",
            How::Processes(vec![self.words(runtime, &[], "unload", SHORT)]),
        ));
        rows
    }

    /// A server in Python that forks, and whose children run programs of the other languages now and then.
    pub(super) fn prefork(&self, runtimes: &[Runtime]) -> Option<Row> {
        let of = |language: Language| runtimes.iter().rfind(|runtime| runtime.language == language);
        let python = of(Language::Python)?;
        let others: Vec<&Runtime> = Language::ALL.into_iter().filter_map(of).collect();
        let mut words = Words::new(python, &[&self.source("prefork.py"), FOR_EVER]);
        // Its own number comes before the programs, so that it is the same each time.
        words.arguments.extend(["1".to_owned(), cpus().to_string()]);
        for other in others.iter().filter(|other| other.language != Language::Python) {
            let told = self.words(other, &[], "unload", "");
            words.arguments.push("--".to_owned());
            words.arguments.push(other.program.display().to_string());
            // The seconds are the master's to give.
            words
                .arguments
                .extend(told.arguments.into_iter().filter(|word| !word.is_empty()));
        }
        Some(Row {
            title: format!("{} forks, children exec", python.title()),
            processes: others.iter().map(|runtime| runtime.process()).collect(),
            tongues: others.iter().map(|runtime| runtime.language.tongue()).collect(),
            how: How::Processes(vec![words]),
        })
    }

    /// Servers that people run, of those that can be had.
    pub(super) fn servers(&self, runtimes: &[Runtime]) -> Vec<Row> {
        let of = |language: Language| runtimes.iter().rfind(|runtime| runtime.language == language);
        let row = |runtime: &Runtime, what: &str, process: String, server: Result<Server>| match server {
            Ok(server) => Some(Row {
                title: format!("{} {what}", runtime.title()),
                processes: vec![process],
                tongues: vec![runtime.language.tongue()],
                how: How::Server(server),
            }),
            Err(error) => {
                println!("NOT THERE: {what}: {error:#}");
                None
            }
        };
        let python = of(Language::Python).and_then(|python| {
            let server = Server::gunicorn(python, &self.sources);
            row(python, "gunicorn's workers", python.process(), server)
        });
        let php = of(Language::Php).and_then(|php| {
            let server = Server::fpm(php, self.sources.join("forever.php"), &self.folder);
            let process = server.as_ref().map(Server::process).unwrap_or_default();
            row(php, "FPM's workers", process, server)
        });
        python.into_iter().chain(php).collect()
    }
}

fn has_yjit(ruby: &Runtime) -> bool {
    let output = ruby
        .command()
        .args(["--yjit", "--version"])
        .stdin(Stdio::null())
        .output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("+YJIT"))
}

fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

impl Row {
    /// The selector of its samples.
    pub(super) fn query(&self) -> String {
        let escaped = self.processes.iter().map(|process| process.replace('.', "\\\\."));
        format!("{{process=~\"{}\"}}", escaped.collect::<Vec<_>>().join("|"))
    }

    pub(super) fn start(&self) -> Result<Running<'_>> {
        let mut running = Running {
            words: &[],
            children: vec![],
            started: 0,
            asking: None,
        };
        match &self.how {
            How::Processes(words) => {
                running.words = words;
                running.keep()?;
            }
            How::Requests(words) => running.serve(words)?,
            How::Server(server) => {
                let address = free_address("127.0.0.1:0")?;
                running.children.push(spawn(&mut server.command(&address, cpus())?)?);
                let server = server.clone();
                running.keep_asking(move |number| server.ask(&address, number).is_ok());
            }
        }
        Ok(running)
    }
}

/// A row that runs; dropping it ends all of it.
pub(super) struct Running<'a> {
    words: &'a [Words],
    children: Vec<Child>,
    started: u64,
    asking: Option<Asking>,
}

/// Who asks a server for ever.
struct Asking {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Running<'_> {
    /// Starts anew what has ended; an error where it ended badly.
    pub(super) fn keep(&mut self) -> Result<()> {
        let mut kept = Vec::new();
        for mut child in self.children.drain(..) {
            match child.try_wait()? {
                None => kept.push(child),
                Some(status) => anyhow::ensure!(status.success(), "a program of the row ended with {status}"),
            }
        }
        self.children = kept;
        if self.words.is_empty() {
            anyhow::ensure!(!self.children.is_empty(), "the server ended");
            return Ok(());
        }
        while self.children.len() < cpus() {
            let words = &self.words[self.started as usize % self.words.len()];
            self.started += 1;
            let mut command = words.command();
            command.arg((self.started * STEP % NUMBERS).to_string());
            self.children.push(spawn(&mut command)?);
        }
        Ok(())
    }

    fn serve(&mut self, words: &Words) -> Result<()> {
        let address = free_address("127.0.0.1:0")?;
        let mut command = words.runtime.command();
        // The address stands behind the first word.
        command
            .arg(&words.arguments[0])
            .arg(&address)
            .args(&words.arguments[1..]);
        command.env("PHP_CLI_SERVER_WORKERS", cpus().to_string());
        self.children.push(spawn(&mut command)?);
        let client = Client::new(&format!("http://{address}"));
        self.keep_asking(move |number| client.get(&format!("/?number={number}")).is_ok());
        Ok(())
    }

    /// Sends one request after the other, each with another number; `ask` says whether it was answered.
    fn keep_asking(&mut self, ask: impl Fn(u64) -> bool + Clone + Send + 'static) {
        let (is_over, number) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let one = || {
            let (is_over, number, ask) = (Arc::clone(&is_over), Arc::clone(&number), ask.clone());
            move || {
                while !is_over.load(Ordering::Relaxed) {
                    if !ask(number.fetch_add(1, Ordering::Relaxed) % NUMBERS) {
                        // It has not begun, or is being ended.
                        thread::sleep(crate::service::POLL);
                    }
                }
            }
        };
        // One more than workers, so that none waits.
        let threads = (0..=cpus()).map(|_| thread::spawn(one())).collect();
        self.asking = Some(Asking { is_over, threads });
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(asking) = &self.asking {
            asking.is_over.store(true, Ordering::Relaxed);
        }
        self.children.iter_mut().for_each(end);
        for thread in self.asking.take().into_iter().flat_map(|asking| asking.threads) {
            let _ = thread.join();
        }
    }
}
