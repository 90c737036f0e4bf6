//! How each figure of the store grows with the data: nothing may grow faster than the samples, and memory not at all.

use anyhow::Result;

use super::Measured;
use super::report::Figures;
use super::store::{Args, Asked, Filled, HOUR_MS, MIB, ask_all, begin, fill};

const TIMES: [u32; 4] = [1, 2, 4, 8];

/// Fills the store step by step, each time beside what is there, and asks for all of it.
pub(super) fn run(args: &Args, measured: &mut Measured, figures: &mut Figures) -> Result<()> {
    let end = |times: u32| (args.fleet.hours * f64::from(times) * HOUR_MS as f64) as i64;
    let from = begin(args.fleet.hours * f64::from(TIMES[TIMES.len() - 1]));
    let (mut filled, mut asked) = (Vec::new(), Vec::new());
    let mut done = 0;
    for times in TIMES {
        filled.push(fill(
            &args.fleet,
            measured,
            [from + end(done), from + end(times)],
            false,
        )?);
        asked.push(ask_all(args, measured, from, from + end(times))?);
        done = times;
        println!("{} hours are measured", args.fleet.hours * f64::from(times));
    }
    tell(args, &filled, &asked, figures);
    Ok(())
}

fn tell(args: &Args, filled: &[Filled], asked: &[Vec<Asked>], figures: &mut Figures) {
    figures.table("");
    print!("{:<40}", "hours");
    TIMES
        .iter()
        .for_each(|times| print!("{:>12}", args.fleet.hours * f64::from(*times)));
    println!("{:>12}", "growth");
    // By how much more it grew than the samples did: 1 is linear, 0.125 not at all.
    let mut row = |name: &str, values: &[f64]| {
        print!("{name:<40}");
        values.iter().for_each(|value| print!("{value:>12.1}"));
        let growth = values[values.len() - 1] / values[0] / f64::from(TIMES[TIMES.len() - 1]);
        println!("{growth:>12.2}");
        figures.row(name);
        for (times, value) in TIMES.iter().zip(values) {
            figures.add(&format!("{} hours", args.fleet.hours * f64::from(*times)), "", *value);
        }
        figures.add("growth", "", growth);
    };
    let mut sum = 0.0;
    let samples: Vec<f64> = filled
        .iter()
        .map(|step| {
            sum += step.samples as f64;
            sum
        })
        .collect();
    row(
        "samples, millions",
        &samples.iter().map(|count| count / 1e6).collect::<Vec<_>>(),
    );
    let bytes = |step: &Filled| step.settled.iter().map(|(_, bytes, _)| *bytes).sum::<u64>() as f64 / MIB;
    row(
        "bytes of all tables, MiB",
        &filled.iter().map(bytes).collect::<Vec<_>>(),
    );
    let files = |step: &Filled| step.settled.iter().map(|(.., files)| *files).sum::<u64>() as f64;
    row("files", &filled.iter().map(files).collect::<Vec<_>>());
    let cpu = |step: &Filled| step.total_cpu_s / step.samples as f64 * 1e6;
    row(
        "CPU seconds per million samples in",
        &filled.iter().map(cpu).collect::<Vec<_>>(),
    );
    let peak = |step: &Filled| step.peak_bytes as f64 / MIB;
    row("peak RSS of ingest, MiB", &filled.iter().map(peak).collect::<Vec<_>>());
    for question in 0..asked[0].len() {
        let name = asked[0][question].name;
        let values = |of: fn(&Asked) -> f64| asked.iter().map(|step| of(&step[question])).collect::<Vec<f64>>();
        row(&format!("{name}: warm, ms"), &values(|asked| asked.warm));
        row(&format!("{name}: CPU, ms"), &values(|asked| asked.cpu));
        row(&format!("{name}: cold, ms"), &values(|asked| asked.cold));
        row(
            &format!("{name}: peak RSS, MiB"),
            &values(|asked| asked.peak_bytes as f64 / MIB),
        );
    }
    figures.print_note("growth: from the first column to the last, by that of the samples: 1 is linear, 0.13 is none");
}
