//! Whether tests and programs are built from the same dependencies.
//!
//! In: what cargo says of features with and without dependencies of tests. Out: the packages that differ. A feature
//! that only a test asks for changes its package, and all that depends on that is compiled twice: once for the tests,
//! once more for the programs.

use std::collections::BTreeSet;

use anyhow::Result;

use crate::{repo, run};

/// Packages that are built for programs with other features than for tests, each with both.
pub(super) fn built_twice() -> Result<Vec<String>> {
    Ok(differing(&tree("normal,build")?, &tree("normal,build,dev")?))
}

/// A line a package with its features.
fn tree(edges: &str) -> Result<String> {
    let mut tree = repo::cargo();
    tree.args(["tree", "--locked", "--workspace", "--prefix", "none"]);
    run::output(tree.args(["-e", edges, "-f", "{p}\t{f}"]))
}

fn differing(programs: &str, tests: &str) -> Vec<String> {
    // What stands in the tree already is marked.
    let lines = |text| {
        str::lines(text)
            .map(|line| line.trim_end_matches(" (*)"))
            .collect::<BTreeSet<&str>>()
    };
    let tests = lines(tests);
    let features = |text: &str| {
        if text.is_empty() {
            "none".to_owned()
        } else {
            text.replace(',', " ")
        }
    };
    let told = |line: &&str| {
        let (package, of_programs) = line.split_once('\t')?;
        let of_tests = tests.iter().filter_map(|line| line.split_once('\t'));
        let of_tests: Vec<String> = of_tests
            .filter(|(other, _)| *other == package)
            .map(|(_, of_tests)| features(of_tests))
            .collect();
        let of_programs = features(of_programs);
        Some(format!(
            "{package}: features {of_programs} for programs, {} for tests",
            of_tests.join(" or ")
        ))
    };
    lines(programs).difference(&tests).filter_map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_that_only_tests_ask_for_is_found() {
        let programs = "server v1\t\nsmall v2\t\nsmall v2\t (*)\nlarge v3\ta,b\n";
        assert_eq!(
            differing(programs, "server v1\t\nsmall v2\tstd (*)\nlarge v3\ta,b\nhelper v4\t\n"),
            ["small v2: features none for programs, std for tests"]
        );
        // A build script may have a package's other features beside them.
        assert!(differing(programs, "server v1\t\nsmall v2\t\nsmall v2\tstd\nlarge v3\ta,b\n").is_empty());
    }
}
