//! The demo's difference is the same in every format, and the exports are read by the tools that they are made for.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::scene::Scene;
use crate::demo::{self, Frame, Windows};
use crate::http::{Client, path};
use crate::stack::Stack;
use crate::{repo, run, tools};

/// Plays the demo in short form at a high rate, then compares and feeds the exports.
pub(crate) fn demo_in_every_format(scene: &Scene<'_>) -> Result<()> {
    let dir = tempfile::tempdir()?;
    // Its samples are waited for, the first and the last.
    let of_agent = ["--interval", "1"];
    let mut stack = Stack::start_with(&scene.options(dir.path(), 99), [&[], &of_agent], scene.stop)?;
    stack.wait_samples(Duration::from_secs(60), scene.stop)?;
    let windows = demo::play(&stack.client, 15, 15, scene.stop)?;
    let frames = difference(&stack.client, &windows)?;
    collapsed_difference(&stack.client, &windows, &frames, dir.path())?;
    svg_difference(&stack.client, &windows, &frames)?;
    one_window(&stack.client, &windows, dir.path())?;
    stack.stop()
}

/// The walk grew, the steady work is not called grown, and every count adds up on both sides.
fn difference(client: &Client, windows: &Windows) -> Result<Vec<Frame>> {
    // At the page's 95 % one run in some tens calls one of the three steady functions changed, by chance and as
    // promised: a twentieth of all that is called a change may be. The walk is one at any confidence.
    let path = format!("{}&confidence=0.999", demo::diff_path(windows, "json"));
    let diff = client.get_json(&path)?;
    let frames = demo::frames(&diff)?;
    let walk = demo::walk(&frames).context("the walk is not in the difference")?;
    println!(
        "{}: {} -> {} samples, {}",
        walk.name, walk.base_total, walk.total, walk.state
    );
    ensure!(
        matches!(walk.state.as_str(), "grew" | "new"),
        "the walk is called `{}`",
        walk.state
    );
    for steady in ["sync_loop::sync_pods", "status::report", "metrics::serve"] {
        let frame = frames
            .iter()
            .filter(|frame| frame.name.contains(steady))
            .max_by_key(|frame| frame.total);
        let frame = frame.with_context(|| format!("{steady} is not in the difference"))?;
        println!(
            "{}: {} -> {} samples, {}",
            frame.name, frame.base_total, frame.total, frame.state
        );
        ensure!(
            frame.state == "same",
            "{steady} does the same all the time, but is called `{}`",
            frame.state
        );
    }
    for (at, frame) in frames.iter().enumerate() {
        let children = frames.iter().filter(|child| child.parent == Some(at));
        let (base, comparison) = children.fold((0, 0), |sum, child| (sum.0 + child.base_total, sum.1 + child.total));
        ensure!(
            (base + frame.base_self, comparison + frame.own) == (frame.base_total, frame.total),
            "{} ({}): self and children don't add up to the total on both sides",
            frame.name,
            frame.kind
        );
    }
    // The same counts once more, straight from the table.
    let root = frames.first().context("no root")?;
    for (from, until, expected) in [
        (windows.base_from, windows.base_until, root.base_total),
        (windows.from, windows.until, root.total),
    ] {
        let stored = client.sql_number(&format!(
            "SELECT count(*) FROM samples WHERE type = 'cpu' AND ts_ns >= {from}000000 AND ts_ns < {until}000000 \
             AND series_id IN (SELECT series_id FROM series WHERE process = 'kubelet')"
        ))?;
        ensure!(
            stored == expected,
            "the table has {stored} samples of the window, the difference {expected}"
        );
    }
    Ok(frames)
}

/// Sums of each frame's name over all stacks, once a stack: `name -> (before, after)`.
type Sums = BTreeMap<String, (i64, i64)>;

fn add(sums: &mut Sums, names: &[&str], before: i64, after: i64) {
    let mut names = names.to_vec();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let sum = sums.entry(name.to_owned()).or_default();
        *sum = (sum.0 + before, sum.1 + after);
    }
}

/// What the JSON answer says, name by name, in the spelling of folded stacks.
fn json_sums(frames: &[Frame]) -> Sums {
    let mut sums = Sums::new();
    for frame in frames.iter().filter(|frame| frame.own + frame.base_self > 0) {
        let mut path = vec![];
        let mut at = Some(frame);
        while let Some(frame) = at {
            if frame.parent.is_some() {
                path.push(frame.name.as_str());
            }
            at = frame.parent.and_then(|parent| frames.get(parent));
        }
        add(&mut sums, &path, frame.base_self, frame.own);
    }
    sums
}

