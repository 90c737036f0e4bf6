//! `cargo xtask dist`: what a release consists of.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::artifacts::{self, Profile};
use crate::repo;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder for the binaries and their sums
    #[arg(long, default_value = "dist", value_name = "DIR")]
    out: PathBuf,
}

/// Builds release binaries and puts them, named by machine, beside their SHA-256 sums.
pub(crate) fn run(args: &Args) -> Result<()> {
    let binaries = artifacts::all(Profile::Release)?;
    let out = repo::root().join(&args.out);
    fs::create_dir_all(&out).with_context(|| format!("can't make {}", out.display()))?;
    let machine = std::env::consts::ARCH;
    let mut sums = String::new();
    for file in [&binaries.agent, &binaries.server] {
        let base = file.file_name().context("no file name")?.to_string_lossy();
        let name = format!("{base}-linux-{machine}");
        let content = fs::read(file).with_context(|| format!("can't read {}", file.display()))?;
        let sum = format!("{}  {name}\n", artifacts::hex(&Sha256::digest(&content)));
        // Under another name first: a running program's file can't be written to, but it can be replaced.
        let temporary = out.join(format!(".{name}"));
        fs::copy(file, &temporary).with_context(|| format!("can't write {}", temporary.display()))?;
        fs::rename(&temporary, out.join(&name)).with_context(|| format!("can't write {name}"))?;
        fs::write(out.join(format!("{name}.sha256")), &sum)?;
        println!(
            "{:>8.1} MiB  {}",
            content.len() as f64 / 1_048_576.0,
            out.join(&name).display()
        );
        sums.push_str(&sum);
    }
    fs::write(out.join("SHA256SUMS"), sums)?;
    println!("sums: {}", out.join("SHA256SUMS").display());
    Ok(())
}
