//! arm64, on whatever machine this is: its walk on constructed stacks, and its programs as far as the compiler.

use std::path::Path;
use std::process::Command;

use stakeout_agent::kernel::{Arch, EXACT_ADDRESS, RED_ZONE_BYTES, Registers, WalkStop};

use super::{BIAS, tables_of};
use crate::unwind::constructed::{AARCH64, AARCH64_INITIAL, ARM64, CODE, eh_frame, elf};

const STACK: u64 = 0x7000_0000;

/// Functions of 64 bytes: 0 keeps no frame, 1 and 2 save x29 and x30, 3 is where the kernel lets signal handlers
/// return to (its table is the frame of an ordinary function here), 4 is called by nobody.
fn functions() -> Vec<u8> {
    let saves = [0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3];
    eh_frame(
        "B",
        AARCH64,
        AARCH64_INITIAL,
        &[&[], &saves, &saves, &saves, &[0x07, 30]],
    )
}

fn walk(frames: &[u8], at: &Registers, words: &[(u64, u64)]) -> (Vec<u64>, WalkStop) {
    let (layout, published) = tables_of(&elf(ARM64, ".eh_frame", 2, frames), &[]);
    let mut stack = vec![0; 4096];
    for (address, word) in words {
        let offset = (address - (at.sp - RED_ZONE_BYTES)) as usize;
        stack[offset..offset + 8].copy_from_slice(&word.to_le_bytes());
    }
    layout.memory.walk(Arch::Arm64, published, at, &stack)
}

/// An address in a function; signed, as pointer authentication leaves it on the stack.
fn signed(function: u64, offset: u64) -> u64 {
    plain(function, offset) | 0x0023 << 48
}

fn plain(function: u64, offset: u64) -> u64 {
    BIAS + CODE + function * 64 + offset
}

#[test]
fn a_frameless_leaf_returns_by_the_link_register_and_its_callers_by_the_stack() {
    let at = Registers {
        pc: plain(0, 8),
        sp: STACK,
        fp: 0x1234,
        lr: signed(1, 16),
        ..Registers::default()
    };
    // Function 1's frame of 32 bytes holds x29 and x30, then comes that of function 2.
    let stack = [
        (STACK, STACK + 32),
        (STACK + 8, signed(2, 20)),
        (STACK + 32, 0),
        (STACK + 40, signed(4, 12)),
    ];
    let (frames, stop) = walk(&functions(), &at, &stack);
    assert_eq!(frames, [plain(0, 8), plain(1, 16), plain(2, 20), plain(4, 12)]);
    assert_eq!(stop, WalkStop::Root);
}

#[test]
fn the_link_register_is_good_for_the_innermost_frame_only() {
    // A return address in a function that says it keeps none: it would return to itself for ever.
    let at = Registers {
        pc: plain(0, 8),
        sp: STACK,
        lr: signed(0, 16),
        ..Registers::default()
    };
    let (frames, stop) = walk(&functions(), &at, &[]);
    assert_eq!(
        (frames.as_slice(), stop),
        ([plain(0, 8), plain(0, 16)].as_slice(), WalkStop::Broken)
    );
}

#[test]
fn a_signal_frame_gives_back_all_registers() {
    let frames = eh_frame("SB", AARCH64, AARCH64_INITIAL, &[&[]]);
    let at = Registers {
        pc: plain(0, 0),
        sp: STACK,
        ..Registers::default()
    };
    // siginfo, ucontext up to its sigcontext, then x29, x30, sp, pc.
    let saved = STACK + 128 + 176 + 8 + 29 * 8;
    let stack = [
        (saved, STACK + 0x800),
        (saved + 8, signed(0, 4)),
        (saved + 16, STACK + 0x700),
        (saved + 24, BIAS + 0x1_8000),
        (STACK + 0x800, 0),
        (STACK + 0x808, BIAS + 0x1_9000),
    ];
    let (found, stop) = walk(&frames, &at, &stack);
    // The interrupted code is no return address; nobody describes it, so the frame pointer leads on.
    assert_eq!(found, [plain(0, 0), (BIAS + 0x1_8000) | EXACT_ADDRESS, BIAS + 0x1_9000]);
    assert_eq!(stop, WalkStop::Root);
}

#[test]
fn the_kernel_side_compiles_for_both_architectures() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf");
    for arch in ["x86", "arm64"] {
        for name in ["sampler", "lifecycle", "waits"] {
            let done = Command::new("clang")
                .args([
                    "-target",
                    "bpf",
                    "-g",
                    "-O2",
                    "-mcpu=v3",
                    "-Wall",
                    "-Werror",
                    "-c",
                    "-o",
                    "/dev/null",
                ])
                .args(["-I", env!("STAKEOUT_LIBBPF_HEADERS")])
                .arg(format!("-D__TARGET_ARCH_{arch}"))
                .arg(sources.join(format!("{name}.bpf.c")))
                .status()
                .expect("this test needs clang (Debian: apt install clang)");
            assert!(done.success(), "{name} for {arch}");
        }
    }
}
