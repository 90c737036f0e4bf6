//! What the compared programs and the profilers beside the agent are made of: downloaded once, into a folder that is
//! given, and never installed.
//!
//! Out: where each thing lies. PyPI, Maven Central and npm give stated versions, whose archives are checked by
//! their digests, by pip or by npm. Debian's packages are those of this system's release, since they fit its Ruby
//! and PHP alone; apt checks their signatures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

use crate::artifacts::hex;
use crate::bench::languages::Runtime;
use crate::{packages, repo, run};

const PYTHON: [&str; 7] = [
    "fastapi==0.165.0",
    "jinja2==3.1.6",
    "markdown==3.11.3",
    "py-spy==0.4.3",
    "pydantic==2.14.4",
    "starlette==1.10.0",
    "uvicorn==0.54.0",
];
/// Artifact, file and digest.
const JAVA: [(&str, &str, &str); 2] = [
    (
        "org.apache.lucene:lucene-core:9.12.3",
        "lucene-core-9.12.3.jar",
        "b64a3f8098a7572034fb30085cdee01b34ec81fb0e5a31b471536af58dc6c01b",
    ),
    (
        "tools.profiler:async-profiler:4.3",
        "async-profiler-4.3.jar",
        "d24119d121e397d9a4dc1441689fbbc5cd197d9612ab1212606dfbe8cdffdbfb",
    ),
];
const NODE: [&str; 2] = ["highlight.js@11.11.1", "marked@15.0.12"];
const RUBY: [&str; 3] = ["ruby-kramdown", "ruby-rouge", "ruby-stackprof"];
const PHP: [&str; 2] = ["php-parser", "php-excimer"];

/// A virtual environment with the service's packages and py-spy; the folder of its programs.
pub(super) fn python(runtime: &Runtime, folder: &Path) -> Result<PathBuf> {
    let home = folder.join("python");
    let programs = home.join("bin");
    repo::make_once(&programs, &home.join("packages"), &PYTHON.join("\n"), || {
        println!(
            "From PyPI, the service that is watched and py-spy: {}",
            PYTHON.join(", ")
        );
        run::output(runtime.command().args(["-m", "venv", "--clear"]).arg(&home))?;
        let pip = programs.join("pip");
        run::output(Command::new(&pip).args(["install", "--quiet"]).args(PYTHON))?;
        run::output(Command::new(&pip).arg("check"))?;
        Ok(())
    })?;
    Ok(programs)
}

/// The class path of Lucene and async-profiler, and the profiler's native library.
pub(super) fn java(runtime: &Runtime, folder: &Path) -> Result<(String, PathBuf)> {
    let home = made(folder, "java")?;
    for (artifact, file, digest) in JAVA {
        let path = home.join(file);
        if !path.exists() {
            println!("From Maven Central: {artifact}");
            ensure!(
                repo::find_program("mvn").is_some(),
                "mvn is missing, which gets Java's libraries"
            );
            run::output(
                Command::new("mvn")
                    .args(["-q", "-B", "dependency:copy"])
                    .arg(format!("-Dartifact={artifact}"))
                    .arg(format!("-DoutputDirectory={}", home.display())),
            )?;
        }
        check(&path, digest)?;
    }
    let folder = match std::env::consts::ARCH {
        "x86_64" => "linux-x64",
        "aarch64" => "linux-arm64",
        other => bail!("async-profiler's library is not there for {other}"),
    };
    let library = format!("{folder}/libasyncProfiler.so");
    let mut unpack = Command::new(runtime.program.with_file_name("jar"));
    let archive = home.join(JAVA[1].1);
    run::output(unpack.current_dir(&home).arg("xf").arg(archive).arg(&library))?;
    let jars = JAVA.map(|(_, file, _)| home.join(file).display().to_string());
    Ok((jars.join(":"), home.join(library)))
}

/// The folder that Node.js finds Marked and highlight.js in.
pub(super) fn node(folder: &Path) -> Result<PathBuf> {
    let home = made(folder, "node")?;
    let modules = home.join("node_modules");
    repo::make_once(&modules, &home.join("packages"), &NODE.join("\n"), || {
        println!("From npm, the libraries that are watched: {}", NODE.join(", "));
        ensure!(
            repo::find_program("npm").is_some(),
            "npm is missing, which comes with Node.js"
        );
        let mut install = Command::new("npm");
        install.args([
            "install",
            "--silent",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--prefix",
        ]);
        run::output(install.arg(&home).args(NODE))?;
        Ok(())
    })?;
    Ok(modules)
}

