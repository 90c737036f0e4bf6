//! What holds of the records of all rings, and of walks by whatever tables over whatever stacks.

use super::events::parse_event;
use super::mappings::Told;
use super::records::{Drained, read_record};
use super::tables::LiveMemory;
use super::{
    Arch, EXACT_ADDRESS, FrameWord, HostMemory, MAX_USER_FRAMES, MAX_WALKED_FRAMES, Registers, WalkStop, so_runtime,
    so_walk,
};
use crate::fuzz::Input;
use crate::unwind::{Memory, Published, Range};

/// Records behind one another, each with its length in front.
pub(crate) fn records(bytes: &[u8]) {
    let mut input = Input(bytes);
    let (mut drained, mut waits, mut count) = (Drained::default(), Drained::default(), 0);
    while !input.0.is_empty() {
        let bytes = usize::try_from(input.number::<2>()).unwrap_or_default();
        let record = input.bytes(bytes);
        drained.push(record);
        waits.push_wait(record);
        parse_event(record);
        count += 1;
    }
    let (mut samples, mut addresses, mut stacks) = (0, 0, 0);
    drained.samples(|sample| {
        samples += 1;
        addresses += sample.kernel.len() + sample.user.len();
        assert!(sample.comm.len() <= 16);
        if let Some(deferred) = sample.deferred {
            stacks += deferred.stack.len();
            resume(deferred.walk, sample.user, deferred.stack);
        }
    });
    assert_eq!(samples + drained.malformed, count);
    assert_eq!((addresses, stacks), (drained.addresses.len(), drained.stacks.len()));
    assert!(addresses * size_of::<u64>() + stacks <= bytes.len());
    // A wait may be two samples, with the same frames.
    let (mut addresses, mut stacks) = (0, 0);
    waits.samples(|sample| {
        addresses += sample.kernel.len() + sample.user.len();
        stacks += sample.deferred.map_or(0, |deferred| deferred.stack.len());
        assert!(sample.kind.state().is_some() && sample.value_ns > 0);
    });
    assert_eq!((addresses, stacks), (waits.addresses.len(), waits.stacks.len()));
    let asleep: usize = waits.asleep.iter().map(|asleep| asleep.words.len()).sum();
    assert!((addresses / 2 + asleep) * size_of::<u64>() <= bytes.len());
}

/// What a ring of new mappings holds.
pub(crate) fn mappings(bytes: &[u8]) {
    let mut told = Told::default();
    told.read(bytes);
    // A record of a mapping has 48 bytes at least, one of code 40.
    assert!(told.events.len() <= bytes.len() / 40);
}

/// Goes on with a walk as a record has it, in a program of which nothing is known but where its code is.
fn resume(mut walk: so_walk, user: &[u64], stack: &[u8]) {
    let mut memory = HostMemory::new(1);
    memory.add_slab();
    let everything = [0, 0, u32::MAX, u32::MAX, 0, 0, 0, 1];
    memory.write(range(FIRST_MAPPING, 8), &mut everything.into_iter());
    let program = Published {
        mappings: range(FIRST_MAPPING, 8),
        count: 1,
    };
    let mut frames = user.to_vec();
    memory.walk_on(Arch::HOST, &mut walk, program, stack, None, &mut frames);
    // The last one may turn out to be another.
    let kept = user.split_last().map_or(user, |(_, kept)| kept);
    assert!(frames.starts_with(kept) && (user.len()..=MAX_WALKED_FRAMES.max(user.len())).contains(&frames.len()));
}

/// Places in the slabs of [`walk`]; word zero of the first is never used.
const FIRST_MAPPING: u32 = 8;
const DIRECTORY: u32 = 64;
const ROWS: u32 = 128;
const SLABS: usize = 2;
const SLAB_BITS: u32 = 18;
/// Each mapping has as many bytes, and lies at as many times its number.
const MAPPING_BYTES: u64 = 1 << 20;
/// Chunks of 64 KiB in it.
const CHUNKS: u32 = 16;
const STACK: u64 = 0x7f00_0000_0000;

fn range(place: u32, words: u32) -> Range {
    Range { place, words }
}

/// Rules, mappings, rows, words written over anywhere in them, registers, and the rest is the stack.
pub(crate) fn walk(bytes: &[u8]) {
    walked(bytes);
}

