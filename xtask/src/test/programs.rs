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
