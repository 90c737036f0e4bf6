//! C programs, stripped in all the ways that distributions strip them.

use std::path::{Path, PathBuf};
use std::process::Command;

use stakeout_agent::symbolize::{DegradationLevel, Namer, NamerConfig};

use super::{Talker, functions, has_tool, name_locations, names_of, run, without_lines};

const SOURCE: &str = r#"
#include <stdio.h>
#include <stdint.h>
__attribute__((noinline)) static int hidden_one(int n) { volatile int m = n; return m * 3 + 1; }
__attribute__((noinline)) static int hidden_two(int n) { volatile int m = n; return m * 5 - hidden_one(m); }
__attribute__((noinline, visibility("default"))) int shown(int n) { volatile int m = n; return hidden_two(m) + 7; }
/* Two names without sizes, and a label inside a function that has one. */
__asm__(".text\n.globl bare_first\nbare_first:\n nop\n nop\n nop\n nop\n nop\n"
        ".globl bare_second\nbare_second:\n nop\n nop\n nop\n nop\n nop\n"
        ".type sized, @function\n.globl sized\nsized:\n nop\n nop\ninner_label:\n nop\n nop\n nop\n nop\n.size sized, . - sized\n"
        ".zero 64\n.type sized_too, @function\n.globl sized_too\nsized_too:\n nop\n.size sized_too, . - sized_too\n");
extern char bare_first[], bare_second[], sized[], sized_too[];
int main(int argc, char **argv) {
    printf("hidden_one %p\nhidden_two %p\nshown %p\nmain %p\n", (void *)hidden_one, (void *)hidden_two, (void *)shown, (void *)main);
    printf("bare_first %p\nbare_second %p\nsized %p\nsized_too %p\nprintf %p\n", bare_first, bare_second, sized, sized_too, (void *)printf);
    printf("result %d\nend\n", shown(argc));
    fflush(stdout);
    getchar();
    return 0;
}
"#;

pub(super) const HIDDEN: [&str; 2] = ["hidden_one", "hidden_two"];

/// The program with everything, compiled with these arguments beside the usual ones.
pub(super) fn compile(folder: &Path, arguments: &[&str]) -> PathBuf {
    let (source, program) = (folder.join("program.c"), folder.join("program"));
    std::fs::write(&source, SOURCE).unwrap();
    run(Command::new("cc")
        .args(["-O1", "-g", "-o"])
        .arg(&program)
        .arg(&source)
        .args(arguments));
    program
}

fn objcopy(arguments: &[&str], files: &[&Path]) {
    run(Command::new("objcopy").args(arguments).args(files));
}

fn expected(names: &[&str]) -> Vec<Option<String>> {
    names
        .iter()
        .flat_map(|name| [Some((*name).to_owned()), Some((*name).to_owned())])
        .collect()
}

#[test]
fn only_what_a_symbol_covers_has_its_name() {
    if !has_tool("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["-pie"][..], &["-no-pie"], &["-static"]] {
        let program = compile(folder.path(), arguments);
        let mut talker = Talker::start(&mut Command::new(&program));
        let mut namer = without_lines();
        let at = |name: &str, more: u64| talker.address(name) + more;
        let addresses = [
            at("hidden_one", 0),
            at("shown", 2),
            at("bare_first", 4),
            at("bare_second", 0),
            at("bare_second", 4),
            at("sized", 3),
            at("sized", 6),
            at("sized", 40),
            at("sized_too", 0),
            at("sized_too", 1),
        ];
        let named = talker.names(&mut namer, &addresses);
        let names = [
            Some("hidden_one"),
            Some("shown"),
            Some("bare_first"),
            Some("bare_second"),
            Some("bare_second"),
            Some("sized"),
            None,
            None,
            Some("sized_too"),
        ];
        assert_eq!(functions(&named)[..9], names, "{arguments:?}");
        assert_ne!(functions(&named)[9], Some("sized_too"), "{arguments:?}");
        let unnamed = &named[7][0];
        assert!(
            unnamed.module.ends_with("/program") && unnamed.build_id.is_some(),
            "{unnamed:?}"
        );
        assert!(unnamed.offset.is_some(), "it can be named later");
    }
}

