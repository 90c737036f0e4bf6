//! The invariants that a tool can see: who may use what, headers, documents that name only what exists.
//!
//! In: the text of every file that git tracks or would track. Out: one result a rule. Never changes anything.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::Value;

use crate::{repo, run};

mod circles;
mod versions;

/// One text file of the repository.
#[derive(Clone)]
struct File {
    /// From the root, with `/`.
    path: String,
    text: String,
}

impl File {
    /// Rust's unit tests stand at the end of a file.
    fn without_tests(&self) -> File {
        File {
            path: self.path.clone(),
            text: self
                .text
                .split("\n#[cfg(test)]\nmod ")
                .next()
                .unwrap_or_default()
                .to_owned(),
        }
    }

    fn ends_with_any(&self, endings: &[&str]) -> bool {
        endings.iter().any(|ending| self.path.ends_with(ending))
    }

    fn below_any(&self, folders: &[&str]) -> bool {
        folders.iter().any(|folder| self.path.starts_with(folder))
    }
}

/// A rule: what it demands, and where it is broken.
pub(crate) struct Finding {
    pub(crate) rule: &'static str,
    pub(crate) broken: Vec<String>,
}

/// A file longer than this asks to be two.
const MAX_LINES: usize = 600;

/// Columns of a line of prose or of a comment; of code the formatters decide.
const MAX_COLUMNS: usize = 120;

/// Files beside each other in a folder, those of tests apart: with more of them it asks for rooms.
const MAX_FILES: usize = 14;

/// Checks every rule. What is only worth a look comes back as a warning, second.
pub(crate) fn check() -> Result<(Vec<Finding>, Vec<String>)> {
    let files = files()?;
    let mut findings = vec![];
    let mut rule = |rule: &'static str, broken: Vec<String>| findings.push(Finding { rule, broken });
    rule(
        "unsafe code stands only in agent/src/kernel and agent/src/sys",
        words(&files, "unsafe", &["agent/src/kernel/", "agent/src/sys/"], &[]),
    );
    let libbpf = ["libbpf_rs", "libbpf_sys"];
    rule(
        "only agent/src/kernel knows libbpf",
        libbpf
            .iter()
            .flat_map(|word| words(&files, word, &["agent/src/kernel/"], &[]))
            .collect(),
    );
    rule(
        "only server/src/api knows HTTP",
        ["axum", "axum_server", "hyper", "tower", "tower_http"]
            .iter()
            .flat_map(|word| words(&files, word, &["server/src/api/"], &["server/src/"]))
            .collect(),
    );
    rule(
        "the agent never depends on the server, nor the server on the agent",
        apart(&files),
    );
    // A test may hold the tables against a real library's.
    let shipped: Vec<File> = files.iter().map(File::without_tests).collect();
    let io = ["std::fs", "std::net", "tokio", "datafusion", "object_store", "reqwest"];
    rule(
        "unwind/'s tables and query/difference do no input or output",
        io.iter()
            .flat_map(|word| calls(&shipped, word, &["agent/src/unwind/", "server/src/query/difference/"]))
            .collect(),
    );
    rule("in the store only server/src/store/root knows a disk", disks(&shipped));
    let page = [
        "fetch(",
        "document.",
        "window.location",
        "globalThis",
        "localStorage",
        "EventListener(",
    ];
    rule(
        "web/src/logic is pure",
        page.iter()
            .flat_map(|word| calls(&files, word, &["web/src/logic/"]))
            .filter(|hit| !is_test(hit))
            .collect(),
    );
    let outside_api = [
        "web/src/state",
        "web/src/logic",
        "web/src/views",
        "web/src/main",
        "web/src/app",
    ];
    rule(
        "only web/src/api fetches",
        calls(&files, "fetch(", &outside_api)
            .into_iter()
            .filter(|hit| !is_test(hit))
            .collect(),
    );
    rule("each room's door says what it is", doors(&files));
    rule(
        "BPF sources carry a licence that the kernel accepts",
        licence_headers(&files),
    );
    rule(
        "committed files name no place of one machine and no registry",
        places(&files),
    );
    rule("documents name only paths and commands that exist", documents(&files));
    rule(
        "no modules of agent and server import each other in a circle",
        in_circles(&files),
    );
    rule("folders of agent and server have few files", crowded(&files));
    rule("lines of prose and comments end at 120 columns", long_lines(&files));
    rule("the page's packages may be shipped", page_licences(&files));
    rule(
        "versions of Rust and Node.js stand in one place each, and what names them agrees",
        versions::differing(&files),
    );
    let long = files
        .iter()
        .filter(|file| file.ends_with_any(&[".rs", ".c", ".h", ".ts", ".tsx", ".css", ".sh"]))
        .filter(|file| file.text.lines().count() > MAX_LINES)
        .map(|file| {
            format!(
                "{} has {} lines (above {MAX_LINES} it asks to be two)",
                file.path,
                file.text.lines().count()
            )
        })
        .collect();
    Ok((findings, long))
}

