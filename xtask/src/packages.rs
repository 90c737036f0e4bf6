//! What a bare machine lacks: finds out, says which and why, installs by apt where there is apt.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{repo, run};

/// How to see that a package is there.
#[derive(Clone, Copy)]
enum Sign {
    Program(&'static str),
    File(&'static str),
}

/// One thing from the system's package manager.
struct Need {
    apt: &'static str,
    elsewhere: &'static str,
    sign: Sign,
    why: &'static str,
}

impl Need {
    /// A package named like its program.
    const fn program(name: &'static str, why: &'static str) -> Need {
        Need {
            apt: name,
            elsewhere: name,
            sign: Sign::Program(name),
            why,
        }
    }

    /// A package that is there when this file is.
    const fn file(path: &'static str, why: &'static str) -> Need {
        Need {
            sign: Sign::File(path),
            ..Need::program(path, why)
        }
    }

    /// Its names with apt and elsewhere.
    const fn named(self, apt: &'static str, elsewhere: &'static str) -> Need {
        Need { apt, elsewhere, ..self }
    }
}

const BUILD: &[Need] = &[
    Need::program("clang", "compiles the BPF programs"),
    Need::program("cc", "links, compiles libbpf").named("gcc", "gcc"),
    Need::program("make", "builds libbpf and the server's allocator"),
    Need::program("pkg-config", "finds libelf").named("pkg-config", "pkgconf"),
    Need::file("/usr/include/libelf.h", "reads BPF objects").named("libelf-dev", "elfutils-libelf-devel"),
    Need::file("/usr/include/zlib.h", "libelf needs it").named("zlib1g-dev", "zlib-devel"),
];

const TEST: &[Need] = &[
    Need::program("git", "names the files that are checked"),
    Need::program("xz", "compresses the names that a stripped program carries").named("xz-utils", "xz"),
    Need::program("chromium", "runs the page's tests"),
    Need::program("shellcheck", "checks the install script").named("shellcheck", "ShellCheck"),
    Need::program("debootstrap", "makes the clean system of the install test"),
    Need::program("go", "`go tool pprof` reads the pprof export").named("golang-go", "golang"),
    Need::program("curl", "the install script and the guide's examples ask with it"),
    Need::program("capsh", "runs the agent with exactly the capabilities it names").named("libcap2-bin", "libcap"),
    Need::program("c++", "compiles programs whose stacks are known").named("g++", "gcc-c++"),
    Need::program("musl-gcc", "the same, for another C library").named("musl-tools", "musl-gcc"),
    Need::program("javac", "the same, for the Java machine").named("default-jdk-headless", "java-latest-openjdk-devel"),
    Need::program("python3", "the same, for CPython; runs the guide's examples"),
    Need::program("ruby", "the same, for CRuby"),
    Need::program("luajit", "the same, for code that is made at run time"),
    Need::program("php", "the same, with OPcache").named("php-cli", "php-cli"),
    Need::program("runc", "the same, in a container"),
    Need::program("busybox", "the shell in that container").named("busybox-static", "busybox"),
    Need::file(
        "/usr/share/doc/python3-venv",
        "other engines that read the tables live there",
    )
    .named("python3-venv", "python3"),
    Need::program("mkfs.ext4", "makes a disk whose power is cut").named("e2fsprogs", "e2fsprogs"),
];

const SCENES: &[Need] = &[
    Need::program("javac", "compiles the scene's service").named("default-jdk-headless", "java-latest-openjdk-devel"),
    Need::program("mvn", "gets the library that the service uses").named("maven", "maven"),
    Need::program("python3", "runs the service's clients and the job system"),
    Need::program("mkfs.btrfs", "makes a file system that compresses").named("btrfs-progs", "btrfs-progs"),
];

const KERNELS: &[Need] = &[
    Need::program("qemu-system-x86_64", "boots the kernels that the agent is tested on")
        .named("qemu-system-x86", "qemu-system-x86-core"),
    Need::program("busybox", "mounts and powers off in the machine that qemu makes").named("busybox-static", "busybox"),
];

/// What the build needs, Node.js for the page included.
pub(crate) fn ensure_build() -> Result<()> {
    ensure(BUILD)?;
    node()
}

/// What the tests need beyond the build.
pub(crate) fn ensure_test() -> Result<()> {
    ensure(TEST)
}

/// What the demo's scenes in other languages need.
pub(crate) fn ensure_scenes() -> Result<()> {
    ensure(SCENES)
}

/// What booting other kernels needs, beside apt.
pub(crate) fn ensure_kernels() -> Result<()> {
    ensure(KERNELS)?;
    ensure_debs()
}

/// What unpacking Debian's packages needs.
pub(crate) fn ensure_debs() -> Result<()> {
    ensure!(
        repo::find_program("apt-get").is_some() && repo::find_program("dpkg-deb").is_some(),
        "the packages are Debian's, and this system has no apt to get them"
    );
    Ok(())
}

fn ensure(needs: &[Need]) -> Result<()> {
    let present = |need: &&Need| match need.sign {
        Sign::Program(name) => repo::find_program(name).is_some(),
        Sign::File(path) => Path::new(path).exists(),
    };
    let missing: Vec<&Need> = needs.iter().filter(|need| !present(need)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("These system packages are missing:");
    for need in &missing {
        println!("  {:<14} {}", need.apt, need.why);
    }
    if repo::find_program("apt-get").is_none() {
        let names: Vec<_> = missing.iter().map(|need| need.elsewhere).collect();
        bail!(
            "this system has no apt; please install them with its own package manager and try again; \
             Fedora's names for them: {}",
            names.join(" ")
        );
    }
    println!("They are installed with apt now.");
    // A list of packages that is months old names versions that the mirrors no longer have.
    run::run(as_root("the packages above are installed for the whole system")?.args(["apt-get", "update", "-q"]))?;
    run::run(
        as_root("")?
            .args([
                "env",
                "DEBIAN_FRONTEND=noninteractive",
                "apt-get",
                "install",
                "-q",
                "-y",
                "--no-install-recommends",
            ])
            .args(missing.iter().map(|need| need.apt)),
    )?;
    let still: Vec<_> = missing
        .iter()
        .filter(|need| !present(need))
        .map(|need| need.apt)
        .collect();
    ensure!(
        still.is_empty(),
        "still missing after apt-get install: {}",
        still.join(" ")
    );
    Ok(())
}

/// Whether this process is root.
pub(crate) fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// The start of a command that runs as root: `env` where this process is root already, else `sudo`, after saying why.
pub(crate) fn as_root(why: &str) -> Result<Command> {
    if is_root() {
        return Ok(Command::new("env"));
    }
    ensure!(
        repo::find_program("sudo").is_some(),
        "{} and there is no sudo: run this command as root",
        if why.is_empty() { "root is needed" } else { why }
    );
    if !why.is_empty() {
        println!("sudo: {why}.");
    }
    let mut command = Command::new("sudo");
    command.arg("--");
    Ok(command)
}

/// The page's tools need Node.js with npm, from the version on that its manifest names.
fn node() -> Result<()> {
    let manifest = repo::root().join("web/package.json");
    let manifest = fs::read_to_string(&manifest).with_context(|| format!("can't read {}", manifest.display()))?;
    let needed = node_of(&manifest).context("web/package.json says nothing of Node.js as `engines.node`: `>=N.N`")?;
    let hint =
        format!("please install Node.js {needed} or newer with npm, from https://nodejs.org or your system's packages");
    let there = Command::new("node").arg("--version").output().ok();
    let there = there
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default();
    ensure!(
        !there.is_empty(),
        "Node.js is missing (the page is built with it): {hint}"
    );
    ensure!(
        numbers(&there) >= numbers(&needed),
        "Node.js {there} is too old to build the page: {hint}"
    );
    ensure!(
        repo::find_program("npm").is_some(),
        "npm is missing (the page is built with it): {hint}"
    );
    Ok(())
}

/// The least version of Node.js that a `package.json` asks for.
pub(crate) fn node_of(manifest: &str) -> Option<String> {
    let manifest: serde_json::Value = serde_json::from_str(manifest).ok()?;
    let least = manifest["engines"]["node"].as_str()?.strip_prefix(">=")?.trim();
    (!numbers(least).is_empty()).then(|| least.to_owned())
}

/// `v20.19.1` as numbers, which compare as versions do.
fn numbers(version: &str) -> Vec<u32> {
    let parts = version.trim_start_matches('v').split('.');
    parts.map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_their_numbers() {
        assert!(numbers("v20.19.0") >= numbers("20.19"));
        assert!(numbers("v22.1.0") >= numbers("20.19"));
        assert!(numbers("v20.9.0") < numbers("20.19"));
        assert!(numbers("v8.19.0") < numbers("20.19"));
        assert_eq!(node_of(r#"{"engines": {"node": ">=20.19"}}"#).as_deref(), Some("20.19"));
        assert_eq!(node_of(r#"{"engines": {"node": "^20"}}"#), None);
        assert_eq!(node_of("{}"), None);
    }
}
