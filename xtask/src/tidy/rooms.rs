//! Folders as rooms: their doors, how many files stand in them, which rooms import which.
//!
//! In: the repository's files. Out: where a room is not as it should be, and what is let pass for a reason that is
//! given here. The page's rooms have a test of their own, `web/src/rooms.test.ts`.

use std::collections::BTreeMap;

use super::circles::{self, Imports};
use super::file::File;

/// Files beside each other in a folder, those of tests apart: with more of them it asks for rooms.
const MAX_FILES: usize = 14;

/// Folders whose files are counted, with the endings of those. The page's other files have a test of their own.
const COUNTED: [(&str, &[&str]); 8] = [
    ("agent/src/", &[".rs"]),
    ("agent/bpf/", &[".c", ".h"]),
    ("agent/docs/", &[".md"]),
    ("server/src/", &[".rs"]),
    ("server/docs/", &[".md"]),
    ("web/src/style/", &[".css"]),
    ("web/docs/", &[".md"]),
    ("xtask/src/", &[".rs", ".c", ".py"]),
];

/// Something that a rule lets pass.
pub(super) struct Exception {
    /// A folder, or the crate and the room.
    what: &'static str,
    why: &'static str,
}

/// Folders that may hold more files.
pub(super) const CROWDED: &[Exception] = &[
    Exception {
        what: "agent/bpf",
        why: "three programs and what is included in them, a header a subject; whoever includes one defines before what \
              it wants, and folders would say nothing of that order",
    },
    Exception {
        what: "agent/docs/decisions",
        why: "a page a decision, by its number, and `README.md` there is the list of them",
    },
    Exception {
        what: "server/docs/decisions",
        why: "a page a decision, by its number, and `README.md` there is the list of them",
    },
    Exception {
        what: "web/src/style/later",
        why: "a sheet a view, and `index.css` there is the list of them, whose order decides",
    },
    Exception {
        what: "xtask/src",
        why: "a command is one file or folder, and `cargo xtask help` is the list of them",
    },
    Exception {
        what: "xtask/src/bench",
        why: "a measurement is one file or folder, and `cargo xtask bench help` is the list of them",
    },
    Exception {
        what: "xtask/src/e2e",
        why: "a test of both programs together is one file, beside which lies what it brings in C or Python",
    },
];

/// Rooms of a crate (`crate: room`) whose modules may import each other in a circle.
pub(super) const CIRCLES: &[Exception] = &[Exception {
    what: "xtask: bench",
    why: "a measurement is begun by the room's face and asks it for what they share, the server that is measured on and \
          the middle of several times; the parts of a measurement take its arguments",
}];

/// A crate of the repository, by its name and its folder.
struct Crate {
    name: &'static str,
    folder: &'static str,
    /// A room imports from those behind it in this list, never from those before it. Where rooms of a room are listed,
    /// its own name stands for its face alone. A crate without a list is looked at for circles only.
    order: &'static [&'static str],
}

const CRATES: [Crate; 3] = [
    Crate {
        name: "agent",
        folder: "agent/src/",
        order: &[
            "config",
            "agent",
            "ship",
            "symbolize",
            "kernel",
            "runtime",
            "process",
            "unwind",
            "metadata",
            "elf",
            "frames",
            "cpu_budget",
            "sys",
            "random",
            "hash",
        ],
    },
    Crate {
        name: "server",
        folder: "server/src/",
        order: &[
            "command",
            "settings",
            "config",
            "reload",
            "api",
            "render",
            "query",
            "query::views",
            "query::sql",
            "query::difference",
            "query::tree",
            "query::count",
            "query::plan",
            "query::ask",
            "query::limits",
            "ingest",
            "store",
            "store::open",
            "store::commit",
            "store::maintenance",
            "store::keep",
            "store::shared",
            "store::state",
            "store::view",
            "store::log",
            "store::notebook",
            "store::members",
            "store::format",
            "store::buffer",
            "store::table",
            "store::root",
            "run_queue",
            "profile_type",
            "column",
            "label",
            "clock",
            "memory",
            "durations",
            "hash",
            "lock",
            "panics",
            "sizes",
        ],
    },
    Crate {
        name: "xtask",
        folder: "xtask/src/",
        order: &[],
    },
];

impl Crate {
    fn imports(&self, files: &[File]) -> Imports {
        let sources = files
            .iter()
            .filter(|file| file.path.ends_with(".rs") && !file.is_for_tests());
        let sources = sources.filter_map(|file| Some((file.path.strip_prefix(self.folder)?, file.text.as_str())));
        circles::imports(sources)
    }
}

