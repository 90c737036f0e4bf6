//! Programs of CPython: what its interpreter runs, in one stack with the C that calls it and that it calls.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Program;

const SECONDS: &str = "3";
/// Mode, and what stands behind the chain's numbers in the names of its functions.
const MODES: &[(&str, &str)] = &[
    ("plain", ""),
    ("recursion", "_deep"),
    ("generator", "_made"),
    ("callback", "_called"),
    ("exception", "_thrown"),
    ("threads", ""),
    ("asyncio", "_async"),
    (GREENLETS, "_green"),
    (INTERPRETERS, ""),
];
/// By an extension module, which is had from PyPI.
const GREENLETS: &str = "greenlets";
const PACKAGE: &str = "greenlet>=3,<4";
/// The same program, imported by an interpreter of its own: it has two modules, so that its names have none.
const INTERPRETERS: &str = "interpreters";

/// The program in all modes, for each interpreter that is there.
pub(super) fn programs() -> Vec<Program> {
    let versions = versions();
    if versions.is_empty() {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "with CI=true there must be a Python (Debian: apt install python3)"
        );
        println!("SKIPPED, since there is no Python (Debian: apt install python3)");
    }
    let modes = |(version, path): &(String, PathBuf)| -> Vec<Program> {
        let package = greenlet(version);
        let is_there = |mode: &&(&str, &str)| match mode.0 {
            INTERPRETERS => minor(version) >= 12,
            GREENLETS => package.is_some(),
            _ => true,
        };
        let with_package = |mode: &(&str, &str)| {
            let mut program = program(version, path, mode);
            if let Some(package) = package.as_ref().filter(|_| mode.0 == GREENLETS) {
                program.command.env("PYTHONPATH", package);
            }
            program
        };
        MODES.iter().filter(is_there).map(with_package).collect()
    };
    versions.iter().flat_map(modes).collect()
}

/// A folder with the package for that version, which is got once. Whichever pip there is can get it for all.
fn greenlet(version: &str) -> Option<PathBuf> {
    let abi = format!("cp3{}{}", minor(version), if version.ends_with('t') { "t" } else { "" });
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("greenlet-{abi}"));
    if folder.join("greenlet").is_dir() {
        return Some(folder);
    }
    let python_version = format!("3.{}", minor(version));
    let get = |python: &str| {
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(["--retries", "1", "--timeout", "10", "--no-deps", "--only-binary=:all:"])
            .args(["--implementation", "cp", "--python-version", &python_version])
            .args(["--abi", &abi, "--target"])
            .arg(&folder)
            .arg(PACKAGE);
        pip.status().is_ok_and(|status| status.success())
    };
    if ["python3", "/usr/bin/python3"].iter().any(|python| get(python)) {
        return Some(folder);
    }
    println!("SKIPPED for Python {version}, since pip can't get {PACKAGE} for it: {GREENLETS}");
    None
}

fn program(version: &str, path: &Path, (mode, behind): &(&str, &str)) -> Program {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/root/languages/mix.py");
    let mut command = Command::new(path);
    command.arg(source).args([SECONDS, mode]);
    // An interpreter that was unpacked has its library beside it; a script that calls one elsewhere has not.
    if std::env::var_os("STAKEOUT_RUNTIMES").is_some()
        && let Some(home) = path.parent().and_then(Path::parent)
        && path
            .file_name()
            .is_some_and(|name| home.join("lib").join(name).is_dir())
    {
        command.env("PYTHONHOME", home);
    }
    // Since 3.11 code knows the class that it is of, and its names begin with its module.
    let has_module = minor(version) >= 11 && *mode != INTERPRETERS;
    let module = if has_module { "__main__." } else { "" };
    let chain = |of: char| -> Vec<String> {
        match *mode {
            "recursion" => {
                let mut chain = vec![format!("{module}{of}_deep"); 200];
                chain.push(format!("{module}{of}12"));
                chain
            }
            _ => (1..=12).map(|level| format!("{module}{of}{level}{behind}")).collect(),
        }
    };
    Program {
        title: format!("Python {version} {mode}"),
        command,
        chains: ['a', 'b'].map(chain),
        language: "cpython",
        named: 99.5,
        in_chain: 50.0,
        agree: 99.5,
        has_share: true,
    }
}

/// `11` of `3.11.2`.
fn minor(version: &str) -> u32 {
    let minor = version.split('.').nth(1).and_then(|minor| minor.parse().ok());
    minor.unwrap_or(0)
}

/// Release and path of each interpreter, ascending.
fn versions() -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    match std::env::var_os("STAKEOUT_RUNTIMES") {
        Some(folder) => {
            for home in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                let folders = [home.join("bin"), home.join("usr/bin")];
                let files = folders
                    .iter()
                    .filter_map(|folder| std::fs::read_dir(folder).ok())
                    .flatten();
                let files = files.map(|entry| entry.unwrap().path());
                let is_python = |path: &PathBuf| {
                    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                    // Without the interpreter's lock it has a `t` behind its version.
                    let digits = name.strip_prefix("python3.").map(|rest| rest.trim_end_matches('t'));
                    digits.is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()))
                };
                found.extend(files.filter(is_python));
            }
        }
        None => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            // The distribution's own, whatever else comes first in the path of who runs the tests.
            let folders = ["/usr/bin".into()].into_iter().chain(std::env::split_paths(&path));
            found.extend(
                folders
                    .map(|folder| folder.join("python3"))
                    .find(|python| python.is_file()),
            );
        }
    }
    let mut versions: Vec<(String, PathBuf)> = found
        .into_iter()
        .filter_map(|path| Some((release(&path)?, path)))
        .collect();
    versions.sort();
    versions
}

/// `3.13.5`, with a `t` behind it where there is no lock of the interpreter.
fn release(path: &Path) -> Option<String> {
    let output = Command::new(path).arg("-VV").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = text.trim().strip_prefix("Python ")?.split_whitespace().next()?;
    let lock = if text.contains("free-threading") { "t" } else { "" };
    Some(format!("{number}{lock}"))
}
