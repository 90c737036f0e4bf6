//! What a person waits for in the browser: the first picture and each frame while moving about, at three sizes of
//! tree, beside d3-flame-graph and speedscope on the same data. And what hands wait for: each control beside a large
//! tree, and the table of a fleet.
//!
//! The trees are synthetic, stored by a real server over OTLP, and asked for by the page itself in Chromium. Frames
//! come as fast as they are done, so that the time between two is what one costs, also where that is less than a
//! screen's period.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Measured;
use super::report::Figures;
use crate::stack::Alone;
use crate::{artifacts, run};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Frames of each tree, separated by commas
    #[arg(long, default_value = "10000,100000,1000000", value_name = "N,…")]
    nodes: String,
    /// Repetitions of the first picture, of which the median is shown
    #[arg(long, default_value_t = 5, value_name = "N")]
    repeat: u32,
    /// Frames of the tree beside which each control is used
    #[arg(long, default_value_t = 100_000, value_name = "N")]
    controls: u32,
    /// Leave the other flamegraphs out, and with them the only download
    #[arg(long)]
    no_peers: bool,
}

/// Installed into a temporary folder, and gone with it.
const PEERS: [&str; 3] = ["d3@7", "d3-flame-graph@5", "speedscope@1"];
const MIB: f64 = 1_048_576.0;
const FRAME_MS: &str = "16";
/// The tree that the target of the first picture is for.
const TARGET_FRAMES: f64 = 100_000.0;

/// Prints what was measured beside the targets.
pub(crate) fn run(args: &Args, figures: &mut Figures) -> Result<()> {
    let mut measured = Measured::start(&[])?;
    ensure_page(&measured.alone)?;
    artifacts::web_packages()?;
    let dir = tempfile::tempdir()?;
    let peers = dir.path().join("peers");
    if !args.no_peers {
        fs::create_dir(&peers)?;
        fetch_peers(&peers)?;
    }
    let out = dir.path().join("figures");
    let mut playwright = Command::new("npx");
    playwright
        .current_dir(crate::repo::root().join("web"))
        .args(["playwright", "test", "--config", "bench/playwright.config.ts"])
        .env("STAKEOUT_URL", measured.alone.client.base())
        .env("STAKEOUT_BENCH_NODES", &args.nodes)
        .env("STAKEOUT_BENCH_REPEAT", args.repeat.to_string())
        .env("STAKEOUT_BENCH_CONTROLS", args.controls.to_string())
        .env("STAKEOUT_BENCH_OUT", &out);
    if !args.no_peers {
        playwright.env("STAKEOUT_BENCH_PEERS", &peers);
    }
    let ran = run::run(&mut playwright);
    // What was measured before something broke is told all the same.
    let measured_text = fs::read_to_string(&out).unwrap_or_default();
    let lines: Vec<Value> = measured_text
        .lines()
        .map(|line| serde_json::from_str(line).context("a line of the browser's figures is not JSON"))
        .collect::<Result<_>>()?;
    print(&lines);
    tell(&lines, figures);
    measured.alone.stop()?;
    ran?;
    ensure!(!lines.is_empty(), "the browser measured nothing");
    Ok(())
}

/// An error where the server was built without its page: all that follows would wait for texts that never come.
fn ensure_page(alone: &Alone) -> Result<()> {
    let page = alone.client.get_ok("/")?.text();
    let server = alone.options.binaries.server.display();
    ensure!(
        has_scripts(&page),
        "{server} has no page built in, so there is nothing to measure. Run this without STAKEOUT_BIN_DIR, which builds page and server, \
         or build that server anew after `npm ci && npm run build` in web/"
    );
    Ok(())
}

/// Whether this is the page, and not the text that a server shows in its place.
fn has_scripts(page: &str) -> bool {
    page.contains("<script")
}

