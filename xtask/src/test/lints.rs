//! Clippy on the whole workspace.
//!
//! In: the working tree, and what cargo has built of its dependencies. Out: whether clippy has nothing to say. A check
//! and a build have nothing of the dependencies in common: where none was checked yet, as in a fresh clone, clippy
//! builds the workspace instead. So the dependencies are compiled once, and are there for the tests. Of the workspace's
//! own programs and tests it makes no code even then: nobody runs what clippy's driver would make.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::runner::command;
use crate::repo;
use crate::tally::Tally;

/// The library of a dependency that takes long, as cargo calls it.
const LARGE: &str = "libdatafusion-";
/// As `cargo clippy -- -D warnings` hands them to its driver.
const ARGUMENTS: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";
/// Packages that are not, where clippy builds them: nobody runs them.
const OPTIMISED: [&str; 2] = ["stakeout-agent", "stakeout-server"];

pub(super) fn step() -> Result<Tally> {
    let is_checked = is_checked(&repo::target_dir()?.join("debug/deps"));
    match driver().filter(|_| !is_checked) {
        Some(driver) => command(&mut build(&judge(&driver)?)),
        None => command(&mut check()),
    }
}

fn check() -> Command {
    let mut check = repo::cargo();
    check.args([
        "clippy",
        "--locked",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]);
    check
}

/// What cargo starts instead of the compiler: `$1` is the compiler, the rest its arguments. A program or a test is
/// judged as in a check, by its metadata; libraries are built, since what uses them is given their code, and so are
/// build scripts, which run. Where cargo looks for the program, to tell next time that nothing changed, lies one that
/// only says what it is. By bash: other shells drop variables with a hyphen in their names, such as those in which
/// cargo tells a test where the programs are.
const JUDGE: &str = r#"#!/bin/bash
case " $* " in
*' --crate-name build_script_'*) exec DRIVER "$@" ;;
*' --emit=dep-info,link '*) ;;
*) exec DRIVER "$@" ;;
esac
name= folder= suffix= before=
for argument do
    shift
    case $before in
    --crate-name) name=$argument ;;
    --out-dir) folder=$argument ;;
    esac
    before=$argument
    case $argument in
    --emit=dep-info,link) argument=--emit=dep-info,metadata ;;
    extra-filename=*) suffix=${argument#extra-filename=} ;;
    esac
    set -- "$@" "$argument"
done
DRIVER "$@" || exit
program=$folder/$name$suffix
rm -f "$program"
printf '%s\n' '#!/bin/sh' 'echo "$0 was only judged by clippy; cargo build makes it" >&2' 'exit 1' >"$program"
chmod +x "$program"
"#;

/// Writes [`JUDGE`] for this driver.
fn judge(driver: &Path) -> Result<PathBuf> {
    let judge = repo::cache_dir("lints")?.join("rustc");
    write_judge(&judge, driver)?;
    Ok(judge)
}

fn write_judge(judge: &Path, driver: &Path) -> Result<()> {
    let quoted = format!("'{}'", driver.to_string_lossy().replace('\'', r"'\''"));
    let written = fs::write(judge, JUDGE.replace("DRIVER", &quoted));
    written
        .and_then(|()| fs::set_permissions(judge, fs::Permissions::from_mode(0o755)))
        .with_context(|| format!("can't write {}", judge.display()))
}

/// The same targets, built with this as the compiler of the workspace's own packages, as clippy's driver is for cargo's
/// check.
fn build(judge: &Path) -> Command {
    let mut build = repo::cargo();
    build.args(["build", "--locked", "--workspace", "--all-targets"]);
    for package in OPTIMISED {
        build.args(["--config", &format!("profile.dev.package.{package}.opt-level=0")]);
    }
    // Nor is anything built on that.
    build.env("CARGO_INCREMENTAL", "0");
    build
        .env("RUSTC_WORKSPACE_WRAPPER", judge)
        .env("CLIPPY_ARGS", ARGUMENTS);
    build
}

/// Beside the cargo that runs this, where its toolchain has one.
fn driver() -> Option<PathBuf> {
    let driver = PathBuf::from(env::var_os("CARGO")?).with_file_name("clippy-driver");
    driver.is_file().then_some(driver)
}

/// Whether dependencies were checked in this folder: a check leaves what a library declares, a build its code too.
fn is_checked(deps: &Path) -> bool {
    let entries = fs::read_dir(deps).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with(LARGE) && name.ends_with(".rmeta") && !path.with_extension("rlib").is_file()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;

    #[test]
    fn programs_are_judged_and_all_else_is_built() {
        let dir = tempfile::tempdir().unwrap();
        let (driver, judge) = (dir.path().join("it's a driver"), dir.path().join("rustc"));
        // Says what it was asked for, each argument by this instead of a compiler's name.
        let by_line = "%s\n";
        std::os::unix::fs::symlink("/usr/bin/printf", &driver).unwrap();
        write_judge(&judge, &driver).unwrap();
        let out = dir.path().to_string_lossy().into_owned();
        let asked = |name: &str, emit: &str| {
            let own = ["--crate-name", name, emit, "-C", "extra-filename=-1a"];
            let all = [&own[..], &["--cfg", "feature=\"a b\"", "--out-dir", out.as_str()][..]].concat();
            // By a shell: what was just written may be open in a child of another test, and is then not started.
            let said = run::output(Command::new("bash").arg(&judge).arg(by_line).args(&all)).unwrap();
            (all.join("\n") + "\n", said)
        };
        for (name, emit) in [
            ("library", "--emit=dep-info,metadata,link"),
            ("build_script_build", "--emit=dep-info,link"),
        ] {
            let (arguments, said) = asked(name, emit);
            assert_eq!(said, arguments);
            assert!(!dir.path().join(format!("{name}-1a")).exists());
        }
        let (arguments, said) = asked("program", "--emit=dep-info,link");
        assert_eq!(said, arguments.replace("dep-info,link", "dep-info,metadata"));
        let told = run::output(&mut Command::new(dir.path().join("program-1a"))).unwrap_err();
        assert!(format!("{told:#}").contains("only judged by clippy"), "{told:#}");

        // As cargo names programs to tests.
        write_judge(&judge, Path::new("/usr/bin/env")).unwrap();
        let mut told = Command::new("bash");
        told.arg(&judge).args(["printenv", "CARGO_BIN_EXE_stakeout-agent"]);
        let told = run::output(told.env("CARGO_BIN_EXE_stakeout-agent", "/a/program")).unwrap();
        assert_eq!(told.trim(), "/a/program");

        // What doesn't pass leaves nothing behind that looks as if it had.
        write_judge(&judge, Path::new("/bin/false")).unwrap();
        let mut failing = Command::new("bash");
        failing.arg(&judge).args(["rustc", "--crate-name", "wrong"]);
        failing.args(["--emit=dep-info,link", "--out-dir", out.as_str()]);
        assert_eq!(failing.status().unwrap().code(), Some(1));
        assert!(!dir.path().join("wrong").exists());
    }

    #[test]
    fn what_was_checked_has_no_code() {
        let deps = tempfile::tempdir().unwrap();
        let add = |name: &str| fs::write(deps.path().join(name), "").unwrap();
        assert!(!is_checked(&deps.path().join("none")));
        add("libdatafusion-1a.rmeta");
        add("libdatafusion-1a.rlib");
        add("libdatafusion_sql-2b.rmeta");
        assert!(!is_checked(deps.path()));
        add("libdatafusion-3c.rmeta");
        assert!(is_checked(deps.path()));
    }
}
