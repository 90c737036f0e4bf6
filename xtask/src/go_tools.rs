//! Programs that Go builds, each in one stated version, so that every machine judges by the same.
//!
//! In: Go, and the modules that it fetches. Out: the program, kept where those are that cargo installs. Where there is
//! no Go, or its modules are out of reach, it is missing, in words.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail};

use crate::{repo, run};

/// A program, and the module version that it is built of.
#[derive(Debug)]
pub(crate) struct GoTool {
    program: &'static str,
    package: &'static str,
    version: &'static str,
}

/// Checks rules of alerts, and runs their tests. The module's 0.316 is Prometheus 3.16.
pub(crate) const PROMTOOL: GoTool = GoTool {
    program: "promtool",
    package: "github.com/prometheus/prometheus/cmd/promtool",
    version: "v0.316.0",
};

/// An S3 server that is not ours: what the tests of a data root on a bucket run against.
pub(crate) const VERSITYGW: GoTool = GoTool {
    program: "versitygw",
    package: "github.com/versity/versitygw/cmd/versitygw",
    version: "v1.7.0",
};

/// What became of a program.
#[derive(Debug)]
pub(crate) enum Ready {
    At(PathBuf),
    /// Why it can't be had here.
    Missing(String),
}

static BUILDING: Mutex<()> = Mutex::new(());

/// Begins to build what is missing, in the time that others leave of the CPUs. Where that fails, whoever asks for it
/// tries again, and tells.
pub(crate) fn build_meanwhile(tool: &'static GoTool) {
    thread::spawn(move || drop(tool.ready()));
}

impl GoTool {
    /// The program; an error where it can't be had.
    pub(crate) fn path(&self) -> Result<PathBuf> {
        match self.ready()? {
            Ready::At(path) => Ok(path),
            Ready::Missing(why) => bail!("{}: {why}", self.program),
        }
    }

    /// The program, built now where it is not there. An error is one of the build, not of what it is built from.
    pub(crate) fn ready(&self) -> Result<Ready> {
        let _turn = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
        let root = repo::cache_dir("tools")?;
        let built = root.join("bin").join(format!("{}-{}", self.program, self.version));
        if built.is_file() {
            return Ok(Ready::At(built));
        }
        let Some(go) = repo::find_program("go") else {
            return Ok(Ready::Missing(format!("there is no Go to build {} with", self.program)));
        };
        self.build(&go, &root.join(self.program), &built)
    }

    /// In a module of its own: `go install` refuses modules that replace or exclude others for themselves.
    fn build(&self, go: &Path, module: &Path, built: &Path) -> Result<Ready> {
        let Self {
            program,
            package,
            version,
        } = self;
        std::fs::create_dir_all(module).with_context(|| format!("can't make {}", module.display()))?;
        let manifest = module.join("go.mod");
        std::fs::write(&manifest, "module tools\n").with_context(|| format!("can't write {}", manifest.display()))?;
        let go = |arguments: &[&str]| {
            let mut command = Command::new(go);
            command.current_dir(module).args(arguments);
            // Neither a workspace around this folder nor another toolchain than the one that is here.
            command
                .env("GOWORK", "off")
                .env("GOTOOLCHAIN", "local")
                .env("GOFLAGS", "-mod=mod");
            command.env("CGO_ENABLED", "0");
            run::behind_others(&command)
        };
        eprintln!("{program} {version} is built once, which takes minutes");
        if let Err(error) = run::output(&mut go(&["get", &format!("{package}@{version}")])) {
            return Ok(Ready::Missing(format!("its modules can't be had here: {error:#}")));
        }
        if let Some(bin) = built.parent() {
            std::fs::create_dir_all(bin).with_context(|| format!("can't make {}", bin.display()))?;
        }
        let unfinished = module.join(program);
        let out = unfinished.to_string_lossy();
        run::run(&mut go(&["build", "-trimpath", "-ldflags=-s -w", "-o", &out, package]))?;
        // Whole or not at all: a build may be cut off.
        std::fs::rename(&unfinished, built).with_context(|| format!("can't move {program} to {}", built.display()))?;
        std::fs::remove_dir_all(module).ok();
        Ok(Ready::At(built.to_owned()))
    }
}
