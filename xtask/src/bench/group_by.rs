//! The same group-by, samples by stack, by the server's own SQL (DataFusion), by DuckDB, and the server's flamegraph,
//! which counts them and makes the tree of them: over the same files.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::median;
use super::report::Figures;
use crate::e2e::engines::python;
use crate::http::{integer, path};
use crate::proc::cpu_seconds;
use crate::stack::Alone;
use crate::{repo, run};

/// Wall and CPU milliseconds.
type Took = (f64, f64);

/// Prints the table. `samples`: as many there are, in the window in Unix milliseconds, all of which every engine has
/// to count.
pub(super) fn run(
    alone: &Alone,
    repeat: u32,
    samples: i64,
    [from, until]: [i64; 2],
    figures: &mut Figures,
) -> Result<()> {
    let tgid = alone.server.pid();
    let timed = |work: &mut dyn FnMut() -> Result<()>| -> Result<Took> {
        // The first one reads files and makes what is kept.
        work()?;
        let before = cpu_seconds(tgid)?;
        let mut walls = vec![];
        for _ in 0..repeat {
            let begin = Instant::now();
            work()?;
            walls.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        let cpu = (cpu_seconds(tgid)? - before) * 1e3 / f64::from(repeat.max(1));
        Ok((median(walls), cpu))
    };
    let (from, until) = (from.to_string(), until.to_string());
    let everything = [("from", &*from), ("until", &*until), ("min_share", "0.01")];
    let tree = timed(&mut || {
        let answer = alone.client.get_json(&path("/api/v1/flamegraph", &everything))?;
        ensure!(
            integer(&answer["samples"]) == samples,
            "the flamegraph has other samples"
        );
        Ok(())
    })?;
    let query = "SELECT CAST(sum(n) AS BIGINT) FROM (SELECT stack_id, count(*) AS n FROM samples GROUP BY stack_id)";
    let datafusion = timed(&mut || {
        ensure!(
            alone.client.sql_number(query)? == samples,
            "DataFusion counts other samples"
        );
        Ok(())
    })?;
    let duckdb = duckdb(alone, repeat, samples)?;
    println!(
        "\n{:<44}{:>10}{:>10}{:>12}",
        "samples by stack", "ms", "CPU ms", "CPU, ratio"
    );
    figures.table("Samples by stack, by other engines over the same files");
    for (name, (wall, cpu)) in [
        ("flamegraph, with its tree", tree),
        ("DataFusion (POST /api/v1/sql)", datafusion),
        ("DuckDB", duckdb),
    ] {
        println!("{name:<44}{wall:>10.0}{cpu:>10.0}{:>12.2}", cpu / tree.1);
        figures.row(name);
        figures.add("wall", "ms", wall);
        figures.add("CPU", "ms", cpu);
        figures.add("CPU, by the flamegraph's", "", cpu / tree.1);
    }
    Ok(())
}

fn duckdb(alone: &Alone, repeat: u32, samples: i64) -> Result<Took> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let mut read = Command::new(python()?);
    read.arg(repo::root().join("xtask/src/bench/group_by.py"))
        .arg(alone.options.state_dir.join("data"))
        .args([threads.to_string(), (repeat + 1).to_string()]);
    let said: Value = serde_json::from_str(&run::output(&mut read)?).context("not JSON")?;
    ensure!(
        integer(&said["samples"]) == samples,
        "DuckDB counts other samples: {said}"
    );
    let runs = said["runs"].as_array().context("no runs")?;
    let column = |at: usize| runs.iter().skip(1).filter_map(move |run| Some(run[at].as_f64()? * 1e3));
    let cpu = column(1).sum::<f64>() / f64::from(repeat.max(1));
    Ok((median(column(0).collect()), cpu))
}
