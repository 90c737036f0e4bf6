//! How Go builds a tool.
//!
//! In: Go, a version of a package, and a folder that nothing else uses. Out: the program, in that folder. What it is
//! built of is fetched first, so that a network which is not there is told from a build that fails.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::run;

/// A module that needs the tool's: `go install` would refuse modules that replace or exclude others for themselves.
#[derive(Debug)]
pub(super) struct Module<'a> {
    go: &'a Path,
    folder: &'a Path,
}

impl<'a> Module<'a> {
    pub(super) fn begin(go: &'a Path, folder: &'a Path) -> Result<Self> {
        let manifest = folder.join("go.mod");
        std::fs::write(&manifest, "module tools\n").with_context(|| format!("can't write {}", manifest.display()))?;
        Ok(Self { go, folder })
    }

    /// Fetches all that the package is built of. An error says which Go asked: one may be too old for the module.
    pub(super) fn fetch(&self, package: &str, version: &str) -> Result<()> {
        let fetched = run::output(&mut self.command(&["get", &format!("{package}@{version}")]));
        fetched.map(drop).with_context(|| {
            let said = run::output(&mut self.command(&["env", "GOVERSION"])).unwrap_or_default();
            format!("its modules can't be had by {}", said.trim())
        })
    }

    /// Builds what was fetched.
    pub(super) fn build(&self, package: &str, program: &str) -> Result<PathBuf> {
        let built = self.folder.join(program);
        let out = built.to_string_lossy();
        run::run(&mut self.command(&["build", "-trimpath", "-ldflags=-s -w", "-o", &out, package]))?;
        Ok(built)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.go);
        command.current_dir(self.folder).args(arguments);
        // Neither a workspace around this folder nor another toolchain than the one that is here.
        command
            .env("GOWORK", "off")
            .env("GOTOOLCHAIN", "local")
            .env("GOFLAGS", "-mod=mod")
            .env("CGO_ENABLED", "0");
        run::behind_others(&command)
    }
}
