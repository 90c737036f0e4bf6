//! Programs of PHP: what its interpreter runs and what OPcache compiles, in one stack with the C that calls it and that
//! it calls.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Program;

const SECONDS: &str = "3";
/// Mode, and what stands behind the chain's numbers in the names of its functions.
const MODES: &[(&str, &str)] = &[
    ("plain", ""),
    ("recursion", "_deep"),
    ("methods", ""),
    ("generator", "_made"),
    ("callback", "_called"),
    ("exception", "_thrown"),
    ("fibers", ""),
];
/// What OPcache does, as arguments; the modes that are tried with each of them.
const ENGINES: &[(&str, &[&str], &[&str])] = &[
    ("", &[], ALL),
    (
        "opcache",
        &["-dopcache.enable_cli=1", "-dopcache.jit=disable"],
        &["plain", "callback"],
    ),
    (
        "function",
        &[
            "-dopcache.enable_cli=1",
            "-dopcache.jit=function",
            "-dopcache.jit_buffer_size=32M",
        ],
        ALL,
    ),
    (
        "tracing",
        &[
            "-dopcache.enable_cli=1",
            "-dopcache.jit=tracing",
            "-dopcache.jit_buffer_size=32M",
        ],
        ALL,
    ),
];
const ALL: &[&str] = &[
    "plain",
    "recursion",
    "methods",
    "generator",
    "callback",
    "exception",
    "fibers",
];

/// One interpreter.
struct Php {
    version: String,
    path: PathBuf,
    /// OPcache, where it is no part of it.
    opcache: Option<PathBuf>,
}

/// The program in all modes, for each interpreter that is there.
pub(super) fn programs(folder: &Path) -> Vec<Program> {
    let versions = versions();
    if versions.is_empty() {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "with CI=true there must be PHP (Debian: apt install php-cli)"
        );
        println!("SKIPPED, since there is no PHP (Debian: apt install php-cli)");
    }
    let mut programs = Vec::new();
    for php in &versions {
        for (engine, arguments, modes) in ENGINES {
            let has_compiler = !php.version.starts_with('7');
            if !has_compiler && matches!(*engine, "function" | "tracing") {
                continue;
            }
            let has_fibers = has_compiler && !php.version.starts_with("8.0");
            let modes = MODES.iter().filter(|(mode, _)| modes.contains(mode));
            let modes = modes.filter(|(mode, _)| has_fibers || *mode != "fibers");
            programs.extend(modes.map(|mode| program(php, engine, arguments, mode)));
        }
        programs.extend(alone(php, folder));
    }
    programs
}

/// In a file of its own, in which nothing but made code is met: the table of the interpreter's loop is needed by that
/// alone. None where it would look for what it needs beside itself.
fn alone(php: &Php, folder: &Path) -> Option<Program> {
    if php.version.starts_with('7') || std::env::var_os("STAKEOUT_RUNTIMES").is_some() {
        return None;
    }
    let path = folder.join("php-alone");
    std::fs::copy(&php.path, &path).unwrap();
    let copy = Php {
        version: format!("{} alone", php.version),
        path,
        opcache: php.opcache.clone(),
    };
    let (engine, arguments, _) = ENGINES.iter().find(|(engine, ..)| *engine == "tracing")?;
    Some(program(&copy, engine, arguments, &MODES[0]))
}

fn program(php: &Php, engine: &str, arguments: &[&str], (mode, behind): &(&str, &str)) -> Program {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/root/languages/mix.php");
    let mut command = Command::new(&php.path);
    // Whatever the machine's own settings are.
    command.arg("-n");
    if let Some(opcache) = php.opcache.as_ref().filter(|_| !engine.is_empty()) {
        command.arg(format!("-dzend_extension={}", opcache.display()));
    }
    command.args(arguments).arg(source).args([SECONDS, mode]);
    let chain = |of: char| -> Vec<String> {
        match *mode {
            "recursion" => {
                let mut chain = vec![format!("Mix\\{of}_deep"); 200];
                chain.push(format!("Mix\\{of}12"));
                chain
            }
            "methods" => (1..=12)
                .map(|level| format!("Mix\\{}::m{level}", of.to_ascii_uppercase()))
                .collect(),
            _ => (1..=12).map(|level| format!("Mix\\{of}{level}{behind}")).collect(),
        }
    };
    let engine = if engine.is_empty() {
        String::new()
    } else {
        format!(" {engine}")
    };
    Program {
        title: format!("PHP {}{engine} {mode}", php.version),
        command,
        chains: ['a', 'b'].map(chain),
        language: "php",
        named: 99.5,
        in_chain: 50.0,
        agree: 99.5,
        has_share: true,
    }
}

/// Each interpreter, ascending.
fn versions() -> Vec<Php> {
    let mut found = Vec::new();
    match std::env::var_os("STAKEOUT_RUNTIMES") {
        Some(folder) => {
            for home in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                let files = std::fs::read_dir(home.join("usr/bin")).into_iter().flatten();
                let files = files.map(|entry| entry.unwrap().path());
                let is_php = |path: &PathBuf| {
                    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                    name.strip_prefix("php")
                        .is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
                };
                found.extend(files.filter(is_php).map(|path| (path, home.join("usr/lib/php"))));
            }
        }
        None => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let mut candidates = std::env::split_paths(&path).map(|folder| folder.join("php"));
            let php = candidates.find(|php| php.is_file());
            found.extend(php.map(|php| (php, PathBuf::from("/usr/lib/php"))));
        }
    }
    let versions = found.into_iter().filter_map(|(path, extensions)| {
        let (version, interface) = release(&path)?;
        let opcache = extensions.join(interface).join("opcache.so");
        Some(Php {
            version,
            path,
            opcache: opcache.is_file().then_some(opcache),
        })
    });
    let mut versions: Vec<Php> = versions.collect();
    versions.sort_by(|one, other| one.version.cmp(&other.version));
    versions
}

/// Its version, and the folder of its extensions.
fn release(path: &Path) -> Option<(String, String)> {
    let print = "echo PHP_VERSION, ' ', basename(PHP_EXTENSION_DIR);";
    let output = Command::new(path).args(["-n", "-r", print]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (version, interface) = text.trim().split_once(' ')?;
    Some((version.to_owned(), interface.to_owned()))
}
