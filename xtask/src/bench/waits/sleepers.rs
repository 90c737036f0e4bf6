//! What the agent takes where a thousand threads sleep, and whether each sample of them is accounted for.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::{Bench, Beside, WARM_UP, ended};
use crate::bench::agent::this_node;
use crate::bench::languages::{Language, Runtime, newest};
use crate::bench::report::Figures;
use crate::http::{integer, samples_lost};
use crate::proc::{bpf, cpu_seconds, memory};
use crate::repo;
use crate::stack::{alive, now_ms};

/// Of the agent, in MiB: what its documents say.
const MOST_MIB: f64 = 64.0;
/// Of the machine's CPU time.
const MOST_SHARE: f64 = 0.5;
/// The first batch is there after so long at most.
const FIRST_BATCH_SECONDS: u32 = 60;
/// Of the threads, in percent.
const MOST_THREADS: f64 = 99.0;
/// Between two looks at the agent's memory.
const LOOK: Duration = Duration::from_secs(2);

/// A program without an end, ended when this is dropped.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Bench<'_> {
    /// Measures it.
    pub(super) fn sleepers(&self, figures: &mut Figures) -> Result<()> {
        figures.table("Threads that sleep");
        let is_java = |runtime: &Runtime| runtime.language == Language::Java;
        let Some(java) = newest(None)?.into_iter().find(is_java) else {
            println!("java: not on this machine, or without its compiler");
            return Ok(());
        };
        let classes = self.options.state_dir.join("classes");
        let source = repo::root().join("xtask/src/bench/waits/Sleepers.java");
        std::fs::create_dir_all(&classes)?;
        java.compile(&[source], &classes)?;
        let mut program = Program(
            java.command()
                .args(["-XX:+UseSerialGC", "-cp"])
                .arg(&classes)
                .args(["Sleepers", &self.args.sleepers.to_string()])
                .stdout(Stdio::piped())
                .spawn()?,
        );
        let mut line = String::new();
        BufReader::new(program.0.stdout.take().context("no standard output")?).read_line(&mut line)?;
        ensure!(line == "ready\n", "the program that sleeps ended");
        let _statistics = super::BpfStatistics::on()?;
        let started = now_ms();
        let mut agent = self.start(Beside::WaitsOn)?.context("no agent")?;
        // Its first batch takes longer: all that runs is new to it.
        for _ in 0..FIRST_BATCH_SECONDS {
            if this_node(&self.client, started).is_ok() {
                break;
            }
            self.stop.check()?;
            thread::sleep(Duration::from_secs(1));
        }
        let spent = |pid: u32| -> Result<f64> { Ok(cpu_seconds(pid)? + bpf(pid)?.seconds) };
        let (before, mut peak) = (spent(agent.pid())?, 0.0_f64);
        let taken_before = integer(&this_node(&self.client, started)?["samples_taken"]);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(self.args.sleep_seconds.into()) {
            self.stop.check()?;
            alive(&mut agent)?;
            thread::sleep(LOOK);
            let bytes = memory(agent.pid())?.resident as f64 + bpf(agent.pid())?.map_bytes as f64;
            peak = peak.max(bytes / f64::from(1 << 20));
        }
        let seconds = begun.elapsed().as_secs_f64();
        let share = (spent(agent.pid())? - before) / seconds / thread::available_parallelism()?.get() as f64 * 100.0;
        ended(Some(agent))?;
        thread::sleep(WARM_UP);
        let node = this_node(&self.client, started)?;
        let lost = samples_lost(&node);
        let (taken, stored) = (integer(&node["samples_taken"]), integer(&node["samples_stored"]));
        let told = self.client.sql_number(&format!(
            "SELECT count(DISTINCT tid) FROM waits WHERE type = 'off_cpu' AND thread LIKE 'sleeper-%' AND ts_ns >= {started}000000"
        ))?;
        let a_second = (taken - taken_before) as f64 / seconds;
        println!(
            "{} threads, {seconds:.0} s: {peak:.1} MiB at most, {share:.2} % of the machine, {a_second:.0} samples a second",
            self.args.sleepers
        );
        println!("{taken} taken, {stored} stored, {lost} lost; {told} threads were told as asleep");
        figures.row(&format!("{} threads of a JVM", self.args.sleepers));
        figures.add("memory", "MiB", peak).at_most(MOST_MIB);
        figures.add("of the machine's CPU time", "%", share).at_most(MOST_SHARE);
        figures.add("samples a second", "", a_second);
        let share_told = told as f64 / f64::from(self.args.sleepers) * 100.0;
        figures
            .add("threads that were told as asleep", "%", share_told)
            .at_least(MOST_THREADS);
        figures
            .add(
                "neither stored nor lost",
                "samples",
                (taken - stored - lost).abs() as f64,
            )
            .at_most(0.0);
        Ok(())
    }
}
