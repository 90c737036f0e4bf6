//! Where neither tables nor frame pointers lead on, return addresses are found on the stack: in stacks and code made
//! by hand.

use stakeout_agent::kernel::{Arch, RED_ZONE_BYTES, Registers, WalkStop};
use stakeout_agent::unwind::{Code, CodeMapping};

use super::{BIAS, tables_of};
use crate::made::X86_64;
use crate::unwind::constructed::{AMD64, AMD64_INITIAL, CODE, eh_frame, elf};

const STACK: u64 = 0x7f00_0000;
/// Of a run-time compiler: no table.
const MADE: u64 = BIAS + 0x3_0000;
/// Of a file whose table is still to come.
const PENDING: u64 = BIAS + 0x3_8000;
/// Each function of 64 bytes has a call before the byte 32, and nothing else.
const BEHIND_CALL: u64 = 32;

/// Function 0 has 16 bytes of its own below its return address, 1 works with a frame pointer, 2 says the same as 0
/// and has 32 bytes, and 3 is called by nobody.
fn frames() -> Vec<u8> {
    eh_frame(
        "",
        AMD64,
        AMD64_INITIAL,
        &[&[0x0e, 24], &[0x0e, 16, 0x86, 2, 0x0d, 6], &[0x0e, 24], &[0x07, 16]],
    )
}

fn code() -> Vec<u8> {
    let mut code = vec![0x90; 0x3_0000];
    for place in (0..code.len() - 64).step_by(64) {
        code[place + 27..place + 32].copy_from_slice(&[0xe8, 0, 0, 0, 0]);
    }
    code
}

/// Words of the stack from its pointer on.
fn walk(pc: u64, fp: u64, words: &[u64]) -> (Vec<u64>, WalkStop) {
    walk_with(code(), pc, fp, words)
}

fn walk_with(code: Vec<u8>, pc: u64, fp: u64, words: &[u64]) -> (Vec<u64>, WalkStop) {
    let others = [(MADE, Code::NoTable), (PENDING, Code::Pending)].map(|(begin, code)| CodeMapping {
        begin,
        end: begin + 0x1000,
        code,
    });
    let (mut layout, published) = tables_of(&elf(X86_64, ".eh_frame", 2, &frames()), &others);
    layout.memory.code = (BIAS + 0x1_0000, code);
    let mut stack = vec![0; RED_ZONE_BYTES as usize];
    stack.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    stack.resize(stack.len().max(4096), 0);
    let at = Registers {
        pc,
        sp: STACK,
        fp,
        ..Registers::default()
    };
    layout.memory.walk(Arch::X86_64, published, &at, &stack)
}

fn at(function: u64, offset: u64) -> u64 {
    BIAS + CODE + function * 64 + offset
}

fn behind_call(function: u64) -> u64 {
    at(function, BEHIND_CALL)
}

fn root() -> u64 {
    behind_call(3)
}

#[test]
fn made_code_finds_its_caller_and_passes_over_what_earlier_calls_left() {
    let words = [7, at(0, 8), behind_call(0), 5, 6, 99, behind_call(0), 1, 2, root()];
    let (frames, stop) = walk(MADE + 8, 1, &words);
    assert_eq!(frames, [MADE + 8, behind_call(0), root()]);
    assert_eq!(stop, WalkStop::Root, "tables led on from there");
}

#[test]
fn what_an_earlier_call_left_is_passed_over_while_tables_are_to_come() {
    let called = PENDING + BEHIND_CALL;
    let (frames, stop) = walk(MADE + 8, 1, &[7, behind_call(0), 1, 2, called]);
    assert_eq!(frames, [MADE + 8, behind_call(0), called]);
    assert_eq!(stop, WalkStop::NoTable);
    // No call ends in the middle of that code.
    let words = [7, behind_call(0), 1, 2, PENDING + 8, behind_call(2), 1, 2, called];
    let (frames, stop) = walk(MADE + 8, 1, &words);
    assert_eq!(frames, [MADE + 8, behind_call(2), called]);
    assert_eq!(stop, WalkStop::NoTable);
}

#[test]
fn a_caller_with_a_frame_pointer_gets_the_one_that_was_saved_for_it() {
    let words = [STACK + 48, behind_call(1), 0, 0, 0, 0, 0, root()];
    for fp in [1, 0, STACK + 8, MADE] {
        let (frames, stop) = walk(MADE + 8, fp, &words);
        assert_eq!(frames, [MADE + 8, behind_call(1), root()], "{fp:x}");
        assert_eq!(stop, WalkStop::Root);
    }
}

