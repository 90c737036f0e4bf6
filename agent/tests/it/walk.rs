//! The kernel side's walk of user stacks, compiled for the host: the same code, without a kernel.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const NONE: u32 = 0;
const ROOT: u32 = 1;
const CUT: u32 = 2;
const BROKEN: u32 = 3;
const MAX_FRAMES: usize = 512;

#[derive(Debug, PartialEq)]
struct Walk {
    end: u32,
    reads: usize,
    frames: Vec<u64>,
}

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("walk");
        let done = Command::new("cc")
            .args([
                "-std=gnu2x",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-O1",
                "-fsanitize=undefined",
                "-o",
            ])
            .arg(&path)
            .arg("-I")
            .arg(root.join("bpf"))
            .arg(root.join("tests/it/walk.c"))
            .status()
            .expect("this test needs a C compiler (Debian: apt install gcc)");
        assert!(done.success());
        path
    })
}

fn walk(pc: u64, sp: u64, fp: u64, memory: &[(u64, u64)]) -> Walk {
    let mut input = format!("{pc:x} {sp:x} {fp:x}\n");
    for (address, word) in memory {
        writeln!(input, "{address:x} {word:x}").unwrap();
    }
    let mut child = Command::new(program())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let mut fields = text.split_whitespace();
    Walk {
        end: fields.next().unwrap().parse().unwrap(),
        reads: fields.next().unwrap().parse().unwrap(),
        frames: fields.map(|field| u64::from_str_radix(field, 16).unwrap()).collect(),
    }
}

/// Frame records of `depth` callers, upwards from 0x7000_0000; the outermost has `last_fp` for its caller's.
fn chain(depth: u64, last_fp: u64) -> Vec<(u64, u64)> {
    (0..depth)
        .flat_map(|level| {
            let at = 0x7000_0000 + level * 0x40;
            let next = if level + 1 == depth { last_fp } else { at + 0x40 };
            [(at, next), (at + 8, 0x40_0000 + level)]
        })
        .collect()
}

#[test]
fn a_whole_chain_ends_at_the_root() {
    let found = walk(0x1234, 0x6fff_fff0, 0x7000_0000, &chain(3, 0));
    assert_eq!(found.end, ROOT);
    assert_eq!(found.frames, [0x1234, 0x40_0000, 0x40_0001, 0x40_0002]);
}

#[test]
fn a_return_address_of_zero_is_the_root_too() {
    let mut memory = chain(2, 0x7000_0080);
    memory.extend([(0x7000_0080, 0), (0x7000_0088, 0)]);
    let found = walk(0x1234, 0x6fff_fff0, 0x7000_0000, &memory);
    assert_eq!((found.end, found.frames.len()), (ROOT, 3));
}

#[test]
fn a_chain_longer_than_the_limit_is_cut_there() {
    let found = walk(0x1234, 0x6fff_fff0, 0x7000_0000, &chain(MAX_FRAMES as u64 + 10, 0));
    assert_eq!((found.end, found.frames.len()), (CUT, MAX_FRAMES));
    let found = walk(0x1234, 0x6fff_fff0, 0x7000_0000, &chain(MAX_FRAMES as u64 - 1, 0));
    assert_eq!(
        found.frames.len(),
        MAX_FRAMES,
        "one that just fits is whole but cannot know it"
    );
}

#[test]
fn what_is_no_chain_is_broken_and_never_walked_in_circles() {
    let good = chain(1, 0);
    for (what, sp, fp, memory) in [
        ("no frame pointer", 0x1000, 0, vec![]),
        ("unreadable", 0x1000, 0x7000_0000, vec![]),
        ("not aligned", 0x1000, 0x7000_0004, good.clone()),
        ("below the stack pointer", 0x7000_0001, 0x7000_0000, good.clone()),
        (
            "returns to the first page",
            0x1000,
            0x7000_0000,
            vec![(0x7000_0000, 0), (0x7000_0008, 12)],
        ),
        (
            "returns to the kernel",
            0x1000,
            0x7000_0000,
            vec![(0x7000_0000, 0), (0x7000_0008, u64::MAX - 5)],
        ),
    ] {
        let found = walk(0x1234, sp, fp, &memory);
        assert_eq!(
            (found.end, found.frames.as_slice()),
            (BROKEN, [0x1234].as_slice()),
            "{what}"
        );
    }
    let looped = walk(0x1234, 0x1000, 0x7000_0000, &chain(4, 0x7000_0000));
    assert_eq!((looped.end, looped.frames.len()), (BROKEN, 5));
    assert!(looped.reads <= 5);
}

#[test]
fn without_a_user_address_there_is_no_stack() {
    for pc in [0, 7, u64::MAX - 1] {
        let found = walk(pc, 0x1000, 0x7000_0000, &chain(2, 0));
        assert_eq!((found.end, found.frames.len()), (NONE, 0));
    }
}
