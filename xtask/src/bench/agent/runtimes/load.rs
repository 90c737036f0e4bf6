//! The same known mix in each language, all at work at the same time.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};

use anyhow::{Result, ensure};

use crate::bench::crowd::{end, spawn};
use crate::bench::languages::{Language, Runtime};
use crate::{repo, run};

/// Longer than anybody measures.
const SECONDS: &str = "100000";
/// Of the program in C++, which is also its label `process` and its module.
const NATIVE: &str = "mix-cpp";

/// One running program.
pub(super) struct Program {
    pub(super) title: String,
    /// The label `process`.
    pub(super) process: String,
    /// The kind of its own frames; of native ones those of its own file are.
    pub(super) kind: &'static str,
    child: Child,
}

/// All of them; dropping it ends them.
pub(super) struct Load {
    pub(super) programs: Vec<Program>,
}

impl Load {
    /// Starts a program in C++, and one for each of the runtimes.
    pub(super) fn start(runtimes: &[Runtime], dir: &Path) -> Result<Load> {
        let mut load = Load { programs: vec![] };
        let native = dir.join(NATIVE);
        let source = dir.join("mix.cpp");
        fs::write(&source, include_str!("mix.cpp"))?;
        run::output(
            Command::new("c++")
                .args(["-O2", "-fomit-frame-pointer", "-o"])
                .arg(&native)
                .arg(&source),
        )?;
        load.spawn(
            "C++".to_owned(),
            NATIVE.to_owned(),
            "native",
            &mut Command::new(&native),
        )?;
        let sources = repo::root().join("agent/tests/root/languages");
        for runtime in runtimes {
            let mut command = runtime.command();
            let source = match runtime.language {
                Language::Java => {
                    runtime.compile(&[sources.join("Mix.java")], dir)?;
                    command.arg("-cp").arg(dir).arg("Mix");
                    None
                }
                Language::Python => Some("mix.py"),
                Language::Node => Some("mix.js"),
                Language::Ruby => Some("mix.rb"),
                Language::Php => Some("mix.php"),
            };
            if let Some(source) = source.map(|name| sources.join(name)) {
                // A language that the agent's tests have no program of yet.
                if !source.is_file() {
                    continue;
                }
                command.arg(source);
            }
            let (title, kind) = (runtime.title(), runtime.language.kind());
            load.spawn(title, runtime.process(), kind, command.args([SECONDS, "plain"]))?;
        }
        Ok(load)
    }

    fn spawn(&mut self, title: String, process: String, kind: &'static str, command: &mut Command) -> Result<()> {
        let child = spawn(command)?;
        self.programs.push(Program {
            title,
            process,
            kind,
            child,
        });
        Ok(())
    }

    /// An error if one of them has ended.
    pub(super) fn check(&mut self) -> Result<()> {
        for program in &mut self.programs {
            let ended = program.child.try_wait()?;
            ensure!(ended.is_none(), "{} ended during the measurement", program.title);
        }
        Ok(())
    }

    pub(super) fn titles(&self) -> String {
        let titles: Vec<&str> = self.programs.iter().map(|program| &*program.title).collect();
        titles.join(", ")
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.programs.iter_mut().for_each(|program| end(&mut program.child));
    }
}