#[test]
fn made_code_that_was_called_by_made_code_is_a_frame_without_proof() {
    let (frames, stop) = walk(MADE + 8, 0, &[3, MADE + 64 + BEHIND_CALL]);
    assert_eq!(frames, [MADE + 8, MADE + 64 + BEHIND_CALL]);
    assert_eq!(stop, WalkStop::Broken, "nothing says that this is the root");
    let words = [3, MADE + 64 + BEHIND_CALL, 4, behind_call(0), 1, 2, root()];
    let (frames, stop) = walk(MADE + 8, 0, &words);
    assert_eq!(frames, [MADE + 8, MADE + 64 + BEHIND_CALL, behind_call(0), root()]);
    assert_eq!(stop, WalkStop::Root);
}

#[test]
fn a_frame_pointer_of_zero_is_the_root_only_where_nobody_called() {
    let (frames, stop) = walk(at(0, 8), 0, &[1, 2, MADE + BEHIND_CALL]);
    assert_eq!(frames, [at(0, 8), MADE + BEHIND_CALL]);
    assert_eq!(stop, WalkStop::Root);
    let words = [1, 2, MADE + BEHIND_CALL, 3, behind_call(0), 1, 2, root()];
    let (frames, stop) = walk(at(0, 8), 0, &words);
    assert_eq!(frames, [at(0, 8), MADE + BEHIND_CALL, behind_call(0), root()]);
    assert_eq!(stop, WalkStop::Root);
}

#[test]
fn a_table_that_is_wrong_by_some_words_is_noticed() {
    // What it takes for the return address: no code; a function's beginning; what no call can lead to.
    for wrong in [0x7777_0000, at(1, 0), at(1, 4), 5] {
        let words = [1, 2, wrong, 3, behind_call(0), 1, 2, root()];
        let (frames, stop) = walk(at(2, 8), 1, &words);
        assert_eq!(frames, [at(2, 8), behind_call(0), root()], "{wrong:x}");
        assert_eq!(stop, WalkStop::Root);
    }
}

#[test]
fn a_frame_that_was_put_there_without_a_call_is_kept() {
    // As a runtime does that interrupts its own code: the interrupted code's table leads on.
    let words = [1, 2, at(0, 10), 3, 4, root(), behind_call(0), 1, 2, root()];
    let (frames, stop) = walk(at(0, 8), 1, &words);
    assert_eq!(frames, [at(0, 8), at(0, 10), root()]);
    assert_eq!(stop, WalkStop::Root);
    // Where it does not, and nothing better is near, neither is it lost.
    let (frames, stop) = walk(at(0, 8), 1, &[1, 2, at(0, 10), 3, 4, 5]);
    assert_eq!(
        (frames.as_slice(), stop),
        ([at(0, 8), at(0, 10)].as_slice(), WalkStop::Broken)
    );
}

#[test]
fn a_search_ends() {
    let far = |distance: usize| [vec![9; distance], vec![behind_call(0), 1, 2, root()]].concat();
    let (frames, stop) = walk(MADE + 8, 1, &far(400));
    assert_eq!((frames.len(), stop), (3, WalkStop::Root));
    let (frames, stop) = walk(MADE + 8, 1, &far(1100));
    assert_eq!((frames.len(), stop), (1, WalkStop::Broken), "beyond 8 KiB");
    let (frames, stop) = walk(MADE + 8, 1, &[MADE + BEHIND_CALL; 6000]);
    assert_eq!(stop, WalkStop::Broken, "{} frames", frames.len());
}

#[test]
fn every_form_of_a_call_is_known() {
    let forms: [&[u8]; 10] = [
        &[0xe8, 1, 2, 3, 4],
        &[0xff, 0xd0],
        &[0x41, 0xff, 0xd7],
        &[0xff, 0x13],
        &[0xff, 0x53, 8],
        &[0xff, 0x14, 0xc7],
        &[0xff, 0x54, 0x24, 8],
        &[0xff, 0x15, 1, 2, 3, 4],
        &[0xff, 0x93, 1, 2, 3, 4],
        &[0xff, 0x14, 0xc5, 1, 2, 3, 4],
    ];
    let others: [&[u8]; 4] = [&[0xe9, 1, 2, 3, 4], &[0xff, 0xe0], &[0xff, 0x25, 1, 2, 3, 4], &[0x90]];
    for (form, is_call) in forms
        .map(|form| (form, true))
        .into_iter()
        .chain(others.map(|form| (form, false)))
    {
        let mut code = vec![0x90; 0x3_0000];
        let end = (CODE - 0x1_0000) as usize + 32;
        code[end - form.len()..end].copy_from_slice(form);
        let of_root = end + 3 * 64;
        code[of_root - 5] = 0xe8;
        let (frames, _) = walk_with(code, MADE + 8, 1, &[3, behind_call(0), 1, 2, root()]);
        assert_eq!(frames.contains(&behind_call(0)), is_call, "{form:x?}");
    }
}
