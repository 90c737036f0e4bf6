//! Code that nobody describes is walked by the chain of frame pointers.

use stakeout_agent::kernel::{Arch, HostMemory, LEAF_FRAMES, RED_ZONE_BYTES, Registers, WalkStop, leave_out_middle};
use stakeout_agent::unwind::{Code, CodeMapping, Layout};

const MAX_FRAMES: usize = 1024;
const STACK: u64 = 0x7000_0000;
const CODE: u64 = 0x40_0000;

/// Walks from code without tables; `stack` lies at [`STACK`].
fn walk(pc: u64, sp: u64, fp: u64, stack: &[u64]) -> (Vec<u64>, WalkStop) {
    let mut layout = Layout::new(HostMemory::new(1));
    let mapping = CodeMapping {
        begin: CODE,
        end: CODE + 0x10_0000,
        code: Code::NoTable,
    };
    let published = layout.publish(&[mapping]).unwrap();
    let below = vec![0; usize::try_from(RED_ZONE_BYTES - (sp - STACK)).unwrap()];
    let above = stack.iter().flat_map(|word| word.to_le_bytes());
    let stack: Vec<u8> = below.into_iter().chain(above).collect();
    let at = Registers {
        pc,
        sp,
        fp,
        ..Registers::default()
    };
    layout.memory.walk(Arch::HOST, published, &at, &stack)
}

/// Frame records of `depth` callers, eight words each; the outermost has `last_fp` for its caller's.
fn chain(depth: u64, last_fp: u64) -> Vec<u64> {
    (0..depth)
        .flat_map(|level| {
            let next = STACK + (level + 1) * 0x40;
            let fp = if level + 1 == depth { last_fp } else { next };
            [fp, CODE + 0x100 + level, 0, 0, 0, 0, 0, 0]
        })
        .collect()
}

#[test]
fn a_whole_chain_ends_at_the_root() {
    let (frames, stop) = walk(CODE, STACK, STACK, &chain(3, 0));
    assert_eq!(stop, WalkStop::Root);
    assert_eq!(frames, [CODE, CODE + 0x100, CODE + 0x101, CODE + 0x102]);
}

#[test]
fn a_return_address_of_zero_is_the_root_too() {
    let mut stack = chain(2, STACK + 0x80);
    stack.extend([0, 0]);
    let (frames, stop) = walk(CODE, STACK, STACK, &stack);
    assert_eq!((frames.len(), stop), (3, WalkStop::Root));
}

#[test]
fn of_a_deep_chain_the_leaf_and_the_root_are_kept() {
    let (mut frames, stop) = walk(CODE, STACK, STACK, &chain(2000, 0));
    assert_eq!((frames.len(), stop), (2001, WalkStop::Root));
    let all = frames.clone();
    assert_eq!(leave_out_middle(&mut frames), 2001 - MAX_FRAMES as u32);
    assert_eq!(frames[..LEAF_FRAMES], all[..LEAF_FRAMES]);
    assert_eq!(frames[LEAF_FRAMES..], all[2001 - (MAX_FRAMES - LEAF_FRAMES)..]);
    assert_eq!(leave_out_middle(&mut frames), 0, "once");
    // More than a copy of a stack is likely to have.
    let (frames, stop) = walk(CODE, STACK, STACK, &chain(5000, 0));
    assert_eq!((frames.len(), stop), (4097, WalkStop::Cut));
}

#[test]
fn what_is_no_chain_is_broken_and_never_walked_in_circles() {
    for (what, sp, fp, stack) in [
        ("no frame pointer", STACK, 0, chain(1, 0)),
        ("unreadable", STACK, STACK + 0x4000, chain(1, 0)),
        ("not aligned", STACK, STACK + 4, chain(1, 0)),
        ("below the stack pointer", STACK + 8, STACK, chain(1, 0)),
        ("returns to the first page", STACK, STACK, vec![0, 12]),
        ("returns to the kernel", STACK, STACK, vec![0, u64::MAX - 5]),
    ] {
        let (frames, stop) = walk(CODE, sp, fp, &stack);
        assert_eq!(
            (frames.as_slice(), stop),
            ([CODE].as_slice(), WalkStop::Broken),
            "{what}"
        );
    }
    let (frames, stop) = walk(CODE, STACK, STACK, &chain(4, STACK));
    assert_eq!((frames.len(), stop), (5, WalkStop::Broken));
}

#[test]
fn what_returns_to_no_code_says_so() {
    let (frames, stop) = walk(CODE, STACK, STACK, &[0, CODE - 0x1000]);
    assert_eq!((frames.len(), stop), (2, WalkStop::NoMapping));
    let (_, stop) = walk(CODE + 0x20_0000, STACK, STACK, &chain(1, 0));
    assert_eq!(stop, WalkStop::NoMapping);
}