fn collapsed_difference(client: &Client, windows: &Windows, frames: &[Frame], dir: &Path) -> Result<()> {
    let folded = client.get_ok(&demo::diff_path(windows, "collapsed"))?.text();
    let mut sums = Sums::new();
    let mut total = (0, 0);
    for line in folded.lines() {
        let mut parts = line.rsplitn(3, ' ');
        let mut count = || parts.next().and_then(|count| count.parse::<i64>().ok());
        let (after, before) = (count(), count());
        let (Some(after), Some(before), Some(stack)) = (after, before, parts.next()) else {
            anyhow::bail!("not `a;b;c BEFORE AFTER`: {line}");
        };
        total = (total.0 + before, total.1 + after);
        add(&mut sums, &stack.split(';').collect::<Vec<_>>(), before, after);
    }
    let root = frames.first().context("no root")?;
    ensure!(
        total == (root.base_total, root.total),
        "folded: {total:?} samples, JSON: {:?}",
        (root.base_total, root.total)
    );
    // Names may be respelt where `;` or spaces would break the format: compare those that need none.
    let plain = |name: &&String| !name.contains([';', ' ', '\n']);
    let expected = json_sums(frames);
    let mut compared = 0;
    for (name, sum) in expected.iter().filter(|(name, _)| plain(name)) {
        ensure!(
            sums.get(name) == Some(sum),
            "{name}: JSON says {sum:?}, folded {:?}",
            sums.get(name)
        );
        compared += 1;
    }
    println!(
        "folded: {} stacks, {total:?} samples, {compared} names with the same sums as the JSON",
        folded.lines().count()
    );
    ensure!(compared > 10, "only {compared} names could be compared");
    inferno(&folded, root.total, "difference", dir)
}

/// `inferno-flamegraph` itself draws the stacks without a warning, all of them, with the frames of the steady work
/// and the walk.
fn inferno(folded: &str, total: i64, what: &str, dir: &Path) -> Result<()> {
    let file = dir.join(format!("{what}.txt"));
    fs::write(&file, folded)?;
    let output = Command::new(tools::INFERNO_FLAMEGRAPH.ready()?)
        .arg(&file)
        .output()
        .context("can't start inferno-flamegraph")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success() && said.trim().is_empty(),
        "inferno-flamegraph on the {what} ended with {} and said: {said}",
        output.status
    );
    let svg = String::from_utf8(output.stdout).context("inferno's picture is not text")?;
    let titles: Vec<&str> = svg
        .split("<title>")
        .skip(1)
        .filter_map(|rest| rest.split("</title>").next())
        .collect();
    let root = titles.iter().find_map(|title| title.strip_prefix("all ("));
    let counted = root
        .and_then(|rest| rest.split(' ').next())
        .context("inferno drew no root")?;
    ensure!(
        counted.replace(',', "") == total.to_string(),
        "inferno-flamegraph counts {counted} samples, not {total}"
    );
    for frame in ["tree::walk", "sync_loop::sync_pods"] {
        ensure!(
            titles.iter().any(|title| title.contains(frame)),
            "inferno-flamegraph's picture of the {what} lacks {frame}"
        );
    }
    println!(
        "inferno-flamegraph draws the {what}: {counted} samples, {} frames",
        titles.len()
    );
    Ok(())
}

/// The picture names the walk with both sides' counts.
fn svg_difference(client: &Client, windows: &Windows, frames: &[Frame]) -> Result<()> {
    let answer = client.get_ok(&demo::diff_path(windows, "svg"))?;
    ensure!(
        answer
            .header("content-type")
            .is_some_and(|kind| kind.starts_with("image/svg+xml")),
        "not served as SVG"
    );
    let svg = answer.text();
    let walk = demo::walk(frames).context("no walk")?;
    let bare = |text: &str| text.replace([',', '\u{202f}', '\u{a0}'], "");
    let has = |title: &str, count: i64| {
        let title = bare(title);
        title
            .split(|c: char| !c.is_ascii_digit())
            .any(|number| number == count.to_string())
    };
    let titles = svg
        .split("<title>")
        .skip(1)
        .filter_map(|rest| rest.split("</title>").next());
    let name = walk
        .name
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let mut titles = titles.filter(|title| title.contains(&name));
    let found = titles.any(|title| has(title, walk.base_total) && has(title, walk.total));
    ensure!(
        found,
        "no frame of the picture is {name} with {} and {} samples",
        walk.base_total,
        walk.total
    );
    println!(
        "SVG: the walk carries {} and {} samples ({} bytes)",
        walk.base_total,
        walk.total,
        svg.len()
    );
    Ok(())
}

