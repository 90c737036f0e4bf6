//! Clippy on the whole workspace.
//!
//! In: the working tree, and what cargo has built of its dependencies. Out: whether clippy has nothing to say. A check
//! and a build have nothing of the dependencies in common: where none was checked yet, as in a fresh clone, clippy
//! builds the workspace instead. So the dependencies are compiled once, and are there for the tests.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

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
        Some(driver) => command(&mut build(&driver)),
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

/// The same targets, built by clippy's driver as the compiler of the workspace's own packages, which it is for cargo's
/// check too.
fn build(driver: &Path) -> Command {
    let mut build = repo::cargo();
    build.args(["build", "--locked", "--workspace", "--all-targets"]);
    for package in OPTIMISED {
        build.args(["--config", &format!("profile.dev.package.{package}.opt-level=0")]);
    }
    // Nor is anything built on that.
    build.env("CARGO_INCREMENTAL", "0");
    build
        .env("RUSTC_WORKSPACE_WRAPPER", driver)
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