/// `objdump` names the entries of a program's procedure linkage table; what it says of each is held against each byte
/// of it.
#[test]
fn entries_of_the_plt_are_named_after_what_they_jump_to() {
    if !["cc", "strip", "objdump", "readelf", "nm"]
        .iter()
        .all(|tool| has_tool(tool))
    {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let flags = [
        &["-fplt", "-Wl,-z,lazy"][..],
        &["-fplt", "-Wl,-z,now"],
        &["-fplt", "-Wl,-z,lazy", "-fcf-protection=full", "-Wl,-z,ibtplt"],
        &["-fplt", "-no-pie"],
        &["-static"],
    ];
    for flags in flags {
        let program = compile(folder.path(), flags);
        let is_static = flags.contains(&"-static");
        let entries = if is_static {
            chosen_at_start(&program)
        } else {
            labelled(&program)
        };
        assert!(entries.len() >= 2, "{flags:?}: {entries:?}");
        if !is_static {
            run(Command::new("strip").arg(&program));
        }
        let mut talker = Talker::start(&mut Command::new(&program));
        let mut namer = without_lines();
        let (load_bias, inside) = (load_bias(&talker, &program), [0, 3, 6]);
        let addresses: Vec<u64> = entries
            .iter()
            .flat_map(|(address, _)| inside.map(|more| load_bias + address + more))
            .collect();
        let named = talker.names(&mut namer, &addresses);
        for ((address, wanted), frames) in entries.iter().zip(functions(&named).chunks(inside.len())) {
            for found in frames {
                let found = found.and_then(|found| found.strip_suffix("@plt"));
                let plain = wanted.split('@').next().unwrap();
                let matches = |found: &str| plain.split(' ').any(|name| name == found);
                assert!(
                    found.is_some_and(matches),
                    "{flags:?}, {address:x}: {wanted}, not {found:?}"
                );
            }
        }
    }
}

/// Addresses of entries, and the names that the linker gave them: `0000000000001030 <puts@plt>:`.
fn labelled(program: &Path) -> Vec<(u64, String)> {
    let listing = run(Command::new("objdump").args(["-d", "--no-show-raw-insn"]).arg(program));
    let labels = listing.lines().filter_map(|line| {
        let (address, name) = line.strip_suffix(">:")?.split_once(" <")?;
        let name = name.strip_suffix("@plt")?;
        Some((u64::from_str_radix(address, 16).unwrap(), name.to_owned()))
    });
    labels.collect()
}

/// The same of a static program, whose entries have no labels and lead to what is chosen for the processor at its
/// start; with all names of each. `401018: jmp *0xa2fe2(%rip) # 4a4000 <...>`, `4a4000 ... R_X86_64_IRELATIVE 4187d0`
/// and `4187d0 i memcpy`.
fn chosen_at_start(program: &Path) -> Vec<(u64, String)> {
    let code = run(Command::new("objdump")
        .args(["-d", "--no-show-raw-insn", "-j", ".plt"])
        .arg(program));
    let relocations = run(Command::new("readelf").arg("-rW").arg(program));
    let symbols = run(Command::new("nm").arg(program));
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let entry = |line: &str| {
        let (address, jump) = line.trim().split_once(":\tjmp ")?;
        let word = hex(jump.split_once("# ")?.1.split(' ').next()?)?;
        let fills = |line: &&str| line.split(' ').next().and_then(hex) == Some(word);
        let chooser = hex(relocations.lines().find(fills)?.split_whitespace().last()?)?;
        let is_it = |line: &&str| line.split(' ').next().and_then(hex) == Some(chooser);
        let names = symbols.lines().filter(is_it).filter_map(|line| line.split(' ').nth(2));
        Some((hex(address)?, names.collect::<Vec<_>>().join(" ")))
    };
    code.lines().filter_map(entry).collect()
}

/// What is added to a program's own addresses where it runs.
fn load_bias(talker: &Talker, program: &Path) -> u64 {
    let header = run(Command::new("objdump").arg("-f").arg(program));
    if !header.contains("DYNAMIC") {
        return 0;
    }
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", talker.key.tgid)).unwrap();
    let own = maps
        .lines()
        .find(|line| line.ends_with(program.to_str().unwrap()))
        .unwrap();
    u64::from_str_radix(own.split('-').next().unwrap(), 16).unwrap()
}

#[test]
fn a_stripped_program_keeps_only_what_the_loader_needs() {
    if !has_tool("cc") || !has_tool("strip") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), &["-rdynamic"]);
    run(Command::new("strip").arg(&program));
    let (names, stats) = names_of(&program, &["hidden_one", "shown"]);
    assert_eq!(names[..2], [None, None]);
    assert_eq!(names[2..], expected(&["shown"]));
    assert_eq!(
        (stats.debug_files, stats.unpacked_files, stats.damaged_files),
        (0, 0, 0)
    );
}

