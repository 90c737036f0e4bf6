//! What the guest is made of: the tests, what they start, and a program that starts them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::archive::Archive;
use crate::{repo, run};

/// The agent's `root` tests and the agent that they start.
pub(super) struct Tests {
    pub(super) program: PathBuf,
    pub(super) agent: PathBuf,
}

/// Programs of this machine that the tests start.
const PROGRAMS: [&str; 11] = [
    "cc", "as", "ld", "sh", "dd", "nice", "kill", "setpriv", "prlimit", "chrt", "taskset",
];
/// The last line that the guest writes.
pub(super) const END: &str = "guest: the tests have ended";

/// Tests whose bounds are those of a processor that keeps up with its clock.
const NOT_EMULATED: [&str; 22] = [
    "a_library_that_a_short_process_loads_late",
    "a_program_that_runs_again_after_its_file_was_given_up",
    "a_ring_that_overflows_loses_samples",
    "a_stream_of_short_processes_arrives_with_names",
    "code_is_named_by_its_perf_map_in_memory",
    "code_made_at_run_time",
    "code_that_was_copied_to_its_own_place",
    "copies_of_stacks_don_t_wait",
    "a_program_that_is_opened_late_has_room",
    "of_a_large_program_only_what_runs",
    "processes_of_a_few_milliseconds",
    "processes_of_one_executable_on_two_cpus",
    "recursion_of_any_depth_adds_up",
    "shares_roots_and_cpu_time",
    "tables_that_do_not_fit_are_counted",
    "the_documented_capabilities_are_enough",
    "threads_that_share_cpus_wait",
    "waits_are_told_by_their_time",
    "what_changes_while_it_is_read",
    "where_switches_are_too_many",
    "who_maps_code_all_the_time",
    "without_a_server_it_spools",
];

/// Need a dozen compilers and run-time environments; the guest has one of C, and deep stacks in it.
const NOT_IN_GUEST: [&str; 2] = [
    "stacks_of_all_kinds_of_programs_are_whole",
    "programs_of_languages_with_a_runtime_have_their_own_names",
];
/// The folders of their programs.
const NOT_IN_GUEST_FOLDERS: [&str; 2] = ["whole_stacks", "languages"];

/// What runs as process 1. The kernel hands over `EMULATED` from its command line. The kernel's own messages go to
/// the first serial port, all else to the second.
const INIT: &str = r#"#!/bin/busybox sh
b=/bin/busybox
export PATH=/usr/bin:/usr/sbin:/bin
$b mount -t devtmpfs devtmpfs /dev
exec >/dev/ttyS1 2>&1 </dev/null
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t tracefs tracefs /sys/kernel/tracing
$b mount -t bpf bpf /sys/fs/bpf
$b mount -t cgroup2 cgroup2 /sys/fs/cgroup
$b chmod 1777 /tmp
$b ip link set lo up
$b hostname guest
$b stty -F /dev/ttyS1 raw
# Debian's 3 asks for CAP_SYS_ADMIN, which is more than the agent's capabilities; the agent says so.
echo 2 >/proc/sys/kernel/perf_event_paranoid
skip='TOOMANY'
[ -z "$EMULATED" ] || skip="$skip"'SKIP'
cd AGENT
# The names hold no spaces.
TMPDIR=/tmp CI=true PROGRAM --show-output --test-threads=1 $skip FILTER
echo END
$b poweroff -f
"#;

/// Says which tests a guest does not run.
pub(super) fn say_what_no_guest_has() {
    println!(
        "NOT CHECKED in a guest, which has one compiler: {}",
        NOT_IN_GUEST.join(", ")
    );
}

/// Says which tests an emulated processor does not run.
pub(super) fn say_what_is_skipped() {
    println!(
        "the processor is emulated, in some minutes; NOT CHECKED with it: {}",
        NOT_EMULATED.join(", ")
    );
}