fn fetch_peers(dir: &Path) -> Result<()> {
    let mut npm = Command::new("npm");
    npm.current_dir(dir).args([
        "install",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "--prefix",
        ".",
    ]);
    run::run(npm.args(PEERS)).context("the other flamegraphs can't be fetched: give --no-peers to leave them out")
}

fn print(lines: &[Value]) {
    for line in lines.iter().filter(|line| line["what"] == "bundle") {
        let kib = line["bytes"].as_f64().unwrap_or(f64::NAN) / 1024.0;
        println!(
            "page, what a browser loads before the first picture, compressed: {kib:.1} KiB  (target: 100 of gzip)"
        );
    }
    println!(
        "\n{:<16}{:>9}{:>12}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
        "", "frames", "first, ms", "answer", "blocked", "pan p95", "zoom p95", "search", "typing", "heap MiB"
    );
    println!(
        "{:<16}{:>9}{:>12}{:>10}{:>10}{FRAME_MS:>10}{FRAME_MS:>10}{FRAME_MS:>10}{FRAME_MS:>10}{:>10}",
        "target", "", "1000", "", "", ""
    );
    for line in lines.iter().filter(|line| line["what"] == "size") {
        let number = |value: &Value, digits: usize| {
            value
                .as_f64()
                .map_or("-".to_owned(), |value| format!("{value:.digits$}"))
        };
        let nodes = if line["nodes"].is_null() {
            &line["wanted"]
        } else {
            &line["nodes"]
        };
        let first = if line["first"].is_null() {
            "not in 60 s".to_owned()
        } else {
            number(&line["first"]["median"], 0)
        };
        println!(
            "{:<16}{:>9}{first:>12}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
            line["who"].as_str().unwrap_or_default(),
            number(nodes, 0),
            number(&line["answered"], 0),
            number(&line["blocked"]["median"], 0),
            number(&line["pan"]["p95"], 1),
            number(&line["zoom"]["p95"], 1),
            number(&line["search"]["p95"], 1),
            number(&line["typing"]["p95"], 1),
            line["heap"]
                .as_f64()
                .map_or("-".to_owned(), |bytes| format!("{:.0}", bytes / MIB)),
        );
    }
    println!("{NOTE}");
    print_hands(lines);
}

/// The acts whose longest task is measured in the table of a fleet.
const FLEET: [&str; 5] = ["search", "sort", "filter", "scroll", "refresh"];
/// From a control to the next paint, and the longest task of a fleet of a thousand: targets of the page.
const PAINT_MS: f64 = 100.0;
const TASK_MS: f64 = 50.0;
const TARGET_NODES: f64 = 1_000.0;

/// The lines of one view's controls, with the time of each, the slowest first.
fn controls<'a>(lines: &'a [Value], view: &str) -> Vec<(f64, &'a str)> {
    let mut all: Vec<_> = lines
        .iter()
        .filter(|line| line["what"] == "control" && line["view"] == view)
        .map(|line| (of(&line["ms"]), line["name"].as_str().unwrap_or_default()))
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all
}

fn print_hands(lines: &[Value]) {
    for view in VIEWS {
        let all = controls(lines, view);
        let Some((slowest, name)) = all.first() else { continue };
        let late: Vec<_> = all.iter().filter(|(ms, _)| *ms > PAINT_MS).collect();
        println!(
            "\n{view}: {} controls and moves, from hand to paint at most {slowest:.0} ms ({name}), half of them {:.0}; \
             above {PAINT_MS} ms: {}  (target: none)",
            all.len(),
            all[all.len() / 2].0,
            late.len(),
        );
        for (ms, name) in late {
            println!("  {ms:>6.0} ms  {name}");
        }
    }
    for line in lines
        .iter()
        .filter(|line| line["what"] == "control" && line["done"] == false)
    {
        println!(
            "not used, since it did not answer: {} in {}",
            line["name"], line["view"]
        );
    }
    for line in lines.iter().filter(|line| line["what"] == "fleet") {
        let tasks = FLEET.map(|act| format!("{act} {:.0}", of(&line[act])));
        println!(
            "{} nodes, longest task in ms, 0 for less than 50: {}  (target at {TARGET_NODES}: {TASK_MS})",
            line["nodes"],
            tasks.join(", ")
        );
    }
    for line in lines.iter().filter(|line| line["what"] == "markers") {
        println!(
            "10000 markers, longest task of opening one: {:.0} ms",
            of(&line["open"])
        );
    }
}

