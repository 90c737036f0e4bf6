//! Which checks a file is looked at by: a table from paths to steps, and within a step to what of it is run.
//!
//! In: paths from the repository's root. Out: a plan, which says of each step whether it runs and what of it. Reads
//! nothing. What both programs or the page go through together (`end-to-end`, `browser`, `install`, `fuzz`) runs for
//! changes of those tests themselves alone: it takes minutes, and the plan says that it is left out.

use std::collections::{BTreeMap, BTreeSet};

/// What a file asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// All steps, whole.
    Everything,
    /// A step, whole.
    Step(&'static str),
    /// Unit tests of the package in this folder.
    Unit(&'static str),
    /// A test program of the package in this folder.
    Tests(&'static str, &'static str),
    /// The same, and of it the module that the file belongs to, where no other module uses that one.
    Module(&'static str, &'static str),
    /// The page's unit tests that import the file.
    Related,
    /// The browser tests of this file.
    Spec,
}
use Need::{Everything, Module, Related, Spec, Step, Tests, Unit};

/// Files that ask for the same: the beginning of their path, its possible ends (none: any), and what they ask for.
struct Part {
    begins: &'static str,
    ends: &'static [&'static str],
    needs: &'static [&'static [Need]],
}

const fn part(begins: &'static str, ends: &'static [&'static str], needs: &'static [&'static [Need]]) -> Part {
    Part { begins, ends, needs }
}

const RUST: &[Need] = &[Step("format"), Step("lints")];
const AGENT: &[Need] = &[Unit("agent"), Tests("agent", "it"), Tests("agent", "root")];
const SERVER: &[Need] = &[Unit("server"), Tests("server", "it")];
const XTASK: &[Need] = &[Unit("xtask")];
const PAGE: &[Need] = &[Step("page-check"), Step("page-build")];

/// The first that fits counts. `tidy` reads every file and always runs.
const PARTS: &[Part] = &[
    // Tests hold their numbers and words against the code's, and run their examples.
    part("server/docs/", &[], &[SERVER]),
    // A test of the page holds its limits against the page's words.
    part("agent/docs/reference.md", &[], &[&[Step("page-unit")]]),
    // And its table of rooms against their order.
    part("web/README.md", &[], &[&[Step("page-unit")]]),
    // Another one holds the report against its records.
    part("xtask/bench/", &[], &[XTASK]),
    part("", &[".md"], &[]),
    part("LICENSE", &[], &[]),
    part(".gitignore", &[], &[]),
    part(".editorconfig", &[], &[]),
    part(".rustfmt.toml", &[], &[&[Step("format")]]),
    part("deny.toml", &[], &[&[Step("licences")]]),
    part(".ci/", &[], &[&[Step("shell")]]),
    // What is built, and from what.
    part("", &["Cargo.toml", "Cargo.lock"], &[&[Everything]]),
    part(".cargo/", &[], &[&[Everything]]),
    // The agent.
    part("agent/src/", &[".rs"], &[RUST, AGENT]),
    part("agent/src/", &[".txt"], &[AGENT]),
    part("agent/build.rs", &[], &[RUST, AGENT]),
    part("agent/bpf/", &[".c", ".h"], &[&[Step("lints")], AGENT]),
    part("agent/tests/it/", &[".rs"], &[RUST, &[Module("agent", "it")]]),
    part("agent/tests/it/", &[], &[&[Module("agent", "it")]]),
    part("agent/tests/root/", &[".rs"], &[RUST, &[Module("agent", "root")]]),
    part("agent/tests/root/", &[], &[&[Module("agent", "root")]]),
    // The server hands the script out.
    part(
        "agent/packaging/",
        &[".sh"],
        &[&[
            Step("shell"),
            Tests("agent", "it"),
            Tests("server", "it"),
            Step("install"),
        ]],
    ),
    part("agent/packaging/", &[], &[&[Tests("agent", "it"), Step("install")]]),
    // The server.
    part("server/src/fuzz.rs", &[], &[RUST, SERVER, &[Step("fuzz")]]),
    // A test of `bench web` holds the page against what the server shows in its place.
    part("server/src/api/assets.rs", &[], &[RUST, SERVER, XTASK]),
    // Tests of the page hold its words and links against these.
    part(
        "server/src/api/openapi/format.rs",
        &[],
        &[RUST, SERVER, &[Step("page-unit")]],
    ),
    part(
        "server/src/ingest/rows/labels.rs",
        &[],
        &[RUST, SERVER, &[Step("page-unit")]],
    ),
    part("server/src/", &[".rs"], &[RUST, SERVER]),
    part("server/build.rs", &[], &[RUST, SERVER]),
    part("server/tests/data/", &[], &[SERVER]),
    // Unit tests of the root start the same S3 server.
    part("server/tests/it/bucket/", &[".rs"], &[RUST, SERVER]),
    part("server/tests/it/", &[".rs"], &[RUST, &[Module("server", "it")]]),
    part(
        "server/packaging/",
        &[".yml"],
        &[XTASK, &[Step("alerts"), Tests("server", "it")]],
    ),
    part("server/packaging/", &[".json"], &[&[Tests("server", "it")]]),
    part("server/packaging/", &[], &[&[Step("install")]]),
    // The page.
    part("web/src/", &[".test.ts"], &[&[Step("page-check"), Related]]),
    part("web/src/", &[".ts", ".tsx"], &[PAGE, &[Related]]),
    // A test reads all of them.
    part("web/src/", &[".css"], &[PAGE, &[Step("page-unit")]]),
    part("web/public/", &[], &[PAGE]),
    part("web/scripts/", &[], &[PAGE]),
    part("web/index.html", &[], &[PAGE, XTASK]),
    part("web/e2e/", &[".spec.ts"], &[&[Step("page-check"), Spec]]),
    part("web/e2e/", &[".ts", ".tsx"], &[&[Step("page-check"), Step("browser")]]),
    part(
        "web/playwright.config.ts",
        &[],
        &[&[Step("page-check"), Step("browser")]],
    ),
    part("web/bench/", &[], &[&[Step("page-check")]]),
    part("web/biome.json", &[], &[&[Step("page-check")]]),
    part("web/tsconfig.json", &[], &[&[Step("page-check")]]),
    part("web/screenshots/", &[], &[]),
    part(
        "web/",
        &["package.json", "package-lock.json", ".npmrc", "vite.config.ts"],
        &[PAGE, &[Step("page-unit"), Step("browser")]],
    ),
    // The tools.
    part("xtask/src/e2e/", &[".rs"], &[RUST, XTASK, &[Step("end-to-end")]]),
    part("xtask/src/e2e/", &[], &[&[Step("end-to-end")]]),
    part("xtask/src/check_install/", &[], &[RUST, XTASK, &[Step("install")]]),
    part("xtask/src/fuzz/", &[".rs"], &[RUST, XTASK, &[Step("fuzz")]]),
    part("xtask/src/", &[".rs"], &[RUST, XTASK]),
    part("xtask/src/bench/", &[], &[]),
    part("xtask/fuzz/src/", &[".rs"], &[RUST, &[Step("fuzz")]]),
    part(
        "xtask/load/src/",
        &[".rs"],
        &[RUST, &[Unit("xtask/load"), Step("end-to-end")]],
    ),
    part("xtask/examples/", &[".rs"], &[RUST, &[Step("end-to-end")]]),
    // The demo alone runs them.
    part("xtask/examples/", &[".java", ".py", ".c"], &[]),
];

impl Part {
    fn fits(&self, path: &str) -> bool {
        path.starts_with(self.begins) && (self.ends.is_empty() || self.ends.iter().any(|end| path.ends_with(end)))
    }

    /// As the plan shows it.
    fn name(&self) -> String {
        let ends = self.ends.join(", *");
        match (self.begins, self.ends.is_empty()) {
            (begins, true) => begins.to_owned(),
            ("", false) => format!("*{ends}"),
            (begins, false) => format!("{begins}: *{ends}"),
        }
    }
}

/// What of a step is run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Piece {
    Whole,
    /// Unit tests of the package in this folder.
    Package(&'static str),
    /// A test program of the package in this folder, and of it one module.
    Program(&'static str, &'static str, Option<String>),
    /// Tests of this file, or that import it.
    File(String),
}

impl Piece {
    pub(super) fn package(&self) -> Option<&'static str> {
        match self {
            Piece::Package(folder) => Some(folder),
            _ => None,
        }
    }

    pub(super) fn file(&self) -> Option<&str> {
        match self {
            Piece::File(path) => Some(path),
            _ => None,
        }
    }

    /// The name of a test program.
    pub(super) fn program(&self) -> Option<&'static str> {
        match self {
            Piece::Program(_, name, _) => Some(name),
            _ => None,
        }
    }
}

