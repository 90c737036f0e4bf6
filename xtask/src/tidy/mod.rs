//! The invariants that a tool can see: who may use what, headers, documents that name only what exists.
//!
//! In: the text of every file that git tracks or would track. Out: one result a rule. Never changes anything.
//!
//! `cargo xtask tidy` is the step `tidy` of `cargo xtask test` alone. A rule names the files that it cannot do without;
//! where one of them is gone the rule is broken, since it would hold for nothing.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use crate::repo;
use crate::tally::Tally;
use file::File;

mod circles;
mod documents;
mod file;
mod links;
mod rooms;
mod twins;
mod uses;
mod versions;

/// A rule: what it demands, and where it is broken.
struct Finding {
    rule: &'static str,
    broken: Vec<String>,
}

/// A file longer than this asks to be two.
const MAX_LINES: usize = 600;

/// Checks every rule; an error if one is broken.
pub(crate) fn run() -> Result<()> {
    let tally = step()?;
    if tally.failed > 0 {
        // Not an error with a message: what is broken stands above.
        std::process::exit(1);
    }
    Ok(())
}

/// Checks every rule and prints what it found: the step of `cargo xtask test`.
pub(crate) fn step() -> Result<Tally> {
    let files = file::all()?;
    let mut tally = Tally::default();
    for finding in check(&files) {
        if finding.broken.is_empty() {
            println!("tidy: {} ... ok", finding.rule);
            tally.passed += 1;
        } else {
            let broken = finding.broken.join("\n    ");
            tally.fail(&format!("tidy: {} ... FAILED\n    {broken}", finding.rule));
        }
    }
    for listed in rooms::let_pass() {
        println!("let pass: {listed}");
    }
    println!("the page's rooms and circles: web/src/rooms.test.ts, by `cargo xtask test --only page-unit`");
    let long = long_files(&files);
    for long in &long {
        println!("warning: {long}");
    }
    println!(
        "tidy result: {} passed; {} failed; {} warnings",
        tally.passed,
        tally.failed,
        long.len()
    );
    Ok(tally)
}

/// What the rules find in a repository of these files.
struct Rules<'f> {
    files: &'f [File],
    findings: Vec<Finding>,
}

impl Rules<'_> {
    /// One rule. `needs`: beginnings of paths, or their ends behind `*`, of which there must be files.
    fn add(&mut self, rule: &'static str, needs: &[&str], broken: Vec<String>) {
        let mut all = missing(self.files, needs);
        all.extend(broken);
        self.findings.push(Finding { rule, broken: all });
    }
}

/// What a rule needs and no file has.
fn missing(files: &[File], needs: &[&str]) -> Vec<String> {
    let has = |need: &str| match need.strip_prefix('*') {
        Some(end) => files.iter().any(|file| file.path.ends_with(end)),
        None => files.iter().any(|file| file.path.starts_with(need)),
    };
    let lacking = needs.iter().filter(|need| !has(need));
    lacking
        .map(|need| format!("there is no {need}, without which this holds for nothing"))
        .collect()
}

fn check(files: &[File]) -> Vec<Finding> {
    let mut rules = Rules {
        files,
        findings: vec![],
    };
    who_uses_what(files, &mut rules);
    rooms_and_their_sizes(files, &mut rules);
    headers_and_versions(files, &mut rules);
    what_documents_say(files, &mut rules);
    rules.findings
}

