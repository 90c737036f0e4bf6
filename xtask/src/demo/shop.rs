//! A shop's search in Java, its clients in Python, and a file system that nobody uses: S3 with real samples.
//!
//! The search holds an index of a library from Maven Central. Beside it a program archives a log on a file system that
//! compresses what it is given; threads of the kernel do that. The page shows both by their names, in one window.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::link::{Link, Times};
use super::programs::{Programs, wait_covered};
use crate::http::{Client, path};
use crate::signals::Stop;
use crate::{packages, repo, run, stack};

/// The index's library, as Maven names it.
const LIBRARY: (&str, &str) = ("org.apache.lucene:lucene-core:9.12.3", "lucene-core-9.12.3.jar");
/// What the service and its clients are called.
const SEARCH: &str = "shop-search";
const SHOPPERS: &str = "shop-shoppers";
const ARCHIVE: &str = "shop-archive";
/// What the kernel compresses with, in a part of the functions' names.
const COMPRESSES: &str = "deflate|longest_match|zlib";
/// What a search does, in any thread.
const SEARCHES: &str = "IndexSearcher.search";
const DISK_BYTES: u64 = 256 << 20;

/// Plays it. The time before is the Java machine's to compile what it runs.
pub(super) fn show(client: &Client, times: Times, stop: &Stop) -> Result<(Vec<Link>, Result<()>)> {
    packages::ensure_scenes()?;
    let dir = tempfile::Builder::new().prefix("stakeout-demo").tempdir()?;
    let class_path = compile(dir.path())?;
    let disk = Disk::mount(dir.path())?;
    let sources = repo::root().join("xtask/examples/shop");
    let mut programs = Programs::default();
    let mut java = named("java", SEARCH);
    java.args(["-Xmx256m", "-cp", &class_path, "shop.SearchService", "1"]);
    let port = programs.start_and_hear(SEARCH, &mut java)?;
    programs.start(
        SHOPPERS,
        named("python3", SHOPPERS).arg(sources.join("shoppers.py")).arg(&port),
    )?;
    let archive = sources.join("archive.py");
    programs.start(ARCHIVE, named("python3", ARCHIVE).arg(archive).arg(&disk.at))?;
    println!(
        "{SEARCH}, {SHOPPERS} and {ARCHIVE} run; Java compiles what is hot, for {} s ...",
        times.before
    );
    programs.pause(Duration::from_secs(times.before), stop)?;
    let from = stack::now_ms();
    println!("they run on, for {} s ...", times.after);
    programs.pause(Duration::from_secs(times.after), stop)?;
    let until = stack::now_ms();
    wait_covered(client, &format!("service = '{SEARCH}'"), until, stop)?;
    let window = [("from", from.to_string()), ("until", until.to_string())];
    let outcome = judge(client, &window);
    let shown = |more: &[(&str, &str)]| {
        let window = window.iter().map(|(name, value)| (*name, value.as_str()));
        path("/", &[&window.collect::<Vec<_>>()[..], more].concat())
    };
    let service = format!("{{service=\"{SEARCH}\"}}");
    let links = vec![
        Link {
            about: "user and system time apart, and what compresses",
            path: shown(&[
                ("apart", "1"),
                ("colour", "kind"),
                ("match", &format!("/{COMPRESSES}/")),
            ]),
        },
        Link {
            about: "the search, in the names of its authors",
            path: shown(&[("query", &service), ("colour", "kind")]),
        },
    ];
    Ok((links, outcome))
}

fn named(program: &str, service: &str) -> Command {
    let mut command = Command::new(program);
    command.env("OTEL_SERVICE_NAME", service);
    command
}

/// Compiles the service beside its library; returns the class path.
fn compile(dir: &Path) -> Result<String> {
    let (artifact, file) = LIBRARY;
    let libraries = repo::cache_dir("jars")?;
    if !libraries.join(file).exists() {
        run::run(
            Command::new("mvn")
                .args(["-q", "-B", "dependency:copy"])
                .arg(format!("-Dartifact={artifact}"))
                .arg(format!("-DoutputDirectory={}", libraries.display())),
        )?;
    }
    let library = libraries.join(file).display().to_string();
    let classes = dir.join("classes");
    let folder = repo::root().join("xtask/examples/shop");
    let sources = fs::read_dir(&folder).with_context(|| format!("can't read {}", folder.display()))?;
    let sources: Vec<PathBuf> = sources.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    let sources = sources
        .iter()
        .filter(|path| path.extension().is_some_and(|end| end == "java"));
    let mut javac = Command::new("javac");
    javac.args(["-cp", &library, "-d"]).arg(&classes).args(sources);
    run::output(&mut javac)?;
    Ok(format!("{}:{library}", classes.display()))
}

/// A small file system that compresses; dropping it takes it away.
struct Disk {
    at: PathBuf,
}

impl Disk {
    fn mount(dir: &Path) -> Result<Disk> {
        let (image, at) = (dir.join("disk.img"), dir.join("archive"));
        fs::File::create(&image)?.set_len(DISK_BYTES)?;
        run::output(Command::new("mkfs.btrfs").arg("-q").arg(&image))?;
        fs::create_dir(&at)?;
        let mut mount = packages::as_root("a small file system is mounted, which compresses what it is given")?;
        run::run(
            mount
                .args(["mount", "-o", "loop,compress-force=zlib:9"])
                .arg(&image)
                .arg(&at),
        )?;
        let disk = Disk { at };
        if !packages::is_root() {
            run::run(packages::as_root("")?.args(["chmod", "0777"]).arg(&disk.at))?;
        }
        Ok(disk)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a program that was killed may hold it for another moment.
        if let Ok(mut umount) = packages::as_root("") {
            let _ = umount.args(["umount", "-l"]).arg(&self.at).status();
        }
    }
}

/// Says what the window holds; an error where Java's or the kernel's part of it has no names.
fn judge(client: &Client, window: &[(&str, String)]) -> Result<()> {
    let share = |query: &str, pattern: &str| -> Result<f64> {
        let window = window.iter().map(|(name, value)| (*name, value.as_str()));
        let more = [("query", query), ("match", pattern), ("min_share", "0.5")];
        let asked = [&window.collect::<Vec<_>>()[..], &more].concat();
        let answer = client.get_json(&path("/api/v1/flamegraph", &asked))?;
        answer["match"]["share"].as_f64().context("the answer tells no share")
    };
    let search = format!("{{service=\"{SEARCH}\"}}");
    let compressed = share("{}", COMPRESSES)?;
    let searched = share(&search, SEARCHES)?;
    println!("\nin {COMPRESSES}: {:.1} % of all samples", compressed * 100.0);
    println!("in {SEARCHES}: {:.1} % of the samples of {SEARCH}", searched * 100.0);
    ensure!(compressed > 0.0, "no sample of the kernel's compression has its name");
    ensure!(searched > 0.05, "the search is hardly seen in the names of its authors");
    Ok(())
}
