//! `cargo xtask dist`: what a release consists of.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use crate::artifacts::{self, Profile};
use crate::{repo, run};

/// The server without its names. It is fetched by each machine that runs one; most of it is the query engine.
const LARGEST_SERVER: u64 = 80_000_000;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder for the binaries and their sums
    #[arg(long, default_value = "dist", value_name = "DIR")]
    out: PathBuf,
}

/// Builds release binaries and puts them, named by machine, beside their SHA-256 sums.
///
/// The agent keeps its names: it is small, and every profile shows it. The server's names and lines are a file beside
/// it, which debuggers and the agent find by the link in the server and by its build id.
pub(crate) fn run(args: &Args) -> Result<()> {
    let binaries = artifacts::all(Profile::Dist)?;
    let out = repo::root().join(&args.out);
    fs::create_dir_all(&out).with_context(|| format!("can't make {}", out.display()))?;
    let agent = shipped_name(&binaries.agent)?;
    let server = shipped_name(&binaries.server)?;
    let names = format!("{server}.debug");
    // Under another name first: a running program's file can't be written to, but it can be replaced.
    let made = tempfile::tempdir_in(&out).with_context(|| format!("can't write to {}", out.display()))?;
    let made = made.path();
    fs::copy(&binaries.agent, made.join(&agent)).with_context(|| format!("can't copy {}", binaries.agent.display()))?;
    split(&binaries.server, &made.join(&server), &made.join(&names))?;
    let bytes = fs::metadata(made.join(&server))?.len();
    ensure!(
        bytes <= LARGEST_SERVER,
        "the server has {bytes} bytes, more than the {LARGEST_SERVER} that it may have: see [profile.release] in Cargo.toml"
    );
    let mut sums = String::new();
    for name in [agent, server, names] {
        sums.push_str(&publish(made, &out, &name)?);
    }
    fs::write(out.join("SHA256SUMS"), sums)?;
    println!("sums: {}", out.join("SHA256SUMS").display());
    Ok(())
}

fn shipped_name(binary: &Path) -> Result<String> {
    let base = binary.file_name().context("no file name")?.to_string_lossy();
    Ok(format!("{base}-linux-{}", std::env::consts::ARCH))
}

/// Writes the binary without names and lines to `stripped`, those to `names`, and the link to them into `stripped`.
fn split(binary: &Path, stripped: &Path, names: &Path) -> Result<()> {
    run::run(Command::new("objcopy").arg("--only-keep-debug").args([binary, names]))?;
    let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
    link.push(names);
    run::run(
        Command::new("objcopy")
            .arg("--strip-all")
            .arg(link)
            .args([binary, stripped]),
    )
}

/// Moves a file from `made` to `out`, with its sum beside it. Returns the line for all sums.
fn publish(made: &Path, out: &Path, name: &str) -> Result<String> {
    let content = fs::read(made.join(name)).with_context(|| format!("can't read {name}"))?;
    let sum = format!("{}  {name}\n", artifacts::hex(&Sha256::digest(&content)));
    fs::rename(made.join(name), out.join(name)).with_context(|| format!("can't write {name}"))?;
    fs::write(out.join(format!("{name}.sha256")), &sum)?;
    println!("{:>8.1} MB  {}", content.len() as f64 / 1e6, out.join(name).display());
    Ok(sum)
}