impl std::fmt::Display for Piece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Piece::Whole => write!(f, "all"),
            Piece::Package(folder) => write!(f, "{folder}"),
            Piece::Program(folder, name, None) => write!(f, "{folder} {name}"),
            Piece::Program(folder, name, Some(module)) => write!(f, "{folder} {name} {module}::"),
            Piece::File(path) => write!(f, "{path}"),
        }
    }
}

/// Which steps run, by their names, and what of each.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// All steps, whole.
    pub(super) everything: bool,
    steps: BTreeMap<&'static str, BTreeSet<Piece>>,
    /// Files by the part of the table that they are in, as text.
    pub(super) found: BTreeMap<String, usize>,
    /// Files that the table does not know; they ask for everything.
    pub(super) unknown: Vec<String>,
}

impl Plan {
    /// Of these files. `alone`: the module of a test program that a file in it belongs to, where no other uses it.
    pub(super) fn of<'p>(
        paths: impl IntoIterator<Item = &'p str>,
        alone: impl Fn(&str, &str) -> Option<String>,
    ) -> Plan {
        let mut plan = Plan::default();
        for path in paths {
            plan.add("tidy", Piece::Whole);
            let Some(part) = PARTS.iter().find(|part| part.fits(path)) else {
                plan.unknown.push(path.to_owned());
                plan.everything = true;
                continue;
            };
            *plan.found.entry(part.name()).or_default() += 1;
            for need in part.needs.iter().copied().flatten() {
                plan.ask(*need, path, &alone);
            }
        }
        plan
    }

    fn ask(&mut self, need: Need, path: &str, alone: impl Fn(&str, &str) -> Option<String>) {
        match need {
            Everything => self.everything = true,
            Step(step) => self.add(step, Piece::Whole),
            Unit(folder) => self.add("unit", Piece::Package(folder)),
            Tests(folder, program) => self.add_program(folder, program, None),
            Module(folder, program) => {
                let module = alone(&format!("{folder}/tests/{program}/"), path);
                self.add_program(folder, program, module);
            }
            Related => self.add("page-unit", Piece::File(path.to_owned())),
            Spec => self.add("browser", Piece::File(path.to_owned())),
        }
    }

    /// The agent's tests on the real kernel are a step of their own, too, where the other one is not run by root.
    fn add_program(&mut self, folder: &'static str, program: &'static str, module: Option<String>) {
        if program == "root" {
            self.add("root", Piece::Program(folder, program, module.clone()));
        }
        self.add("integration", Piece::Program(folder, program, module));
    }

    /// A whole takes in its parts.
    fn add(&mut self, step: &'static str, piece: Piece) {
        let pieces = self.steps.entry(step).or_default();
        let taken_in = |whole: &Piece, part: &Piece| match (whole, part) {
            (Piece::Whole, _) => true,
            (Piece::Program(folder, name, None), Piece::Program(other, other_name, _)) => {
                (folder, name) == (other, other_name)
            }
            _ => false,
        };
        if !pieces.iter().any(|there| taken_in(there, &piece)) {
            pieces.retain(|there| !taken_in(&piece, there));
            pieces.insert(piece);
        }
    }

    /// Of files that are gone there is nothing to run; who imported them has changed too.
    pub(super) fn leave_out_files(&mut self, is_gone: impl Fn(&str) -> bool) {
        self.steps.retain(|_, pieces| {
            pieces.retain(|piece| !piece.file().is_some_and(&is_gone));
            !pieces.is_empty()
        });
    }

    /// What of a step is run; none where it is left out.
    pub(super) fn pieces(&self, step: &str) -> Option<Vec<Piece>> {
        if self.everything {
            return Some(vec![Piece::Whole]);
        }
        self.steps.get(step).map(|pieces| pieces.iter().cloned().collect())
    }
}