/// Packs symbols as Fedora's find-debuginfo does: functions that are not dynamic symbols already.
#[test]
fn packed_symbols_name_static_functions() {
    if !["cc", "strip", "objcopy", "nm", "xz"].iter().all(|tool| has_tool(tool)) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), &["-rdynamic"]);
    pack_symbols(&program, &["-6"]);
    let (names, stats) = names_of(&program, &["hidden_one", "hidden_two", "shown", "sized"]);
    assert_eq!(names, expected(&["hidden_one", "hidden_two", "shown", "sized"]));
    assert_eq!((stats.unpacked_files, stats.damaged_files), (1, 0), "{stats:?}");
}

/// Replaces a program by one with packed symbols only.
pub(super) fn pack_symbols(program: &Path, xz: &[&str]) {
    let of = |ending: &str| PathBuf::from(format!("{}.{ending}", program.display()));
    let (debug, mini, keep) = (of("debug"), of("mini"), of("keep"));
    objcopy(&["--only-keep-debug"], &[program, &debug]);
    let dynamic = run(Command::new("nm")
        .args(["-D", "--format=posix", "--defined-only"])
        .arg(program));
    let dynamic: Vec<&str> = dynamic.lines().filter_map(|line| line.split(' ').next()).collect();
    let all = run(Command::new("nm")
        .args(["--format=posix", "--defined-only"])
        .arg(program));
    let functions = all.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let (name, kind) = (fields.next()?, fields.next()?);
        (["t", "T"].contains(&kind) && !dynamic.contains(&name)).then_some(name)
    });
    std::fs::write(&keep, functions.map(|name| format!("{name}\n")).collect::<String>()).unwrap();
    let keep = format!("--keep-symbols={}", keep.display());
    objcopy(
        &[
            "-S",
            "--remove-section",
            ".gdb_index",
            "--remove-section",
            ".comment",
            &keep,
        ],
        &[&debug, &mini],
    );
    run(Command::new("strip")
        .args(["--strip-all", "-R", ".comment"])
        .arg(program));
    run(Command::new("xz").args(["-f", "-k"]).args(xz).arg(&mini));
    let add = format!("--add-section=.gnu_debugdata={}.xz", mini.display());
    objcopy(&[&add], &[program]);
}

#[test]
fn a_debug_file_beside_the_program_names_static_functions() {
    if !["cc", "strip", "objcopy"].iter().all(|tool| has_tool(tool)) {
        return;
    }
    for (build_id, place) in [(true, "."), (true, ".debug"), (false, "."), (false, ".debug")] {
        let folder = tempfile::tempdir().unwrap();
        let id = if build_id {
            "-Wl,--build-id=sha1"
        } else {
            "-Wl,--build-id=none"
        };
        let program = compile(folder.path(), &[id]);
        let debug = split(&program, place);
        let (names, stats) = names_of(&program, &HIDDEN);
        assert_eq!(names, expected(&HIDDEN), "{build_id} {place}");
        assert_eq!((stats.debug_files, stats.damaged_files), (1, 0));

        // Its lines are used too.
        let mut talker = Talker::start(&mut Command::new(&program));
        let address = talker.address("hidden_two");
        let mut namer = Namer::new(NamerConfig::default());
        let named = talker.names(&mut namer, &[address]);
        let frame = named[0].last().unwrap();
        assert!(
            frame.file.as_ref().is_some_and(|file| file.ends_with("program.c")),
            "{frame:?}"
        );
        assert_eq!(frame.line, 5);
        assert_not_mapped(folder.path());
        drop(talker);

        // Another program's is not believed.
        let other = compile(tempfile::tempdir().unwrap().path(), &[id, "-O3"]);
        std::fs::write(&debug, std::fs::read(other).unwrap_or_default()).unwrap();
        let (names, stats) = names_of(&program, &HIDDEN);
        assert_eq!(names, [None, None, None, None]);
        assert_eq!(stats.debug_files, 0);
    }
}

/// Moves the debug information of a program into a file that it links to.
fn split(program: &Path, place: &str) -> PathBuf {
    let folder = program.parent().unwrap().join(place);
    std::fs::create_dir_all(&folder).unwrap();
    let debug = folder.join("program.dbg");
    objcopy(&["--only-keep-debug"], &[program, &debug]);
    run(Command::new("strip").arg(program));
    objcopy(&[&format!("--add-gnu-debuglink={}", debug.display())], &[program]);
    debug
}

