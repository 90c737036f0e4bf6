//! Programs on the Java virtual machine: what it interprets, what it compiles, and what lies between.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Program;

const SECONDS: &str = "3";
/// Mode, class whose functions are the chains, and what tells the machine how to run it.
const MODES: &[(&str, &str, &[&str])] = &[
    ("plain", "Mix$Plain", &[]),
    ("plain", "Mix$Plain", &["-Xint"]),
    ("plain", "Mix$Plain", &["-XX:TieredStopAtLevel=1"]),
    ("plain", "Mix$Plain", &["-XX:-Inline"]),
    ("recursion", "Mix$Deep", &[]),
    ("recursion", "Mix$Deep", &["-Xint"]),
    ("lambda", "Mix$Lambdas", &[]),
    ("exception", "Mix$Throws", &[]),
    ("native", "Mix$Natives", &[]),
    ("threads", "Mix$Plain", &[]),
    ("churn", "Mix$Churned", &[]),
    ("virtual", "Mix$Virtuals", &[]),
    (
        "lambda",
        "Mix$Lambdas",
        &["-XX:+UseSerialGC", "-XX:-UseCompressedClassPointers"],
    ),
    ("lambda", "Mix$Lambdas", &["-XX:+UseParallelGC"]),
    ("lambda", "Mix$Lambdas", &["-XX:+UseZGC"]),
    ("lambda", "Mix$Lambdas", &["-XX:+UseShenandoahGC"]),
];
/// Of them those that every run of the tests tries, by their places.
const USUAL: &[usize] = &[0, 1, 2, 4, 6, 7, 8, 10];

/// Compiles the program and gives it in all modes, for each machine that is there.
pub(super) fn programs(folder: &Path) -> Vec<Program> {
    let versions = versions();
    if versions.is_empty() {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "with CI=true there must be a Java compiler (Debian: apt install default-jdk-headless)"
        );
        println!("SKIPPED, since there is no Java compiler (Debian: apt install default-jdk-headless)");
        return Vec::new();
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/root/languages/Mix.java");
    let compiler = versions
        .iter()
        .rev()
        .map(|(_, home)| home.join("bin/javac"))
        .find(|path| path.is_file());
    let compiler = compiler.unwrap_or_else(|| "javac".into());
    let mut javac = Command::new(compiler);
    javac
        .args(["--release", "8", "-nowarn", "-Xlint:-options", "-d"])
        .arg(folder)
        .arg(source);
    assert!(javac.status().unwrap().success(), "{javac:?}");
    let mut programs = Vec::new();
    let all = std::env::var_os("STAKEOUT_RUNTIMES").is_some();
    for (version, home) in &versions {
        for (at, (mode, class, flags)) in MODES.iter().enumerate() {
            if (all || USUAL.contains(&at)) && knows(*version, mode, flags) {
                programs.push(program(*version, home, (mode, class, flags), folder));
            }
        }
    }
    programs
}

/// Whether a version has this.
fn knows(version: u32, mode: &str, flags: &[&str]) -> bool {
    let has =
        |flag: &str, versions: std::ops::RangeInclusive<u32>| !flags.contains(&flag) || versions.contains(&version);
    (mode != "virtual" || version >= 21)
        && has("-XX:+UseZGC", 15..=u32::MAX)
        && has("-XX:+UseShenandoahGC", 11..=u32::MAX)
        && has("-XX:-UseCompressedClassPointers", 8..=24)
}

fn program(version: u32, home: &Path, (mode, class, flags): (&str, &str, &[&str]), folder: &Path) -> Program {
    let mut command = Command::new(home.join("bin/java"));
    command.args(flags).arg("-cp").arg(folder).args(["Mix", SECONDS, mode]);
    let chain = |of: char| -> Vec<String> {
        match mode {
            "recursion" => {
                let mut chain = vec![format!("Mix$Deep.{of}"); 200];
                chain.push(format!("Mix$Plain.{of}12"));
                chain
            }
            _ => (1..=12).map(|level| format!("{class}.{of}{level}")).collect(),
        }
    };
    let flags: Vec<&str> = flags
        .iter()
        .map(|flag| flag.trim_start_matches("-XX:").trim_start_matches('-'))
        .collect();
    Program {
        title: format!("Java {version} {mode} {}", flags.join(" "))
            .trim_end()
            .to_owned(),
        command,
        chains: ['a', 'b'].map(chain),
        language: "jvm",
        // Classes are unloaded before what was sampled of them is looked at.
        named: if mode == "churn" { 60.0 } else { 99.5 },
        // Its compilers and collectors have the rest.
        in_chain: if mode == "churn" { 15.0 } else { 50.0 },
        agree: if mode == "recursion" { 98.0 } else { 99.5 },
        // Each class is interpreted at first, in both parts alike.
        has_share: mode != "churn",
    }
}

/// Release and home of each machine, ascending.
fn versions() -> Vec<(u32, PathBuf)> {
    let homes: Vec<PathBuf> = match std::env::var_os("STAKEOUT_RUNTIMES") {
        Some(folder) => std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect(),
        None => installed().into_iter().collect(),
    };
    let mut versions: Vec<(u32, PathBuf)> = homes
        .into_iter()
        .filter_map(|home| Some((release(&home)?, home)))
        .collect();
    versions.sort();
    versions
}

/// The one that is found by its name.
fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let java = std::env::split_paths(&path)
        .map(|folder| folder.join("javac"))
        .find(|java| java.is_file())?;
    Some(java.canonicalize().ok()?.parent()?.parent()?.to_path_buf())
}

/// `1.8.0_504` is 8, `17.0.21` is 17.
fn release(home: &Path) -> Option<u32> {
    let output = Command::new(home.join("bin/java")).arg("-version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let version = text.split('"').nth(1)?;
    let version = version.strip_prefix("1.").unwrap_or(version);
    version.split(['.', '-', '+']).next()?.parse().ok()
}
