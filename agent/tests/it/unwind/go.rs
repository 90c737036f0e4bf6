//! Programs of the Go version of this machine: the linker's .debug_frame tells the same as its pclntab.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use gimli::UnwindSection;
use stakeout_agent::unwind::{CallerFp, CallerPc, Cfa, FileTable};

use super::compile_bytes;
use super::oracle::Elf;

const PROGRAM: &str = r#"
package main

import ("fmt"; "os"; "sort"; "time")

func main() {
	words := os.Args
	sort.Slice(words, func(i, j int) bool { return words[i] < words[j] })
	fmt.Println(words, time.Now())
}
"#;

const WITH_C: &str = r#"
package main

/*
static int twice(int n) { volatile int m = n; return 2 * m; }
*/
import "C"

func main() { println(C.twice(21)) }
"#;

/// None where there is no Go, or it cannot build this.
fn build(folder: &Path, source: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Option<Vec<u8>> {
    let (file, program) = (folder.join("main.go"), folder.join("program"));
    std::fs::write(&file, source).unwrap();
    let mut command = Command::new("go");
    command
        .args(["build", "-p=1", "-o"])
        .arg(&program)
        .args(arguments)
        .arg(&file);
    command.envs(environment.iter().copied()).current_dir(folder);
    let built = command.output().is_ok_and(|output| output.status.success());
    built.then(|| std::fs::read(program).unwrap())
}

/// A small program for this machine.
pub(super) fn build_small(folder: &Path) -> Option<Vec<u8>> {
    let source = "package main\n\nfunc main() { println(1) }\n";
    build(folder, source, &["-ldflags=-s -w"], &[("CGO_ENABLED", "0")])
}

/// Holds the table against .debug_frame; gives how many rows were compared and how many are of functions with rules of
/// their own.
fn compare(bytes: &[u8], table: &FileTable, file: &str) -> (u64, u64) {
    let elf = Elf::new(bytes);
    let section = elf.section(".debug_frame").unwrap();
    let mut parsed = gimli::DebugFrame::new(&section.bytes, gimli::LittleEndian);
    parsed.set_address_size(8);
    let bases = gimli::BaseAddresses::default();
    let mut context = gimli::UnwindContext::new();
    let (mut compared, mut special) = (0, 0);
    let mut entries = parsed.entries(&bases);
    while let Some(entry) = entries.next().unwrap() {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(gimli::DebugFrame::cie_from_offset).unwrap();
        let mut rows = fde.rows(&parsed, &bases, &mut context).unwrap();
        while let Some(row) = rows.next_row().unwrap() {
            let (first, last) = (row.start_address(), row.end_address().min(fde.end_address()));
            if first >= last {
                continue;
            }
            for pc in [first, last - 1] {
                let found = table.rule_at(pc);
                let gimli::CfaRule::RegisterAndOffset { offset, .. } = row.cfa() else {
                    panic!()
                };
                match found.cfa() {
                    Cfa::FpChain | Cfa::End | Cfa::Signal => special += 1,
                    // reflect's call with arguments of 8 MiB and more (256 KiB on arm64): no room in the packed rule.
                    Cfa::Unknown if *offset > if elf.arm64 { 262_000 } else { 8_000_000 } => {}
                    // rawVforkSyscall keeps its return address in a register for a while; arm64's debugCallV2 leaves
                    // with less stack than it came with.
                    Cfa::Unknown if *offset < if elf.arm64 { 0 } else { 8 } => special += 1,
                    found => assert_eq!(found, Cfa::Sp(i32::try_from(*offset).unwrap()), "{file}: {pc:#x}"),
                }
                // Go ends the stack at sigtramp; the tables go on, to the frame that the kernel made.
                let ends = row.register(gimli::AArch64::X30) == Some(gimli::RegisterRule::Undefined);
                if elf.arm64 && *offset != 0 && !ends && matches!(found.cfa(), Cfa::Sp(_)) {
                    let words = i16::try_from(-offset / 8).unwrap();
                    let expected = CallerPc::AtCfa(words);
                    let saved = row.register(gimli::AArch64::X30);
                    assert_eq!(saved, Some(gimli::RegisterRule::Offset(-offset)), "{file}: {pc:#x}");
                    let below = words == -1 && found.pc() == CallerPc::BelowCfa;
                    assert!(below || found.pc() == expected, "{file}: {pc:#x}: {found:?}");
                }
                compared += 1;
            }
        }
    }
    (compared, special)
}

fn check(bytes: &[u8], file: &str) -> FileTable {
    let begin = Instant::now();
    let table = compile_bytes(bytes).unwrap_or_else(|error| panic!("{file}: {error}"));
    let took = begin.elapsed();
    let (compared, special) = compare(bytes, &table, file);
    eprintln!(
        "{file}: {took:?}, {} rows, {} rules, {:?}; {compared} compared, {special} special",
        table.rows.len(),
        table.rules.len(),
        table.stats
    );
    assert!(
        compared > 1000 && special < compared / 50,
        "{file}: {compared}, {special}"
    );
    assert!(
        table.stats.go_functions > 500 && table.stats.malformed == 0,
        "{file}: {:?}",
        table.stats
    );
    table
}

fn assert_same_rules(one: &FileTable, other: &FileTable, file: &str) {
    assert_eq!((&one.base, &one.chunks), (&other.base, &other.chunks), "{file}");
    assert_eq!((&one.rows, &one.rules), (&other.rows, &other.rules), "{file}");
}

/// The same file as if it had no section headers.
fn without_sections(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[40..48].fill(0);
    bytes[58..64].fill(0);
    bytes
}

#[test]
fn pclntab_equals_debug_frame_with_and_without_sections() {
    let folder = tempfile::tempdir().unwrap();
    let build =
        |arguments: &[&str], environment: &[(&str, &str)]| build(folder.path(), PROGRAM, arguments, environment);
    let Some(plain) = build(&[], &[]) else { return };
    let table = check(&plain, "plain");
    assert_same_rules(
        &table,
        &compile_bytes(&without_sections(&plain)).unwrap(),
        "no sections",
    );
    let stripped = build(&["-ldflags=-s -w"], &[]).unwrap();
    assert_same_rules(&table, &compile_bytes(&stripped).unwrap(), "stripped");
    if let Some(relocatable) = build(&["-buildmode=pie"], &[]) {
        let table = check(&relocatable, "PIE");
        assert_same_rules(
            &table,
            &compile_bytes(&without_sections(&relocatable)).unwrap(),
            "PIE, no sections",
        );
    }
    let environment = [("GOARCH", "arm64"), ("CGO_ENABLED", "0")];
    check(&build(&[], &environment).unwrap(), "arm64");
}

#[test]
fn c_code_in_a_go_program_comes_from_eh_frame() {
    let folder = tempfile::tempdir().unwrap();
    for (name, arguments) in [
        ("external", vec!["-ldflags=-linkmode=external"]),
        ("external PIE", vec!["-buildmode=pie", "-ldflags=-linkmode=external"]),
    ] {
        let Some(bytes) = build(folder.path(), WITH_C, &arguments, &[("CGO_ENABLED", "1")]) else {
            return;
        };
        let table = check(&bytes, name);
        assert!(table.stats.fdes > 3, "{name}: {:?}", table.stats);
        assert_same_rules(&table, &compile_bytes(&without_sections(&bytes)).unwrap(), name);
    }
}

/// `mov %rbp, n(%rsp)`, with n in one byte or four.
fn stores_frame_pointer(code: &[u8]) -> bool {
    code.starts_with(&[0x48, 0x89, 0x6c, 0x24]) || code.starts_with(&[0x48, 0x89, 0xac, 0x24])
}

/// Ends with `mov n(%rsp), %rbp` and `add $m, %rsp` or `sub $-128, %rsp`, each number in one byte or four.
fn loads_frame_pointer_and_adds(code: &[u8]) -> bool {
    let ends = |code: &[u8], operation: &[u8], number: usize| {
        let begin = code.len().checked_sub(operation.len() + number);
        begin.filter(|begin| code[*begin..].starts_with(operation))
    };
    let add = [
        (&[0x48, 0x83, 0xc4], 1),
        (&[0x48, 0x81, 0xc4], 4),
        (&[0x48, 0x83, 0xec], 1),
    ];
    let add = add
        .iter()
        .find_map(|(operation, number)| ends(code, *operation, *number));
    add.is_some_and(|begin| {
        let before = &code[..begin];
        ends(before, &[0x48, 0x8b, 0x6c, 0x24], 1).is_some() || ends(before, &[0x48, 0x8b, 0xac, 0x24], 4).is_some()
    })
}

/// The frame pointer is saved by the instruction in front of the address from which on the rules say so.
#[test]
fn the_frame_pointer_is_saved_where_the_rules_begin_to_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let environment = [("GOARCH", "amd64"), ("CGO_ENABLED", "0")];
    let Some(bytes) = build(folder.path(), PROGRAM, &[], &environment) else {
        return;
    };
    let table = compile_bytes(&bytes).unwrap();
    let elf = Elf::new(&bytes);
    let text = elf.section(".text").unwrap();
    let rule = |at: usize| table.rule_at(text.address + at as u64);
    let (mut saves, mut restores) = (0, 0);
    for at in 1..text.bytes.len() {
        let (before, after) = (rule(at - 1), rule(at));
        let saved = |rule: stakeout_agent::unwind::Rule| rule.fp() == CallerFp::AtCfa(-2);
        match (saved(before), saved(after)) {
            (false, true) if before.cfa() != Cfa::Unknown => {
                // A block behind a return or a jump may have a frame from its first instruction on.
                let jump = matches!(text.bytes[at - 1], 0xc3 | 0xcc)
                    || text.bytes[at.saturating_sub(2)] == 0xeb
                    || text.bytes[at.saturating_sub(5)] == 0xe9;
                // Compilers up to Go 1.20, and assembly code, store it behind the change of the stack pointer.
                let push = text.bytes[at - 1] == 0x55;
                let store = stores_frame_pointer(&text.bytes[at..]);
                assert!(jump || store || push, "{:#x}", text.address + at as u64);
                saves += usize::from(push || store);
            }
            (true, false) if after.cfa() == Cfa::Sp(8) => {
                let pop = text.bytes[at - 1] == 0x5d;
                restores += usize::from(pop || loads_frame_pointer_and_adds(&text.bytes[..at]));
            }
            _ => {}
        }
    }
    assert!(saves > 500 && restores > 500, "{saves} {restores}");
}