/// The module of a test program in `folder` that a file belongs to, where it has tests and no other module names it.
/// `sources`: path and text of the program's files.
pub(super) fn module_alone<'s>(
    folder: &str,
    path: &str,
    sources: impl IntoIterator<Item = (&'s str, &'s str)>,
) -> Option<String> {
    let rest = path.strip_prefix(folder)?;
    let module = rest.split(['/', '.']).next()?;
    let is_own = |path: &str| {
        path.strip_prefix(folder)
            .and_then(|rest| rest.strip_prefix(module))
            .is_some_and(|rest| rest.starts_with('/') || rest == ".rs")
    };
    let names_it = |text: &str| {
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        let named = |from: &str| text.match_indices(from).any(|(at, _)| ends(&text[at + from.len()..]));
        // Several modules may be named in one import.
        let listed = ["super::{", "crate::{"].iter().any(|list| text.contains(list));
        named(&format!("super::{module}")) || named(&format!("crate::{module}")) || listed && named(module)
    };
    let (mut has_tests, mut declares_it) = (false, false);
    for (source, text) in sources {
        if is_own(source) {
            has_tests |= text.contains("#[test]") || text.contains("::test]") || text.contains("::test(");
        } else if source.strip_prefix(folder) == Some("main.rs") {
            declares_it = text.lines().any(|line| line.trim() == format!("mod {module};"));
        } else if names_it(text) {
            return None;
        }
    }
    (is_own(path) && has_tests && declares_it).then(|| module.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{repo, run};
    use std::process::Command;

    fn plan(paths: &[&str]) -> Plan {
        Plan::of(paths.iter().copied(), |_, _| Some("alone".to_owned()))
    }

    /// Steps with what of them is run, as text.
    fn asked(paths: &[&str]) -> Vec<String> {
        let steps = plan(paths).steps;
        let text = |(step, pieces): (&str, BTreeSet<Piece>)| {
            let pieces: Vec<String> = pieces.iter().map(Piece::to_string).collect();
            format!("{step}: {}", pieces.join(", "))
        };
        steps.into_iter().map(text).collect()
    }

    #[test]
    fn each_part_asks_for_its_own_tests() {
        assert_eq!(
            asked(&["agent/src/unwind/mod.rs"]),
            [
                "format: all",
                "integration: agent it, agent root",
                "lints: all",
                "root: agent root",
                "tidy: all",
                "unit: agent"
            ]
        );
        assert_eq!(
            asked(&["server/src/query/mod.rs", "xtask/src/run.rs"]),
            [
                "format: all",
                "integration: server it",
                "lints: all",
                "tidy: all",
                "unit: server, xtask"
            ]
        );
        assert_eq!(
            asked(&["web/src/logic/tree/merge.ts"]),
            [
                "page-build: all",
                "page-check: all",
                "page-unit: web/src/logic/tree/merge.ts",
                "tidy: all"
            ]
        );
        assert_eq!(
            asked(&["web/e2e/chart.spec.ts"]),
            ["browser: web/e2e/chart.spec.ts", "page-check: all", "tidy: all"]
        );
        assert_eq!(asked(&["README.md", "web/docs/guide.md"]), ["tidy: all"]);
        assert_eq!(
            asked(&["server/docs/guide.md"]),
            ["integration: server it", "tidy: all", "unit: server"]
        );
        assert_eq!(asked(&[]), Vec::<String>::new());
    }

    #[test]
    fn what_everything_depends_on_and_what_nobody_knows_asks_for_everything() {
        for path in ["Cargo.lock", "agent/Cargo.toml", ".cargo/config.toml", "unknown/file"] {
            let plan = plan(&[path]);
            assert!(plan.everything, "{path}");
            assert_eq!(plan.pieces("fuzz"), Some(vec![Piece::Whole]), "{path}");
        }
        assert_eq!(plan(&["unknown/file", "README.md"]).unknown, ["unknown/file"]);
        assert!(!plan(&["README.md"]).everything);
        assert_eq!(plan(&["README.md"]).pieces("lints"), None);
    }

    #[test]
    fn a_whole_takes_in_its_parts_in_either_order() {
        let part = "agent/tests/root/deep.rs";
        let whole = "agent/src/lib.rs";
        let alone = Piece::Program("agent", "root", Some("alone".to_owned()));
        let all = Piece::Program("agent", "root", None);
        assert_eq!(plan(&[part]).pieces("root"), Some(vec![alone]));
        assert_eq!(plan(&[part, whole]).pieces("root"), Some(vec![all.clone()]));
        assert_eq!(plan(&[whole, part]).pieces("root"), Some(vec![all]));
        let page = plan(&["web/src/main.tsx", "web/package.json"]);
        assert_eq!(page.pieces("page-unit"), Some(vec![Piece::Whole]));
    }

    #[test]
    fn of_files_that_are_gone_nothing_is_run() {
        let mut plan = plan(&[
            "web/e2e/chart.spec.ts",
            "web/src/logic/a.test.ts",
            "web/src/logic/b.test.ts",
        ]);
        plan.leave_out_files(|path| path != "web/src/logic/b.test.ts");
        assert_eq!(plan.pieces("browser"), None);
        let left = Piece::File("web/src/logic/b.test.ts".to_owned());
        assert_eq!(plan.pieces("page-unit"), Some(vec![left]));
        assert_eq!(plan.pieces("page-check"), Some(vec![Piece::Whole]));
    }

    #[test]
    fn a_test_module_is_alone_unless_another_one_uses_it() {
        let main = ("a/tests/it/main.rs", "mod one;\nmod two;\nmod help;\n");
        let one = ("a/tests/it/one/mod.rs", "use crate::help;\n#[test]\nfn f() {}\n");
        let two = (
            "a/tests/it/two.rs",
            "use crate::help;\n#[tokio::test]\nasync fn g() {}\n",
        );
        let help = ("a/tests/it/help.rs", "pub(crate) fn help() {}\n#[test]\nfn h() {}\n");
        let of = |path: &str, two: (&'static str, &'static str)| {
            module_alone("a/tests/it/", path, [main, one, two, help]).unwrap_or_default()
        };
        assert_eq!(of("a/tests/it/one/part.rs", two), "one");
        assert_eq!(of("a/tests/it/one/program.c", two), "one");
        assert_eq!(of("a/tests/it/two.rs", two), "two");
        assert_eq!(of("a/tests/it/help.rs", two), "");
        assert_eq!(of("a/tests/it/main.rs", two), "");
        // A program that stands beside the modules may be anybody's.
        assert_eq!(of("a/tests/it/two.c", two), "");
        let uses = ("a/tests/it/two.rs", "use super::{help, one};\n#[test]\nfn g() {}\n");
        assert_eq!(of("a/tests/it/one/part.rs", uses), "");
        let longer = ("a/tests/it/two.rs", "use super::one_more;\n#[test]\nfn g() {}\n");
        assert_eq!(of("a/tests/it/one/part.rs", longer), "one");
    }

    #[test]
    fn every_file_of_the_repository_is_in_the_table() {
        let mut list = Command::new("git");
        list.current_dir(repo::root())
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let listed = run::output(&mut list).unwrap();
        let plan = plan(&listed.split('\0').filter(|path| !path.is_empty()).collect::<Vec<_>>());
        assert!(plan.unknown.is_empty(), "no part of PARTS fits {:?}", plan.unknown);
        let unused = PARTS.iter().filter(|part| !plan.found.contains_key(&part.name()));
        let unused: Vec<String> = unused.map(Part::name).collect();
        assert!(unused.is_empty(), "no file is in these parts: {unused:?}");
    }

    #[test]
    fn the_table_names_steps_that_exist() {
        let known: Vec<&str> = super::super::STEPS.iter().map(|step| step.name).collect();
        for need in PARTS.iter().flat_map(|part| part.needs.iter().copied().flatten()) {
            if let Step(step) = need {
                assert!(known.contains(step), "there is no step {step}");
            }
        }
    }
}
