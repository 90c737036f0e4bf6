//! What differs from a base, by git, and the plan that follows from it.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use super::parts::{Piece, Plan, module_alone};
use crate::{repo, run};

/// The files that differ from where this branch left the base, and what is to be run for them.
pub(super) struct Changed {
    /// The base as it was asked for or found, and the commit.
    since: String,
    paths: Vec<String>,
    pub(super) plan: Plan,
}

/// More files than these are not shown one by one.
const SHOWN_FILES: usize = 20;

impl Changed {
    /// Since the merge base with `base`, which if empty is the branch's upstream, or else `main`. What is not
    /// committed counts too.
    pub(super) fn since(base: &str) -> Result<Changed> {
        let base = if base.is_empty() {
            default_base()?
        } else {
            base.to_owned()
        };
        let commit = git(&["merge-base", "HEAD", &base]).with_context(|| {
            format!("this branch and `{base}` have no commit in common that is here; name another by --changed=REF")
        })?;
        let commit = commit.trim();
        // Without a look for renames: a file that went asks for as much as one that came.
        let differ = git(&["diff", "--name-only", "--no-renames", "-z", commit])?;
        let new = git(&["ls-files", "-z", "--others", "--exclude-standard"])?;
        let paths = |text: &str| {
            text.split('\0')
                .filter(|path| !path.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let mut all: Vec<String> = paths(&differ);
        all.extend::<Vec<String>>(paths(&new));
        all.sort();
        all.dedup();
        let mut plan = Plan::of(all.iter().map(String::as_str), alone);
        plan.leave_out_files(|path| !repo::root().join(path).is_file());
        let short = commit.get(..10).unwrap_or(commit);
        Ok(Changed {
            since: format!("{short}, which this branch has in common with {base}"),
            paths: all,
            plan,
        })
    }

    /// Says what was found, what runs and what does not. `runs`: the chosen steps; `left_out`: all others.
    pub(super) fn tell(&self, runs: &[&str], left_out: &[&str]) {
        println!("changed since {}: {} files", self.since, self.paths.len());
        if self.paths.len() <= SHOWN_FILES {
            self.paths.iter().for_each(|path| println!("    {path}"));
        } else {
            for (part, files) in &self.plan.found {
                println!("    {files:>4} of {part}");
            }
        }
        for path in &self.plan.unknown {
            println!("everything runs, since no part of the table in xtask/src/test/parts.rs fits {path}");
        }
        if self.plan.everything && self.plan.unknown.is_empty() {
            println!("everything runs: all that is built depends on one of these files");
        }
        println!("runs:");
        for step in runs {
            let pieces = self.plan.pieces(step).unwrap_or_default();
            if pieces == [Piece::Whole] {
                println!("    {step}");
            } else {
                let pieces: Vec<String> = pieces.iter().map(Piece::to_string).collect();
                println!("    {step}: {}", pieces.join(", "));
            }
        }
        if runs.is_empty() {
            println!("    nothing");
        }
        if !left_out.is_empty() {
            println!("left out, `cargo xtask test` runs them: {}", left_out.join(", "));
        }
    }
}

/// The branch's upstream, or else `main`.
fn default_base() -> Result<String> {
    let known = |name: &str| git(&["rev-parse", "--verify", "--quiet", "--abbrev-ref", name]);
    let upstream = known("@{upstream}").map(|name| name.trim().to_owned());
    upstream
        .ok()
        .filter(|name| !name.is_empty())
        .or_else(|| known("main").is_ok().then(|| "main".to_owned()))
        .context("this branch has no upstream and there is no branch `main`: name a base by --changed=REF")
}

fn git(arguments: &[&str]) -> Result<String> {
    run::output(Command::new("git").current_dir(repo::root()).args(arguments))
}

/// See [`module_alone`]; reads the test program's files.
fn alone(folder: &str, path: &str) -> Option<String> {
    let listed = git(&["ls-files", "-z", "--cached", "--others", "--exclude-standard", folder]).ok()?;
    let read = |path: &str| {
        let text = fs::read_to_string(repo::root().join(path)).ok()?;
        Some((path.to_owned(), text))
    };
    let sources: Vec<(String, String)> = listed
        .split('\0')
        .filter(|path| path.ends_with(".rs"))
        .filter_map(read)
        .collect();
    module_alone(
        folder,
        path,
        sources.iter().map(|(path, text)| (path.as_str(), text.as_str())),
    )
}
