//! What documents name, how long they are, and what a page of a decision has.
//!
//! In: the repository's files. Out: where a document is otherwise.

use std::collections::BTreeMap;

use super::file::File;

/// What `cargo xtask` takes.
const COMMANDS: [&str; 11] = [
    "up", "demo", "test", "tidy", "kernels", "stacks", "faults", "fuzz", "dist", "bench", "help",
];

/// Columns of a line of prose or of a comment; of code the formatters decide.
const MAX_COLUMNS: usize = 120;

/// Lines of a README: what it is, how it is run, where to read on.
const README_LINES: usize = 120;

/// Lines of a decision's page.
const DECISION_LINES: usize = 40;

/// What a decision's page says, in bold words or in headings.
const DECISION_PARTS: [&str; 4] = ["Context", "Choice", "Rejected", "Figures"];

/// Words in backticks that look like a path of the repository must be one; `cargo xtask X` must be a command.
/// `exists`: whether something has this path from the root.
pub(super) fn names(files: &[File], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let tops = ["agent/", "server/", "web/", "xtask/", ".ci/"];
    let mut broken = vec![];
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        for (index, line) in file.text.lines().enumerate() {
            let place = format!("{}:{}", file.path, index + 1);
            for word in line.split('`').skip(1).step_by(2) {
                let path = word.trim_end_matches('/');
                let is_path = tops.iter().any(|top| word.starts_with(top)) && !word.contains([' ', '*', '{', '<', '|']);
                let made = ["web/dist", "web/node_modules"]
                    .iter()
                    .any(|made| path.starts_with(made));
                if is_path && !made && !exists(path) {
                    broken.push(format!("{place}: `{word}` doesn't exist"));
                }
            }
            for (at, found) in line.match_indices("cargo xtask ") {
                let rest = line.get(at + found.len()..).unwrap_or("");
                let command: String = rest.chars().take_while(char::is_ascii_lowercase).collect();
                if !command.is_empty() && !COMMANDS.contains(&command.as_str()) {
                    broken.push(format!("{place}: there is no `cargo xtask {command}`"));
                }
            }
        }
    }
    broken
}

/// A row of a table and a link are as long as they are.
pub(super) fn long_lines(files: &[File]) -> Vec<String> {
    let mut broken = vec![];
    for file in files {
        let is_prose = file.path.ends_with(".md");
        if !is_prose && !file.ends_with_any(&[".rs", ".c", ".h", ".ts", ".tsx", ".css"]) {
            continue;
        }
        for (index, line) in file.text.lines().enumerate() {
            let text = line.trim_start();
            let is_comment = ["//", "* ", "/*"].iter().any(|begin| text.starts_with(begin));
            let is_free = text.starts_with('|') || text.contains("https://");
            if (is_prose || is_comment) && !is_free && line.chars().count() > MAX_COLUMNS {
                broken.push(format!("{}:{}: {} columns", file.path, index + 1, line.chars().count()));
            }
        }
    }
    broken
}

/// READMEs that have become documents.
pub(super) fn long_readmes(files: &[File]) -> Vec<String> {
    let readmes = files.iter().filter(|file| name_of(&file.path) == "README.md");
    readmes.filter_map(|file| longer_than(file, README_LINES)).collect()
}

/// Pages of decisions that are too long, lack a part, share a number, or are missing from the list of their folder.
pub(super) fn decisions(files: &[File]) -> Vec<String> {
    let mut broken = vec![];
    let mut by_number: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    for page in files {
        let Some((folder, name)) = page.path.rsplit_once('/') else {
            continue;
        };
        if !folder.ends_with("docs/decisions") || name == "README.md" || !name.ends_with(".md") {
            continue;
        }
        broken.extend(longer_than(page, DECISION_LINES));
        for part in DECISION_PARTS {
            if !page.text.lines().any(|line| begins_part(line, part)) {
                broken.push(format!("{}: there is no part \"{part}\"", page.path));
            }
        }
        let number = name.split('-').next().unwrap_or_default();
        if number.len() != 4 || !number.bytes().all(|digit| digit.is_ascii_digit()) {
            broken.push(format!("{} does not begin with a number of four digits", page.path));
        } else if let Some(other) = by_number.insert((folder, number), name) {
            broken.push(format!("{folder}: {other} and {name} have one number"));
        }
        let list = format!("{folder}/README.md");
        let link = format!("]({name})");
        if !files.iter().any(|file| file.path == list && file.text.contains(&link)) {
            broken.push(format!("{list} does not list {name}"));
        }
    }
    broken
}

/// `**Context.** …` or `## Context`.
fn begins_part(line: &str, part: &str) -> bool {
    let bold = line.strip_prefix("**").and_then(|rest| rest.strip_prefix(part));
    bold.is_some_and(|rest| rest.starts_with(".**")) || line.strip_prefix("## ").is_some_and(|rest| rest.trim() == part)
}

