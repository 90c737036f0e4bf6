//! Programs of V8 in Node.js: what its interpreter runs and what its compilers make of it, in one stack with the C++
//! that calls it and that it calls.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Program;

const SECONDS: &str = "3";
/// Mode, and what stands behind the chain's numbers in the names of its functions.
const MODES: &[(&str, &str)] = &[
    ("plain", ""),
    ("recursion", "_deep"),
    ("methods", ""),
    ("callback", "_called"),
    ("exception", "_thrown"),
    ("generator", "_made"),
    ("async", "_awaited"),
    ("arrows", "_arrow"),
    ("evaluated", "_evaluated"),
    ("native", "_native"),
    ("wasm", "_wasm"),
    ("regexp", "_matched"),
    ("worker", ""),
];
/// Options, since when (Node.js) there are some, and the modes that are tried with them.
const ENGINES: &[(&str, &[&str], u32, &[&str])] = &[
    ("", &[], 0, ALL),
    ("", &["module"], 0, &["plain", "methods"]),
    (
        "no-opt",
        &["--no-opt", "--no-sparkplug"],
        0,
        &["plain", "recursion", "methods", "callback"],
    ),
    (
        "sparkplug",
        &["--no-opt", "--always-sparkplug"],
        0,
        &["plain", "recursion", "methods"],
    ),
    ("no-inlining", &["--no-turbo-inlining"], 0, &["plain", "recursion"]),
    (
        "maglev",
        &["--maglev", "--no-turbofan"],
        22,
        &["plain", "recursion", "methods"],
    ),
    ("jitless", &["--jitless"], 0, &["plain", "exception"]),
];
const ALL: &[&str] = &[
    "plain",
    "recursion",
    "methods",
    "callback",
    "exception",
    "generator",
    "async",
    "arrows",
    "evaluated",
    "native",
    "wasm",
    "regexp",
    "worker",
];

/// The program in all modes, for each Node.js that is there.
pub(super) fn programs(folder: &Path) -> Vec<Program> {
    let versions = versions();
    if versions.is_empty() {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "with CI=true there must be a Node.js"
        );
        println!("SKIPPED, since there is no Node.js");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/root/languages/mix.js");
    let module = folder.join("mix.mjs");
    std::fs::copy(&script, &module).unwrap();
    let mut programs = Vec::new();
    for (version, path) in &versions {
        for (engine, options, since, modes) in ENGINES {
            if major(version) < *since {
                continue;
            }
            let is_module = options.contains(&"module");
            let options: Vec<&str> = options.iter().copied().filter(|option| *option != "module").collect();
            let file = if is_module { &module } else { &script };
            for (mode, behind) in MODES.iter().filter(|(mode, _)| modes.contains(mode)) {
                let mut command = Command::new(path);
                command.args(&options).arg(file).args([SECONDS, mode]);
                let engine = if is_module { "module" } else { engine };
                let title = format!("Node.js {version} {engine} {mode}").replace("  ", " ");
                programs.push(program(title, command, mode, behind));
            }
        }
    }
    programs
}

fn program(title: String, command: Command, mode: &str, behind: &str) -> Program {
    let chain = |of: char| -> Vec<String> {
        match mode {
            "recursion" => {
                let mut chain = vec![format!("{of}_deep"); 200];
                chain.push(format!("{of}12"));
                chain
            }
            "methods" => (1..=12)
                .map(|level| format!("{}.m{level}", of.to_ascii_uppercase()))
                .collect(),
            _ => (1..=12).map(|level| format!("{of}{level}{behind}")).collect(),
        }
    };
    Program {
        title,
        command,
        chains: ['a', 'b'].map(chain),
        language: "v8js",
        named: 99.5,
        // Threads take their time to begin.
        in_chain: if mode == "worker" { 30.0 } else { 50.0 },
        // An async function that goes on after it has waited was called by nobody.
        agree: if mode == "async" { 97.0 } else { 99.5 },
        has_share: true,
    }
}

fn major(version: &str) -> u32 {
    let digits = version.trim_start_matches('v').split('.').next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// Release and path of each Node.js, ascending.
pub(super) fn versions() -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    match std::env::var_os("STAKEOUT_RUNTIMES") {
        Some(folder) => {
            let homes = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            let programs = homes.flat_map(|home| ["bin/node", "usr/bin/node"].map(|program| home.join(program)));
            found.extend(programs.filter(|path| path.is_file()));
        }
        None => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let candidates = std::env::split_paths(&path).map(|folder| folder.join("node"));
            found.extend(candidates.into_iter().find(|node| node.is_file()));
        }
    }
    let named = |path: PathBuf| {
        let output = Command::new(&path).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        text.starts_with('v')
            .then(|| (text.trim_start_matches('v').to_owned(), path))
    };
    let mut versions: Vec<(String, PathBuf)> = found.into_iter().filter_map(named).collect();
    versions.sort_by_key(|(version, _)| major(version));
    versions
}