fn files() -> Result<Vec<File>> {
    let names = run::output(Command::new("git").current_dir(repo::root()).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    let mut files = vec![];
    for name in names.split('\0').filter(|name| !name.is_empty()) {
        // Pictures are not text, and a file may be deleted but not yet staged.
        if let Ok(text) = fs::read_to_string(repo::root().join(name)) {
            files.push(File {
                path: name.to_owned(),
                text,
            });
        }
    }
    Ok(files)
}

/// Lines of code, numbered from 1, without comments that fill a line and without what stands behind `//`.
fn code(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let lines = file.text.lines().enumerate().map(|(index, line)| (index + 1, line));
    lines.map(|(number, line)| (number, line.split("//").next().unwrap_or("")))
}

/// Uses of an identifier in Rust code below `within` (everywhere if empty), outside of `allowed`. A word within quotes
/// does not count, nor do the rules of this file.
fn words(files: &[File], word: &str, allowed: &[&str], within: &[&str]) -> Vec<String> {
    let mut found = vec![];
    for file in files
        .iter()
        .filter(|file| file.path.ends_with(".rs") && file.path != "xtask/src/tidy/mod.rs")
    {
        if file.below_any(allowed) || !(within.is_empty() || file.below_any(within)) {
            continue;
        }
        for (number, line) in code(file) {
            let outside_quotes: String = line.split('"').step_by(2).collect();
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            if outside_quotes.split(|c| !is_word(c)).any(|found| found == word) {
                found.push(format!("{}:{number}: {word}", file.path));
            }
        }
    }
    found
}

/// Uses of a text in the code of files below `within`.
fn calls(files: &[File], text: &str, within: &[&str]) -> Vec<String> {
    let mut found = vec![];
    for file in files.iter().filter(|file| file.below_any(within)) {
        for (number, line) in code(file) {
            if line.contains(text) && !line.trim_start().starts_with('*') {
                found.push(format!("{}:{number}: {text}", file.path));
            }
        }
    }
    found
}

/// Uses of files and folders in the store, but for those in its room of the data root.
fn disks(files: &[File]) -> Vec<String> {
    let (store, root) = ("server/src/store/", "server/src/store/root/");
    if !files.iter().any(|file| file.path.starts_with(root)) {
        return vec![format!("there is no {root}")];
    }
    let calls_of = |word| calls(files, word, &[store]);
    let hits = ["std::fs", "std::os::unix", "tokio::fs", "rustix"]
        .into_iter()
        .flat_map(calls_of);
    let is_allowed = |hit: &String| {
        let path = hit.split(':').next().unwrap_or_default();
        path.starts_with(root) || is_test_file(path)
    };
    hits.filter(|hit| !is_allowed(hit)).collect()
}

fn is_test(hit: &str) -> bool {
    hit.contains(".test.ts")
}

/// Every manifest below one folder, tests' and tools' too. What needs both stands in `xtask/`.
fn apart(files: &[File]) -> Vec<String> {
    let mut broken = vec![];
    for (folder, other) in [("agent/", "stakeout-server"), ("server/", "stakeout-agent")] {
        let manifests = files
            .iter()
            .filter(|file| file.path.starts_with(folder) && file.path.ends_with("Cargo.toml"));
        for manifest in manifests {
            // A comment may name it; a dependency may have another key, or a table of its own.
            let mut lines = manifest.text.lines().map(|line| line.split('#').next().unwrap_or(""));
            if lines.any(|line| line.contains(other)) {
                broken.push(format!("{} names {other}", manifest.path));
            }
        }
    }
    broken
}

fn doors(files: &[File]) -> Vec<String> {
    let door = |file: &&File| file.ends_with_any(&["src/lib.rs", "/mod.rs"]) && file.path.contains("src/");
    let silent = files.iter().filter(door).filter(|file| !file.text.starts_with("//!"));
    silent
        .map(|file| format!("{} doesn't begin with a `//!` comment", file.path))
        .collect()
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

/// Words in backticks that look like a path of the repository must be one; `cargo xtask X` must be a command.
fn documents(files: &[File]) -> Vec<String> {
    let commands = [
        "up", "demo", "test", "kernels", "stacks", "faults", "fuzz", "dist", "bench", "help",
    ];
    let tops = ["agent/", "server/", "web/", "xtask/", ".ci/"];
    let mut broken = vec![];
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        for (index, line) in file.text.lines().enumerate() {
            let place = format!("{}:{}", file.path, index + 1);
            for word in line.split('`').skip(1).step_by(2) {
                let path = word.trim_end_matches('/');
                let is_path = tops.iter().any(|top| word.starts_with(top)) && !word.contains([' ', '*', '{', '<', '|']);
                let made = ["web/dist", "web/node_modules"]
                    .iter()
                    .any(|made| path.starts_with(made));
                if is_path && !made && !repo::root().join(path).exists() {
                    broken.push(format!("{place}: `{word}` doesn't exist"));
                }
            }
            for (at, found) in line.match_indices("cargo xtask ") {
                let rest = line.get(at + found.len()..).unwrap_or("");
                let command: String = rest.chars().take_while(char::is_ascii_lowercase).collect();
                if !command.is_empty() && !commands.contains(&command.as_str()) {
                    broken.push(format!("{place}: there is no `cargo xtask {command}`"));
                }
            }
        }
    }
    broken
}

fn in_circles(files: &[File]) -> Vec<String> {
    let mut broken = vec![];
    for (name, folder) in [("agent", "agent/src/"), ("server", "server/src/")] {
        let sources = files
            .iter()
            .filter(|file| file.path.ends_with(".rs") && !is_test_file(&file.path));
        let sources = sources.filter_map(|file| Some((file.path.strip_prefix(folder)?, file.text.as_str())));
        let found = circles::circles(sources).into_iter();
        broken.extend(found.map(|circle| format!("{name}: {}", circle.join(", "))));
    }
    broken
}

/// A file that is compiled for tests or fuzzing alone.
fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ["tests.rs", "fuzz.rs", "faults.rs"].contains(&name) || name.ends_with("_tests.rs") || path.contains("/fuzz/")
}