/// Rooms whose first lines do not say what they are, and those of agent and server that do not say what comes in and
/// what goes out.
pub(super) fn doors(files: &[File]) -> Vec<String> {
    let mut broken = vec![];
    let door = |file: &&File| file.ends_with_any(&["src/lib.rs", "/mod.rs"]) && file.path.contains("src/");
    for file in files.iter().filter(door) {
        let first: Vec<&str> = file.text.lines().take_while(|line| line.starts_with("//!")).collect();
        if first.is_empty() {
            broken.push(format!("{} doesn't begin with a `//!` comment", file.path));
        } else if file.below_any(&["agent/src/", "server/src/"]) && file.path.ends_with("/mod.rs") {
            let says = |word: &str| first.iter().any(|line| line.contains(word));
            let silent = ["In:", "Out:"].into_iter().filter(|word| !says(word));
            broken.extend(silent.map(|word| format!("{} doesn't say \"{word}\" in its first lines", file.path)));
        }
    }
    broken
}

/// Folders with more files beside each other than a person takes in at once, and exceptions that are none any more.
pub(super) fn crowded(files: &[File], listed: &[Exception]) -> Vec<String> {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.is_for_tests()) {
        let is_counted = |(folder, ends): &(&str, &[&str])| file.path.starts_with(folder) && file.ends_with_any(ends);
        if COUNTED.iter().any(is_counted)
            && let Some((folder, _)) = file.path.rsplit_once('/')
        {
            *folders.entry(folder).or_default() += 1;
        }
    }
    folders.retain(|_, files| *files > MAX_FILES);
    let needless = listed.iter().filter(|listed| !folders.contains_key(listed.what));
    let needless: Vec<String> = needless
        .map(|listed| format!("{} is listed as crowded and is not", listed.what))
        .collect();
    let crowded = folders
        .iter()
        .filter(|(folder, _)| listed.iter().all(|listed| listed.what != **folder))
        .map(|(folder, files)| format!("{folder} has {files} files beside each other, above {MAX_FILES}"));
    crowded.chain(needless).collect()
}

/// Circles of modules, and exceptions that are none any more.
pub(super) fn in_circles(files: &[File], listed: &[Exception]) -> Vec<String> {
    let mut broken = vec![];
    let mut used = vec![];
    for of in &CRATES {
        for circle in circles::circles(&of.imports(files)) {
            let lets_pass = |listed: &&Exception| {
                let room = listed
                    .what
                    .strip_prefix(of.name)
                    .and_then(|room| room.strip_prefix(": "));
                room.is_some_and(|room| circle.iter().all(|module| is_in(module, room)))
            };
            match listed.iter().find(lets_pass) {
                Some(listed) => used.push(listed.what),
                None => broken.push(format!("{}: {}", of.name, circle.join(", "))),
            }
        }
    }
    let needless = listed.iter().filter(|listed| !used.contains(&listed.what));
    broken.extend(needless.map(|listed| format!("{} is listed for a circle and has none", listed.what)));
    broken
}

/// Imports from a room before the importing one, rooms that the order lacks, and places in it that no module has.
pub(super) fn out_of_order(files: &[File]) -> Vec<String> {
    let ordered = CRATES.iter().filter(|of| !of.order.is_empty());
    ordered
        .flat_map(|of| {
            let wrong = against(of.order, &of.imports(files)).into_iter();
            wrong.map(|wrong| format!("{}: {wrong}", of.name))
        })
        .collect()
}

fn against(order: &[&str], imports: &Imports) -> Vec<String> {
    let mut broken = vec![];
    for (module, imported) in imports {
        let Some(place) = place_of(order, module) else {
            broken.push(format!("{module} is in no room of the order"));
            continue;
        };
        let before = imported
            .iter()
            .filter(|other| place_of(order, other).is_some_and(|other| other < place));
        broken.extend(before.map(|other| format!("{module} imports {other}, whose room is before its own")));
    }
    let is_empty = |room: &&&str| !imports.keys().any(|module| is_in(module, room));
    broken.extend(
        order
            .iter()
            .filter(is_empty)
            .map(|room| format!("there is no room {room}")),
    );
    broken
}

/// Where a module's room stands in an order.
fn place_of(order: &[&str], module: &str) -> Option<usize> {
    let rooms = order.iter().enumerate().filter(|(_, room)| is_in(module, room));
    let (place, room) = rooms.max_by_key(|(_, room)| room.len())?;
    let has_rooms = order.iter().any(|other| other != room && is_in(other, room));
    (module == *room || !has_rooms).then_some(place)
}

