//! Samples of who ended waits: their stacks begin where the kernel wakes, and those of interrupts end with them.

use std::sync::Arc;

use crate::frames::{Frame, FrameKind, SampleKind, Stack};
use crate::hash::FastMap;
use crate::metadata::{KERNEL_SERVICE, Metadata};
use crate::ship::{Process, Sample};

/// The process and the thread of interrupts, which belong to no program: what they found running has no part in it.
const INTERRUPT: &str = "[interrupt]";

/// What the names begin with of functions that wake a thread. What they call to tell of it is no part of the stack.
const WAKING: [&str; 5] = [
    "ttwu_",
    "try_to_wake_up",
    "wake_up_process",
    "default_wake_function",
    "sched_ttwu_",
];

/// The same of functions with which an interrupt begins, on both architectures.
const INTERRUPTING: [&str; 8] = [
    "asm_sysvec_",
    "asm_common_interrupt",
    "sysvec_",
    "common_interrupt",
    "irq_exit_rcu",
    "__irq_exit_rcu",
    "el1h_64_irq",
    "el0t_64_irq",
];

/// Which frames of a stack are kept.
struct Kept {
    from: usize,
    until: usize,
    by_interrupt: bool,
}

fn begins(function: &str, with: &[&str]) -> bool {
    with.iter().any(|begin| function.starts_with(begin))
}

fn kept(functions: &[&str], length: usize) -> Kept {
    let from = functions
        .iter()
        .position(|function| begins(function, &WAKING))
        .unwrap_or(0);
    match functions.iter().rposition(|function| begins(function, &INTERRUPTING)) {
        Some(last) => Kept {
            from,
            until: last + 1,
            by_interrupt: true,
        },
        None => Kept {
            from,
            until: length,
            by_interrupt: false,
        },
    }
}

/// Cuts the stacks of all such samples, and gives those of interrupts their process.
pub(super) fn settle(samples: &mut [Sample], stacks: &mut [Stack], processes: &mut Vec<Process>, frames: &[Frame]) {
    let mut by_interrupt: FastMap<u32, bool> = FastMap::default();
    let mut interrupt = None;
    for sample in samples
        .iter_mut()
        .filter(|sample| matches!(sample.kind, SampleKind::WakeUp(_)))
    {
        let is_by_interrupt = *by_interrupt.entry(sample.stack).or_insert_with(|| {
            let stack = &mut stacks[sample.stack as usize];
            let kernel = stack.frames.iter().map(|index| &frames[*index as usize]);
            let kernel = kernel.take_while(|frame| frame.kind == FrameKind::Kernel);
            let functions: Vec<&str> = kernel
                .map(|frame| frame.function.as_deref().unwrap_or_default())
                .collect();
            let kept = kept(&functions, stack.frames.len());
            stack.frames.truncate(kept.until);
            stack.frames.drain(..kept.from);
            stack.truncated &= !kept.by_interrupt;
            kept.by_interrupt
        });
        if is_by_interrupt {
            sample.process = *interrupt.get_or_insert_with(|| {
                processes.push(interrupts());
                (processes.len() - 1) as u32
            });
            sample.thread = INTERRUPT.into();
            sample.tid = 0;
        }
    }
}

fn interrupts() -> Process {
    Process {
        executable: INTERRUPT.into(),
        metadata: Arc::new(Metadata {
            service: KERNEL_SERVICE.into(),
            ..Metadata::default()
        }),
        ..Process::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept_of<'a>(functions: &[&'a str]) -> (Vec<&'a str>, bool) {
        let kept = kept(functions, functions.len());
        (functions[kept.from..kept.until].to_vec(), kept.by_interrupt)
    }

    #[test]
    fn a_stack_begins_where_the_kernel_wakes() {
        let functions = [
            "bpf_prog_1_on_wakeup",
            "bpf_trace_run1",
            "ttwu_do_activate",
            "try_to_wake_up",
            "futex_wake",
        ];
        assert_eq!(kept_of(&functions), (functions[2..].to_vec(), false));
        assert_eq!(kept_of(&["other", "names"]), (vec!["other", "names"], false));
    }

    #[test]
    fn what_an_interrupt_found_running_has_no_part_in_it() {
        let functions = [
            "ttwu_do_activate",
            "hrtimer_wakeup",
            "__hrtimer_run_queues",
            "sysvec_apic_timer_interrupt",
            "asm_sysvec_apic_timer_interrupt",
            "copy_page",
            "do_syscall_64",
        ];
        assert_eq!(kept_of(&functions), (functions[..5].to_vec(), true));
    }

    #[test]
    fn softirq_work_of_a_system_call_is_its_threads() {
        let functions = [
            "try_to_wake_up",
            "tcp_rcv_established",
            "handle_softirqs",
            "__local_bh_enable_ip",
            "tcp_sendmsg",
        ];
        assert_eq!(kept_of(&functions), (functions.to_vec(), false));
    }
}