fn crowded(files: &[File]) -> Vec<String> {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for file in files
        .iter()
        .filter(|file| file.below_any(&["agent/src/", "server/src/"]))
    {
        if file.path.ends_with(".rs")
            && !is_test_file(&file.path)
            && let Some((folder, _)) = file.path.rsplit_once('/')
        {
            *folders.entry(folder).or_default() += 1;
        }
    }
    folders.retain(|_, files| *files > MAX_FILES);
    folders
        .into_iter()
        .map(|(folder, files)| {
            format!("{folder} has {files} files beside each other (above {MAX_FILES} it asks for rooms)")
        })
        .collect()
}

/// A row of a table and a link are as long as they are.
fn long_lines(files: &[File]) -> Vec<String> {
    let mut broken = vec![];
    for file in files {
        let is_prose = file.path.ends_with(".md");
        if !is_prose && !file.ends_with_any(&[".rs", ".c", ".h", ".ts", ".tsx", ".css"]) {
            continue;
        }
        for (index, line) in file.text.lines().enumerate() {
            let text = line.trim_start();
            let is_comment = ["//", "* ", "/*"].iter().any(|begin| text.starts_with(begin));
            let is_free = text.starts_with('|') || text.contains("https://");
            if (is_prose || is_comment) && !is_free && line.chars().count() > MAX_COLUMNS {
                broken.push(format!("{}:{}: {} columns", file.path, index + 1, line.chars().count()));
            }
        }
    }
    broken
}

