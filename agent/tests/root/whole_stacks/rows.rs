//! What is run, and what is known of it by construction.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use super::build::{Language, Workshop, source};

/// What a stack of the program has to look like.
pub(super) enum Truth {
    /// Functions from the outermost to the innermost. Of a stack's functions those that are in any of these chains
    /// must be the beginning of one chain; [`ANY`] stands where others may lie between two of them.
    Chains(Vec<Vec<String>>),
    /// More frames than a stack may have.
    Recursion { function: &'static str },
}

/// Other functions may lie between its neighbours.
pub(super) const ANY: &str = "*";

/// A program of the table.
pub(super) struct Row {
    pub(super) title: &'static str,
    /// Program that must be there, and its package of Debian.
    pub(super) needs: &'static [(&'static str, &'static str)],
    pub(super) build: fn(&Workshop) -> Truth,
    /// The command that runs the program.
    pub(super) command: fn(&Workshop) -> Command,
    /// What is done to it once it runs.
    pub(super) meanwhile: fn(&Workshop),
    /// Base name of the executable where that is not the compiled program.
    pub(super) executable: Option<fn() -> String>,
    /// What must be in a share of its samples, and in which.
    pub(super) shows: Option<(Feature, f64)>,
    /// Which stacks don't count.
    pub(super) excludes: Option<Exclusion>,
    /// Of the user frames in its own executable at least so many have names.
    pub(super) named: f64,
    /// What the reader should know.
    pub(super) note: &'static str,
}

/// Why a stack doesn't count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exclusion {
    /// Cut in a function of musl, which Debian builds without any description of its frames.
    InsideMusl,
    /// Not right while libgcc, in the last instructions of `_Unwind_Resume`, puts the saved registers and the return
    /// address of another frame into its own.
    InstallsContext,
    /// Taken before the program's table was there, where C and Go have a stack each: the copy that waits holds one of
    /// them.
    OtherStack,
}

impl Exclusion {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::InsideMusl => "cut in musl, which describes no frames",
            Self::OtherStack => "from before its table was there, on the second of two stacks",
            Self::InstallsContext => "while libgcc rewrites its own frame to land in a handler",
        }
    }
}

/// What makes the row worth its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feature {
    Complete,
    KernelAndUser,
    Vdso,
    NamedJit,
    Truncated,
}

impl Feature {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Complete => "the whole chain",
            Self::KernelAndUser => "kernel and user frames",
            Self::Vdso => "the vDSO",
            Self::NamedJit => "named JIT frames",
            Self::Truncated => "told as cut",
        }
    }
}

const CC: &[(&str, &str)] = &[("cc", "gcc")];
const CPP: &[(&str, &str)] = &[("c++", "g++")];
const GO: &[(&str, &str)] = &[("go", "golang-go")];
const MUSL: &[(&str, &str)] = &[("musl-gcc", "musl-tools")];

/// What each program uses before it ends.
const CPU_SECONDS: &str = "6";

const PLAIN: Row = Row {
    title: "",
    needs: CC,
    build: |_| Truth::Chains(Vec::new()),
    command: |shop| with_arguments(shop.program(), &[CPU_SECONDS]),
    meanwhile: |_| (),
    executable: None,
    excludes: None,
    shows: Some((Feature::Complete, 0.7)),
    named: 0.995,
    note: "",
};

