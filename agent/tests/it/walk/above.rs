//! A frame with room for much begins above the copied part of a stack: what lies there is read as it is now, as long as
//! the thread is still in that frame.

use stakeout_agent::kernel::{Arch, RED_ZONE_BYTES, Registers, WalkStop};

use super::{BIAS, tables_of};
use crate::made::X86_64;
use crate::unwind::constructed::{AMD64, AMD64_INITIAL, CODE, eh_frame, elf};

const STACK: u64 = 0x7f00_0000;
const ROOM: u64 = 0x2_0000;
const COPIED_BYTES: usize = 4096;

/// Function 0 has 16 bytes of its own below its return address, 1 has [`ROOM`], and 2 is called by nobody.
fn frames() -> Vec<u8> {
    let room = [0x0e, 0x88, 0x80, 0x08];
    eh_frame("", AMD64, AMD64_INITIAL, &[&[0x0e, 24], &room, &[0x07, 16]])
}

fn at(function: u64) -> u64 {
    BIAS + CODE + function * 64 + 32
}

/// A stack in which function 0 was interrupted, that 1 had called, which these had called.
fn stack(callers: &[u64]) -> Vec<u64> {
    let mut words = vec![7, 8, at(1)];
    words.resize(words.len() + ROOM as usize / 8, 9);
    words.extend(callers.iter().flat_map(|caller| [*caller, 1, 2]));
    words
}

/// Walks the first bytes of a stack, beside a process that has the other one now.
fn walk(then: &[u64], now: &[u64]) -> (Vec<u64>, WalkStop) {
    let (layout, published) = tables_of(&elf(X86_64, ".eh_frame", 2, &frames()), &[]);
    let bytes = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut copied = vec![0; RED_ZONE_BYTES as usize];
    copied.extend(bytes(then));
    copied.truncate(COPIED_BYTES);
    let now = bytes(now);
    let read = |address: u64, to: &mut [u8]| {
        let first = (address - STACK) as usize;
        let piece = now.get(first..first + to.len());
        piece.map(|piece| to.copy_from_slice(piece)).is_some()
    };
    let registers = Registers {
        pc: at(0),
        sp: STACK,
        ..Registers::default()
    };
    layout
        .memory
        .walk_beside(Arch::X86_64, published, &registers, &copied, Some(&read))
}

#[test]
fn the_root_above_a_frame_with_much_room_is_found_while_the_thread_is_in_it() {
    let stack = stack(&[at(0), at(2)]);
    let (frames, stop) = walk(&stack, &stack);
    assert_eq!((frames, stop), (vec![at(0), at(1), at(0), at(2)], WalkStop::Root));
}

#[test]
fn the_root_is_found_when_the_frame_with_much_room_has_called_another_since() {
    let then = stack(&[at(0), at(2)]);
    let mut now = then.clone();
    now[1] = 11;
    now[2] = at(1) + 16;
    let (frames, stop) = walk(&then, &now);
    assert_eq!((frames, stop), (vec![at(0), at(1), at(0), at(2)], WalkStop::Root));
}

#[test]
fn what_is_above_a_frame_that_was_left_is_not_taken() {
    let then = stack(&[at(2)]);
    let mut now = then.clone();
    now[2] = at(0);
    let (frames, stop) = walk(&then, &now);
    assert_eq!((frames, stop), (vec![at(0), at(1)], WalkStop::Broken));
    // Nor where it can't be read any more.
    let (frames, stop) = walk(&then, &[]);
    assert_eq!((frames, stop), (vec![at(0), at(1)], WalkStop::Broken));
}

#[test]
fn what_does_not_lead_to_the_root_soon_is_not_taken() {
    for callers in [vec![at(0); 9], vec![at(0), 12]] {
        let mut stack = stack(&callers);
        stack.extend([at(2), 1, 2]);
        let (frames, stop) = walk(&stack, &stack);
        assert_eq!((frames, stop), (vec![at(0), at(1)], WalkStop::Broken), "{callers:?}");
    }
}
