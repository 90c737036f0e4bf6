//! Programs that a scene runs, and the wait for their samples.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::http::Client;
use crate::service::{POLL, within};
use crate::signals::Stop;

/// How long the last samples may take to come: an agent of a busy machine is behind its samples for a while.
const ARRIVAL: Duration = Duration::from_secs(180);

/// How long a program may take to say its first line.
const LINE_BYTES: u64 = 1024;

/// Programs that run until their standard input ends; dropping them ends them.
#[derive(Default)]
pub(super) struct Programs(Vec<(String, Child)>);

impl Programs {
    /// Starts one and returns its process id.
    pub(super) fn start(&mut self, name: &str, command: &mut Command) -> Result<u32> {
        let child = command.stdin(Stdio::piped()).spawn();
        let child = child.with_context(|| format!("can't start {name}"))?;
        let tgid = child.id();
        self.0.push((name.to_owned(), child));
        Ok(tgid)
    }

    /// Starts one that says something first, such as its port, and returns the line.
    pub(super) fn start_and_hear(&mut self, name: &str, command: &mut Command) -> Result<String> {
        self.start(name, command.stdout(Stdio::piped()))?;
        self.hear(name)
    }

    /// The next line of a program that was started so.
    fn hear(&mut self, name: &str) -> Result<String> {
        let known = self.0.iter_mut().rev().find(|(own, _)| own == name);
        let (_, child) = known.with_context(|| format!("{name} does not run"))?;
        let out = child
            .stdout
            .as_mut()
            .with_context(|| format!("{name} is not listened to"))?;
        let mut line = String::new();
        // Byte by byte, so that nothing behind the line is taken.
        BufReader::with_capacity(1, out.take(LINE_BYTES)).read_line(&mut line)?;
        let line = line.trim().to_owned();
        ensure!(!line.is_empty(), "{name} ended before it said anything");
        Ok(line)
    }

    /// Lets one end by itself, and returns what it says then.
    pub(super) fn end_and_hear(&mut self, name: &str) -> Result<String> {
        let known = self.0.iter_mut().find(|(own, _)| own == name);
        let (_, child) = known.with_context(|| format!("{name} does not run"))?;
        drop(child.stdin.take());
        self.hear(name)
    }

    /// Waits while all of them run and nobody asks to stop.
    pub(super) fn pause(&mut self, time: Duration, stop: &Stop) -> Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end {
            stop.check()?;
            for (name, child) in &mut self.0 {
                if let Ok(Some(status)) = child.try_wait() {
                    bail!("{name} ended by itself ({status})");
                }
            }
            thread::sleep(POLL.min(end.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        // Those that were started last ask the others for something.
        for (_, child) in self.0.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits until the server has the samples of the nodes with such a series up to a moment, in Unix milliseconds.
pub(super) fn wait_covered(client: &Client, series: &str, until: i64, stop: &Stop) -> Result<()> {
    println!("waiting for the last samples ...");
    let covered =
        format!("SELECT max(until_ns) FROM batches WHERE node IN (SELECT DISTINCT node FROM series WHERE {series})");
    let arrived = within(ARRIVAL, || {
        stop.check()?;
        Ok(client.sql_number(&covered)? >= until * 1_000_000)
    })?;
    ensure!(
        arrived,
        "the samples up to {until} (Unix ms) didn't arrive within {} s",
        ARRIVAL.as_secs()
    );
    Ok(())
}
