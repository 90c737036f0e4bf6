//! The programs that cargo builds from tests, of the whole workspace, and some of them run without it.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use super::parts::Piece;
use super::runner;
use super::tally::{CARGO, Tally};
use crate::{packages, repo, run};

/// Test programs that cargo has built, run directly: a choice of packages would be another choice of their
/// dependencies' features, and cargo would compile most of those once more. `chosen`: the arguments for each program
/// that is run, by the folder of its package and its own name.
pub(super) fn built(cargo_arguments: &[&str], chosen: impl Fn(&str, &str) -> Option<Vec<String>>) -> Result<Tally> {
    let mut sum = Tally::default();
    for program in test_programs(cargo_arguments)? {
        let Some(arguments) = chosen(&program.folder, &program.name) else {
            continue;
        };
        let mut test = Command::new(&program.executable);
        // As cargo runs it.
        let folder = repo::root().join(&program.folder);
        test.current_dir(&folder)
            .env("CARGO_MANIFEST_DIR", &folder)
            .args(arguments);
        if packages::is_root() && program.is_integration {
            test.env("CI", "true");
        }
        sum.add(runner(&mut test, CARGO)?);
    }
    ensure!(sum.passed + sum.failed > 0, "no test ran");
    Ok(sum)
}

/// A test program as cargo has built it.
pub(super) struct Program {
    /// Of its package, from the repository's root.
    folder: String,
    /// Of the library, the program or the file of integration tests.
    pub(super) name: String,
    is_integration: bool,
    pub(super) executable: PathBuf,
}

/// Builds the test programs of the whole workspace that these arguments choose.
pub(super) fn test_programs(cargo_arguments: &[&str]) -> Result<Vec<Program>> {
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

/// What cargo has to build for the unit tests of the package in a folder. Cargo cannot be asked for one package's
/// library without another choice of features: agent and server come together.
pub(super) fn unit_targets(folder: &str) -> &'static [&'static str] {
    match folder {
        "agent" | "server" => &["--lib"],
        "xtask" => &["--bin", "xtask"],
        "xtask/load" => &["--bin", "stakeout-load"],
        _ => &["--lib", "--bins"],
    }
}

/// The filters for a test program, empty where all of it runs; none where nothing does.
pub(super) fn filters(pieces: &[Piece], folder: &str, name: &str) -> Option<Vec<String>> {
    let of_program = |piece: &Piece| match piece {
        Piece::Program(of, program, module) if (*of, *program) == (folder, name) => Some(module.clone()),
        _ => None,
    };
    let modules: Vec<Option<String>> = pieces.iter().filter_map(of_program).collect();
    let filters = |modules: Vec<String>| modules.into_iter().map(|module| format!("{module}::")).collect();
    (!modules.is_empty()).then(|| {
        modules
            .into_iter()
            .collect::<Option<Vec<String>>>()
            .map_or(vec![], filters)
    })
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

    #[test]
    fn a_test_program_gets_filters_only_where_all_that_was_asked_for_is_a_module() {
        let piece = |module: Option<&str>| Piece::Program("agent", "it", module.map(str::to_owned));
        let of = |pieces: &[Piece]| filters(pieces, "agent", "it").map(|filters| filters.join(" "));
        assert_eq!(
            of(&[piece(Some("walk")), piece(Some("ship"))]).as_deref(),
            Some("walk:: ship::")
        );
        assert_eq!(of(&[piece(Some("walk")), piece(None)]).as_deref(), Some(""));
        assert_eq!(of(&[Piece::Program("server", "it", None)]), None);
    }
}
