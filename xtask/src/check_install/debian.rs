//! A minimal Debian 12, made by debootstrap once and kept as an archive in the target folder.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::{packages, repo, run};

const SUITE: &str = "bookworm";
/// What the script itself asks for, and nothing else.
const PACKAGES: &str = "curl,ca-certificates";

/// Begins to make the minimal Debian, where there is none: mostly it waits for a mirror, beside what others compute.
/// Where that fails the step tries again, and tells.
pub(crate) fn make_debian_meanwhile() {
    if packages::is_root() {
        thread::spawn(|| drop(clean_debian()));
    }
}

/// The archive of a minimal Debian, which is made where it is missing, by one at a time.
pub(super) fn clean_debian() -> Result<PathBuf> {
    static MAKING: Mutex<()> = Mutex::new(());
    let _one = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let cache = repo::cache_dir("debian")?;
    let archive = cache.join(format!("{SUITE}-{}.tar", env::consts::ARCH));
    if archive.is_file() {
        return Ok(archive);
    }
    // A step that shows what its runner says holds standard output.
    eprintln!(
        "making a minimal Debian with debootstrap; it is kept in {}",
        cache.display()
    );
    let dir = TempDir::new().context("can't make a temporary folder")?;
    let root = dir.path().join("root");
    let mut debootstrap = Command::new("debootstrap");
    debootstrap
        .args(["--variant=minbase", &format!("--include={PACKAGES}"), SUITE])
        .arg(&root);
    debootstrap.args(mirror());
    run::output(&mut debootstrap)?;
    let partial = archive.with_extension("part");
    run::output(
        Command::new("tar")
            .arg("-cf")
            .arg(&partial)
            .arg("-C")
            .arg(&root)
            .arg("."),
    )?;
    fs::rename(&partial, &archive).with_context(|| format!("can't write {}", archive.display()))?;
    Ok(archive)
}

/// Where this machine gets Debian's packages from; elsewhere debootstrap knows a default.
fn mirror() -> Option<String> {
    let lists = fs::read_dir("/etc/apt/sources.list.d")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let texts = lists
        .chain([PathBuf::from("/etc/apt/sources.list")])
        .filter_map(|path| fs::read_to_string(path).ok());
    texts.filter_map(|text| mirror_in(&text)).next()
}

/// Both formats: `deb [options] URL SUITE …`, and stanzas with `URIs:` and `Suites:`.
fn mirror_in(text: &str) -> Option<String> {
    let offers = |mut suites: std::str::SplitWhitespace<'_>| suites.any(|suite| suite == SUITE);
    for line in text.lines().filter_map(|line| line.strip_prefix("deb ")) {
        let line = line.trim_start();
        let line = if line.starts_with('[') {
            line.split_once(']').map_or("", |(_, rest)| rest)
        } else {
            line
        };
        let mut words = line.split_whitespace();
        if let Some(url) = words.next()
            && words.next() == Some(SUITE)
        {
            return Some(url.to_owned());
        }
    }
    text.split("\n\n").find_map(|stanza| {
        let field = |name: &str| stanza.lines().find_map(|line| line.strip_prefix(name));
        let uri = field("URIs:")?.split_whitespace().next()?;
        offers(field("Suites:")?.split_whitespace()).then(|| uri.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_is_read_from_both_formats() {
        let list = "# deb http://no bookworm\ndeb [arch=amd64 signed-by=/k] http://a/debian bookworm main\n";
        assert_eq!(mirror_in(list).as_deref(), Some("http://a/debian"));
        let stanzas = "Types: deb\nURIs: http://x/node\nSuites: nodistro\n\nTypes: deb\nURIs: http://b/debian\nSuites: bookworm bookworm-updates\n";
        assert_eq!(mirror_in(stanzas).as_deref(), Some("http://b/debian"));
        assert_eq!(mirror_in("deb http://a/security bookworm-security main"), None);
    }
}
