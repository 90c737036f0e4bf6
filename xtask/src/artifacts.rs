//! Builds what runs: the page's assets, then the two binaries (the server embeds the assets).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use sha2::{Digest, Sha256};

use crate::{packages, progress, repo, run};

/// How much the compiler optimises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// Builds fastest, runs slowest: what the tests use.
    Debug,
    /// Builds in minutes: what takes most time is optimised, the rest is not. For a first look.
    Up,
    /// Optimised: what is measured.
    Release,
    /// The same with packed relocations: what is shipped.
    Dist,
}

/// The two programs.
#[derive(Clone, Debug)]
pub(crate) struct Binaries {
    pub(crate) agent: PathBuf,
    pub(crate) server: PathBuf,
}

/// The two programs, and the load that they are measured by.
const SHIPPED: [&str; 4] = ["-p", "stakeout-agent", "-p", "stakeout-server"];
const MEASURED_BY: [&str; 2] = ["-p", "stakeout-load"];

/// How a user chooses what to build.
#[derive(Debug, clap::Args)]
pub(crate) struct Choice {
    /// Build fully optimised binaries, which takes twice as long
    #[arg(long)]
    release: bool,
    /// Build without optimisation: each sample and each query costs several times as much
    #[arg(long, conflicts_with = "release")]
    debug: bool,
}

impl Choice {
    pub(crate) fn profile(&self) -> Profile {
        match (self.release, self.debug) {
            (true, _) => Profile::Release,
            (_, true) => Profile::Debug,
            _ => Profile::Up,
        }
    }
}

/// Builds the page if it changed, then agent and server.
///
/// With `STAKEOUT_BIN_DIR` nothing is built: the binaries of that folder are used, such as those of a release.
pub(crate) fn all(profile: Profile) -> Result<Binaries> {
    if let Some(dir) = std::env::var_os("STAKEOUT_BIN_DIR") {
        println!("using the binaries of {}", Path::new(&dir).display());
        return below(Path::new(&dir));
    }
    packages::ensure_build()?;
    web()?;
    binaries(profile)
}

/// Builds agent, server and load with whatever `web/dist` holds.
pub(crate) fn binaries(profile: Profile) -> Result<Binaries> {
    let mut build = repo::cargo();
    build.args(["build", "--locked", "--bins"]);
    // A choice of packages is a choice of their dependencies' features: with another choice than the tests' and the
    // lints', cargo would compile most dependencies twice.
    match profile {
        Profile::Debug => build.arg("--workspace"),
        Profile::Up => build.args(["--profile", "up", "--no-default-features"]).args(SHIPPED),
        Profile::Release => build.arg("--release").args(SHIPPED).args(MEASURED_BY),
        Profile::Dist => build
            .arg("--release")
            .args(SHIPPED)
            .args(MEASURED_BY)
            .env("STAKEOUT_PACK_RELOCATIONS", "1"),
    };
    progress::build(&mut build)?;
    below(&folder(profile)?)
}

/// Where cargo puts the programs of a profile.
pub(crate) fn folder(profile: Profile) -> Result<PathBuf> {
    Ok(repo::target_dir()?.join(match profile {
        Profile::Debug => "debug",
        Profile::Up => "up",
        Profile::Release | Profile::Dist => "release",
    }))
}

fn below(dir: &Path) -> Result<Binaries> {
    let binaries = Binaries {
        agent: dir.join("stakeout-agent"),
        server: dir.join("stakeout-server"),
    };
    for file in [&binaries.agent, &binaries.server] {
        ensure!(file.is_file(), "there is no {}", file.display());
    }
    Ok(binaries)
}

/// Installs the page's packages if the lock file changed, builds it if anything changed. Content counts, not time
/// stamps: switching branches back and forth builds nothing.
pub(crate) fn web() -> Result<()> {
    web_packages()?;
    let dir = repo::root().join("web");
    let stamp = dir.join("node_modules/.stakeout-built");
    let digest = digest(&sources(&dir)?)?;
    repo::make_once(&dir.join("dist/index.html"), &stamp, &digest, || {
        run::run(npm().args(["run", "build"]))
    })
}

/// `npm ci`, unless the installed packages are those of the lock file.
pub(crate) fn web_packages() -> Result<()> {
    let dir = repo::root().join("web");
    let lock = dir.join("package-lock.json");
    let stamp = dir.join("node_modules/.stakeout-installed");
    let digest = digest(std::slice::from_ref(&lock))?;
    repo::make_once(&dir.join("node_modules"), &stamp, &digest, || {
        run::run(npm().args(["ci", "--no-audit", "--no-fund"]))
    })
}

/// npm in the page's folder.
pub(crate) fn npm() -> Command {
    let mut npm = Command::new("npm");
    npm.current_dir(repo::root().join("web"));
    npm
}

/// Every file that the page's build can read, in order; what git ignores is not one of them.
fn sources(dir: &Path) -> Result<Vec<PathBuf>> {
    let listed = run::output(Command::new("git").current_dir(dir).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]));
    let mut files: Vec<PathBuf> = match listed {
        Ok(names) => names
            .split('\0')
            .filter(|name| !name.is_empty())
            .map(|name| dir.join(name))
            .collect(),
        // A source archive has no git: build every time rather than miss a change.
        Err(_) => return Ok(vec![]),
    };
    files.retain(|file| file.is_file());
    files.sort();
    Ok(files)
}

fn digest(files: &[PathBuf]) -> Result<String> {
    let mut sha = Sha256::new();
    for file in files {
        let content = fs::read(file).with_context(|| format!("can't read {}", file.display()))?;
        sha.update(file.as_os_str().as_encoded_bytes());
        sha.update((content.len() as u64).to_le_bytes());
        sha.update(content);
    }
    Ok(hex(&sha.finalize()))
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
