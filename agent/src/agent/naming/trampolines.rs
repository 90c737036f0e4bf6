//! What the agent's own hook leaves in the stacks of threads that wait.
//!
//! Before Linux 6.18 a program of the agent runs as `schedule` returns. The kernel has made a function for that,
//! through which `schedule` is called: no part of what the thread does.

use crate::frames::{Frame, FrameKind, Stack};

/// What the names of such functions begin with, and what they call where they are the agent's.
const TRAMPOLINE: &str = "bpf_trampoline_";
const HOOKED: &str = "schedule";

/// Takes it out of stacks, wherever it calls `schedule`.
pub(super) fn take_out(stacks: &mut [Stack], frames: &[Frame]) {
    let is = |index: u32, is_named: &dyn Fn(&str) -> bool| {
        let frame = &frames[index as usize];
        frame.kind == FrameKind::Kernel && frame.function.as_deref().is_some_and(is_named)
    };
    let is_trampoline = |index: u32| is(index, &|name| name.starts_with(TRAMPOLINE));
    // Mostly there is none.
    if !(0..frames.len() as u32).any(is_trampoline) {
        return;
    }
    for stack in stacks {
        let is_own = |pair: &[u32]| is(pair[0], &|name| name == HOOKED) && is_trampoline(pair[1]);
        if let Some(at) = stack.frames.windows(2).position(is_own) {
            stack.frames.remove(at + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_schedule_is_called_through_is_taken_out_and_nothing_else() {
        let names = ["schedule", "bpf_trampoline_1", "futex_wait", "vfs_read", "main"];
        let frames: Vec<Frame> = names
            .iter()
            .map(|name| Frame {
                kind: if *name == "main" {
                    FrameKind::Native
                } else {
                    FrameKind::Kernel
                },
                function: Some((*name).into()),
                ..Frame::unknown()
            })
            .collect();
        let stack = |frames: &[u32]| Stack {
            frames: frames.to_vec(),
            truncated: false,
        };
        // Another's program, at another function, is a part of what is done.
        let mut stacks = [
            stack(&[0, 1, 2, 4]),
            stack(&[3, 1, 2, 4]),
            stack(&[0]),
            stack(&[0, 2, 4]),
        ];
        take_out(&mut stacks, &frames);
        let left: Vec<&[u32]> = stacks.iter().map(|stack| &stack.frames[..]).collect();
        assert_eq!(left, [&[0, 2, 4][..], &[3, 1, 2, 4], &[0], &[0, 2, 4]]);
    }
}