fn who_uses_what(files: &[File], rules: &mut Rules<'_>) {
    let system = ["agent/src/kernel/", "agent/src/sys/"];
    rules.add(
        "unsafe code stands only in agent/src/kernel and agent/src/sys",
        &system,
        uses::words(files, "unsafe", &system, &[]),
    );
    let kernel = ["agent/src/kernel/"];
    rules.add(
        "only agent/src/kernel knows libbpf",
        &kernel,
        ["libbpf_rs", "libbpf_sys"]
            .iter()
            .flat_map(|word| uses::words(files, word, &kernel, &[]))
            .collect(),
    );
    // A test may answer as a store does, or hold tables against a real library's.
    let shipped: Vec<File> = files.iter().map(File::without_tests).collect();
    rules.add(
        "only server/src/api knows HTTP",
        &["server/src/api/"],
        ["axum", "axum_server", "hyper", "tower", "tower_http"]
            .iter()
            .flat_map(|word| uses::words(&shipped, word, &["server/src/api/"], &["server/src/"]))
            .collect(),
    );
    rules.add(
        "the agent never depends on the server, nor the server on the agent",
        &["agent/Cargo.toml", "server/Cargo.toml"],
        uses::apart(files),
    );
    rules.add(
        "the agent and the server know the same labels of a burst",
        &twins::OF_BURSTS.map(|(path, _)| path),
        twins::differing(files, twins::OF_BURSTS),
    );
    let pure = ["agent/src/unwind/", "server/src/query/difference/"];
    let io = ["std::fs", "std::net", "tokio", "datafusion", "object_store", "reqwest"];
    rules.add(
        "unwind/'s tables and query/difference do no input or output",
        &pure,
        io.iter().flat_map(|word| uses::calls(&shipped, word, &pure)).collect(),
    );
    rules.add(
        "in the store only server/src/store/root knows a disk",
        &["server/src/store/root/"],
        uses::disks(&shipped),
    );
    let page = [
        "fetch(",
        "document.",
        "window.location",
        "globalThis",
        "localStorage",
        "EventListener(",
    ];
    let logic = ["web/src/logic/"];
    rules.add(
        "web/src/logic is pure",
        &logic,
        page.iter()
            .flat_map(|word| uses::calls(files, word, &logic))
            .filter(|hit| !is_test(hit))
            .collect(),
    );
    let outside_api = ["web/src/state/", "web/src/logic/", "web/src/views/", "web/src/main.tsx"];
    rules.add(
        "only web/src/api fetches",
        &outside_api,
        uses::calls(files, "fetch(", &outside_api)
            .into_iter()
            .filter(|hit| !is_test(hit))
            .collect(),
    );
}

fn rooms_and_their_sizes(files: &[File], rules: &mut Rules<'_>) {
    rules.add("each room's door says what it is", &["*/mod.rs"], rooms::doors(files));
    let crates = ["agent/src/", "server/src/", "xtask/src/"];
    rules.add(
        "no modules of agent, server and xtask import each other in a circle",
        &crates,
        rooms::in_circles(files, rooms::CIRCLES),
    );
    rules.add(
        "rooms of agent and server import from those behind them",
        &crates[..2],
        rooms::out_of_order(files),
    );
    rules.add(
        "folders have few files beside each other",
        &[
            "agent/src/",
            "agent/bpf/",
            "server/src/",
            "xtask/src/",
            "web/src/style/",
        ],
        rooms::crowded(files, rooms::CROWDED),
    );
}

fn headers_and_versions(files: &[File], rules: &mut Rules<'_>) {
    rules.add(
        "BPF sources carry a licence that the kernel accepts",
        &["agent/bpf/"],
        licence_headers(files),
    );
    rules.add(
        "committed files name no place of one machine and no registry",
        &["*"],
        places(files),
    );
    let lock = "web/package-lock.json";
    rules.add(
        "the page's packages may be shipped",
        &[lock],
        page_licences(files, lock),
    );
    rules.add(
        "versions of Rust and Node.js stand in one place each, and what names them agrees",
        &["Cargo.toml", "web/package.json"],
        versions::differing(files),
    );
}

fn what_documents_say(files: &[File], rules: &mut Rules<'_>) {
    let exists = |path: &str| repo::root().join(path).exists();
    rules.add(
        "documents name only paths and commands that exist",
        &["*.md"],
        documents::names(files, exists),
    );
    rules.add(
        "links of documents lead to files and headings that exist",
        &["*.md"],
        links::dead(files, exists),
    );
    rules.add(
        "lines of prose and comments end at 120 columns",
        &["*.md", "*.rs", "*.c", "*.h", "*.ts", "*.tsx", "*.css"],
        documents::long_lines(files),
    );
    rules.add(
        "READMEs are short",
        &["README.md", "agent/README.md", "server/README.md", "web/README.md"],
        documents::long_readmes(files),
    );
    rules.add(
        "decisions are short, whole and listed",
        &["agent/docs/decisions/", "server/docs/decisions/", "web/docs/decisions/"],
        documents::decisions(files),
    );
}

/// What is only worth a look.
fn long_files(files: &[File]) -> Vec<String> {
    let sources = files
        .iter()
        .filter(|file| file.ends_with_any(&[".rs", ".c", ".h", ".ts", ".tsx", ".css", ".sh"]));
    let sizes = sources.map(|file| (&file.path, file.text.lines().count()));
    sizes
        .filter(|(_, lines)| *lines > MAX_LINES)
        .map(|(path, lines)| format!("{path} has {lines} lines (above {MAX_LINES} it asks to be two)"))
        .collect()
}

