//! The frames of a batch, and its stacks as numbers of them.

use std::sync::Arc;

use super::roots::{End, is_start};
use crate::agent::locate::LocatedStack;
use crate::frames::{Frame, Frames, Stack};
use crate::hash::FastMap;
use crate::kernel::WalkEnd;

/// The frame table of a batch: each frame once.
pub(super) struct FrameTable {
    pub(super) frames: Vec<Frame>,
    /// Of all locations one after the other, indices of their frames.
    of_locations: Vec<u32>,
    /// Where in that each location ends, and the next one begins.
    ends: Vec<u32>,
    /// Frames that stand for as many that were left out.
    gaps: FastMap<u32, u32>,
}

impl FrameTable {
    /// The namer gives equal frames as one allocation.
    pub(super) fn of(locations: &[Frames]) -> Self {
        let mut index: FastMap<*const Frame, u32> = FastMap::default();
        let (mut frames, mut of_locations) = (Vec::new(), Vec::new());
        let mut ends = Vec::with_capacity(locations.len());
        for location in locations {
            of_locations.extend(location.iter().map(|frame| {
                *index.entry(Arc::as_ptr(frame)).or_insert_with(|| {
                    frames.push((**frame).clone());
                    (frames.len() - 1) as u32
                })
            }));
            ends.push(of_locations.len() as u32);
        }
        Self {
            frames,
            of_locations,
            ends,
            gaps: FastMap::default(),
        }
    }

    /// A stack by the numbers of its locations, and how it ends.
    pub(super) fn stack(&mut self, stack: &LocatedStack, locations: &[u32]) -> (Stack, End) {
        let mut frames = Vec::with_capacity(locations.len() + 1);
        let kernel = stack.kernel.len();
        let marks = [
            stack.kernel_cut.then_some((kernel, 0)),
            stack.gap.map(|gap| (kernel + gap.at, gap.frames)),
        ];
        let mut rest = locations;
        for (at, count) in marks.into_iter().flatten() {
            let (before, behind) = rest.split_at(at - (locations.len() - rest.len()));
            self.extend(&mut frames, before);
            frames.push(self.gap(count));
            rest = behind;
        }
        self.extend(&mut frames, rest);
        let end = match stack.walk_end {
            WalkEnd::None => End::None,
            WalkEnd::Root => End::Root,
            WalkEnd::Cut => End::Cut { is_marked: true },
            WalkEnd::Broken if self.ends_at_a_root(&frames) => End::Root,
            WalkEnd::Broken => End::Cut { is_marked: false },
        };
        let stack = Stack {
            truncated: stack.kernel_cut
                || stack.gap.is_some()
                || stack.has_gap_inside
                || matches!(end, End::Cut { .. }),
            frames,
        };
        (stack, end)
    }

    fn extend(&self, frames: &mut Vec<u32>, locations: &[u32]) {
        for location in locations {
            let location = *location as usize;
            let begin = location.checked_sub(1).map_or(0, |before| self.ends[before]);
            frames.extend_from_slice(&self.of_locations[begin as usize..self.ends[location] as usize]);
        }
    }

    /// The frame that stands for at least so many that were left out; 0 where nobody knows how many.
    fn gap(&mut self, count: u32) -> u32 {
        *self.gaps.entry(count).or_insert_with(|| {
            let count = if count == 0 { String::new() } else { format!("{count} ") };
            self.frames.push(Frame::mark(&format!("[… {count}frames]")));
            (self.frames.len() - 1) as u32
        })
    }

    /// A C library without frame pointers breaks the chain just above `main`: what called it is then the last frame,
    /// and above that there is nothing that anybody misses.
    fn ends_at_a_root(&self, frames: &[u32]) -> bool {
        let function = |from_end: usize| {
            let index = frames.len().checked_sub(from_end)?;
            self.frames[frames[index] as usize].function.as_deref()
        };
        function(1).is_some_and(is_start) || function(2) == Some("main")
    }
}
