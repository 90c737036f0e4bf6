//! The programs that cargo builds from tests, of the whole workspace, and the agent's on the real kernel among them.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::{packages, repo, run};

/// A test program as cargo has built it.
pub(crate) struct Program {
    /// Of its package, from the repository's root.
    pub(crate) folder: String,
    /// Of the library, the program or the file of integration tests.
    pub(crate) name: String,
    pub(crate) is_integration: bool,
    pub(crate) executable: PathBuf,
}

/// Builds the test programs of the whole workspace that these arguments choose.
pub(crate) fn test_programs(cargo_arguments: &[&str]) -> Result<Vec<Program>> {
    let mut build = repo::cargo();
    build
        .args(["test", "--locked", "--workspace", "--no-run"])
        .args(cargo_arguments);
    // Progress and errors are for the terminal.
    build
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit());
    eprintln!("$ {}", run::line(&build));
    Ok(read_programs(
        &run::output(&mut build)?,
        &repo::root().to_string_lossy(),
    ))
}

/// From cargo's messages, each a line of JSON.
fn read_programs(messages: &str, root: &str) -> Vec<Program> {
    let read = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let manifest = message["manifest_path"].as_str()?.strip_prefix(root)?;
        let is_test = message["profile"]["test"] == true;
        let kind = message["target"]["kind"][0].as_str()?;
        is_test.then_some(Program {
            folder: manifest.strip_suffix("/Cargo.toml")?.trim_start_matches('/').to_owned(),
            name: message["target"]["name"].as_str()?.to_owned(),
            is_integration: kind == "test",
            executable: PathBuf::from(message["executable"].as_str()?),
        })
    };
    messages.lines().filter_map(read).collect()
}

/// The agent's root tests as a command that runs them as root, with these variables (`NAME=value`) in their
/// environment.
pub(crate) fn root_tests(environment: &[&str]) -> Result<Command> {
    let program = root_program()?;
    let mut test = packages::as_root("the agent's tests load BPF programs into this kernel")?;
    test.current_dir(repo::root().join("agent"));
    test.args(["env", "CI=true"]).args(environment);
    if let Some(path) = env::var_os("PATH") {
        let mut pair = std::ffi::OsString::from("PATH=");
        pair.push(path);
        test.arg(pair);
    }
    test.arg(program);
    Ok(test)
}

/// Builds the agent's tests on the real kernel, and says where they are.
pub(crate) fn root_program() -> Result<PathBuf> {
    let built = test_programs(&["--test", "root"])?.into_iter();
    let mut root = built.filter(|program| program.name == "root");
    Ok(root.next().context("cargo built no `root` test")?.executable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_read_from_cargos_messages() {
        let message = |folder: &str, kind: &str, name: &str, is_test: bool| {
            serde_json::json!({
                "manifest_path": format!("/clone/{folder}/Cargo.toml"),
                "target": { "kind": [kind], "name": name },
                "profile": { "test": is_test },
                "executable": format!("/target/{name}"),
            })
            .to_string()
        };
        let messages = [
            message("agent", "lib", "stakeout_agent", true),
            message("xtask/load", "bin", "stakeout-load", true),
            // The program that integration tests start is none of them.
            message("server", "bin", "stakeout-server", false),
            message("server", "test", "it", true),
            "{\"reason\":\"build-finished\",\"success\":true}".to_owned(),
        ];
        let programs = read_programs(&messages.join("\n"), "/clone");
        let told: Vec<_> = programs
            .iter()
            .map(|program| (&*program.folder, &*program.name, program.is_integration))
            .collect();
        assert_eq!(
            told,
            [
                ("agent", "stakeout_agent", false),
                ("xtask/load", "stakeout-load", false),
                ("server", "it", true)
            ]
        );
    }
}
