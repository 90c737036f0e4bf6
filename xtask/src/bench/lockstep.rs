//! Whether programs that work at a fixed rate have the samples of their time.

use std::collections::HashMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::receiver::Receiver;
use super::report::Figures;
use crate::http::{Client, integer};
use crate::proc::last_cpu;
use crate::service::Service;
use crate::signals::Stop;
use crate::stack::{now_ms, start_agent, wait_stored};
use crate::{packages, repo, run};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How long the programs run at each of their rates
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    seconds: u32,
    /// Rates of the agent, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "20,99", value_name = "HZ")]
    frequency: Vec<u32>,
    /// Rates of the programs, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "1,4,5,10,20", value_name = "HZ")]
    pollers: Vec<u32>,
    /// The CPU that they run on; by default the last one
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
}

const POLLERS: usize = 10;

/// A program without an end, ended when this is dropped.
struct Filler(Child);

impl Filler {
    /// Takes what the others leave of a CPU, so that each of its ticks is a sample.
    fn on(cpu: usize) -> Result<Filler> {
        let mut command = Command::new("taskset");
        command.args([
            "-c",
            &cpu.to_string(),
            "nice",
            "-n",
            "19",
            "sh",
            "-c",
            "while :; do :; done",
        ]);
        Ok(Filler(command.spawn().context("can't start taskset")?))
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        // It may have been ended from outside.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Prints, for each rate of the agent and of ten programs that compute for 4 ms in each of their rounds, how far their
/// samples are from what they used.
pub(crate) fn run(args: &Args, figures: &mut Figures) -> Result<()> {
    ensure!(packages::is_root(), "the agent needs root here: run this as root");
    for rate in args.frequency.iter().chain(&args.pollers) {
        ensure!((1..=1000).contains(rate), "{rate} Hz: a rate is between 1 and 1000");
    }
    let Receiver {
        mut options,
        client,
        mut server,
        stop,
        dir,
    } = Receiver::start(20)?;
    let pollers = dir.path().join("pollers");
    let source = repo::root().join("agent/tests/root/timers/pollers.c");
    run::run(
        Command::new("cc")
            .args(["-O1", "-pthread", "-o"])
            .arg(&pollers)
            .arg(source),
    )?;
    let cpu = args.cpu.map_or_else(last_cpu, Ok)?;
    figures.print_note(format!(
        "ten programs of 4 ms a round on CPU {cpu}, {} s each; chi-squared has ten degrees of freedom",
        args.seconds
    ));
    figures.table("");
    println!(
        "{:>8} {:>11} {:>9} {:>12} {:>7} {:>8}  samples of each",
        "agent Hz", "programs Hz", "expected", "chi-squared", "p", "all, %"
    );
    for &frequency_hz in &args.frequency {
        options.frequency_hz = frequency_hz;
        // The whole rate, also beside other work.
        let mut agent = start_agent(&options, client.base(), &["--cpu-limit", "100"])?;
        let _filler = Filler::on(cpu)?;
        wait_stored(&client, now_ms(), &mut agent, &stop)?;
        for &rate in &args.pollers {
            let outcome = measure(&pollers, cpu, rate, args.seconds, &client, &mut agent, &stop)?;
            outcome.tell(frequency_hz, rate, figures);
        }
        let ended = agent.stop(Duration::from_secs(30));
        ensure!(ended.is_some_and(|status| status.success()), "the agent ended badly");
    }
    server.stop(Duration::from_secs(20));
    Ok(())
}

/// What one run gave.
struct Outcome {
    /// CPU seconds of each program, and its samples.
    pollers: Vec<(f64, f64)>,
    /// Of the time, and all samples of the CPU in it.
    seconds: f64,
    samples: f64,
}

fn measure(
    program: &Path,
    cpu: usize,
    rate: u32,
    seconds: u32,
    client: &Client,
    agent: &mut Service,
    stop: &Stop,
) -> Result<Outcome> {
    let mut command = Command::new(program);
    command
        .args([cpu.to_string(), (1000 / rate).to_string(), seconds.to_string()])
        .stdin(Stdio::null());
    let begun = now_ms();
    let told = run::output(&mut command)?;
    let ended = now_ms();
    wait_stored(client, ended, agent, stop)?;
    let rows = client.sql(&format!(
        "SELECT tid, count(*) FROM samples WHERE type = 'cpu' AND cpu = {cpu} AND ts_ns >= {begun}000000 AND ts_ns < {ended}000000 \
         GROUP BY tid"
    ))?;
    let counts: HashMap<i64, f64> = rows
        .iter()
        .filter_map(|row| Some((integer(row.first()?), integer(row.get(1)?) as f64)))
        .collect();
    let mut pollers = Vec::new();
    for line in told.lines() {
        let (tid, took) = line.split_once(' ').context("the programs say something else")?;
        pollers.push((took.parse()?, counts.get(&tid.parse()?).copied().unwrap_or(0.0)));
    }
    ensure!(pollers.len() == POLLERS, "{} of ten programs ended well", pollers.len());
    Ok(Outcome {
        pollers,
        seconds: (ended - begun) as f64 / 1e3,
        samples: counts.values().sum(),
    })
}

impl Outcome {
    fn tell(&self, frequency_hz: u32, rate: u32, figures: &mut Figures) {
        let hz = f64::from(frequency_hz);
        let distance = |(took, samples): &(f64, f64)| (samples - took * hz).powi(2) / (took * hz);
        let chi_squared: f64 = self.pollers.iter().map(distance).sum();
        let expected = self.pollers.iter().map(|(took, _)| took * hz).sum::<f64>() / POLLERS as f64;
        let mut each: Vec<f64> = self.pollers.iter().map(|(_, samples)| *samples).collect();
        each.sort_by(f64::total_cmp);
        println!(
            "{frequency_hz:>8} {rate:>11} {expected:>9.1} {chi_squared:>12.1} {:>7.3} {:>8.2}  {each:?}",
            beyond(chi_squared),
            self.samples / (self.seconds * hz) * 100.0
        );
        figures.row(&format!("agent {frequency_hz} Hz, programs {rate} Hz"));
        figures.add("samples expected of each", "", expected);
        figures.add("chi-squared", "", chi_squared);
        figures.add("p", "", beyond(chi_squared));
        figures.add(
            "all samples of the CPU",
            "%",
            self.samples / (self.seconds * hz) * 100.0,
        );
    }
}

/// The probability that chi-squared of ten degrees of freedom is larger: for an even number of them a finite sum.
fn beyond(chi_squared: f64) -> f64 {
    let half = chi_squared / 2.0;
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..POLLERS / 2 {
        term *= half / k as f64;
        sum += term;
    }
    sum * (-half).exp()
}

#[cfg(test)]
mod tests {
    use super::beyond;

    #[test]
    fn probabilities_are_those_of_the_tables() {
        for (chi_squared, p) in [
            (0.0, 1.0),
            (9.342, 0.5),
            (18.307, 0.05),
            (23.209, 0.01),
            (29.588, 0.001),
        ] {
            assert!(
                (beyond(chi_squared) - p).abs() < 1e-4,
                "{chi_squared}: {}",
                beyond(chi_squared)
            );
        }
    }
}
