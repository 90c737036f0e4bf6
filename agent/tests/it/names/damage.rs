//! Damaged files: no panic, no wrong reach, bounded memory.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use stakeout_agent::frames::CodeLocation;
use stakeout_agent::process::Source;
use stakeout_agent::symbolize::{Namer, NamerConfig, NamerStats};

use super::native::{HIDDEN, compile, pack_symbols};
use super::{Talker, functions, has_tool, name_locations, run};
use crate::damage::{Numbers, in_own_process, peak_bytes};

/// Names places of a program as if its file had other bytes when it was opened.
struct Victim {
    original: Vec<u8>,
    locations: Vec<CodeLocation>,
    folder: tempfile::TempDir,
}

impl Victim {
    /// `make` changes the program after it was compiled.
    fn new(make: impl Fn(&Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = compile(folder.path(), &["-rdynamic"]);
        make(&program);
        let mut talker = Talker::start(&mut Command::new(&program));
        let wanted = ["hidden_one", "hidden_two", "shown", "sized", "sized_too", "bare_first"];
        let locations = wanted.iter().map(|name| {
            let address = talker.address(name) + 1;
            talker.location(address).0
        });
        Self {
            locations: locations.collect(),
            original: std::fs::read(&program).unwrap(),
            folder,
        }
    }

    fn name(&self, bytes: &[u8]) -> (Vec<Option<String>>, NamerStats) {
        let path = self.folder.path().join("damaged");
        std::fs::write(&path, bytes).unwrap();
        let module = stakeout_agent::process::Module::open(&path, self.locations[0].source);
        let source = Source::Module(Arc::new(module));
        let locations: Vec<(CodeLocation, Option<Source>)> = self
            .locations
            .iter()
            .map(|location| (*location, Some(source.clone())))
            .collect();
        let mut namer = Namer::new(NamerConfig {
            lines_limit_bytes: 0,
            ..NamerConfig::default()
        });
        let named = name_locations(&mut namer, &locations);
        let names = functions(&named);
        for name in names.iter().flatten() {
            assert!(name.len() <= 4096, "{} bytes", name.len());
        }
        let stats = namer.stats();
        assert!(stats.symbol_table_bytes <= 12 << 20, "{stats:?}");
        (names.into_iter().map(|name| name.map(str::to_owned)).collect(), stats)
    }

    fn damage(&self, range: std::ops::Range<usize>, rounds: usize) -> u64 {
        let mut numbers = Numbers::new(self.original.len());
        let mut damaged = 0;
        for _ in 0..rounds {
            damaged += self.name(&numbers.damage(&self.original, &range, 20)).1.damaged_files;
        }
        damaged
    }

    /// The range of a section, by readelf.
    fn section(&self, name: &str) -> (usize, std::ops::Range<usize>) {
        let path = self.folder.path().join("program");
        let text = run(Command::new("readelf").args(["-SW"]).arg(path));
        let line = text.lines().find(|line| line.contains(&format!(" {name} "))).unwrap();
        let (number, rest) = line.split_once(']').unwrap();
        let number = number.trim_start_matches([' ', '[']).trim().parse().unwrap();
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let hex = |text: &str| usize::from_str_radix(text, 16).unwrap();
        (number, hex(fields[3])..hex(fields[3]) + hex(fields[4]))
    }

    fn section_header(&self, number: usize) -> usize {
        let table = u64::from_le_bytes(self.original[40..48].try_into().unwrap());
        usize::try_from(table).unwrap() + number * 64
    }
}

fn tools() -> bool {
    ["cc", "strip", "objcopy", "nm", "xz", "readelf"]
        .iter()
        .all(|tool| has_tool(tool))
}

#[test]
fn damaged_symbol_tables_do_no_harm() {
    if !tools() {
        return;
    }
    let victim = Victim::new(|_| {});
    let (names, stats) = victim.name(&victim.original);
    assert_eq!(names[0].as_deref(), Some(HIDDEN[0]));
    assert_eq!(stats.damaged_files, 0);
    for section in [".symtab", ".strtab", ".dynsym"] {
        victim.damage(victim.section(section).1, 40);
    }
    victim.damage(0..1024, 60);
    let headers = victim.section_header(0);
    let damaged = victim.damage(headers..victim.original.len(), 100);
    assert!(damaged > 10, "{damaged} of 100 were noticed");
    for cut in (0..victim.original.len()).step_by(victim.original.len() / 40) {
        victim.name(&victim.original[..cut]);
    }
}

#[test]
fn tables_that_lie() {
    if !tools() {
        return;
    }
    let victim = Victim::new(|_| {});
    let patched = |at: usize, value: u64| {
        let mut bytes = victim.original.clone();
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        victim.name(&bytes)
    };
    let (number, range) = victim.section(".symtab");
    let header = victim.section_header(number);
    // Its size: to the end of all numbers, and beyond the end of the file.
    for bytes in [
        u64::MAX,
        u64::MAX / 24 * 24,
        1 << 40,
        victim.original.len() as u64 / 24 * 24,
    ] {
        let (_, stats) = patched(header + 32, bytes);
        assert_eq!(stats.damaged_files, 1, "{bytes:x}");
    }
    // Where it lies, which table has its names, the size of a symbol.
    for (field, value) in [(24, u64::MAX - 7), (40, 0xffff), (56, 7), (56, 0)] {
        let (names, stats) = patched(header + field, value);
        assert_eq!(stats.damaged_files, 1, "{field}: {value:x}");
        assert_eq!(names[2].as_deref(), Some("shown"), "the dynamic symbols are still good");
    }
    // A file whose list of sections lies outside of it.
    let (names, stats) = patched(40, u64::MAX - 100);
    assert_eq!((names[2].as_deref(), stats.damaged_files), (None, 1));

    // A name of a megabyte, and one without an end.
    let (number, strings) = victim.section(".strtab");
    let mut bytes = victim.original.clone();
    let begin = bytes.len();
    bytes.extend(std::iter::repeat_n(b'x', 1 << 20));
    let header = victim.section_header(number);
    bytes[header + 24..header + 32].copy_from_slice(&(begin as u64).to_le_bytes());
    bytes[header + 32..header + 40].copy_from_slice(&(1u64 << 20).to_le_bytes());
    let (names, stats) = victim.name(&bytes);
    assert_eq!(names[0].as_deref(), Some(&*"x".repeat(4096)));
    assert!(stats.cut_names > 0, "{stats:?}");

    // Symbols that claim everything from their address on reach no further than their section.
    let mut bytes = victim.original.clone();
    for symbol in bytes[range].chunks_exact_mut(24) {
        symbol[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
    }
    let (names, _) = victim.name(&bytes);
    assert_eq!(names[0].as_deref(), Some("hidden_one"));
    assert!(!strings.is_empty());
}

#[test]
fn damaged_packed_symbols_do_no_harm() {
    if !tools() {
        return;
    }
    let victim = Victim::new(|program| pack_symbols(program, &["-6"]));
    let (names, stats) = victim.name(&victim.original);
    assert_eq!((names[0].as_deref(), stats.unpacked_files), (Some(HIDDEN[0]), 1));
    let damaged = victim.damage(victim.section(".gnu_debugdata").1, 60);
    assert!(damaged > 50, "{damaged} of 60 were noticed");
    // Its checksums are what notices; without them the decoder itself meets the nonsense.
    let victim = Victim::new(|program| pack_symbols(program, &["-6", "--check=none"]));
    victim.damage(victim.section(".gnu_debugdata").1, 60);
    // More memory than is given.
    let victim = Victim::new(|program| pack_symbols(program, &["--lzma2=preset=6,dict=512MiB"]));
    let (names, stats) = victim.name(&victim.original);
    assert_eq!(
        (names[0].as_deref(), stats.unpacked_files, stats.damaged_files),
        (None, 0, 1)
    );
    assert_eq!(names[2].as_deref(), Some("shown"));
}

/// A megabyte of zeros packs into a few hundred bytes; a hostile file has gigabytes of them.
#[test]
fn packed_symbols_that_unpack_without_end() {
    if !tools() {
        return;
    }
    let victim = Victim::new(|program| {
        let zeros = program.with_extension("zeros");
        let file = std::fs::File::create(&zeros).unwrap();
        file.set_len(200 << 20).unwrap();
        run(Command::new("xz").args(["-f", "-k", "-1"]).arg(&zeros));
        run(Command::new("strip").arg(program));
        let add = format!("--add-section=.gnu_debugdata={}.xz", zeros.display());
        run(Command::new("objcopy").arg(add).arg(program));
    });
    let (names, stats) = victim.name(&victim.original);
    assert_eq!((names[0].as_deref(), stats.damaged_files), (None, 1));
}

/// A program of nearly a gibibyte whose table has 40 million symbols: two million functions, many for each address of
/// its code, and then a hole, which reads as symbols without a name.
#[test]
fn a_file_of_a_gibibyte_with_tens_of_millions_of_symbols() {
    use std::os::unix::fs::FileExt;
    const NAME: &str = "names::damage::a_file_of_a_gibibyte_with_tens_of_millions_of_symbols";
    const SYMBOLS: u64 = 40_000_000;
    if !tools() || !in_own_process(NAME) {
        return;
    }
    let victim = Victim::new(|_| {});
    let path = victim.folder.path().join("large");
    std::fs::write(&path, &victim.original).unwrap();
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    let begin = (victim.original.len() as u64).next_multiple_of(4096);
    file.set_len(begin + SYMBOLS * 24).unwrap();
    let (_, code) = victim.section(".text");
    let (number, _) = victim.section(".symtab");
    let mut chunk = Vec::new();
    for index in 0..2_000_000u64 {
        let address = code.start as u64 + index % code.len() as u64;
        chunk.extend(1u32.to_le_bytes());
        chunk.extend([0x12, 0, 14, 0]);
        chunk.extend(address.to_le_bytes());
        chunk.extend(1u64.to_le_bytes());
    }
    file.write_all_at(&chunk, begin).unwrap();
    drop(chunk);
    let header = victim.section_header(number) as u64;
    file.write_all_at(&begin.to_le_bytes(), header + 24).unwrap();
    file.write_all_at(&(SYMBOLS * 24).to_le_bytes(), header + 32).unwrap();

    let module = stakeout_agent::process::Module::open(&path, victim.locations[0].source);
    let source = Source::Module(Arc::new(module));
    let locations: Vec<(CodeLocation, Option<Source>)> = victim
        .locations
        .iter()
        .map(|location| (*location, Some(source.clone())))
        .collect();
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = peak_bytes();
    let mut namer = Namer::new(NamerConfig::default());
    name_locations(&mut namer, &locations);
    let grown = peak_bytes() - before;
    assert!(grown < 24 << 20, "{grown} bytes more");
}
