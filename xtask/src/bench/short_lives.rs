//! Programs of languages with a runtime that come and go: short ones of Python and Node.js, beside Java machines that
//! stay.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::crowd::{Churning, end, spawn};
use super::languages::{self, Language, Runtime};
use crate::repo;

/// From one start to the next.
const EVERY: Duration = Duration::from_millis(200);
/// What a short one works, in seconds, once its runtime has started.
const WORKS: &str = "0.05";
/// Where the machine is too slow for the rate, no more than so many live at a time.
const MOST_ALIVE: usize = 50;
/// What the Java machines do, one each: of `Mix.java`.
const MODES: [&str; 5] = ["plain", "lambda", "exception", "threads", "churn"];
const FOR_EVER: &str = "100000";

/// The running programs; dropping it ends them.
pub(super) struct ShortLives {
    short: Vec<(Runtime, String)>,
    machines: Vec<Child>,
    alive: Vec<Child>,
    /// Its first turn.
    begun: Option<Instant>,
    started: u64,
}

impl ShortLives {
    /// Starts the Java machines; classes come into `dir`.
    pub(super) fn new(dir: &Path) -> Result<ShortLives> {
        let runtimes = languages::newest(None)?;
        let of = |language: Language| runtimes.iter().find(|runtime| runtime.language == language);
        let sources = repo::root().join("xtask/src/bench/names/programs");
        let short = [(Language::Python, "forever.py"), (Language::Node, "forever.js")];
        let short: Vec<(Runtime, String)> = short
            .into_iter()
            .filter_map(|(language, name)| Some((of(language)?.clone(), sources.join(name).display().to_string())))
            .collect();
        let java = of(Language::Java);
        ensure!(short.len() == 2, "there must be Python and Node.js");
        let mut lives = ShortLives {
            short,
            machines: vec![],
            alive: vec![],
            begun: None,
            started: 0,
        };
        if let Some(java) = java {
            java.compile(&[repo::root().join("agent/tests/root/languages/Mix.java")], dir)?;
            for mode in MODES {
                // They leave the CPUs to what is short.
                let mut command = Command::new("nice");
                command.args(["-n", "10"]).arg(&java.program).args(["-Xmx128m", "-cp"]);
                lives
                    .machines
                    .push(spawn(command.arg(dir).args(["Mix", FOR_EVER, mode]))?);
            }
        }
        ensure!(lives.machines.len() == MODES.len(), "there must be a Java compiler");
        Ok(lives)
    }

    /// What runs, for a heading.
    pub(super) fn titles(&self) -> String {
        let short: Vec<String> = self.short.iter().map(|(runtime, _)| runtime.title()).collect();
        format!(
            "{} short processes a minute of {} beside {} Java machines",
            Duration::from_secs(60).as_millis() / EVERY.as_millis(),
            short.join(" and "),
            self.machines.len()
        )
    }
}

impl Churning for ShortLives {
    /// At a fixed rate, each language in its turn.
    fn turn_over(&mut self) -> Result<()> {
        for machine in &mut self.machines {
            ensure!(machine.try_wait()?.is_none(), "a Java machine ended");
        }
        let mut kept = Vec::new();
        for mut child in self.alive.drain(..) {
            match child.try_wait()? {
                None => kept.push(child),
                Some(status) => ensure!(status.success(), "a short process ended with {status}"),
            }
        }
        self.alive = kept;
        let begun = *self.begun.get_or_insert_with(Instant::now);
        let due = begun.elapsed().as_millis() / EVERY.as_millis();
        while u128::from(self.started) < due && self.alive.len() < MOST_ALIVE {
            let (runtime, source) = &self.short[self.started as usize % self.short.len()];
            let mut command = runtime.command();
            command.args([source, WORKS, &self.started.to_string()]);
            self.alive.push(spawn(&mut command)?);
            self.started += 1;
        }
        Ok(())
    }

    fn alive(&self) -> usize {
        self.alive.len()
    }

    fn started(&self) -> u64 {
        self.started
    }
}

impl Drop for ShortLives {
    fn drop(&mut self) {
        self.alive.iter_mut().chain(&mut self.machines).for_each(end);
    }
}
