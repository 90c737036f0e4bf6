//! Which files use a word, a call, a disk, another package: what the invariants of rooms are told by.
//!
//! In: the repository's files. Out: the places, as `path:line: what`.

use super::file::{File, is_test_path};

/// Uses of an identifier in Rust code below `within` (everywhere if empty), outside of `allowed`. A word within quotes
/// does not count, nor do these rules.
pub(super) fn words(files: &[File], word: &str, allowed: &[&str], within: &[&str]) -> Vec<String> {
    let mut found = vec![];
    for file in files
        .iter()
        .filter(|file| file.path.ends_with(".rs") && !file.path.starts_with("xtask/src/tidy/"))
    {
        if file.below_any(allowed) || !(within.is_empty() || file.below_any(within)) {
            continue;
        }
        for (number, line) in file.code() {
            let outside_quotes: String = line.split('"').step_by(2).collect();
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            if outside_quotes.split(|c| !is_word(c)).any(|found| found == word) {
                found.push(format!("{}:{number}: {word}", file.path));
            }
        }
    }
    found
}

/// Uses of a text in the code of files below `within`.
pub(super) fn calls(files: &[File], text: &str, within: &[&str]) -> Vec<String> {
    let mut found = vec![];
    for file in files.iter().filter(|file| file.below_any(within)) {
        for (number, line) in file.code() {
            if line.contains(text) && !line.trim_start().starts_with('*') {
                found.push(format!("{}:{number}: {text}", file.path));
            }
        }
    }
    found
}

/// Uses of files and folders in the store, but for those in its room of the data root.
pub(super) fn disks(files: &[File]) -> Vec<String> {
    let (store, root) = ("server/src/store/", "server/src/store/root/");
    if !files.iter().any(|file| file.path.starts_with(root)) {
        return vec![format!("there is no {root}")];
    }
    let calls_of = |word| calls(files, word, &[store]);
    let hits = ["std::fs", "std::os::unix", "tokio::fs", "rustix"]
        .into_iter()
        .flat_map(calls_of);
    let is_allowed = |hit: &String| {
        let path = hit.split(':').next().unwrap_or_default();
        path.starts_with(root) || is_test_path(path)
    };
    hits.filter(|hit| !is_allowed(hit)).collect()
}

/// Every manifest below one folder, tests' and tools' too. What needs both stands in `xtask/`.
pub(super) fn apart(files: &[File]) -> Vec<String> {
    let mut broken = vec![];
    for (folder, other) in [("agent/", "stakeout-server"), ("server/", "stakeout-agent")] {
        let manifests = files
            .iter()
            .filter(|file| file.path.starts_with(folder) && file.path.ends_with("Cargo.toml"));
        for manifest in manifests {
            // A comment may name it; a dependency may have another key, or a table of its own.
            let mut lines = manifest.text.lines().map(|line| line.split('#').next().unwrap_or(""));
            if lines.any(|line| line.contains(other)) {
                broken.push(format!("{} names {other}", manifest.path));
            }
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::super::file::only;
    use super::*;

    #[test]
    fn finds_a_forbidden_word_in_code_only() {
        let text = "// unsafe here\nlet a = \"unsafe\";\nlet unsafe_code = 1;\nunsafe { x() }\n";
        assert_eq!(
            words(&only("server/src/a.rs", text), "unsafe", &["agent/"], &[]),
            ["server/src/a.rs:4: unsafe"]
        );
        assert!(words(&only("agent/src/a.rs", text), "unsafe", &["agent/"], &[]).is_empty());
        assert!(words(&only("web/src/a.rs", text), "unsafe", &[], &["server/"]).is_empty());
    }

    #[test]
    fn finds_a_manifest_of_either_that_names_the_other() {
        let depends = "[dependencies]\nother = { package = \"stakeout-server\", path = \"../../server\" }\n";
        assert_eq!(
            apart(&only("agent/tool/Cargo.toml", depends)),
            ["agent/tool/Cargo.toml names stakeout-server"]
        );
        assert!(apart(&only("xtask/tool/Cargo.toml", depends)).is_empty());
        assert!(apart(&only("agent/Cargo.toml", "# not stakeout-server\n")).is_empty());
    }

    #[test]
    fn finds_a_disk_in_the_store_outside_of_its_room() {
        let text = "use std::fs::File;\nlet a = rustix::fs::statvfs(b);\n";
        let in_both = |path: &str| [only("server/src/store/root/local.rs", text), only(path, text)].concat();
        assert_eq!(
            disks(&in_both("server/src/store/log/a.rs")),
            [
                "server/src/store/log/a.rs:1: std::fs",
                "server/src/store/log/a.rs:2: rustix"
            ]
        );
        assert!(disks(&in_both("server/src/store/log/a_tests.rs")).is_empty());
        assert!(disks(&in_both("server/src/api/a.rs")).is_empty());
        assert_eq!(
            disks(&only("server/src/store/log/a.rs", "")),
            ["there is no server/src/store/root/"]
        );
    }
}
