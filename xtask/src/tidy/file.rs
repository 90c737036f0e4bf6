//! The repository's text files, and what of one is code.
//!
//! In: what git tracks or would track. Out: paths and texts. Never changes anything.

use std::fs;
use std::process::Command;

use anyhow::Result;

use crate::{repo, run};

/// One text file of the repository.
#[derive(Clone, Debug)]
pub(super) struct File {
    /// From the root, with `/`.
    pub(super) path: String,
    pub(super) text: String,
}

impl File {
    /// Rust's unit tests stand at the end of a file.
    pub(super) fn without_tests(&self) -> File {
        File {
            path: self.path.clone(),
            text: self
                .text
                .split("\n#[cfg(test)]\nmod ")
                .next()
                .unwrap_or_default()
                .to_owned(),
        }
    }

    pub(super) fn ends_with_any(&self, endings: &[&str]) -> bool {
        endings.iter().any(|ending| self.path.ends_with(ending))
    }

    pub(super) fn below_any(&self, folders: &[&str]) -> bool {
        folders.iter().any(|folder| self.path.starts_with(folder))
    }

    /// Lines of code, numbered from 1, without comments that fill a line and without what stands behind `//`.
    pub(super) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().map(|(index, line)| (index + 1, line));
        lines.map(|(number, line)| (number, line.split("//").next().unwrap_or("")))
    }

    /// Whether it is compiled for tests or fuzzing alone.
    pub(super) fn is_for_tests(&self) -> bool {
        is_test_path(&self.path)
    }
}

/// Whether the Rust file with this path is compiled for tests or fuzzing alone. Of xtask `fuzz` and `faults` are
/// commands.
pub(super) fn is_test_path(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_fuzzed = ["fuzz.rs", "faults.rs"].contains(&name) || path.contains("/fuzz/");
    name == "tests.rs" || name.ends_with("_tests.rs") || (is_fuzzed && !path.starts_with("xtask/src/"))
}

/// All of them.
pub(super) fn all() -> Result<Vec<File>> {
    let names = run::output(Command::new("git").current_dir(repo::root()).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    let mut files = vec![];
    for name in names.split('\0').filter(|name| !name.is_empty()) {
        // Pictures are not text, and a file may be deleted but not yet staged.
        if let Ok(text) = fs::read_to_string(repo::root().join(name)) {
            files.push(File {
                path: name.to_owned(),
                text,
            });
        }
    }
    Ok(files)
}

/// A repository of one file.
#[cfg(test)]
pub(super) fn only(path: &str, text: &str) -> Vec<File> {
    vec![File {
        path: path.to_owned(),
        text: text.to_owned(),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_compiled_for_tests_or_fuzzing_is_left_out() {
        let left_out = ["agent/src/fuzz/made.rs", "agent/src/fuzz/mod.rs", "server/src/fuzz.rs"];
        assert!(left_out.into_iter().all(is_test_path));
        assert!(is_test_path("server/src/store/log/commit_tests.rs"));
        assert!(!is_test_path("agent/src/process/made.rs"));
        assert!(!is_test_path("xtask/src/faults.rs") && !is_test_path("xtask/src/fuzz/seeds.rs"));
    }
}