/// How many frames, and why no more.
fn walked(bytes: &[u8]) -> (usize, WalkStop) {
    let mut input = Input(bytes);
    let first = input.byte();
    let arch = if first & 1 == 0 { Arch::X86_64 } else { Arch::Arm64 };
    let (mut memory, program) = tables(&mut input);
    let registers = registers(&mut input);
    let stack = input.0;
    if first & 2 != 0 {
        memory.code = (MAPPING_BYTES, stack.to_vec());
    }
    let (frames, stop) = memory.walk(arch, program, &registers, stack);
    assert!((1..=MAX_WALKED_FRAMES).contains(&frames.len()));
    assert_eq!(frames[0], registers.pc);
    assert!(stop != WalkStop::Cut || frames.len() > MAX_USER_FRAMES);
    for frame in &frames[1..] {
        // Neither the page that is never mapped nor the kernel's half.
        assert!((4096..1 << 56).contains(&(frame & !EXACT_ADDRESS)), "{frame:x}");
    }
    assert_eq!(memory.walk(arch, program, &registers, stack), (frames.clone(), stop));
    let ended = (frames.len(), stop);
    // From the middle of a walk, with all that a record can say of one.
    if let Some(mut walk) = read_record::<so_walk>(stack) {
        let mut frames = vec![0; usize::from(bytes[0]) * 4];
        let before = frames.len();
        memory.walk_on(arch, &mut walk, program, stack, None, &mut frames);
        assert!((before..=before.max(MAX_WALKED_FRAMES)).contains(&frames.len()));
    }
    ended
}

/// Where a process's memory begins that a runtime's structures lie in.
const IMAGE: u64 = 0x5000_0000_0000;
/// Reads of a step from a frame of a runtime: steps through a segment map, and some fields.
const MAX_READS_A_FRAME: usize = 40;

/// Tables and registers as for [`walk`], a runtime, and the rest is both the stack and the process's memory.
pub(crate) fn runtime(bytes: &[u8]) {
    let mut input = Input(bytes);
    let (memory, program) = tables(&mut input);
    let registers = registers(&mut input);
    let Some(mut runtime) = read_record::<so_runtime>(input.0) else {
        return;
    };
    let rest = &input.0[size_of::<so_runtime>()..];
    runtime.kinds = [3, 4, 8, 11, 16][runtime.kinds as usize % 5];
    // As a walk on a copied stack has it: without the chain of frames, which has gone on.
    let php = &mut runtime.php;
    (php.current, php.fiber, php.is_local) = (0, 0, 0);
    for (begin, bytes) in php.made_begin.iter_mut().zip(&mut php.made_bytes) {
        *begin = MAPPING_BYTES + *begin % MAPPING_BYTES;
        *bytes %= MAPPING_BYTES;
    }
    php.loop_inside = MAPPING_BYTES + php.loop_inside % MAPPING_BYTES;
    // Mostly as they should be: code where mappings are, structures where there is memory.
    let jvm = &mut runtime.jvm;
    jvm.interpreter_begin = MAPPING_BYTES + jvm.interpreter_begin % MAPPING_BYTES;
    jvm.interpreter_bytes %= MAPPING_BYTES;
    for heap in &mut jvm.heaps {
        heap.begin = MAPPING_BYTES + heap.begin % MAPPING_BYTES;
        heap.bytes %= 4 * MAPPING_BYTES;
        heap.segments = IMAGE + heap.segments % (1 << 12);
    }
    runtime.ruby.frame_bytes = 56;
    let v8 = &mut runtime.v8;
    (v8.first_function_type, v8.last_function_type) = (0, u16::MAX);
    v8.is_late &= 1;
    for (begin, bytes) in v8.made_begin.iter_mut().zip(&mut v8.made_bytes) {
        *begin = MAPPING_BYTES + *begin % MAPPING_BYTES;
        *bytes %= 4 * MAPPING_BYTES;
    }
    let reads = std::cell::Cell::new(0_usize);
    let read = |address: u64, to: &mut [u8]| {
        reads.set(reads.get() + 1);
        let first = address.checked_sub(IMAGE).and_then(|first| usize::try_from(first).ok());
        let piece = first.and_then(|first| rest.get(first..first.checked_add(to.len())?));
        piece.map(|piece| to.copy_from_slice(piece)).is_some()
    };
    let live = LiveMemory {
        read: &read,
        runtime: Some(&runtime),
    };
    let mut walk = so_walk {
        pc: registers.pc,
        sp: registers.sp,
        fp: registers.fp,
        innermost: 1,
        has_registers: 1,
        registers: registers.general,
        scan_left: 256,
        ..so_walk::default()
    };
    let mut frames = vec![registers.pc];
    let stop = memory.walk_on(Arch::X86_64, &mut walk, program, rest, Some(live), &mut frames);
    assert!((1..=MAX_WALKED_FRAMES + 1).contains(&frames.len()));
    assert!(stop != WalkStop::Cut || frames.len() > MAX_USER_FRAMES);
    // Frames of a chain that are hidden take three reads each, and lie behind each other.
    assert!(
        reads.get() <= frames.len() * MAX_READS_A_FRAME + rest.len(),
        "{} reads",
        reads.get()
    );
    for pair in frames.windows(2) {
        // Each frame of a runtime has its detail.
        let is_runtime = matches!(FrameWord::of(pair[0]), FrameWord::Runtime(_));
        assert_eq!(
            is_runtime,
            matches!(FrameWord::of(pair[1]), FrameWord::Detail(_)),
            "{pair:x?}"
        );
    }
}

