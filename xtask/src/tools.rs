//! Programs that cargo installs, each in one stated version, so that every machine judges by the same.
//!
//! In: what is on the search path and in the cache folder. Out: the program. What is missing is built once, into the
//! target folder.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, Result};

use crate::{repo, run};

/// A program, and how cargo installs it.
#[derive(Debug)]
pub(crate) struct Tool {
    program: &'static str,
    package: &'static str,
    version: &'static str,
    /// More arguments of `cargo install`.
    install: &'static [&'static str],
}

/// Judges licences, sources and advisories by `deny.toml`.
pub(crate) const CARGO_DENY: Tool = Tool {
    program: "cargo-deny",
    package: "cargo-deny",
    version: "0.20.2",
    install: &[],
};

/// Draws folded stacks: the other side of a test. Its standard features would also build what collapses and compares,
/// on several threads.
pub(crate) const INFERNO_FLAMEGRAPH: Tool = Tool {
    program: "inferno-flamegraph",
    package: "inferno",
    version: "0.12.8",
    install: &[
        "--no-default-features",
        "--features",
        "cli",
        "--bin",
        "inferno-flamegraph",
    ],
};

/// How a tool is built, whatever its own manifest says.
const QUICKLY: [(&str, &str); 4] = [
    ("OPT_LEVEL", "0"),
    ("LTO", "off"),
    ("CODEGEN_UNITS", "256"),
    ("DEBUG", "none"),
];

/// One at a time, and all that are built meanwhile before any other is asked for.
static BUILDING: Mutex<()> = Mutex::new(());

fn take_turn() -> MutexGuard<'static, ()> {
    BUILDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins to build what is missing of these, in the time that others leave of the CPUs. Where that fails, whoever asks
/// for one tries again, and tells.
pub(crate) fn build_meanwhile(tools: Vec<&'static Tool>) {
    thread::spawn(move || {
        let _turn = take_turn();
        for tool in tools {
            drop(tool.found_or_built());
        }
    });
}

impl Tool {
    /// The program: from the cache folder or the search path, whichever has this very version, or built now. Where
    /// it cannot be built, as without a network, another version stands in and is told.
    pub(crate) fn ready(&self) -> Result<PathBuf> {
        let _turn = take_turn();
        self.found_or_built()
    }

    fn found_or_built(&self) -> Result<PathBuf> {
        let root = repo::cache_dir("tools")?;
        let built = root.join("bin").join(self.program);
        let found = [
            Some(built.clone()).filter(|built| built.is_file()),
            repo::find_program(self.program),
        ];
        // Not every program tells its version; cargo knows that of each which it has installed.
        let record = std::fs::read_to_string(root.join(".crates.toml")).unwrap_or_default();
        let version = |program: &Path| {
            let recorded = (program == built).then(|| installed_version(&record, self.package, self.program));
            recorded.flatten().or_else(|| version_of(program))
        };
        let found = found.into_iter().flatten().map(|program| (version(&program), program));
        self.choose(found.collect(), || {
            self.build(&root)?;
            Ok(built)
        })
    }

    /// `found`: programs of this name, each with the version that it tells.
    fn choose(
        &self,
        found: Vec<(Option<String>, PathBuf)>,
        build: impl FnOnce() -> Result<PathBuf>,
    ) -> Result<PathBuf> {
        let Tool { program, version, .. } = self;
        // A step that shows what its runner says holds standard output.
        let mut other = None;
        for (is, path) in found {
            if is.as_deref() == Some(version) {
                return Ok(path);
            }
            let is = is.unwrap_or_else(|| "of a version that it doesn't tell".to_owned());
            eprintln!("{} is {is}, and this needs {version}", path.display());
            other.get_or_insert((is, path));
        }
        eprintln!("{program} {version} is built once, which takes minutes");
        match (build(), other) {
            (Err(error), Some((is, path))) => {
                eprintln!("it can't be built: {error:#}");
                eprintln!("{program} {is} STANDS IN for {version}: what it finds may differ");
                Ok(path)
            }
            (built, _) => built.with_context(|| format!("{program} {version} is missing and can't be built")),
        }
    }

    fn build(&self, root: &Path) -> Result<()> {
        let mut cargo = repo::cargo();
        cargo.args(["install", "--quiet", "--locked", "--root"]).arg(root);
        cargo
            .arg(format!("{}@{}", self.package, self.version))
            .args(self.install);
        // Each runs for seconds, and most of its build would be to optimise it.
        for (setting, value) in QUICKLY {
            cargo.env(format!("CARGO_PROFILE_RELEASE_{setting}"), value);
        }
        cargo.env("CARGO_TARGET_DIR", root.join("build"));
        run::run(&mut run::behind_others(&cargo))?;
        // The program is all that is needed; what it was built from is ten times as large.
        std::fs::remove_dir_all(root.join("build")).ok();
        Ok(())
    }
}

/// The version of a program by cargo's record of what it has installed: lines such as
/// `"package 1.2.3 (registry+https://…)" = ["program"]`.
fn installed_version(record: &str, package: &str, program: &str) -> Option<String> {
    record.lines().find_map(|line| {
        let (of, programs) = line.split_once(" = ")?;
        let mut words = of.trim_matches('"').split(' ');
        let is_it = words.next() == Some(package) && programs.contains(&format!("\"{program}\""));
        words.next().filter(|_| is_it).map(str::to_owned)
    })
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
    use anyhow::bail;

    const TOOL: Tool = Tool {
        program: "tool",
        package: "tool",
        version: "1.2.3",
        install: &[],
    };

    fn found(versions: &[Option<&str>]) -> Vec<(Option<String>, PathBuf)> {
        let program = |(index, version): (usize, &Option<&str>)| {
            (version.map(str::to_owned), PathBuf::from(format!("found-{index}")))
        };
        versions.iter().enumerate().map(program).collect()
    }

    #[test]
    fn only_the_stated_version_is_used_without_a_word() {
        let unneeded = || bail!("built though it is there");
        let right_second = TOOL.choose(found(&[Some("1.2.4"), Some("1.2.3")]), unneeded).unwrap();
        assert_eq!(right_second, Path::new("found-1"));
        let built = || Ok(PathBuf::from("built"));
        for others in [&[Some("1.2.4")][..], &[None], &[]] {
            assert_eq!(TOOL.choose(found(others), built).unwrap(), Path::new("built"));
        }
    }

    #[test]
    fn another_version_stands_in_where_nothing_can_be_built() {
        let offline = || bail!("no network");
        let stands_in = TOOL.choose(found(&[Some("1.1.0"), None]), offline).unwrap();
        assert_eq!(stands_in, Path::new("found-0"));
        let error = format!("{:#}", TOOL.choose(vec![], offline).unwrap_err());
        assert_eq!(error, "tool 1.2.3 is missing and can't be built: no network");
    }

    #[test]
    fn versions_are_read_from_what_cargo_has_installed() {
        let record = "[v1]\n\"tool 1.2.3 (registry+https://example.org/index)\" = [\"tool\", \"tool-more\"]\n";
        let version = |package, program| installed_version(record, package, program);
        assert_eq!(version("tool", "tool-more").as_deref(), Some("1.2.3"));
        assert_eq!((version("tool", "more"), version("too", "tool")), (None, None));
    }

    #[test]
    fn versions_are_read_from_what_programs_say() {
        assert_eq!(read_version("cargo-deny 0.20.2\n").as_deref(), Some("0.20.2"));
        assert_eq!(read_version("Inferno 0.12.8 (abc)").as_deref(), Some("0.12.8"));
        assert_eq!(read_version("usage: tool").as_deref(), None);
    }
}
