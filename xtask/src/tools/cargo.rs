//! How cargo builds a tool.
//!
//! In: a version of a package, and a folder that nothing else uses. Out: the program, in that folder.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::{repo, run};

/// Whatever its own manifest says: each runs for seconds, and most of its build would be to optimise it.
const QUICKLY: [(&str, &str); 4] = [
    ("OPT_LEVEL", "0"),
    ("LTO", "off"),
    ("CODEGEN_UNITS", "256"),
    ("DEBUG", "none"),
];

/// Builds a program of `package`, such as `inferno@0.12.8`; `more`: arguments of `cargo install`.
pub(super) fn build(package: &str, more: &[&str], program: &str, folder: &Path) -> Result<PathBuf> {
    let mut cargo = repo::cargo();
    cargo.args(["install", "--quiet", "--locked", "--root"]).arg(folder);
    cargo.arg(package).args(more);
    for (setting, value) in QUICKLY {
        cargo.env(format!("CARGO_PROFILE_RELEASE_{setting}"), value);
    }
    cargo.env("CARGO_TARGET_DIR", folder.join("build"));
    run::run(&mut run::behind_others(&cargo))?;
    Ok(folder.join("bin").join(program))
}
