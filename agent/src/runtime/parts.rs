//! Parts of a function that compilers put far behind it.

use std::collections::BTreeSet;
use std::ops::Range;

use super::reading::{ReadMemory, read};

/// Compilers put what is rare, or what they take for it, far behind a function: its part with no name of its own. Where
/// the function jumps into the middle of another one, that is it.
pub(super) fn rare_part(
    memory: &dyn ReadMemory,
    main: &Range<u64>,
    limits: &dyn Fn(u64) -> Option<Range<u64>>,
) -> Option<Range<u64>> {
    const PIECE_BYTES: u64 = 4096;
    /// Bytes that look like a jump lead there by chance once at most.
    const MIN_JUMPS: usize = 2;
    /// Functions that are told apart.
    const MAX_PARTS: usize = 64;
    let mut code = vec![0; usize::try_from(main.end - main.start).ok()?];
    let addresses = (main.start..).step_by(PIECE_BYTES as usize);
    for (piece, address) in code.chunks_mut(PIECE_BYTES as usize).zip(addresses) {
        read(memory, address, piece).ok()?;
    }
    let mut parts: Vec<(Range<u64>, BTreeSet<u64>)> = Vec::new();
    for target in jumps(&code, main.start).filter(|target| !main.contains(target)) {
        if let Some((_, targets)) = parts.iter_mut().find(|(part, _)| part.contains(&target)) {
            targets.insert(target);
        } else if parts.len() < MAX_PARTS
            && let Some(part) = limits(target)
        {
            parts.push((part, BTreeSet::from([target])));
        }
    }
    // What jumps to a begin may be the last call of the function.
    let inside = |(part, targets): &(Range<u64>, BTreeSet<u64>)| {
        let count = targets.iter().filter(|target| **target != part.start).count();
        (count >= MIN_JUMPS).then_some(count)
    };
    let best = parts.iter().filter_map(|part| Some((inside(part)?, part)));
    best.max_by_key(|(count, _)| *count).map(|(_, (part, _))| part.clone())
}

/// Where the jumps of code lead that have a distance of four bytes.
fn jumps(code: &[u8], begin: u64) -> impl Iterator<Item = u64> {
    code.windows(6).zip(begin..).filter_map(|(bytes, address)| {
        let (distance, length) = match bytes {
            [0x0f, 0x80..=0x8f, a, b, c, d] => ([*a, *b, *c, *d], 6),
            [0xe9, a, b, c, d, _] => ([*a, *b, *c, *d], 5),
            _ => return None,
        };
        (address + length).checked_add_signed(i64::from(i32::from_le_bytes(distance)))
    })
}