fn with_arguments(program: impl AsRef<OsStr>, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

fn levels(main: &str, prefix: &str, depth: usize, leaf: &str) -> Vec<String> {
    let mut chain = vec![main.to_owned()];
    chain.extend((1..=depth).map(|level| format!("{prefix}level_{level}")));
    chain.push(format!("{prefix}{leaf}"));
    chain
}

fn c_truth(depth: usize) -> Truth {
    Truth::Chains(vec![levels("main", "", depth, "burn_at_the_leaf")])
}

fn chains(chains: &[&[&str]]) -> Truth {
    let owned = |chain: &&[&str]| chain.iter().map(|name| (*name).to_owned()).collect();
    Truth::Chains(chains.iter().map(owned).collect())
}

fn go_truth() -> Truth {
    Truth::Chains(vec![
        levels("main.main", "main.", 30, "burnAtTheLeaf"),
        levels("main.inGoroutine", "main.", 30, "burnAtTheLeaf"),
    ])
}

fn build_go(shop: &Workshop, flags: &[&str]) {
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(shop.program()).args(flags);
    shop.run(
        go.arg(shop.levels(Language::Go, 30))
            .env("GO111MODULE", "off")
            .env("CGO_ENABLED", "0"),
    );
}

fn signal_truth() -> Truth {
    let (one, two) = ("interrupted_level_1", "interrupted_level_2");
    let (handler, burns) = ("on_alarm_signal", "burn_in_the_handler");
    chains(&[
        &["main", one, two, "burn_at_the_leaf", ANY, handler, burns],
        &["main", one, two, ANY, handler, burns],
        &["main", one, two, "burn_at_the_leaf"],
    ])
}

fn build_plt(shop: &Workshop, binding: &str) -> Truth {
    let library = shop.path("libwith_tiny_functions.so");
    shop.compile("cc", &source("plt_library.c"), &library, &["-shared", "-fPIC"]);
    let (library, path) = (library.to_str().unwrap(), shop.directory.to_str().unwrap());
    let rpath = format!("-Wl,-rpath,{path}");
    shop.compile_program("cc", "plt.c", &["-fplt", binding, library, &rpath]);
    chains(&[
        &["main", "call_through_the_plt", "tiny_shared_function"],
        &[
            "main",
            "call_through_the_plt",
            "other_shared_function",
            "innermost_shared_function",
        ],
    ])
}

/// Waits until the program runs, and a moment longer.
fn wait_until_it_runs(shop: &Workshop) {
    let deadline = Instant::now() + Duration::from_secs(20);
    let runs = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let mut executables = processes.filter_map(|entry| std::fs::read_link(entry.path().join("exe")).ok());
        executables.any(|executable| executable == shop.program())
    };
    while !runs() {
        assert!(Instant::now() < deadline, "{} does not run", shop.name);
        std::thread::yield_now();
    }
}

