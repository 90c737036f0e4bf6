//! Kernels from apt: downloaded and unpacked, never installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::{repo, run};

/// A kernel that can be booted.
pub(super) struct Kernel {
    /// Debian's name of its package.
    pub(super) package: String,
    pub(super) image: PathBuf,
}

/// The newest package that `pattern` matches; none where apt knows none. `name` is the release line's.
pub(super) fn newest(name: &str, pattern: &str) -> Result<Option<Kernel>> {
    let found = run::lines_of(Command::new("apt-cache").args(["search", "--names-only", pattern]))?;
    let packages = found.iter().filter_map(|line| line.split(' ').next());
    let Some(package) = packages.max_by_key(|package| numbers(package)) else {
        return Ok(None);
    };
    let cache = repo::cache_dir("kernels")?;
    let image = cache.join(package);
    if !image.is_file() {
        fetch(package, &image).with_context(|| format!("can't get the kernel {name}"))?;
    }
    Ok(Some(Kernel {
        package: package.to_owned(),
        image,
    }))
}

/// 6.1.0-9 comes before 6.1.0-10.
fn numbers(package: &str) -> Vec<u64> {
    let digits = package.split(|c: char| !c.is_ascii_digit());
    digits.filter_map(|number| number.parse().ok()).collect()
}

fn fetch(package: &str, image: &Path) -> Result<()> {
    let dir = tempfile::tempdir_in(repo::cache_dir("kernels")?).context("can't make a temporary folder")?;
    run::run(
        Command::new("apt-get")
            .current_dir(dir.path())
            // As root, apt would download as a user of its own, who may not write here.
            .args(["-o", "APT::Sandbox::User=root", "-q", "download", package]),
    )?;
    let deb = fs::read_dir(dir.path())?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"));
    let deb = deb.with_context(|| format!("apt-get downloaded no package {package}"))?;
    let mut unpack = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(&deb)
        .stdout(Stdio::piped())
        .spawn()
        .context("can't start dpkg-deb")?;
    let packed = unpack.stdout.take().context("no standard output")?;
    let taken = Command::new("tar")
        .args(["-x", "--wildcards", "-C"])
        .arg(dir.path())
        .arg("./boot/vmlinuz-*")
        .stdin(packed)
        .status()
        .context("can't start tar")?;
    ensure!(
        unpack.wait()?.success() && taken.success(),
        "can't unpack {}",
        deb.display()
    );
    let boot = fs::read_dir(dir.path().join("boot"))?.flatten().next();
    let boot = boot.with_context(|| format!("{package} holds no kernel"))?;
    fs::rename(boot.path(), image).with_context(|| format!("can't write {}", image.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_the_highest_by_number() {
        let mut packages = [
            "linux-image-6.1.0-47-amd64",
            "linux-image-6.1.0-100-amd64",
            "linux-image-6.1.0-9-amd64",
        ];
        packages.sort_by_key(|package| numbers(package));
        assert_eq!(packages.last(), Some(&"linux-image-6.1.0-100-amd64"));
        assert!(numbers("linux-image-6.12.99+deb12-amd64") < numbers("linux-image-6.12.117+deb12-amd64"));
    }
}
