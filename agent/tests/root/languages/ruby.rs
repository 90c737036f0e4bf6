//! Programs of CRuby: what its interpreter runs, and what it compiles while they run, in one stack with the C that
//! calls it and that it calls.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Program;

const SECONDS: &str = "3";
/// Mode, and the class of its chain's methods, as it stands before their names.
const MODES: &[(&str, &str)] = &[
    ("plain", "Plain#"),
    ("recursion", "Plain#"),
    ("callback", "Called#"),
    ("blocks", "Blocks#"),
    ("exception", "Thrown#"),
    ("module", "Own."),
    ("fibers", "Plain#"),
    ("threads", "Plain#"),
];
/// What makes it compile, where it can.
const COMPILING: &str = "--yjit";

/// The program in all modes, for each interpreter that is there.
pub(super) fn programs() -> Vec<Program> {
    let versions = versions();
    if versions.is_empty() {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "with CI=true there must be a Ruby (Debian: apt install ruby)"
        );
        println!("SKIPPED, since there is no Ruby (Debian: apt install ruby)");
    }
    let modes = |(version, path): &(String, PathBuf)| -> Vec<Program> {
        let plain = MODES.iter().map(|mode| program(version, path, mode, &[]));
        let compiles = release(path, &[COMPILING]).is_some_and(|release| release.contains("+YJIT"));
        let modes = MODES.iter().filter(|_| compiles);
        let compiled = modes.map(|mode| program(version, path, mode, &[COMPILING]));
        plain.chain(compiled).collect()
    };
    versions.iter().flat_map(modes).collect()
}

fn program(version: &str, path: &Path, (mode, class): &(&str, &str), options: &[&str]) -> Program {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/root/languages/mix.rb");
    let mut command = Command::new(path);
    command.args(options).arg(source).args([SECONDS, mode]);
    let chain = |of: char| -> Vec<String> {
        match *mode {
            "recursion" => {
                let mut chain = vec![format!("{class}{of}_deep"); 200];
                chain.push(format!("{class}{of}12"));
                chain
            }
            _ => (1..=12).map(|level| format!("{class}{of}{level}")).collect(),
        }
    };
    Program {
        title: format!("Ruby {version} {mode} {}", options.join(" ")).trim().to_owned(),
        command,
        chains: ['a', 'b'].map(chain),
        language: "ruby",
        named: 99.5,
        in_chain: 50.0,
        agree: 99.5,
        has_share: true,
    }
}

/// Release and path of each interpreter, ascending.
fn versions() -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    match std::env::var_os("STAKEOUT_RUNTIMES") {
        Some(folder) => {
            let homes = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
            found.extend(homes.map(|home| home.join("bin/ruby")).filter(|path| path.is_file()));
        }
        None => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            // The distribution's own, whatever else comes first in the path of who runs the tests.
            let folders = ["/usr/bin".into()].into_iter().chain(std::env::split_paths(&path));
            found.extend(folders.map(|folder| folder.join("ruby")).find(|ruby| ruby.is_file()));
        }
    }
    let named = |path: PathBuf| {
        let text = release(&path, &[])?;
        Some((text.split(' ').nth(1)?.to_owned(), path))
    };
    let mut versions: Vec<(String, PathBuf)> = found.into_iter().filter_map(named).collect();
    versions.sort();
    versions
}

/// `ruby 3.1.2p20 (2022-04-12 revision 4491bb740a) [x86_64-linux-gnu]`.
fn release(path: &Path, options: &[&str]) -> Option<String> {
    let output = Command::new(path).args(options).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.starts_with("ruby ").then_some(text)
}
