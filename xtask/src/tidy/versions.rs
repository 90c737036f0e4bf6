//! The versions of Rust and Node.js that the build needs: each stands in one place, and what else names one agrees.
//!
//! In: the repository's files. Out: where one differs. The places are `rust-version` in the workspace's `Cargo.toml`,
//! which every package inherits and cargo checks, and `engines` in `web/package.json`, which `cargo xtask` checks.
//! There is no toolchain file: rustup would download exactly what it names, also where there is no network.

use super::file::File;
use crate::packages;

/// This file's tests, and the document that names what was measured.
const EXCEPT: [&str; 2] = ["xtask/src/tidy/versions.rs", "xtask/bench/report.md"];

/// Every place that differs from the one that counts.
pub(super) fn differing(files: &[File]) -> Vec<String> {
    let text = |path: &str| {
        files
            .iter()
            .find(|file| file.path == path)
            .map_or("", |file| &*file.text)
    };
    let mut broken = vec![];
    match rust_of(text("Cargo.toml")) {
        Some(rust) => broken.extend(files.iter().flat_map(|file| named(file, "Rust ", rust))),
        None => broken.push("Cargo.toml names no rust-version".to_owned()),
    }
    match packages::node_of(text("web/package.json")) {
        Some(node) => broken.extend(files.iter().flat_map(|file| named(file, "Node.js ", &node))),
        None => broken.push("web/package.json names no least version of Node.js in `engines`".to_owned()),
    }
    let manifests = files.iter().filter(|file| file.path.ends_with("/Cargo.toml"));
    let own = manifests.filter(|file| !file.text.lines().any(|line| line == "rust-version.workspace = true"));
    broken.extend(own.map(|file| format!("{} does not inherit rust-version", file.path)));
    let toolchains = files.iter().filter(|file| file.path.starts_with("rust-toolchain"));
    broken.extend(toolchains.map(|file| format!("{} would have rustup download a toolchain", file.path)));
    broken
}

/// `rust-version = "1.2"`.
fn rust_of(manifest: &str) -> Option<&str> {
    let line = manifest
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = \""))?;
    line.strip_suffix('"')
}

/// Places in a file that name another version than this.
fn named(file: &File, what: &str, version: &str) -> Vec<String> {
    if !file.ends_with_any(&[".md", ".rs", ".sh", ".toml"]) || EXCEPT.contains(&&*file.path) {
        return vec![];
    }
    let mut broken = vec![];
    for (index, line) in file.text.lines().enumerate() {
        for (at, _) in line.match_indices(what) {
            let rest = &line[at + what.len()..];
            let found = rest
                .split(|c: char| !c.is_ascii_digit() && c != '.')
                .next()
                .unwrap_or("");
            let found = found.trim_end_matches('.');
            if !found.is_empty() && found != version {
                broken.push(format!("{}:{}: {what}{found}, not {version}", file.path, index + 1));
            }
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    fn places(more: &[(&str, &str)]) -> Vec<String> {
        let mut files = vec![
            file("Cargo.toml", "[workspace.package]\nrust-version = \"1.95\"\n"),
            file("web/package.json", r#"{"engines": {"node": ">=20.19"}}"#),
            file("agent/Cargo.toml", "[package]\nrust-version.workspace = true\n"),
        ];
        files.extend(more.iter().map(|(path, text)| file(path, text)));
        differing(&files)
    }

    #[test]
    fn documents_and_messages_name_the_versions_of_the_manifests() {
        assert!(places(&[("a.md", "Rust 1.95 or newer, Node.js 20.19.\nRust and Node.js")]).is_empty());
        assert_eq!(
            places(&[
                ("a.md", "Rust 1.94 or newer\nand Node.js 20."),
                ("b.rs", "\"Node.js 20.19 or 22\"")
            ]),
            ["a.md:1: Rust 1.94, not 1.95", "a.md:2: Node.js 20, not 20.19"]
        );
    }

    #[test]
    fn a_package_inherits_its_version_and_nothing_pins_a_toolchain() {
        assert_eq!(
            places(&[
                ("server/Cargo.toml", "[package]\nrust-version = \"1.90\"\n"),
                ("rust-toolchain.toml", "")
            ]),
            [
                "server/Cargo.toml does not inherit rust-version",
                "rust-toolchain.toml would have rustup download a toolchain"
            ]
        );
    }
}
