//! Programs of others that our checks need, each in one stated version, so that every machine judges by the same.
//!
//! In: what is on the search path and in the cache folder; cargo or Go, where a program has to be built. Out: the
//! program, or in words why it can't be had here. Each is built once, into the target folder, and one at a time.

mod cargo;
mod go;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, bail};

use crate::{repo, run};

/// A program, its version, and who builds it of what.
#[derive(Debug)]
pub(crate) struct Tool {
    program: &'static str,
    /// As its package or module writes it.
    version: &'static str,
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// Cargo builds it of this package, with more arguments of `cargo install`.
    Cargo(&'static str, &'static [&'static str]),
    /// Go builds it of this package.
    Go(&'static str),
}

/// Judges licences, sources and advisories by `deny.toml`.
pub(crate) const CARGO_DENY: Tool = Tool {
    program: "cargo-deny",
    version: "0.20.2",
    source: Source::Cargo("cargo-deny", &[]),
};

/// Draws folded stacks: the other side of a test. Its standard features would also build what collapses and compares,
/// on several threads.
pub(crate) const INFERNO_FLAMEGRAPH: Tool = Tool {
    program: "inferno-flamegraph",
    version: "0.12.8",
    source: Source::Cargo(
        "inferno",
        &[
            "--no-default-features",
            "--features",
            "cli",
            "--bin",
            "inferno-flamegraph",
        ],
    ),
};

/// Checks rules of alerts, and runs their tests. The module's 0.316 is Prometheus 3.16.
pub(crate) const PROMTOOL: Tool = Tool {
    program: "promtool",
    version: "v0.316.0",
    source: Source::Go("github.com/prometheus/prometheus/cmd/promtool"),
};

/// The S3 server of the tests of a data root on a bucket, which is not ours.
pub(crate) const S3_SERVER: Tool = Tool {
    program: "versitygw",
    version: "v1.7.0",
    source: Source::Go("github.com/versity/versitygw/cmd/versitygw"),
};

/// What became of a program.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    At(PathBuf),
    /// Why it can't be had here.
    Missing(String),
}

/// What is known of builds by all threads of this command.
#[derive(Debug)]
struct Builds {
    /// One is under way; there are never two.
    is_busy: bool,
    /// Why a program, by its name, can't be had here: that is not tried again.
    missing: BTreeMap<&'static str, String>,
}

static BUILDS: Mutex<Builds> = Mutex::new(Builds {
    is_busy: false,
    missing: BTreeMap::new(),
});

/// A build has ended.
static ENDED: Condvar = Condvar::new();

/// The right to build, until it is dropped.
struct Turn;

impl Drop for Turn {
    fn drop(&mut self) {
        lock(&BUILDS).is_busy = false;
        ENDED.notify_all();
    }
}

/// Builds what was asked for early.
static MEANWHILE: Mutex<Option<JoinHandle<()>>> = Mutex::new(None);

/// What is guarded is changed in single steps.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to build what is missing of these, one after the other, in the time that others leave of the CPUs. Where a
/// build fails, whoever asks for its program tries again, and tells.
pub(crate) fn build_meanwhile(tools: Vec<&'static Tool>) {
    let builder = thread::spawn(move || {
        for tool in tools {
            drop(tool.ready_or_missing());
        }
    });
    *lock(&MEANWHILE) = Some(builder);
}

/// Waits until nothing is built meanwhile any more: what is measured later has the CPUs to itself.
pub(crate) fn finish_meanwhile() {
    let builder = lock(&MEANWHILE).take();
    if let Some(builder) = builder {
        builder.join().ok();
    }
}

impl Tool {
    /// The program, built now where it is not there. Where it cannot be built, as without a network, another version
    /// stands in and is told; without any that is an error.
    pub(crate) fn ready(&self) -> Result<PathBuf> {
        match self.ready_or_missing()? {
            Ready::At(program) => Ok(program),
            Ready::Missing(why) => bail!("{} {} can't be had here: {why}", self.program, self.version),
        }
    }

    /// The same for a check that can be left out: it is missing where there is no Go to build it, or what Go would
    /// build it of is out of reach. An error is one of a build.
    pub(crate) fn ready_or_missing(&self) -> Result<Ready> {
        let root = repo::cache_dir("tools")?;
        let built = root.join("bin").join(format!("{}-{}", self.program, self.version));
        let mut builds = lock(&BUILDS);
        loop {
            // Also where another one has its turn: what is there is not waited for.
            if built.is_file() {
                return Ok(Ready::At(built));
            }
            if let Some(why) = builds.missing.get(self.program) {
                return Ok(Ready::Missing(why.clone()));
            }
            if !builds.is_busy {
                break;
            }
            builds = ENDED.wait(builds).unwrap_or_else(PoisonError::into_inner);
        }
        builds.is_busy = true;
        drop(builds);
        let _turn = Turn;
        let ready = self.found_or_built(&root, built)?;
        if let Ready::Missing(why) = &ready {
            lock(&BUILDS).missing.insert(self.program, why.clone());
        }
        Ok(ready)
    }

    fn found_or_built(&self, root: &Path, built: PathBuf) -> Result<Ready> {
        self.choose(self.others(&root.join("bin")), || {
            let folder = root.join(self.program);
            match self.build(&folder)? {
                Ready::At(fresh) => {
                    put(&fresh, &built)?;
                    // The program is all that is needed; what it was built from is ten times as large.
                    std::fs::remove_dir_all(&folder).ok();
                    Ok(Ready::At(built))
                }
                missing => Ok(missing),
            }
        })
    }

    /// Programs of this name, each with the version that it tells: built before, or on the search path. There none of
    /// Go's is looked for, since they tell other versions than their modules have, or none.
    fn others(&self, bin: &Path) -> Vec<(Option<String>, PathBuf)> {
        let files = std::fs::read_dir(bin).into_iter().flatten().flatten();
        let mut names: Vec<String> = files
            .map(|file| file.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        let before = names.iter().rev().filter_map(|name| {
            let version = version_in(name, self.program)?;
            Some((Some(version.to_owned()), bin.join(name)))
        });
        let here = match self.source {
            Source::Cargo(..) => repo::find_program(self.program),
            Source::Go(_) => None,
        };
        before
            .chain(here.map(|program| (version_of(&program), program)))
            .collect()
    }

    /// `found`: programs of this name, each with the version that it tells.
    fn choose(&self, found: Vec<(Option<String>, PathBuf)>, build: impl FnOnce() -> Result<Ready>) -> Result<Ready> {
        let Tool { program, version, .. } = self;
        // A step that shows what its runner says holds standard output.
        let mut other = None;
        for (is, path) in found {
            if is.as_deref() == Some(version) {
                return Ok(Ready::At(path));
            }
            let is = is.unwrap_or_else(|| "of a version that it doesn't tell".to_owned());
            eprintln!("{} is {is}, and this needs {version}", path.display());
            other.get_or_insert((is, path));
        }
        eprintln!("{program} {version} is built once, which takes minutes");
        let built = build();
        let why = match &built {
            Ok(Ready::At(_)) => None,
            Ok(Ready::Missing(why)) => Some(why.clone()),
            Err(error) => Some(format!("{error:#}")),
        };
        match (why, other) {
            (Some(why), Some((is, path))) => {
                eprintln!("it can't be built: {why}");
                eprintln!("{program} {is} STANDS IN for {version}: what it finds may differ");
                Ok(Ready::At(path))
            }
            _ => built.with_context(|| format!("{program} {version} is missing and can't be built")),
        }
    }

    /// The program in a folder of its own, where a build that was cut off goes on.
    fn build(&self, folder: &Path) -> Result<Ready> {
        let Tool { program, version, .. } = self;
        std::fs::create_dir_all(folder).with_context(|| format!("can't make {}", folder.display()))?;
        match self.source {
            Source::Cargo(package, more) => {
                cargo::build(&format!("{package}@{version}"), more, program, folder).map(Ready::At)
            }
            Source::Go(package) => {
                let Some(go) = repo::find_program("go") else {
                    return Ok(Ready::Missing(format!("there is no Go to build {program} with")));
                };
                let module = go::Module::begin(&go, folder)?;
                match module.fetch(package, version) {
                    Ok(()) => module.build(package, program).map(Ready::At),
                    Err(error) => Ok(Ready::Missing(format!("{error:#}"))),
                }
            }
        }
    }
}

/// Whole or not at all: a build may be cut off.
fn put(fresh: &Path, built: &Path) -> Result<()> {
    if let Some(bin) = built.parent() {
        std::fs::create_dir_all(bin).with_context(|| format!("can't make {}", bin.display()))?;
    }
    std::fs::rename(fresh, built).with_context(|| format!("can't move {} to {}", fresh.display(), built.display()))
}

/// `tool-1.2.3`, `tool-v1.2.3`: the version of a program that was built before, none for another one's file.
fn version_in<'a>(file: &'a str, program: &str) -> Option<&'a str> {
    let version = file.strip_prefix(program)?.strip_prefix('-')?;
    let number = version.strip_prefix('v').unwrap_or(version);
    number.starts_with(|c: char| c.is_ascii_digit()).then_some(version)
}

/// What a program says of its version.
fn version_of(program: &Path) -> Option<String> {
    let said = run::output(Command::new(program).arg("--version")).ok()?;
    read_version(&said)
}

/// `cargo-deny 1.2.3`: the first word that begins with a digit.
fn read_version(said: &str) -> Option<String> {
    let mut words = said.split_whitespace();
    words
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOL: Tool = Tool {
        program: "tool",
        version: "1.2.3",
        source: Source::Cargo("tool", &[]),
    };

    fn found(versions: &[Option<&str>]) -> Vec<(Option<String>, PathBuf)> {
        let program = |(index, version): (usize, &Option<&str>)| {
            (version.map(str::to_owned), PathBuf::from(format!("found-{index}")))
        };
        versions.iter().enumerate().map(program).collect()
    }

    fn at(path: &str) -> Ready {
        Ready::At(PathBuf::from(path))
    }

    #[test]
    fn only_the_stated_version_is_used_without_a_word() {
        let unneeded = || bail!("built though it is there");
        let right_second = TOOL.choose(found(&[Some("1.2.4"), Some("1.2.3")]), unneeded).unwrap();
        assert_eq!(right_second, at("found-1"));
        for others in [&[Some("1.2.4")][..], &[None], &[]] {
            assert_eq!(TOOL.choose(found(others), || Ok(at("built"))).unwrap(), at("built"));
        }
    }

    #[test]
    fn another_version_stands_in_where_nothing_can_be_built() {
        let offline = || bail!("no network");
        let stands_in = TOOL.choose(found(&[Some("1.1.0"), None]), offline).unwrap();
        assert_eq!(stands_in, at("found-0"));
        let error = format!("{:#}", TOOL.choose(vec![], offline).unwrap_err());
        assert_eq!(error, "tool 1.2.3 is missing and can't be built: no network");
    }

    #[test]
    fn what_is_missing_is_told_unless_another_version_stands_in() {
        let without_go = || Ok(Ready::Missing("there is no Go".to_owned()));
        let stands_in = TOOL.choose(found(&[Some("1.1.0")]), without_go).unwrap();
        assert_eq!(stands_in, at("found-0"));
        let missing = TOOL.choose(vec![], without_go).unwrap();
        assert_eq!(missing, Ready::Missing("there is no Go".to_owned()));
    }

    #[test]
    fn what_was_built_before_has_its_version_in_its_name() {
        let bin = tempfile::tempdir().unwrap();
        for name in ["tool-1.2.2", "tool-v1.2.4", "tool", "tool-more-1.2.3", "toolbox-1.2.3"] {
            std::fs::write(bin.path().join(name), "").unwrap();
        }
        let go = Tool {
            source: Source::Go("example.org/tool"),
            ..TOOL
        };
        let of = |version: &str, name: &str| (Some(version.to_owned()), bin.path().join(name));
        assert_eq!(
            go.others(bin.path()),
            [of("v1.2.4", "tool-v1.2.4"), of("1.2.2", "tool-1.2.2")]
        );
        assert!(go.others(&bin.path().join("none")).is_empty());
    }

    #[test]
    fn a_fresh_program_takes_its_place() {
        let root = tempfile::tempdir().unwrap();
        let (fresh, built) = (root.path().join("fresh"), root.path().join("bin/tool-1.2.3"));
        std::fs::write(&fresh, "program").unwrap();
        put(&fresh, &built).unwrap();
        assert_eq!(std::fs::read_to_string(&built).unwrap(), "program");
        let error = format!("{:#}", put(&fresh, &built).unwrap_err());
        assert!(error.contains("fresh") && error.contains("tool-1.2.3"), "{error}");
    }

    #[test]
    fn versions_are_read_from_what_programs_say() {
        assert_eq!(read_version("cargo-deny 0.20.2\n").as_deref(), Some("0.20.2"));
        assert_eq!(read_version("Inferno 0.12.8 (abc)").as_deref(), Some("0.12.8"));
        assert_eq!(read_version("usage: tool").as_deref(), None);
    }
}
