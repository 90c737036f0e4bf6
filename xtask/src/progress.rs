//! A long build, told as it goes: how far it is, what is being compiled, and how long it still takes.
//!
//! Cargo tells how many of how many units are done. Their number alone says little of the time: the query engine and
//! what is built on it come last and take most of it. [`SHARES`] has how much time they took in a measured build.

use std::io::{BufReader, IsTerminal, Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::run;

/// Share of the units that are done, and share of the time that has passed by then: of a first `cargo xtask up` on two
/// CPUs, 551 units in 7.5 minutes.
const SHARES: [(f64, f64); 8] = [
    (0.0, 0.0),
    (0.2, 0.1),
    (0.45, 0.24),
    (0.6, 0.41),
    (0.86, 0.54),
    (0.98, 0.69),
    (0.993, 0.8),
    (1.0, 1.0),
];
/// How often it is told where no terminal shows it all the time.
const TOLD_EVERY: Duration = Duration::from_secs(30);
/// Below that share of the work nothing can be said of the rest.
const LEAST_DONE: f64 = 0.02;
const WIDTH: usize = 100;

/// What cargo's line says.
#[derive(Debug, PartialEq, Eq)]
struct Units<'a> {
    done: u32,
    all: u32,
    /// What is being compiled.
    now: &'a str,
}

/// `Building [=====>   ] 123/480: arrow-cast, parquet`
fn units(line: &str) -> Option<Units<'_>> {
    let (_, after) = line.trim_start().strip_prefix("Building [")?.split_once("] ")?;
    let (counts, now) = after.split_once(": ").unwrap_or((after, ""));
    let (done, all) = counts.trim_end_matches(':').split_once('/')?;
    Some(Units {
        done: done.parse().ok()?,
        all: all.parse().ok()?,
        now: now.trim_end(),
    })
}

/// Which share of the time such a share of the units takes.
fn share_of_time(units: f64) -> f64 {
    let after = SHARES
        .partition_point(|(share, _)| *share < units)
        .clamp(1, SHARES.len() - 1);
    let ((from, from_time), (to, to_time)) = (SHARES[after - 1], SHARES[after]);
    from_time + (to_time - from_time) * ((units - from) / (to - from)).clamp(0.0, 1.0)
}

/// Tells of a build.
struct Teller {
    begun: Instant,
    /// The share of the time that was done when something was compiled for the first time: the rest was there before.
    done_before: Option<f64>,
    told: Instant,
    is_terminal: bool,
}

impl Teller {
    fn new(is_terminal: bool) -> Teller {
        let begun = Instant::now();
        Teller {
            begun,
            done_before: None,
            told: begun,
            is_terminal,
        }
    }

    fn left(&mut self, units: &Units<'_>, passed: Duration) -> Option<Duration> {
        let done = share_of_time(f64::from(units.done) / f64::from(units.all.max(1)));
        let before = *self.done_before.get_or_insert(done);
        let own = (done - before) / (1.0 - before).max(f64::EPSILON);
        (own >= LEAST_DONE).then(|| passed.mul_f64((1.0 - own) / own))
    }

    /// The line to show, if it is time to.
    fn line(&mut self, units: &Units<'_>, now: Instant) -> Option<String> {
        let left = self.left(units, now - self.begun);
        if !self.is_terminal && now - self.told < TOLD_EVERY {
            return None;
        }
        self.told = now;
        let left = left.map_or_else(String::new, |left| format!(", about {} left", minutes(left)));
        Some(format!(
            "building: {} of {} done in {}{left}: {}",
            units.done,
            units.all,
            minutes(now - self.begun),
            units.now
        ))
    }

    fn see(&mut self, text: &str) -> Result<()> {
        let mut out = std::io::stderr().lock();
        let plain = plain(text);
        if let Some(units) = units(&plain) {
            if let Some(line) = self.line(&units, Instant::now()) {
                match self.is_terminal {
                    true => write!(out, "\r\x1b[K{}", line.chars().take(WIDTH).collect::<String>())?,
                    false => writeln!(out, "{line}")?,
                }
            }
        } else if !plain.trim().is_empty() && !plain.trim_start().starts_with("Compiling ") {
            let erased = if self.is_terminal { "\r\x1b[K" } else { "" };
            writeln!(out, "{erased}{}", text.trim_end())?;
        }
        out.flush()?;
        Ok(())
    }
}