fn python() -> String {
    let asked = Command::new("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .unwrap();
    let path = std::fs::canonicalize(String::from_utf8_lossy(&asked.stdout).trim()).unwrap();
    path.to_string_lossy().into_owned()
}

fn base_name(path: &str) -> String {
    Path::new(path).file_name().unwrap().to_string_lossy().into_owned()
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = compiled();
    rows.extend(situations());
    rows.extend(runtimes());
    rows
}

/// Languages and C libraries.
fn compiled() -> Vec<Row> {
    vec![
        Row {
            title: "C++ -O2, 30 deep",
            needs: CPP,
            build: |shop| {
                shop.compile_levels("c++", Language::Cpp, 30, &[]);
                c_truth(30)
            },
            ..PLAIN
        },
        Row {
            title: "C++ -O2, 300 deep",
            needs: CPP,
            build: |shop| {
                shop.compile_levels("c++", Language::Cpp, 300, &[]);
                c_truth(300)
            },
            ..PLAIN
        },
        Row {
            title: "Rust -O",
            needs: &[("rustc", "rustc")],
            build: |shop| {
                let source = shop.levels(Language::Rust, 30);
                let mut rustc = Command::new("rustc");
                rustc
                    .args(["-O", "--crate-name", "levels_of_rust", "-o"])
                    .arg(shop.program());
                shop.run(rustc.arg(source));
                Truth::Chains(vec![levels(
                    "levels_of_rust::main",
                    "levels_of_rust::",
                    30,
                    "burn_at_the_leaf",
                )])
            },
            ..PLAIN
        },
        Row {
            title: "Go",
            needs: GO,
            build: |shop| {
                build_go(shop, &[]);
                go_truth()
            },
            ..PLAIN
        },
        Row {
            title: "Go, stripped",
            needs: GO,
            build: |shop| {
                build_go(shop, &["-ldflags=-s -w"]);
                go_truth()
            },
            ..PLAIN
        },
        Row {
            title: "Go and C, by cgo",
            excludes: Some(Exclusion::OtherStack),
            needs: &[("go", "golang-go"), ("cc", "gcc")],
            build: |shop| {
                let mut go = Command::new("go");
                go.args(["build", "-o"]).arg(shop.program()).arg(source("below_go.go"));
                shop.run(go.env("GO111MODULE", "off").env("CGO_ENABLED", "1"));
                chains(&[
                    &["main.main", "main.callC", ANY, "burn_below_go"],
                    &[
                        "main.main",
                        "main.callC",
                        ANY,
                        "call_back_into_go",
                        ANY,
                        "main.goCallback",
                        "main.burnAboveC",
                    ],
                ])
            },
            ..PLAIN
        },
        Row {
            title: "glibc, static",
            build: |shop| {
                shop.compile_levels("cc", Language::C, 30, &["-static"]);
                c_truth(30)
            },
            ..PLAIN
        },
        Row {
            title: "glibc, static PIE",
            build: |shop| {
                shop.compile_levels("cc", Language::C, 30, &["-static-pie", "-fPIE"]);
                c_truth(30)
            },
            ..PLAIN
        },
        Row {
            title: "musl, static",
            needs: MUSL,
            excludes: Some(Exclusion::InsideMusl),
            build: |shop| {
                shop.compile_levels("musl-gcc", Language::C, 30, &["-static"]);
                c_truth(30)
            },
            ..PLAIN
        },
        Row {
            title: "musl, dynamic",
            needs: MUSL,
            excludes: Some(Exclusion::InsideMusl),
            build: |shop| {
                shop.compile_levels("musl-gcc", Language::C, 30, &[]);
                c_truth(30)
            },
            ..PLAIN
        },
    ]
}

/// What programs do.
fn situations() -> Vec<Row> {
    vec![
        Row {
            title: "library loaded late",
            build: |shop| {
                let library = shop.path("libloaded_late.so");
                shop.compile("cc", &source("late_library.c"), &library, &["-shared", "-fPIC"]);
                shop.compile_program("cc", "loads_late.c", &["-ldl"]);
                let late = ["later_level_1", "later_level_2", "burn_in_the_library"];
                chains(&[
                    &["main", "burn_before_loading", "burn_at_the_leaf"],
                    &["main", "burn_in_what_came_late", late[0], late[1], late[2]],
                ])
            },
            command: |shop| {
                let library = shop.path("libloaded_late.so");
                with_arguments(shop.program(), &["8", library.to_str().unwrap()])
            },
            ..PLAIN
        },
        Row {
            title: "signal handler",
            build: |shop| {
                shop.compile_program("cc", "signals.c", &[]);
                signal_truth()
            },
            ..PLAIN
        },
        Row {
            title: "handler on sigaltstack",
            build: |shop| {
                shop.compile_program("cc", "signals.c", &[]);
                signal_truth()
            },
            command: |shop| with_arguments(shop.program(), &[CPU_SECONDS, "alternative"]),
            ..PLAIN
        },
        Row {
            title: "musl, signal handler",
            needs: MUSL,
            excludes: Some(Exclusion::InsideMusl),
            build: |shop| {
                shop.compile_program("musl-gcc", "signals.c", &["-static"]);
                signal_truth()
            },
            ..PLAIN
        },
        Row {
            title: "vDSO clock",
            build: |shop| {
                shop.compile_program("cc", "clock.c", &[]);
                chains(&[&["main", "ask_the_clock_often"]])
            },
            shows: Some((Feature::Vdso, 0.3)),
            ..PLAIN
        },
        Row {
            title: "PLT, bound lazily",
            build: |shop| build_plt(shop, "-Wl,-z,lazy"),
            shows: Some((Feature::Complete, 0.02)),
            ..PLAIN
        },
        Row {
            title: "PLT, bound at start",
            build: |shop| build_plt(shop, "-Wl,-z,now"),
            shows: Some((Feature::Complete, 0.02)),
            ..PLAIN
        },
        Row {
            title: "leaf at a page's edge",
            build: |shop| {
                // It would touch each page of the stack.
                let flags = ["-fno-stack-clash-protection"];
                shop.compile_program("cc", "page_edge.c", &flags);
                chains(&[&["main", "at_the_edge_of_a_page", "burn_at_the_leaf"]])
            },
            ..PLAIN
        },
        Row {
            title: "system calls",
            build: |shop| {
                shop.compile_program("cc", "system_calls.c", &[]);
                chains(&[&["main", "read_one_byte_often"]])
            },
            shows: Some((Feature::KernelAndUser, 0.3)),
            ..PLAIN
        },
        Row {
            title: "threads, exceptions",
            excludes: Some(Exclusion::InstallsContext),
            needs: CPP,
            build: |shop| {
                shop.compile_program("c++", "exceptions.cpp", &["-pthread"]);
                let names = [
                    "throwing_level_1",
                    "throwing_level_2",
                    "throwing_level_3",
                    "throwing_level_4",
                ];
                chains(&[&["thread_that_catches", names[0], names[1], names[2], names[3]]])
            },
            shows: Some((Feature::Complete, 0.5)),
            ..PLAIN
        },
        Row {
            title: "own namespaces, chroot",
            build: |shop| {
                shop.compile_levels("cc", Language::C, 30, &["-static"]);
                c_truth(30)
            },
            command: |shop| {
                let (root, program) = (shop.directory.to_str().unwrap(), format!("/{}", shop.name));
                let arguments = [
                    "--mount",
                    "--pid",
                    "--fork",
                    "--kill-child",
                    "chroot",
                    root,
                    &program,
                    CPU_SECONDS,
                ];
                with_arguments("unshare", &arguments)
            },
            ..PLAIN
        },
        Row {
            title: "runc and busybox",
            needs: &[("cc", "gcc"), ("runc", "runc"), ("busybox", "busybox-static")],
            build: |shop| {
                shop.compile_levels("cc", Language::C, 30, &[]);
                shop.bundle(CPU_SECONDS);
                c_truth(30)
            },
            command: Workshop::run_bundle,
            note: "the program, with libraries of the container; not busybox beside it, which Debian ships without symbols",
            ..PLAIN
        },
        Row {
            title: "deleted binary",
            build: |shop| {
                shop.compile_levels("cc", Language::C, 30, &[]);
                c_truth(30)
            },
            meanwhile: |shop| {
                wait_until_it_runs(shop);
                std::fs::remove_file(shop.program()).unwrap();
            },
            ..PLAIN
        },
        Row {
            title: "replaced binary",
            build: |shop| {
                shop.compile_levels("cc", Language::C, 30, &[]);
                shop.compile("cc", &source("recursion.c"), &shop.path("replacement"), &[]);
                c_truth(30)
            },
            meanwhile: |shop| {
                wait_until_it_runs(shop);
                std::fs::rename(shop.path("replacement"), shop.program()).unwrap();
            },
            ..PLAIN
        },
        Row {
            title: "recursion, 2,000 deep",
            build: |shop| {
                shop.compile_program("cc", "recursion.c", &[]);
                Truth::Recursion {
                    function: "call_itself",
                }
            },
            shows: Some((Feature::Truncated, 0.9)),
            note: "of more than 1,024 frames those at the leaf and at the root are kept, and the stack says that it was cut",
            ..PLAIN
        },
    ]
}

/// Programs of others.
fn runtimes() -> Vec<Row> {
    vec![
        Row {
            title: "node --perf-basic-prof",
            needs: &[("node", "nodejs")],
            build: |_| chains(&[&["node::Start", ANY, "node::NodeMainInstance::Run"]]),
            command: |_| {
                let script = source("loop.js");
                with_arguments("node", &["--perf-basic-prof", script.to_str().unwrap(), CPU_SECONDS])
            },
            executable: Some(|| "node".into()),
            shows: Some((Feature::NamedJit, 0.7)),
            ..PLAIN
        },
        Row {
            title: "CPython, as C",
            needs: &[("python3", "python3")],
            build: |_| chains(&[&["Py_BytesMain", ANY, "Py_RunMain"]]),
            command: |_| with_arguments(python(), &[source("loop.py").to_str().unwrap(), CPU_SECONDS]),
            executable: Some(|| base_name(&python())),
            ..PLAIN
        },
        Row {
            title: "OpenJDK",
            needs: &[("javac", "default-jdk-headless")],
            build: |shop| {
                let mut javac = Command::new("javac");
                shop.run(javac.arg("-d").arg(&shop.directory).arg(source("Loop.java")));
                const LEVEL: &str = "Loop.level";
                // In a loop the compiler tells few places: the function that has it may be told as its caller.
                let chain = ["Loop.main", LEVEL, LEVEL, LEVEL, LEVEL, LEVEL, LEVEL];
                chains(&[&chain])
            },
            command: |shop| with_arguments("java", &["-cp", shop.directory.to_str().unwrap(), "Loop", CPU_SECONDS]),
            executable: Some(|| "java".into()),
            shows: Some((Feature::Complete, 0.8)),
            named: 0.0,
            ..PLAIN
        },
    ]
}
