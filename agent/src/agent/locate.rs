//! The addresses of a stack, to the code that was there.

use crate::frames::{CodeLocation, Frames, ProgramKey, SourceId};
use crate::kernel::{EXACT_ADDRESS, FrameWord, LEAF_FRAMES, RawSample, WalkEnd};
use crate::process::{Source, Table};

use super::runtimes::{RuntimePlace, Runtimes};

/// A stack whose addresses have been traced to their sources, leaf first.
#[derive(Debug)]
pub(super) struct LocatedStack {
    pub(super) kernel: Box<[CodeLocation]>,
    pub(super) user: Box<[CodeLocation]>,
    /// Frames of a language's runtime, by their places in `user`, where stands [`SourceId::RUNTIME`].
    pub(super) runtime: Box<[(usize, Frames)]>,
    /// Of them one stands for frames that are not on the stack.
    pub(super) has_gap_inside: bool,
    /// What was left out of the middle of `user`.
    pub(super) gap: Option<Gap>,
    pub(super) walk_end: WalkEnd,
    pub(super) kernel_cut: bool,
    /// What the user locations refer to.
    pub(super) sources: Box<[(SourceId, Source)]>,
}

/// Frames that were left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gap {
    /// Before the location of this index.
    pub(super) at: usize,
    /// At least so many, a power of two: with their exact number, recursion would make a stack of its own for each
    /// depth.
    pub(super) frames: u32,
}

/// The addresses that the kernel's code was at.
pub(super) fn kernel_addresses(sample: &RawSample<'_>) -> impl Iterator<Item = u64> {
    let addresses = sample.kernel.iter().enumerate();
    addresses.map(|(index, address)| if index == 0 { *address } else { address.wrapping_sub(1) })
}

/// How many frames are said to be left out.
pub(super) fn left_out(frames: u32) -> u32 {
    frames.checked_ilog2().map_or(0, |power| 1 << power)
}

/// Also tells whether all frames of a runtime are known as well as can be: some may be put off.
pub(super) fn locate(
    sample: &RawSample<'_>,
    key: ProgramKey,
    table: &mut Table,
    runtimes: &mut Runtimes,
    now_ns: u64,
) -> (LocatedStack, bool) {
    let mut sources: Vec<(SourceId, Source)> = Vec::new();
    let kernel = kernel_addresses(sample).map(|address| match table.kernel_location(address, sample.time_ns) {
        Some((location, source)) => {
            if !sources.iter().any(|(known, _)| *known == location.source) {
                sources.push((location.source, source));
            }
            location
        }
        None => CodeLocation {
            source: SourceId::KERNEL,
            offset: address,
        },
    });
    let kernel = kernel.collect();
    let mut walk_end = sample.walk_end;
    // Of a walk that did not come to the root, what is on that side of the gap is somewhere in the middle.
    let addresses = match walk_end {
        WalkEnd::Cut => &sample.user[..sample.user.len().min(LEAF_FRAMES)],
        _ => sample.user,
    };
    let mut user: Vec<CodeLocation> = Vec::with_capacity(addresses.len());
    let mut runtime: Vec<(usize, Frames)> = Vec::new();
    let (mut is_final, mut has_gap_inside, mut gap_at) = (true, false, None);
    for (index, word) in addresses.iter().enumerate() {
        if index == LEAF_FRAMES {
            gap_at = Some(user.len());
        }
        // So was the kernel's way back from a signal's handler: nothing there called the handler.
        let restores = || sample.user.get(index + 1).is_some_and(|next| is_exact(*next));
        let innermost = index == 0 || is_exact(*word);
        let address = match FrameWord::of(*word) {
            FrameWord::Address(address) => address,
            // Of a frame in the middle, which was left out.
            FrameWord::Detail(_) => continue,
            FrameWord::Runtime(frame) => {
                let detail = match addresses.get(index + 1).map(|word| FrameWord::of(*word)) {
                    Some(FrameWord::Detail(detail)) => Some(detail),
                    _ => None,
                };
                let place = RuntimePlace {
                    frame,
                    detail,
                    innermost,
                };
                let known = runtimes.frames(key, place, table.proc_id(key), now_ns);
                is_final &= known.is_final;
                has_gap_inside |= known.is_gap;
                runtime.push((user.len(), known.frames));
                user.push(CodeLocation {
                    source: SourceId::RUNTIME,
                    offset: 0,
                });
                continue;
            }
        };
        let innermost = innermost || restores();
        let location = table.location_at(key, address_of(address, innermost), sample.time_ns, innermost, now_ns);
        // What returns to where there is no code is no frame: here the chain had already led astray.
        if !innermost && location.source == SourceId::UNKNOWN {
            walk_end = WalkEnd::Broken;
            break;
        }
        user.push(location);
    }
    let mut ids: Vec<SourceId> = user.iter().map(|location| location.source).collect();
    ids.sort_unstable();
    ids.dedup();
    sources.extend(
        ids.into_iter()
            .filter_map(|id| Some((id, table.source(key, id, now_ns)?))),
    );
    let skipped = frames_in(sample.user_skipped, addresses.len(), user.len());
    let gap = (sample.user_skipped > 0 && addresses.len() >= LEAF_FRAMES).then(|| Gap {
        at: gap_at.unwrap_or(user.len()),
        frames: left_out(skipped),
    });
    let stack = LocatedStack {
        kernel,
        user: user.into(),
        runtime: runtime.into(),
        has_gap_inside,
        gap,
        walk_end,
        kernel_cut: sample.kernel_cut,
        sources: sources.into(),
    };
    (stack, is_final)
}

fn is_exact(word: u64) -> bool {
    word & EXACT_ADDRESS != 0
}

/// How many frames so many words are that were left out, where `words` of the rest are `frames`: those of a runtime
/// have two.
fn frames_in(skipped: u32, words: usize, frames: usize) -> u32 {
    (u64::from(skipped) * frames.min(words) as u64).div_ceil(words.max(1) as u64) as u32
}

/// Where the code is: one byte before a return address lies the call, which may be a function's last instruction.
pub(super) fn address_of(address: u64, innermost: bool) -> u64 {
    if innermost {
        address & !EXACT_ADDRESS
    } else {
        address.wrapping_sub(1)
    }
}
