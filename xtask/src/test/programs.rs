//! Some of the programs that cargo builds from tests, run without it.

use std::process::Command;

use anyhow::{Result, ensure};

use super::parts::Piece;
use super::runner::runner;
use crate::tally::{CARGO, Tally};
use crate::test_programs::test_programs;
use crate::tools::{Ready, S3_SERVER};
use crate::{packages, repo};

/// Test programs that cargo has built, run directly: a choice of packages would be another choice of their
/// dependencies' features, and cargo would compile most of those once more. `chosen`: the arguments for each program
/// that is run, by the folder of its package and its own name; each is asked for right before.
pub(super) fn built(cargo_arguments: &[&str], chosen: impl Fn(&str, &str) -> Option<Vec<String>>) -> Result<Tally> {
    let mut sum = Tally::default();
    let mut programs = test_programs(cargo_arguments)?;
    // Cargo names them as they become ready.
    programs.sort_by(|a, b| (&a.folder, &a.name).cmp(&(&b.folder, &b.name)));
    for program in programs {
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
        if program.folder == "server" {
            tell_s3_server(&mut test)?;
        }
        sum.add(runner(&mut test, CARGO)?);
    }
    ensure!(sum.passed + sum.failed > 0, "no test ran");
    Ok(sum)
}

/// Tells the server's tests where the S3 server is. Where it can't be had here those that need one are skipped, each in
/// words.
pub(super) fn tell_s3_server(test: &mut Command) -> Result<()> {
    match S3_SERVER.ready_or_missing()? {
        Ready::At(program) => {
            test.env("STAKEOUT_S3_SERVER", program);
        }
        Ready::Missing(why) => println!("no S3 server, {why}: the tests that need one are SKIPPED, each says so"),
    }
    Ok(())
}

/// Unit tests of the whole workspace. Cargo's `--bins` would have the programs of agent and server linked once more as
/// tests, of which they have none and say so.
pub(super) const ALL_UNIT_TARGETS: [&str; 5] = ["--lib", "--bin", "xtask", "--bin", "stakeout-load"];
/// Integration tests of the whole workspace.
pub(super) const ALL_INTEGRATION_TARGETS: [&str; 2] = ["--test", "*"];

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
    use crate::run;

    #[test]
    fn all_programs_that_may_have_tests_are_tested() {
        let mut list = repo::cargo();
        list.args(["metadata", "--no-deps", "--offline", "--format-version=1"]);
        let list: serde_json::Value = serde_json::from_str(&run::output(&mut list).unwrap()).unwrap();
        let packages = list["packages"].as_array().unwrap();
        let targets = packages
            .iter()
            .flat_map(|package| package["targets"].as_array().unwrap());
        let programs = targets.filter(|target| target["kind"][0] == "bin" && target["test"] == true);
        let mut programs: Vec<&str> = programs.map(|target| target["name"].as_str().unwrap()).collect();
        programs.sort_unstable();
        let mut tested = ALL_UNIT_TARGETS.to_vec();
        tested.retain(|word| !word.starts_with("--"));
        tested.sort_unstable();
        assert_eq!(programs, tested);
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