fn is_test(hit: &str) -> bool {
    hit.contains(".test.ts")
}

fn licence_headers(files: &[File]) -> Vec<String> {
    let sources = files
        .iter()
        .filter(|file| file.path.starts_with("agent/bpf/") && file.ends_with_any(&[".c", ".h"]));
    let header = "SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)";
    let without = sources.filter(|file| !file.text.lines().next().is_some_and(|line| line.contains(header)));
    without
        .map(|file| format!("{}: the first line lacks `{header}`", file.path))
        .collect()
}

fn places(files: &[File]) -> Vec<String> {
    // Put together here, so that this file does not break its own rule.
    let homes = ["work", "home", "Users"].map(|dir| format!("/{dir}/"));
    let homes = homes.into_iter().chain([format!("/{}/", "root")]);
    let registries = [
        ["registry.", "npmjs.org"],
        ["index.", "crates.io"],
        ["static.", "crates.io"],
        ["proxy.", "golang.org"],
    ];
    let patterns: Vec<String> = homes.chain(registries.map(|parts| parts.concat())).collect();
    let mut broken = vec![];
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            for pattern in &patterns {
                // A path inside of a longer one (`web/src/views/home/`) or of a URL is none of a machine's.
                let starts_word = |at: usize| {
                    let before = line.get(..at).and_then(|before| before.chars().next_back());
                    !pattern.starts_with('/') || before.is_none_or(|c| !(c.is_alphanumeric() || "._-/}*".contains(c)))
                };
                if line.match_indices(pattern).any(|(at, _)| starts_word(at)) {
                    broken.push(format!("{}:{}: {pattern}", file.path, index + 1));
                }
            }
        }
    }
    broken
}

/// Packages that reach the browser carry one of the licences that deny.toml allows for crates.
fn page_licences(files: &[File], path: &str) -> Vec<String> {
    let allowed = [
        "MIT",
        "ISC",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "0BSD",
        "MPL-2.0",
        "Zlib",
    ];
    let Some(lock) = files.iter().find(|file| file.path == path) else {
        return vec![];
    };
    let Ok(lock) = serde_json::from_str::<Value>(&lock.text) else {
        return vec![format!("{path} is not JSON")];
    };
    let packages = lock["packages"].as_object().into_iter().flatten();
    let mut broken = vec![];
    for (path, package) in packages.filter(|(path, package)| !path.is_empty() && package["dev"] != true) {
        let licence = package["license"].as_str().unwrap_or("none");
        if !allowed.contains(&licence) {
            broken.push(format!("{}: licence {licence}", Path::new(path).display()));
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::file::only;
    use super::*;

    #[test]
    fn finds_paths_of_one_machine() {
        let path = format!("/{}/x", "home");
        assert_eq!(places(&only("a.md", &format!("see {path}"))).len(), 1);
        assert!(places(&only("a.md", &format!("see web{path} and https://a.b{path}"))).is_empty());
    }

    #[test]
    fn every_rule_is_broken_where_its_files_are_gone() {
        let kept: Vec<&str> = check(&[])
            .iter()
            .filter(|finding| finding.broken.is_empty())
            .map(|finding| finding.rule)
            .collect();
        assert!(kept.is_empty(), "these hold for nothing: {kept:?}");
    }

    #[test]
    fn what_a_rule_needs_is_the_beginning_or_the_end_of_a_path() {
        let files = only("agent/src/a.rs", "");
        assert!(missing(&files, &["agent/src/", "*.rs", "*"]).is_empty());
        assert_eq!(
            missing(&files, &["src/", "*.md"]),
            [
                "there is no src/, without which this holds for nothing",
                "there is no *.md, without which this holds for nothing"
            ]
        );
    }

    #[test]
    fn packages_of_the_page_have_a_licence_that_is_allowed() {
        let of = |lock: &str| page_licences(&only("web/package-lock.json", lock), "web/package-lock.json");
        let package = |licence: &str| format!(r#"{{"packages": {{"": {{}}, "node_modules/a": {licence}}}}}"#);
        assert!(of(&package(r#"{"license": "MIT"}"#)).is_empty());
        assert!(of(&package(r#"{"license": "GPL-3.0", "dev": true}"#)).is_empty());
        assert_eq!(of(&package("{}")), ["node_modules/a: licence none"]);
        assert_eq!(of(""), ["web/package-lock.json is not JSON"]);
    }
}