/// Packages that reach the browser carry one of the licences that deny.toml allows for crates.
fn page_licences(files: &[File]) -> Vec<String> {
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
    let Some(lock) = files.iter().find(|file| file.path == "web/package-lock.json") else {
        return vec![];
    };
    let Ok(lock) = serde_json::from_str::<Value>(&lock.text) else {
        return vec!["web/package-lock.json is not JSON".to_owned()];
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
    use super::*;

    fn file(path: &str, text: &str) -> Vec<File> {
        vec![File {
            path: path.to_owned(),
            text: text.to_owned(),
        }]
    }

    #[test]
    fn finds_a_forbidden_word_in_code_only() {
        let text = "// unsafe here\nlet a = \"unsafe\";\nlet unsafe_code = 1;\nunsafe { x() }\n";
        assert_eq!(
            words(&file("server/src/a.rs", text), "unsafe", &["agent/"], &[]),
            ["server/src/a.rs:4: unsafe"]
        );
        assert!(words(&file("agent/src/a.rs", text), "unsafe", &["agent/"], &[]).is_empty());
        assert!(words(&file("web/src/a.rs", text), "unsafe", &[], &["server/"]).is_empty());
    }

    #[test]
    fn finds_a_manifest_of_either_that_names_the_other() {
        let depends = "[dependencies]\nother = { package = \"stakeout-server\", path = \"../../server\" }\n";
        assert_eq!(
            apart(&file("agent/tool/Cargo.toml", depends)),
            ["agent/tool/Cargo.toml names stakeout-server"]
        );
        assert!(apart(&file("xtask/tool/Cargo.toml", depends)).is_empty());
        assert!(apart(&file("agent/Cargo.toml", "# not stakeout-server\n")).is_empty());
    }

    #[test]
    fn only_what_is_compiled_for_tests_or_fuzzing_is_left_out() {
        let left_out = ["agent/src/fuzz/made.rs", "agent/src/fuzz/mod.rs", "server/src/fuzz.rs"];
        assert!(left_out.into_iter().all(is_test_file));
        assert!(is_test_file("server/src/store/log/commit_tests.rs"));
        assert!(!is_test_file("agent/src/process/made.rs"));
    }

    #[test]
    fn finds_a_circle_that_a_shipped_file_closes() {
        let both = ["agent/src/process/made.rs", "agent/src/fuzz/made.rs"].map(|made| {
            let mut files = file("agent/src/process/table.rs", "use super::super::process::made::Made;");
            files.extend(file(made, "use crate::process::table::Table;"));
            in_circles(&files)
        });
        assert_eq!(both, [vec!["agent: process::made, process::table".to_owned()], vec![]]);
    }

    #[test]
    fn finds_a_disk_in_the_store_outside_of_its_room() {
        let text = "use std::fs::File;\nlet a = rustix::fs::statvfs(b);\n";
        let in_both = |path: &str| [file("server/src/store/root/local.rs", text), file(path, text)].concat();
        assert_eq!(
            disks(&in_both("server/src/store/log/a.rs")),
            [
                "server/src/store/log/a.rs:1: std::fs",
                "server/src/store/log/a.rs:2: rustix"
            ]
        );
        assert!(disks(&in_both("server/src/store/log/a_tests.rs")).is_empty());
        assert!(disks(&in_both("server/src/api/a.rs")).is_empty());
        assert_eq!(
            disks(&file("server/src/store/log/a.rs", "")),
            ["there is no server/src/store/root/"]
        );
    }

    #[test]
    fn finds_paths_of_one_machine() {
        let path = format!("/{}/x", "home");
        assert_eq!(places(&file("a.md", &format!("see {path}"))).len(), 1);
        assert!(places(&file("a.md", &format!("see web{path} and https://a.b{path}"))).is_empty());
    }

    #[test]
    fn finds_documents_that_name_what_is_not_there() {
        let text = "`xtask/src/main.rs`, `xtask/src/none.rs`, `agent/src/*`\n`cargo xtask up` and cargo xtask fly\n";
        let found = documents(&file("a.md", text));
        assert_eq!(
            found,
            [
                "a.md:1: `xtask/src/none.rs` doesn't exist",
                "a.md:2: there is no `cargo xtask fly`"
            ]
        );
    }
}