/// Without colours and movements of the cursor.
fn plain(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(
            part.split_once(|c: char| c.is_ascii_alphabetic())
                .map_or("", |(_, rest)| rest),
        );
    }
    plain
}

/// `4 min 10 s`
fn minutes(time: Duration) -> String {
    match (time.as_secs() / 60, time.as_secs() % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds:02} s"),
    }
}

/// Runs a build by cargo and tells of it; an error if it fails.
pub(crate) fn build(command: &mut Command) -> Result<()> {
    let line = run::line(command);
    eprintln!("$ {line}");
    let is_terminal = std::io::stderr().is_terminal();
    if is_terminal {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let mut child = command
        .env("CARGO_TERM_PROGRESS_WHEN", "always")
        .env("CARGO_TERM_PROGRESS_WIDTH", WIDTH.to_string())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("can't start `{line}`"))?;
    let stderr = child.stderr.take().context("no standard error")?;
    let mut teller = Teller::new(is_terminal);
    let mut text = vec![];
    for byte in BufReader::new(stderr).bytes() {
        match byte.with_context(|| format!("can't read from `{line}`"))? {
            b'\r' | b'\n' => {
                teller.see(&String::from_utf8_lossy(&text))?;
                text.clear();
            }
            byte => text.push(byte),
        }
    }
    teller.see(&String::from_utf8_lossy(&text))?;
    let status = child.wait().with_context(|| format!("can't wait for `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "    Building [=======>        ] 120/480: arrow-cast, parquet";

    #[test]
    fn what_cargo_tells_is_read() {
        let read = units(LINE);
        let expected = Units {
            done: 120,
            all: 480,
            now: "arrow-cast, parquet",
        };
        assert_eq!(read, Some(expected));
        assert_eq!(units("   Compiling parquet v59.0.0"), None);
        assert_eq!(units("Building [=] 480/480").map(|units| units.done), Some(480));
        let coloured = format!("\x1b[K\x1b[1m\x1b[36m    Building\x1b[0m {}", &LINE[13..]);
        assert_eq!(plain(&coloured), LINE);
    }

    #[test]
    fn the_time_that_is_left_is_told_of_what_is_built_now() {
        assert!(
            SHARES
                .windows(2)
                .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1)
        );
        assert_eq!((share_of_time(0.0), share_of_time(1.0)), (0.0, 1.0));
        let at = |share: f64| Units {
            done: (share * 1000.0) as u32,
            all: 1000,
            now: "",
        };
        let minute = Duration::from_secs(60);
        let mut whole = Teller::new(false);
        assert_eq!(whole.left(&at(0.0), Duration::ZERO), None);
        let (units, time) = SHARES[2];
        let left = whole.left(&at(units), minute).unwrap().as_secs_f64();
        assert!((left - 60.0 * (1.0 - time) / time).abs() < 0.1, "{left}");
        // Where the half was there before, as fast as the rest goes.
        let mut rest = Teller::new(false);
        assert_eq!(rest.left(&at(SHARES[2].0), Duration::ZERO), None);
        let (half_of_rest, end) = (SHARES[3].0, 1.0);
        let done = (SHARES[3].1 - SHARES[2].1) / (end - SHARES[2].1);
        let left = rest.left(&at(half_of_rest), minute).unwrap().as_secs_f64();
        assert!((left - 60.0 * (1.0 - done) / done).abs() < 0.1, "{left}");
    }

    #[test]
    fn without_a_terminal_it_is_told_now_and_then() {
        let mut teller = Teller::new(false);
        let begun = teller.begun;
        let units = units(LINE).unwrap();
        assert_eq!(teller.line(&units, begun + Duration::from_secs(1)), None);
        let line = teller.line(&units, begun + Duration::from_secs(70)).unwrap();
        assert_eq!(line, "building: 120 of 480 done in 1 min 10 s: arrow-cast, parquet");
        assert_eq!(teller.line(&units, begun + Duration::from_secs(71)), None);
    }
}
