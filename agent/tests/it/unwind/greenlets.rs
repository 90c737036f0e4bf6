//! A file that has what the extension module of greenlets has: where its stacks end.

use std::path::Path;
use std::process::Command;

use stakeout_agent::unwind::Cfa;

use super::compile_bytes;
use super::oracle::Elf;

const SOURCE: &str = r#"
extern "C" void elsewhere(void *, void *);
extern "C" long distance_to_next(void);
namespace greenlet {
struct UserGreenlet {
    void inner_bootstrap(void *origin, void *run);
    void g_initialstub(void *mark);
};
struct Greenlet {
    long g_switchstack();
};
}
__attribute__((noinline)) static long moving(long distance)
{
    elsewhere(0, &distance);
    __asm__ volatile("addq %0, %%rsp\naddq %0, %%rbp\n" : : "r"(distance));
    elsewhere(&distance, 0);
    return distance;
}
void greenlet::UserGreenlet::inner_bootstrap(void *origin, void *run)
{
    elsewhere(origin, run);
    elsewhere(run, origin);
}
void greenlet::UserGreenlet::g_initialstub(void *mark)
{
    elsewhere(mark, this);
    inner_bootstrap(this, mark);
    elsewhere(this, mark);
}
long greenlet::Greenlet::g_switchstack()
{
    elsewhere(this, 0);
    return moving(distance_to_next()) + 1;
}
"#;

/// The address of an exported function whose name contains this.
fn exported(elf: &Elf<'_>, part: &str) -> u64 {
    let (symbols, names) = (elf.section(".dynsym").unwrap(), elf.section(".dynstr").unwrap());
    let number = |bytes: &[u8]| {
        let bytes = bytes.iter().rev();
        bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    let found = symbols.bytes.chunks_exact(24).find(|symbol| {
        let name = &names.bytes[number(&symbol[..4]) as usize..];
        let end = name.iter().position(|byte| *byte == 0).unwrap();
        std::str::from_utf8(&name[..end]).unwrap().contains(part)
    });
    number(&found.unwrap()[8..16])
}

/// Where a stack is moved.
fn moving(elf: &Elf<'_>) -> u64 {
    let text = elf.section(".text").unwrap();
    let is_move = |code: &[u8]| code[1] == 1 && code[4] == 1 && code[2] & 0xc7 == 0xc4 && code[5] == code[2] + 1;
    text.address + text.bytes.windows(6).position(is_move).unwrap() as u64
}

#[test]
fn a_greenlet_s_stack_ends_with_its_first_function_and_with_what_changes_over() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("greenlets.cpp");
    std::fs::write(&path, SOURCE).unwrap();
    for (flags, is_known) in [
        (&["-O2"][..], true),
        (&["-O1", "-fno-omit-frame-pointer", "-s"], true),
        // The same of another library.
        (&["-O2", "-Dgreenlet=treelet"], false),
    ] {
        let library = path.with_extension("so");
        let done = Command::new("c++")
            .args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(&path)
            .args(flags)
            .status()
            .expect("this test needs a C++ compiler (Debian: apt install g++)");
        assert!(done.success());
        let bytes = std::fs::read(&library).unwrap();
        let (elf, table) = (Elf::new(&bytes), compile_bytes(&bytes).unwrap());
        let ends = [
            exported(&elf, "inner_bootstrap"),
            exported(&elf, "g_switchstack"),
            moving(&elf),
        ];
        for address in ends {
            for within in [0, 4] {
                let cfa = table.rule_at(address + within).cfa();
                assert_eq!(cfa == Cfa::End, is_known, "{flags:?} {address:#x} {cfa:?}");
            }
        }
        let outer = exported(&elf, "g_initialstub");
        assert_ne!(table.rule_at(outer + 4).cfa(), Cfa::End, "{flags:?}");
    }
}