const VIEWS: [&str; 2] = ["explore", "compare"];

fn of(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn tell_hands(lines: &[Value], figures: &mut Figures) {
    figures.table("From a control to the next paint");
    for view in VIEWS {
        let all = controls(lines, view);
        let Some((slowest, _)) = all.first() else { continue };
        figures.row(view);
        figures.add("slowest", "ms", *slowest).at_most(PAINT_MS);
        figures.add("median", "ms", all[all.len() / 2].0);
        figures.add("controls", "", all.len() as f64);
    }
    figures.table("The longest task in the table of a fleet");
    for line in lines.iter().filter(|line| line["what"] == "fleet") {
        figures.row(&format!("{} nodes", line["nodes"]));
        for act in FLEET {
            let task = figures.add(act, "ms", of(&line[act]));
            if of(&line["nodes"]) == TARGET_NODES {
                task.at_most(TASK_MS);
            }
        }
    }
}

const NOTE: &str = "rows: the same stacks of eight services, each below a row of its own; first: from the choice to the picture, warm server, median (peers: one run, their own file from the disk); answer: the part of it until the \
         server's answer was there; blocked: the longest time in which the page answered to nothing until the picture was there, 0 for less than \
         50 ms; p95: 95th percentile of the time from frame to frame, of a search with a letter a frame, of typing with a letter in each third, so that the table of functions follows each; heap: after a garbage collection, typed arrays included; Chromium without a graphics card, the target of 1000 ms is for 100,000 frames";

/// Of the page the targets count; what others take is no fault of ours.
fn tell(lines: &[Value], figures: &mut Figures) {
    figures.table("The page");
    for line in lines.iter().filter(|line| line["what"] == "bundle") {
        let kib = line["bytes"].as_f64().unwrap_or(f64::NAN) / 1024.0;
        figures
            .add("loaded before the first picture, compressed", "KiB", kib)
            .at_most(100.0);
    }
    figures.table("Flamegraphs");
    for line in lines.iter().filter(|line| line["what"] == "size") {
        let wanted = line["wanted"].as_f64().unwrap_or(f64::NAN);
        let who = line["who"].as_str().unwrap_or_default();
        figures.row(&format!("{who}, {wanted} frames"));
        let is_page = who.starts_with("stakeout");
        let first = figures.add("first picture", "ms", of(&line["first"]["median"]));
        if is_page && wanted == TARGET_FRAMES {
            first.at_most(1000.0);
        }
        figures.add("answer", "ms", of(&line["answered"]));
        figures.add("blocked", "ms", of(&line["blocked"]["median"]));
        for name in ["pan", "zoom", "search", "typing"] {
            let frame = figures.add(&format!("{name}, p95"), "ms", of(&line[name]["p95"]));
            if is_page {
                frame.at_most(16.0);
            }
        }
        figures.add("heap", "MiB", of(&line["heap"]) / MIB);
    }
    figures.note(NOTE);
    tell_hands(lines, figures);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_its_page_is_told_from_one_with_it() {
        let sources = crate::repo::root();
        let page = fs::read_to_string(sources.join("web/index.html")).unwrap();
        assert!(has_scripts(&page));
        let server = fs::read_to_string(sources.join("server/src/api/assets.rs")).unwrap();
        let (_, instead) = server.split_once("const NOT_BUILT: &str = ").unwrap();
        let (instead, _) = instead.split_once("</html>").unwrap();
        assert!(!has_scripts(instead), "{instead}");
    }
}