fn longer_than(file: &File, most: usize) -> Option<String> {
    let lines = file.text.lines().count();
    (lines > most).then(|| format!("{} has {lines} lines, above {most}", file.path))
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::super::file::only;
    use super::*;

    #[test]
    fn finds_documents_that_name_what_is_not_there() {
        let text = "`xtask/src/main.rs`, `xtask/src/none.rs`, `agent/src/*`\n`cargo xtask up` and cargo xtask fly\n";
        assert_eq!(
            names(&only("a.md", text), |path| path == "xtask/src/main.rs"),
            [
                "a.md:1: `xtask/src/none.rs` doesn't exist",
                "a.md:2: there is no `cargo xtask fly`"
            ]
        );
    }

    #[test]
    fn documents_may_name_the_commands_that_there_are() {
        let command = crate::Cli::command();
        let mut taken: Vec<&str> = command.get_subcommands().map(|command| command.get_name()).collect();
        // clap adds it when it reads the arguments.
        taken.push("help");
        taken.sort_unstable();
        let mut known = COMMANDS;
        known.sort_unstable();
        assert_eq!(taken, known);
    }

    #[test]
    fn lines_of_prose_and_comments_end_where_they_should() {
        let (long, at_most) = ("x".repeat(MAX_COLUMNS + 1), "x".repeat(MAX_COLUMNS));
        assert_eq!(
            long_lines(&only("a.md", &format!("{at_most}\n{long}\n"))),
            ["a.md:2: 121 columns"]
        );
        assert_eq!(
            long_lines(&only("a.rs", &format!("let {long};\n// {long}\n"))),
            ["a.rs:2: 124 columns"]
        );
        assert!(long_lines(&only("a.md", &format!("| {long} |\nhttps://{long}\n"))).is_empty());
    }

    #[test]
    fn a_readme_is_short() {
        assert!(long_readmes(&only("a/README.md", &"x\n".repeat(120))).is_empty());
        assert!(long_readmes(&only("a/guide.md", &"x\n".repeat(121))).is_empty());
        assert_eq!(
            long_readmes(&only("README.md", &"x\n".repeat(121))),
            ["README.md has 121 lines, above 120"]
        );
    }

    /// What is wrong with a page of a folder that lists one, `0001-one.md`.
    fn wrong_with(name: &str, text: &str) -> Vec<String> {
        let mut files = only("a/docs/decisions/README.md", "- [0001](0001-one.md) One\n");
        files.extend(only(&format!("a/docs/decisions/{name}"), text));
        decisions(&files)
    }

    #[test]
    fn a_decision_has_its_parts_in_bold_or_as_headings() {
        let bold = "# 0001 One\n\n**Context.** a\n\n**Choice.** b\n\n**Rejected.** c\n\n**Figures.** d\n";
        assert!(wrong_with("0001-one.md", bold).is_empty());
        let headings = "# 0001. One\n\n## Context\n\n## Choice\n\n## Rejected\n\n## Figures\n";
        assert!(wrong_with("0001-one.md", headings).is_empty());
        let lacks = "a/docs/decisions/0001-one.md: there is no part \"Rejected\"";
        assert_eq!(
            wrong_with("0001-one.md", &bold.replace("**Rejected.**", "Rejected:")),
            [lacks]
        );
        assert_eq!(
            wrong_with("0001-one.md", &headings.replace("## Rejected", "## Rejected too")),
            [lacks]
        );
    }

    #[test]
    fn a_decision_is_short_and_listed_and_has_a_number_of_its_own() {
        let parts = "## Context\n## Choice\n## Rejected\n## Figures\n";
        assert!(wrong_with("0001-one.md", &format!("{parts}{}", "x\n".repeat(36))).is_empty());
        assert_eq!(
            wrong_with("0001-one.md", &format!("{parts}{}", "x\n".repeat(37))),
            ["a/docs/decisions/0001-one.md has 41 lines, above 40"]
        );
        assert_eq!(
            wrong_with("0002-two.md", parts),
            ["a/docs/decisions/README.md does not list 0002-two.md"]
        );
        let unnumbered = wrong_with("two.md", parts);
        assert_eq!(
            unnumbered.first().map(String::as_str),
            Some("a/docs/decisions/two.md does not begin with a number of four digits")
        );
        let mut twice = only(
            "a/docs/decisions/README.md",
            "(0001-one.md) [x](0001-one.md) [y](0001-two.md)",
        );
        twice.extend(
            ["one", "two"]
                .map(|name| only(&format!("a/docs/decisions/0001-{name}.md"), parts))
                .concat(),
        );
        assert_eq!(
            decisions(&twice),
            ["a/docs/decisions: 0001-one.md and 0001-two.md have one number"]
        );
    }
}