/// One window's exports, each read by its tool.
fn one_window(client: &Client, windows: &Windows, dir: &Path) -> Result<()> {
    let (from, until) = (windows.from.to_string(), windows.until.to_string());
    let export = |format: &str| {
        let query = [
            ("query", demo::query()),
            ("from", from.clone()),
            ("until", until.clone()),
            ("format", format.to_owned()),
        ];
        let query: Vec<_> = query.iter().map(|(name, value)| (*name, value.as_str())).collect();
        client.get_ok(&path("/api/v1/flamegraph", &query))
    };
    let graph = export("json")?.json()?;
    let total = crate::http::integer(&graph["samples"]);
    let folded = export("collapsed")?.text();
    let sum: i64 = folded
        .lines()
        .filter_map(|line| line.rsplit(' ').next()?.parse::<i64>().ok())
        .sum();
    ensure!(sum == total, "folded has {sum} samples, JSON {total}");
    inferno(&folded, total, "window", dir)?;
    let svg = export("svg")?.text();
    ensure!(
        svg.contains("<svg") && svg.contains("tree::walk"),
        "the SVG doesn't show the walk"
    );

    let profile = dir.join("profile.pb.gz");
    fs::write(&profile, export("pprof")?.body)?;
    let go = repo::find_program("go").context("no go")?;
    let text = run::output(
        Command::new(go)
            .args(["tool", "pprof", "-top", "-sample_index=samples"])
            .arg(&profile),
    )?;
    let summary = text
        .lines()
        .find(|line| line.contains(" total"))
        .unwrap_or("")
        .to_owned();
    println!("go tool pprof: {summary}");
    ensure!(
        text.contains("tree::walk"),
        "go tool pprof doesn't list the walk:\n{text}"
    );
    ensure!(
        summary.split(' ').any(|word| word == total.to_string()),
        "go tool pprof counts other than {total} samples: {summary}"
    );

    let speedscope = dir.join("profile.speedscope.json");
    fs::write(&speedscope, export("speedscope")?.body)?;
    let tools = speedscope_tools()?;
    let check = run::output(
        Command::new("node")
            .current_dir(tools)
            .args(["--input-type=commonjs", "--eval", SPEEDSCOPE, "--"])
            .arg(&speedscope)
            .arg(total.to_string()),
    )?;
    println!("speedscope: {}", check.trim());
    Ok(())
}

/// Validates against the schema of speedscope's own package, then checks what a schema can't: indices and the sum of
/// the weights.
const SPEEDSCOPE: &str = r#"
const fs = require('node:fs');
const [file, total] = process.argv.slice(1).filter((word) => word !== '--').slice(-2);
const schema = JSON.parse(fs.readFileSync(require.resolve('speedscope/dist/release/file-format-schema.json')));
const profile = JSON.parse(fs.readFileSync(file));
const Ajv = require('ajv');
const ajv = new Ajv({ strict: false, allErrors: true });
const valid = ajv.compile(schema);
if (!valid(profile)) { console.error(JSON.stringify(valid.errors.slice(0, 5))); process.exit(1); }
let samples = 0, weight = 0;
for (const one of profile.profiles) {
  if (one.type !== 'sampled' || one.samples.length !== one.weights.length) { console.error('samples and weights differ'); process.exit(1); }
  for (const stack of one.samples) for (const frame of stack) if (!(frame in profile.shared.frames)) { console.error('no frame ' + frame); process.exit(1); }
  samples += one.samples.length; weight += one.weights.reduce((a, b) => a + b, 0);
}
const names = profile.shared.frames.some((frame) => frame.name.includes('tree::walk'));
if (!names || weight <= 0) { console.error('the walk is missing'); process.exit(1); }
console.log(`valid by its schema, ${samples} stacks, weight ${weight} ${profile.profiles[0].unit} of ${total} samples`);
"#;

/// speedscope's package and a validator, in the cache beside the other tools.
fn speedscope_tools() -> Result<std::path::PathBuf> {
    let dir = repo::cache_dir("speedscope")?;
    let packages = ["speedscope@1", "ajv@8"];
    repo::make_once(
        &dir.join("node_modules"),
        &dir.join("packages"),
        &packages.join("\n"),
        || {
            let mut npm = Command::new("npm");
            npm.current_dir(&dir).args([
                "install",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
                "--prefix",
                ".",
            ]);
            run::run(npm.args(packages))
        },
    )?;
    Ok(dir)
}