/// Whether a module is this room, or stands in it.
fn is_in(module: &str, room: &str) -> bool {
    module
        .strip_prefix(room)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// What is let pass, as lines to print.
pub(super) fn let_pass() -> Vec<String> {
    let crowded = CROWDED
        .iter()
        .map(|listed| format!("{} has more than {MAX_FILES} files: {}", listed.what, listed.why));
    let circles = CIRCLES
        .iter()
        .map(|listed| format!("{} has a circle: {}", listed.what, listed.why));
    crowded.chain(circles).collect()
}

#[cfg(test)]
mod tests {
    use super::super::file::only;
    use super::*;

    /// A repository of these files.
    fn files(texts: &[(&str, &str)]) -> Vec<File> {
        texts.iter().flat_map(|(path, text)| only(path, text)).collect()
    }

    #[test]
    fn a_door_says_what_comes_in_and_what_goes_out() {
        let told = "//! A room.\n//!\n//! In: rows. Out: files.\n\nmod a;\n";
        assert!(doors(&only("server/src/a/mod.rs", told)).is_empty());
        assert!(doors(&only("server/src/a/b.rs", "fn f() {}")).is_empty());
        assert!(doors(&only("xtask/src/a/mod.rs", "//! A room.\n")).is_empty());
        assert_eq!(
            doors(&only("xtask/src/a/mod.rs", "mod a;\n//! In: a. Out: b.")),
            ["xtask/src/a/mod.rs doesn't begin with a `//!` comment"]
        );
        assert_eq!(
            doors(&only(
                "agent/src/a/mod.rs",
                "//! A room.\n//! In: rows.\n\n//! Out: late.\n"
            )),
            ["agent/src/a/mod.rs doesn't say \"Out:\" in its first lines"]
        );
    }

    #[test]
    fn finds_a_circle_that_a_shipped_file_closes() {
        let both = ["agent/src/process/made.rs", "agent/src/fuzz/made.rs"].map(|made| {
            let files = files(&[
                ("agent/src/process/table.rs", "use super::super::process::made::Made;"),
                (made, "use crate::process::table::Table;"),
            ]);
            in_circles(&files, &[])
        });
        assert_eq!(both, [vec!["agent: process::made, process::table".to_owned()], vec![]]);
    }

    #[test]
    fn circles_are_let_pass_within_a_listed_room_alone_and_while_there_is_one() {
        let listed = |what| [Exception { what, why: "a test" }];
        let circle = files(&[
            ("xtask/src/a/b.rs", "use crate::a::c::C;"),
            ("xtask/src/a/c.rs", "use crate::a::b::B;"),
        ]);
        assert!(in_circles(&circle, &listed("xtask: a")).is_empty());
        assert_eq!(
            in_circles(&circle, &listed("server: a")),
            ["xtask: a::b, a::c", "server: a is listed for a circle and has none"]
        );
        assert_eq!(
            in_circles(&circle, &listed("xtask: a::b")),
            ["xtask: a::b, a::c", "xtask: a::b is listed for a circle and has none"]
        );
    }

    #[test]
    fn a_folder_is_crowded_by_what_is_shipped() {
        let of = |folder: &str, ending: &str, count: usize| -> Vec<File> {
            let paths = (0..count).map(|number| format!("{folder}/f{number}{ending}"));
            paths.flat_map(|path| only(&path, "")).collect()
        };
        assert!(crowded(&of("agent/src/a", ".rs", 14), &[]).is_empty());
        assert!(crowded(&of("agent/src/a", "_tests.rs", 15), &[]).is_empty());
        assert!(crowded(&of("web/src/a", ".rs", 15), &[]).is_empty());
        for (folder, ending) in [
            ("server/src", ".rs"),
            ("xtask/src/a", ".rs"),
            ("xtask/src/a", ".py"),
            ("agent/bpf", ".h"),
            ("web/src/style/a", ".css"),
            ("web/docs/decisions", ".md"),
        ] {
            assert_eq!(
                crowded(&of(folder, ending, 15), &[]),
                [format!("{folder} has 15 files beside each other, above 14")]
            );
        }
        let listed = [Exception {
            what: "agent/bpf",
            why: "a test",
        }];
        assert!(crowded(&of("agent/bpf", ".c", 15), &listed).is_empty());
        assert_eq!(
            crowded(&of("agent/bpf", ".c", 14), &listed),
            ["agent/bpf is listed as crowded and is not"]
        );
    }

    #[test]
    fn a_room_imports_from_those_behind_it() {
        let order = ["api", "store", "store::log", "store::root", "hash"];
        let wrong = |texts: &[(&str, &str)]| {
            let mut all = vec![
                ("api/mod.rs", "use crate::store::Store; use crate::hash::h;"),
                ("store/mod.rs", "mod log; mod root; pub use log::Store;"),
                ("store/log/mod.rs", "use super::root::Root; pub struct Store(Root);"),
                ("store/root.rs", "pub struct Root;"),
                ("hash.rs", "pub fn h() {}"),
            ];
            all.retain(|(path, _)| texts.iter().all(|(other, _)| other != path));
            all.extend(texts);
            against(&order, &circles::imports(all.into_iter()))
        };
        assert!(wrong(&[]).is_empty());
        assert_eq!(
            wrong(&[("store/root.rs", "use crate::api::a; pub struct Root;")]),
            ["store::root imports api, whose room is before its own"]
        );
        // A room of the store that nobody has put in order is not at the place of the store's face.
        assert_eq!(
            wrong(&[("store/view/mod.rs", "use crate::store::log::Store;")]),
            ["store::view is in no room of the order"]
        );
        let without_hash: Vec<(&str, &str)> = vec![("api/mod.rs", "")];
        let imports = circles::imports(without_hash.into_iter());
        assert_eq!(against(&["api", "hash"], &imports), ["there is no room hash"]);
    }
}
