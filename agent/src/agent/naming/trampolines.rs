//! What hooks around `schedule` leave in the kernel's stacks.
//!
//! Before Linux 6.18 a program of the agent runs as `schedule` returns. The kernel has made a function for that, a
//! trampoline, through which `schedule` is called: no part of what the thread does. The kernel's stacks of threads that
//! wait begin with the caller of `schedule`, so that the trampoline is the first frame. It has a name where its making
//! was seen; else perhaps that of the BPF program below it, which does not wait itself. In all other stacks it stands
//! between `schedule` and its caller. Behind it `schedule` may stand again, whose first bytes call the trampoline.

use crate::frames::{Frame, FrameKind, Stack};

/// What the names of such functions begin with.
const TRAMPOLINE: &str = "bpf_trampoline_";
/// What it is around.
const SCHEDULE: &str = "schedule";
/// The module of BPF programs.
const BPF: &str = "[bpf]";
/// That of what is one of two modules, and has no name for that.
const UNSURE: &str = "[module]";

/// Takes it out of all stacks, of which these are of threads that wait. Only where there is such a hook.
pub(super) fn take_out(waiting: impl IntoIterator<Item = u32>, stacks: &mut [Stack], frames: &[Frame]) {
    let is_kernel = |index: &u32| frames[*index as usize].kind == FrameKind::Kernel;
    let has_name = |index: &u32| is_kernel(index) && frames[*index as usize].function.is_some();
    let is_schedule = |index: &u32| is_kernel(index) && frames[*index as usize].function.as_deref() == Some(SCHEDULE);
    let is_told = |index: &u32| {
        let frame = &frames[*index as usize];
        let function = frame.function.as_deref();
        is_kernel(index) && (&*frame.module == BPF || function.is_some_and(|name| name.starts_with(TRAMPOLINE)))
    };
    // Where the kernel tells its names, all of its code and of its modules has one.
    let is_nameless = |index: &u32, rest: &[u32]| {
        let frame = &frames[*index as usize];
        is_kernel(index) && frame.function.is_none() && &*frame.module != UNSURE && rest.iter().any(has_name)
    };
    for stack in waiting {
        let stack = &mut stacks[stack as usize].frames;
        if let [first, rest @ ..] = &stack[..]
            && (is_told(first) || is_nameless(first, rest))
            && rest.first().is_some_and(is_kernel)
        {
            let is_twice = rest.first().is_some_and(is_schedule) && rest.get(1).is_some_and(is_kernel);
            stack.drain(..1 + usize::from(is_twice));
        }
    }
    for Stack { frames: stack, .. } in stacks {
        let is_behind = |pair: &[u32]| is_schedule(&pair[0]) && (is_told(&pair[1]) || is_nameless(&pair[1], pair));
        if let Some(at) = stack.windows(2).position(is_behind) {
            let is_twice = stack.get(at + 2).is_some_and(is_schedule);
            stack.drain(at + 1..at + 2 + usize::from(is_twice));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_schedule_is_called_through_is_taken_out_and_nothing_else() {
        let names = [
            Some("bpf_trampoline_1"),
            None,
            Some("futex_wait"),
            Some("vfs_read"),
            Some("main"),
            Some("bpf_prog_6deef7357e7b4530_sd_devices"),
            Some("[module]"),
            Some("finish_task_switch"),
            Some(SCHEDULE),
        ];
        let frames: Vec<Frame> = names
            .iter()
            .map(|name| Frame {
                kind: match name {
                    Some("main") => FrameKind::Native,
                    _ => FrameKind::Kernel,
                },
                module: match name {
                    Some(name) if name.starts_with("bpf_prog_") => BPF,
                    Some("[module]") => UNSURE,
                    _ => "[kernel]",
                }
                .into(),
                function: name.filter(|name| *name != UNSURE).map(Into::into),
                ..Frame::unknown()
            })
            .collect();
        let stack = |frames: &[u32]| Stack {
            frames: frames.to_vec(),
            truncated: false,
        };
        let mut stacks = [
            stack(&[0, 2, 4]),
            stack(&[1, 2, 4]),
            stack(&[2, 4]),
            // Another's program, at another function, is a part of what is done.
            stack(&[3, 0, 2, 4]),
            // Nothing is left of what the thread waits in.
            stack(&[1, 4]),
            stack(&[]),
            // The trampoline lies behind another's program.
            stack(&[5, 2, 4]),
            // The kernel tells no names, but what was told at its making.
            stack(&[1, 1, 4]),
            stack(&[0, 1, 4]),
            // Of a module that was replaced.
            stack(&[6, 2, 4]),
            stack(&[0, 8, 2, 4]),
            // Of a thread that runs.
            stack(&[0, 2, 4]),
            stack(&[7, 8, 0, 2, 4]),
            stack(&[7, 8, 1, 8, 2, 4]),
            stack(&[7, 8, 2, 4]),
            stack(&[7, 8, 6, 4]),
            // Another's program, at another function.
            stack(&[7, 3, 0, 2, 4]),
        ];
        take_out(0..11, &mut stacks, &frames);
        let left: Vec<&[u32]> = stacks.iter().map(|stack| &stack.frames[..]).collect();
        let expected: [&[u32]; 17] = [
            &[2, 4],
            &[2, 4],
            &[2, 4],
            &[3, 0, 2, 4],
            &[1, 4],
            &[],
            &[2, 4],
            &[1, 1, 4],
            &[1, 4],
            &[6, 2, 4],
            &[2, 4],
            &[0, 2, 4],
            &[7, 8, 2, 4],
            &[7, 8, 2, 4],
            &[7, 8, 2, 4],
            &[7, 8, 6, 4],
            &[7, 3, 0, 2, 4],
        ];
        assert_eq!(left, expected);
    }
}
