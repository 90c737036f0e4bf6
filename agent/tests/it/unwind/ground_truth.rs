//! Every row of real files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::oracle::{Counts, Elf, compare};
use super::{ROW_LIMIT, compile_bytes, compile_file, read_from};
use stakeout_agent::unwind::{FileTable, Rule, compile_within};

fn eh_frame(bytes: &[u8], table: &FileTable, file: &str) -> Option<Counts> {
    let elf = Elf::new(bytes);
    let section = elf.section(".eh_frame")?;
    let bases = gimli::BaseAddresses::default().set_eh_frame(section.address);
    let parsed = gimli::EhFrame::new(&section.bytes, gimli::LittleEndian);
    Some(compare(&parsed, &bases, &elf, table, file))
}

/// Compiles a file and holds it against gimli; prints what `--nocapture` is asked for.
fn check(path: &Path, least_rows: u64) {
    let name = path.display().to_string();
    let bytes = std::fs::read(path).unwrap();
    let begin = Instant::now();
    let table = compile_file(path).unwrap_or_else(|error| panic!("{name}: {error}"));
    let took = begin.elapsed();
    let counts = eh_frame(&bytes, &table, &name).unwrap_or_else(|| panic!("{name} has no .eh_frame"));
    eprintln!(
        "{name}: {took:?}, {} rows in {} chunks, {} rules, {:?}; {counts:?}",
        table.rows.len(),
        table.chunks.len() - 1,
        table.rules.len(),
        table.stats
    );
    assert!(counts.rows >= least_rows, "{name}: {counts:?}");
    assert!(counts.unsupported * 1000 <= counts.rows, "{name}: {counts:?}");
    assert!(counts.overlapping * 1000 <= counts.rows, "{name}: {counts:?}");
    assert_eq!(table.stats.malformed, 0, "{name}");
    let distinct: std::collections::HashSet<_> = table.rules.iter().collect();
    assert_eq!(distinct.len(), table.rules.len(), "{name}: rules are distinct");
}

/// Files of this process whose names contain `part`.
fn mapped(part: &str) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let paths = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
    paths
        .map(PathBuf::from)
        .find(|path| path.to_string_lossy().contains(part))
}

fn first_existing(paths: &[&str]) -> Option<PathBuf> {
    let found = paths.iter().map(Path::new).find(|path| path.exists())?;
    Some(found.canonicalize().unwrap())
}

fn output_of(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

#[test]
fn the_c_library_equals_gimli() {
    if let Some(path) = mapped("libc.so") {
        check(&path, 10_000);
    }
}

#[test]
fn the_loader_equals_gimli() {
    if let Some(path) = mapped("ld-linux") {
        check(&path, 1000);
    }
}

#[test]
fn the_cpp_library_equals_gimli() {
    let places = [
        "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
        "/usr/lib/aarch64-linux-gnu/libstdc++.so.6",
        "/usr/lib64/libstdc++.so.6",
    ];
    if let Some(path) = first_existing(&places) {
        check(&path, 10_000);
    }
}

#[test]
fn this_program_equals_gimli() {
    check(&std::env::current_exe().unwrap(), 10_000);
}

#[test]
fn python_equals_gimli() {
    let script = "import sys; print(sys.executable)";
    let Some(executable) = output_of("python3", &["-c", script]) else {
        return;
    };
    check(&Path::new(&executable).canonicalize().unwrap(), 5);
    let script = "print([l.split()[5] for l in open('/proc/self/maps') if 'libpython' in l][0])";
    if let Some(library) = output_of("python3", &["-c", script]) {
        check(Path::new(&library), 10_000);
    }
}

#[test]
fn node_equals_gimli() {
    let Some(path) = output_of("node", &["-p", "process.execPath"]) else {
        return;
    };
    check(&Path::new(&path).canonicalize().unwrap(), 100_000);
}

/// The vDSO is no file, but this process has it in memory.
#[test]
fn the_vdso_equals_gimli() {
    use std::os::unix::fs::FileExt;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let Some(line) = maps.lines().find(|line| line.ends_with("[vdso]")) else {
        return;
    };
    let (begin, rest) = line.split_once('-').unwrap();
    let begin = u64::from_str_radix(begin, 16).unwrap();
    let end = u64::from_str_radix(rest.split(' ').next().unwrap(), 16).unwrap();
    let mut bytes = vec![0; usize::try_from(end - begin).unwrap()];
    let memory = std::fs::File::open("/proc/self/mem").unwrap();
    memory.read_exact_at(&mut bytes, begin).unwrap();
    let table = compile_bytes(&bytes).unwrap();
    let counts = eh_frame(&bytes, &table, "[vdso]").unwrap();
    assert!(counts.rows > 10 && counts.unsupported == 0, "{counts:?}");
}

/// A C program of this machine's compiler, in the ways in which its unwind information may be kept.
#[test]
fn c_programs_with_debug_frame_and_without_an_index_equal_gimli() {
    const SOURCE: &str =
        "int f(int n) { volatile int v[n]; v[0] = n; return v[0]; }\nint main(int c, char **v) { return f(c); }\n";
    let folder = tempfile::tempdir().unwrap();
    let (file, program) = (folder.path().join("main.c"), folder.path().join("program"));
    std::fs::write(&file, SOURCE).unwrap();
    let debug_frame = ["-g", "-O2", "-fno-asynchronous-unwind-tables"];
    let ways = [
        &["-gz=none"][..],
        &["-gz=zlib"],
        &["-static"],
        &["-static", "-Wl,--no-eh-frame-hdr"],
    ];
    for way in ways {
        let mut command = Command::new("cc");
        command.args(debug_frame).args(way).arg(&file).arg("-o").arg(&program);
        if !command.output().is_ok_and(|output| output.status.success()) {
            continue;
        }
        let name = format!("cc {}", way.join(" "));
        let bytes = std::fs::read(&program).unwrap();
        let table = compile_file(&program).unwrap();
        eh_frame(&bytes, &table, &name).unwrap();
        let elf = Elf::new(&bytes);
        let section = elf.section(".debug_frame").unwrap();
        let mut parsed = gimli::DebugFrame::new(&section.bytes, gimli::LittleEndian);
        parsed.set_address_size(8);
        let counts = compare(&parsed, &gimli::BaseAddresses::default(), &elf, &table, &name);
        assert!(counts.rows > 3, "{name}: {counts:?}");
    }
}

/// What a table says, whatever numbers its rules have.
fn meaning(table: &FileTable) -> (u64, &[u32], Vec<(u16, Rule)>) {
    let rows = table.rows.iter();
    let rows = rows
        .map(|row| (row.offset, table.rules[usize::from(row.rule)]))
        .collect();
    (table.base, &table.chunks, rows)
}

/// Little room means many windows of addresses, each compiled for itself; what comes out is the same.
#[test]
fn window_by_window_is_the_same_as_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        mapped("libc.so").map(|path| std::fs::read(path).unwrap()),
        mapped("ld-linux").map(|path| std::fs::read(path).unwrap()),
        super::go::build_small(folder.path()),
    ];
    for bytes in files.into_iter().flatten() {
        let at_once = compile_bytes(&bytes).unwrap();
        let room = at_once.rows.len() / 2;
        let windows = compile_within(read_from(&bytes), ROW_LIMIT, room).unwrap();
        assert!(meaning(&windows) == meaning(&at_once), "{room} bytes of room");
    }
}
