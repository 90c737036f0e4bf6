//! The sampling timers: nothing is in step with them, and they come back with their CPU.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stakeout_agent::agent::AgentConfig;
use stakeout_agent::kernel;

use crate::program::{Program, Running, preferred};
use crate::recording::{Recording, possible};

fn last_cpu() -> u32 {
    kernel::online_cpus().unwrap().into_iter().max().unwrap()
}

fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

#[test]
fn programs_that_poll_at_half_the_rate_have_the_samples_of_their_time() {
    const HZ: u32 = 20;
    if !possible() {
        return;
    }
    let cpu = last_cpu();
    let pollers = Program::compile_with(&["-O1", "-pthread"], "timers/pollers.c", "ten-pollers-at-10-hz");
    // Keeps the CPU from being idle: every tick is a sample.
    let filler = Program::burn("burn-between-the-pollers");
    let recording = Recording::start(AgentConfig {
        frequency_hz: HZ,
        ..AgentConfig::default()
    });
    let filling = filler.spawn(3_600_000, Some(cpu));
    let begin = unix_ns();
    let done = Command::new(&pollers.path)
        .args([&cpu.to_string(), "100", "25"])
        .output()
        .unwrap();
    let until = unix_ns();
    drop(filling);
    let recorded = recording.stop();
    assert!(done.status.success());
    let within: Vec<_> = recorded
        .samples()
        .filter(|seen| seen.sample.cpu == cpu && (begin..until).contains(&seen.sample.ts_unix_ns))
        .collect();
    let mut met: HashMap<u32, f64> = HashMap::new();
    for seen in &within {
        *met.entry(seen.sample.tid).or_default() += 1.0;
    }
    let (mut chi_squared, mut told) = (0.0, Vec::new());
    for line in String::from_utf8(done.stdout).unwrap().lines() {
        let (tid, seconds) = line.split_once(' ').unwrap();
        let expected = seconds.parse::<f64>().unwrap() * f64::from(HZ);
        let count = met.get(&tid.parse().unwrap()).copied().unwrap_or(0.0);
        chi_squared += (count - expected).powi(2) / expected;
        told.push(count);
    }
    assert_eq!(told.len(), 10);
    let expected = (until - begin) as f64 / 1e9 * f64::from(HZ);
    let all = within.len() as f64 / expected;
    println!("chi-squared {chi_squared:.1} of {told:?}; all {:.2} %", all * 100.0);
    // Of ten degrees of freedom: one honest sampler in a thousand has more. In step with them it is beyond a thousand.
    assert!(chi_squared <= 29.6, "{chi_squared}: {told:?}");
    // What may be owed is some ticks, however long it goes on.
    assert!((all - 1.0).abs() <= 0.03, "{} of {expected}", within.len());
}

/// A CPU that can be switched off; on again at the latest when this is dropped.
struct Switch(PathBuf);

impl Switch {
    /// None, with a word of why, where that cannot be done.
    fn of(cpu: u32) -> Option<Self> {
        let switch = Self(format!("/sys/devices/system/cpu/cpu{cpu}/online").into());
        let outcome = switch.set(false).and_then(|()| switch.set(true));
        if let Err(error) = &outcome {
            println!("SKIPPED, since CPU {cpu} cannot be switched off here: {error}");
        }
        outcome.ok().map(|()| switch)
    }

    fn set(&self, on: bool) -> std::io::Result<()> {
        std::fs::write(&self.0, if on { "1" } else { "0" })
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _ = self.set(true);
    }
}

#[test]
fn a_cpu_that_was_off_is_sampled_again() {
    const HZ: u32 = 99;
    if !possible() {
        return;
    }
    let cpu = last_cpu();
    let recording = Recording::start(AgentConfig {
        frequency_hz: HZ,
        ..AgentConfig::default()
    });
    let Some(switch) = Switch::of(cpu) else { return };
    let program = Program::burn("burn-when-its-cpu-is-back");
    let mut runs = Vec::new();
    // Back before anybody looked, and after that.
    for off in [Duration::ZERO, Duration::from_millis(2500)] {
        switch.set(false).unwrap();
        std::thread::sleep(off);
        switch.set(true).unwrap();
        let back = unix_ns();
        let mut command = preferred(&program.path.to_string_lossy());
        command.args(["8000", &cpu.to_string()]).stdout(Stdio::piped());
        let running = Running::spawn(&mut command);
        let tgid = running.tgid();
        let took = running.finish();
        runs.push((tgid, back, took.user + took.system));
    }
    let recorded = recording.stop();
    for (tgid, back, seconds) in runs {
        let mut times: Vec<u64> = recorded
            .of_tgid(tgid)
            .iter()
            .filter(|seen| seen.sample.cpu == cpu)
            .map(|seen| seen.sample.ts_unix_ns)
            .collect();
        times.sort_unstable();
        let first = times.first().copied().unwrap_or(u64::MAX);
        assert!(
            first < back + 5_000_000_000,
            "{} samples, the first after {} ms",
            times.len(),
            first.saturating_sub(back) / 1_000_000
        );
        let missed = seconds - times.len() as f64 / f64::from(HZ);
        println!("{missed:.2} s of {seconds:.2} s were not sampled");
        assert!(missed < 5.0, "{missed} s of {seconds} s were not sampled");
    }
}