/// In a root of its own a program finds its debug file by build id, which ours does not have.
#[test]
fn a_debug_file_is_looked_for_in_the_root_of_the_process() {
    if !["cc", "strip", "objcopy", "chroot"].iter().all(|tool| has_tool(tool)) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), &["-static", "-Wl,--build-id=sha1"]);
    if !Command::new("chroot")
        .arg(folder.path())
        .arg("/program")
        .stdin(std::process::Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success())
    {
        eprintln!("SKIPPED: no privilege to change the root");
        return;
    }
    let notes = run(Command::new("readelf").arg("-n").arg(&program));
    let id = notes
        .lines()
        .find_map(|line| line.trim().strip_prefix("Build ID: "))
        .unwrap();
    let debug = folder.path().join("usr/lib/debug/.build-id").join(&id[..2]);
    std::fs::create_dir_all(&debug).unwrap();
    objcopy(
        &["--only-keep-debug"],
        &[&program, &debug.join(format!("{}.debug", &id[2..]))],
    );
    run(Command::new("strip").arg(&program));
    let mut talker = Talker::start(Command::new("chroot").arg(folder.path()).arg("/program"));
    let addresses = HIDDEN.map(|name| talker.address(name));
    let mut namer = without_lines();
    let named = talker.names(&mut namer, &addresses);
    assert_eq!(functions(&named), HIDDEN.map(Some));
}

#[test]
fn programs_that_ended_or_were_deleted_or_written_over() {
    if !has_tool("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), &[]);
    let mut talker = Talker::start(&mut Command::new(&program));
    let address = talker.address("hidden_one");
    let place = talker.location(address);
    std::fs::remove_file(&program).unwrap();
    talker.kill();
    let named = name_locations(&mut without_lines(), std::slice::from_ref(&place));
    assert_eq!(functions(&named), [Some("hidden_one")], "deleted and ended");

    // The same file with something else in it, as `cp` leaves it.
    let program = compile(folder.path(), &[]);
    let mut talker = Talker::start(&mut Command::new(&program));
    let address = talker.address("hidden_one");
    let place = talker.location(address);
    let mut namer = without_lines();
    talker.kill();
    let bytes = std::fs::read(&program).unwrap();
    std::fs::write(&program, &bytes[..bytes.len() / 2]).unwrap();
    let named = name_locations(&mut namer, std::slice::from_ref(&place));
    assert_eq!(functions(&named), [None], "what is there now is another program");
    let frame = &named[0][0];
    assert!(frame.build_id.is_some() && frame.offset.is_some(), "{frame:?}");
}

/// The C library's own names: the plain one of several for an address.
#[test]
fn functions_of_the_c_library_have_their_usual_names() {
    if !has_tool("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), &[]);
    let mut talker = Talker::start(&mut Command::new(&program));
    let address = talker.address("printf");
    let named = talker.names(&mut without_lines(), &[address, address + 5]);
    assert_eq!(functions(&named), [Some("printf"), Some("printf")]);
}

/// Whoever truncates a file that is mapped ends who looks at it: lines are read from copies.
fn assert_not_mapped(folder: &Path) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mapped = maps.lines().find(|line| line.contains(folder.to_str().unwrap()));
    assert_eq!(mapped, None, "a file of others is mapped");
}

#[test]
fn while_memory_is_short_inlined_functions_go_first_and_lines_next() {
    if !has_tool("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("inlined.c"), folder.path().join("inlined"));
    let text = r#"
#include <stdio.h>
static inline __attribute__((always_inline)) int within(volatile int *n) { *n += 1; *n *= 3; return *n; }
__attribute__((noinline)) int around(int n) { volatile int m = n; return within(&m) + 1; }
int main(int argc, char **argv) { printf("around %p\nresult %d\nend\n", (void *)around, around(argc)); fflush(stdout); getchar(); return 0; }
"#;
    std::fs::write(&source, text).unwrap();
    run(Command::new("cc").args(["-O1", "-g", "-o"]).arg(&program).arg(&source));
    let mut talker = Talker::start(&mut Command::new(&program));
    let addresses: Vec<u64> = (0..16).map(|more| talker.address("around") + more).collect();
    let mut told = Vec::new();
    for degradation in DegradationLevel::ALL {
        let mut namer = Namer::new(NamerConfig::default());
        namer.set_degradation(degradation);
        let named = talker.names(&mut namer, &addresses);
        assert!(
            named
                .iter()
                .all(|frames| frames.last().unwrap().function.as_deref() == Some("around"))
        );
        let inlined = named
            .iter()
            .any(|frames| frames.len() == 2 && frames[0].function.as_deref() == Some("within"));
        let lines = named.iter().all(|frames| frames.last().unwrap().line > 0);
        told.push((inlined, lines));
        assert_not_mapped(folder.path());
    }
    assert_eq!(told, [(true, true), (false, true), (false, false), (false, false)]);
}