/// Tables as they should be, mostly, so that walks get far.
fn tables(input: &mut Input<'_>) -> (HostMemory, Published) {
    let mut memory = HostMemory::new(SLABS);
    for _ in 0..SLABS {
        memory.add_slab();
    }
    let rules = usize::from(input.byte() % 16);
    for number in 0..rules {
        memory.write_rule(number + 1, input.number::<8>());
    }
    let mappings = u32::from(input.byte() % 4);
    for number in 0..mappings {
        let begin = MAPPING_BYTES * u64::from(number + 1);
        let halves = |value: u64| [value as u32, (value >> 32) as u32];
        let ([b0, b1], [e0, e1]) = (halves(begin), halves(begin + MAPPING_BYTES));
        // Pending, none, or chunks.
        let state = u32::from(input.byte() % 4).min(2);
        let state = if state == 2 { state + CHUNKS } else { state };
        let words = [b0, b1, e0, e1, b0, b1, DIRECTORY, state];
        memory.write(range(FIRST_MAPPING + number * 8, 8), &mut words.into_iter());
    }
    let rows = u32::from(input.byte() % 16);
    let mut directory = (0..CHUNKS).flat_map(|_| [ROWS, rows]);
    memory.write(range(DIRECTORY, CHUNKS * 2), &mut directory);
    for number in 0..rows {
        let row = input.number::<2>() << 16 | input.number::<1>();
        memory.write(range(ROWS + number, 1), &mut [row as u32].into_iter());
    }
    for _ in 0..input.byte() % 8 {
        let slab = u32::from(input.byte()) % 2;
        let place = slab << SLAB_BITS | input.number::<1>() as u32;
        let word = input.number::<4>() as u32;
        memory.write(range(place, 1), &mut [word].into_iter());
    }
    let program = Published {
        mappings: range(FIRST_MAPPING, mappings * 8),
        count: if input.byte() == 0xff {
            input.number::<4>() as u32
        } else {
            mappings
        },
    };
    (memory, program)
}

fn registers(input: &mut Input<'_>) -> Registers {
    let mut registers = Registers {
        pc: MAPPING_BYTES + input.number::<3>(),
        sp: STACK + input.number::<1>() * 8,
        fp: STACK + input.number::<2>(),
        lr: MAPPING_BYTES + input.number::<3>(),
        general: [STACK; 16],
    };
    registers.general[3] = STACK + input.number::<2>();
    // Anything else that a register can hold.
    let wild = input.byte();
    let chosen = [
        &mut registers.pc,
        &mut registers.sp,
        &mut registers.fp,
        &mut registers.lr,
    ];
    for (bit, register) in chosen.into_iter().enumerate() {
        if wild >> 4 == 0xf && wild >> bit & 1 != 0 {
            *register = input.number::<8>();
        }
    }
    registers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A target whose walks all end at once would find nothing.
    #[test]
    fn walks_get_far_and_end_in_every_way() {
        // x86-64; rule 1: rsp + 8, return address below; two mappings with tables; one row; nothing written over.
        let mut input = vec![0, 1];
        input.extend(0x0801u64.to_le_bytes());
        input.extend([2, 2, 2, 1, 0, 0, 1, 0, 0]);
        let registers = [0; 3 + 1 + 2 + 3 + 2 + 1];
        input.extend(registers);
        let with_stack = |first: &[u8], word: u64, words: usize| {
            let red_zone = vec![0; 128];
            walked(&[first, &red_zone, &word.to_le_bytes().repeat(words)].concat())
        };
        assert_eq!(with_stack(&input, 0x10_0040, 600), (601, WalkStop::Broken));
        assert_eq!(with_stack(&input, 0x10_0040, 5000), (4097, WalkStop::Cut));
        assert_eq!(
            with_stack(&input, 0x10_0040, 9),
            (10, WalkStop::Broken),
            "the stack ends"
        );
        assert_eq!(with_stack(&input, 0, 9), (1, WalkStop::Root));
        assert_eq!(with_stack(&input, 0x30_0040, 9), (2, WalkStop::NoMapping));
        let mut pending = input.clone();
        pending[12] = 0;
        assert_eq!(with_stack(&pending, 0x20_0040, 9), (2, WalkStop::NoTable));
    }
}