/// The folders that Ruby looks for kramdown, Rouge and stackprof in.
pub(super) fn ruby(folder: &Path) -> Result<Vec<PathBuf>> {
    let root = debian(&made(folder, "ruby")?, &RUBY)?;
    let mut folders = Vec::new();
    let anywhere = |path: &Path| {
        let text = path.to_string_lossy();
        text.contains("/rubygems-integration/")
            && (text.ends_with("/lib") && path.parent().is_some_and(|gem| gem.parent().is_some_and(is_gems))
                || path.join("gem.build_complete").exists())
    };
    walk(&root, &mut |path| {
        if path.is_dir() && anywhere(path) {
            folders.push(path.to_owned());
        }
    })?;
    ensure!(
        folders.len() > RUBY.len(),
        "Debian's packages of Ruby lie elsewhere than expected"
    );
    Ok(folders)
}

fn is_gems(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == "gems")
}

/// The folder of PHP-Parser's sources, and Excimer's library.
pub(super) fn php(folder: &Path) -> Result<(PathBuf, PathBuf)> {
    let root = debian(&made(folder, "php")?, &PHP)?;
    let mut library = None;
    walk(&root, &mut |path| {
        if path.file_name().is_some_and(|name| name == "excimer.so") {
            library = Some(path.to_owned());
        }
    })?;
    let sources = root.join("usr/share/php");
    ensure!(
        sources.join("PhpParser").is_dir(),
        "PHP-Parser lies elsewhere than expected"
    );
    Ok((sources, library.context("Excimer lies elsewhere than expected")?))
}

fn made(folder: &Path, name: &str) -> Result<PathBuf> {
    let made = folder.join(name);
    fs::create_dir_all(&made).with_context(|| format!("can't make {}", made.display()))?;
    Ok(made)
}

fn check(path: &Path, digest: &str) -> Result<()> {
    let bytes = fs::read(path).with_context(|| format!("can't read {}", path.display()))?;
    let is = hex(&Sha256::digest(&bytes));
    ensure!(
        is == digest,
        "{} is another file than expected ({is}): remove it",
        path.display()
    );
    Ok(())
}

/// Unpacks this release's packages below `home`, without what they depend on.
pub(in crate::bench) fn debian(home: &Path, names: &[&str]) -> Result<PathBuf> {
    let root = home.join("root");
    repo::make_once(&root, &home.join("packages"), &names.join("\n"), || {
        packages::ensure_debs()?;
        println!("From Debian: {}", names.join(", "));
        let archives = tempfile::tempdir_in(home).context("can't make a temporary folder")?;
        // As root, apt would download as a user of its own, who may not write here.
        let mut download = Command::new("apt-get");
        download
            .args(["-o", "APT::Sandbox::User=root", "-q", "download"])
            .args(names);
        run::output(download.current_dir(archives.path()))?;
        for archive in fs::read_dir(archives.path())? {
            run::output(
                Command::new("dpkg-deb")
                    .arg("--extract")
                    .arg(archive?.path())
                    .arg(&root),
            )?;
        }
        Ok(())
    })?;
    Ok(root)
}

/// Hands over all that lies below a folder, in the order of names.
fn walk(folder: &Path, take: &mut impl FnMut(&Path)) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("can't read {}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    for path in paths {
        take(&path);
        if path.is_dir() && !path.is_symlink() {
            walk(&path, take)?;
        }
    }
    Ok(())
}

/// The repository's own texts of an ending, in the order of their paths, so that each run reads the same.
pub(super) fn texts(folders: &[&str], ending: &str) -> Result<Vec<PathBuf>> {
    let mut texts = Vec::new();
    for folder in folders {
        let folder = repo::root().join(folder);
        let mut take = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_file() && name.ends_with(ending) {
                texts.push(path.to_owned());
            }
        };
        walk(&folder, &mut take)?;
    }
    Ok(texts)
}