/// Writes the initramfs.
pub(super) fn write(to: &Path, tests: &Tests, filter: Option<&str>) -> Result<()> {
    let file = File::create(to).with_context(|| format!("can't write {}", to.display()))?;
    let mut archive = Archive::new(BufWriter::new(file))?;
    let sources = repo::root().join("agent/tests/root");
    let mut programs: Vec<PathBuf> = vec![tests.program.clone(), tests.agent.clone()];
    for name in PROGRAMS {
        programs.push(repo::find_program(name).with_context(|| format!("there is no program {name}"))?);
    }
    programs.extend(
        ["cc1", "collect2"]
            .map(|name| compiler_says(&format!("-print-prog-name={name}")))
            .into_iter()
            .collect::<Result<Vec<_>>>()?,
    );
    programs.push(compiler_says("-print-file-name=liblto_plugin.so")?);
    let mut files: BTreeSet<PathBuf> = BTreeSet::new();
    for program in &programs {
        files.extend(libraries(program)?);
    }
    files.extend(programs);
    // -pthread asks for it, though the C library has had all of it since 2.34.
    files.insert(compiler_says("-print-file-name=libpthread.a")?);
    for source in sources_in(&sources)? {
        if source.extension().is_some_and(|extension| extension == "c") {
            files.extend(compiled_from(&source)?);
        }
        files.insert(source);
    }
    for file in &files {
        archive.copy(file)?;
    }
    let busybox = repo::find_program("busybox").context("there is no program busybox")?;
    archive.file(Path::new("/bin/busybox"), &fs::read(busybox)?)?;
    for folder in ["dev", "proc", "sys", "tmp"] {
        archive.folder(Path::new(folder))?;
    }
    // The tests write here; cargo tells them so when it compiles them.
    archive.folder(&repo::target_dir()?.join("tmp"))?;
    let init = INIT
        .replace("AGENT", &quoted(&repo::root().join("agent").to_string_lossy()))
        .replace("PROGRAM", &quoted(&tests.program.to_string_lossy()))
        .replace("TOOMANY", &NOT_IN_GUEST.map(|name| format!("--skip {name} ")).concat())
        .replace("SKIP", &NOT_EMULATED.map(|name| format!("--skip {name} ")).concat())
        .replace("FILTER", &filter.map_or(String::new(), quoted))
        .replace("END", END);
    archive.file(Path::new("/init"), init.as_bytes())?;
    archive.finish()
}

/// For the shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn compiler_says(question: &str) -> Result<PathBuf> {
    Ok(PathBuf::from(run::output(Command::new("cc").arg(question))?.trim()))
}

/// What the program is linked with.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let said = run::lines_of(Command::new("ldd").arg(program))?;
    Ok(paths(said.iter().flat_map(|line| line.split_whitespace())))
}

/// C sources and headers in a folder and those below it.
fn sources_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut sources = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("can't read {}", folder.display()))? {
        let path = entry?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        let is_left_out = || NOT_IN_GUEST_FOLDERS.iter().any(|folder| path.ends_with(folder));
        if path.is_dir() && !is_left_out() {
            sources.extend(sources_in(&path)?);
        } else if matches!(extension, Some("c" | "h")) {
            sources.push(path);
        }
    }
    Ok(sources)
}

/// What the compiler reads to make a program of this source, or a library where it has no `main`: headers, and what
/// it links.
fn compiled_from(source: &Path) -> Result<Vec<PathBuf>> {
    let made = tempfile::tempdir().context("can't make a temporary folder")?;
    // Some headers are read only where the compiler optimises.
    let headers = ["-O0", "-O2"].map(|flag| run::output(Command::new("cc").args(["-M", flag]).arg(source)));
    let headers = headers.into_iter().collect::<Result<String>>()?;
    let text = fs::read_to_string(source).with_context(|| format!("can't read {}", source.display()))?;
    let library = (!text.contains(" main(")).then_some(["-shared", "-fPIC"]);
    let linked = run::output(
        Command::new("cc")
            .args(library.into_iter().flatten())
            .arg("-Wl,-t")
            .arg("-o")
            .arg(made.path().join("program"))
            .arg(source),
    )?;
    let mut files = paths(headers.split_whitespace().chain(linked.split_whitespace()));
    // The object between compiler and linker is gone by now.
    files.retain(|path| path.is_file());
    Ok(files)
}

fn paths<'a>(words: impl Iterator<Item = &'a str>) -> Vec<PathBuf> {
    words.filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}
