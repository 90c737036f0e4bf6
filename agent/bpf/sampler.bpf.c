// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Runs at every tick of the perf event of every CPU: counts the tick, and unless the CPU is idle writes one record with
 * both stacks to the ring. It wakes nobody: the agent drains the ring several times a second.
 */
#include "kernel_types.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "abi.h"
#include "maps.h"

static inline __attribute__((always_inline)) int so_read_user(void *to, u32 size, u64 address)
{
	return bpf_probe_read_user(to, size, (const void *)address) != 0;
}

#include "unwind.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#if defined(__TARGET_ARCH_x86)
#define PC_FIELD ip
#define FP_FIELD bp
#else
#define PC_FIELD pc
#define FP_FIELD regs[29]
#endif

/* THREAD_SIZE of both architectures (with pages of 4 KiB). */
#define KERNEL_STACK_BYTES 16384

/*
 * The idle task with nothing on top of it: neither a softirq nor an interrupt other than the timer that runs this program.
 *
 * arm64 keeps the preemption count in the task: bits 8 to 15 count softirq, bits 16 to 19 hard interrupts, of which the
 * timer is one (include/linux/preempt.h). x86 keeps it in a per-CPU variable, which BPF can reach only where the kernel
 * lists data symbols (CONFIG_KALLSYMS_ALL; without it the load fails with "ldimm64 failed to find the address for kernel
 * symbol '__preempt_count'", seen on 6.18). But x86 runs softirqs and interrupts on a stack of their own: where the timer
 * interrupted code on the idle task's own stack, there was nothing else.
 */
static inline __attribute__((always_inline)) int cpu_is_idle(struct bpf_perf_event_data *ctx, struct task_struct *task, u32 tid)
{
	if (tid != 0)
		return 0;
#if defined(__TARGET_ARCH_x86)
	return ctx->sp - (u64)BPF_CORE_READ(task, stack) < KERNEL_STACK_BYTES;
#else
	u32 count = BPF_CORE_READ(task, thread_info.preempt_count);

	return !(count & 0x0000ff00) && (count & 0x000f0000) <= 0x00010000;
#endif
}

static inline __attribute__((always_inline)) int in_user_mode(struct bpf_perf_event_data *ctx)
{
#if defined(__TARGET_ARCH_x86)
	return (ctx->cs & 3) != 0;
#else
	return (ctx->pstate & 0xf) == 0;
#endif
}

/* The registers with which the thread entered the kernel. Linux 5.15 has a helper; before, they are where every kernel keeps them. */
static inline __attribute__((always_inline)) struct pt_regs *entry_registers(struct task_struct *task)
{
	if (bpf_core_enum_value_exists(enum bpf_func_id___stakeout, BPF_FUNC_task_pt_regs___stakeout))
		return (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return (struct pt_regs *)(BPF_CORE_READ(task, stack) + KERNEL_STACK_BYTES - bpf_core_type_size(struct pt_regs));
}

SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
	u64 begin = bpf_ktime_get_ns();
	struct so_counters *counter;
	struct so_scratch *record;
	struct so_unwind_state state = {};
	struct task_struct *task, *leader;
	u64 pid_tgid = bpf_get_current_pid_tgid();
	u32 zero = 0, kernel_frames = 0, user_frames = 0, walk_end = SO_WALK_NONE, flags = 0, task_flags;
	u64 size;
	long bytes;

	counter = bpf_map_lookup_elem(&counters, &zero);
	record = bpf_map_lookup_elem(&scratch, &zero);
	if (!counter || !record)
		return 0;
	counter->ticks++;
	task = (struct task_struct *)bpf_get_current_task();
	if (cpu_is_idle(ctx, task, (u32)pid_tgid)) {
		counter->idle_ticks++;
		counter->run_ns += bpf_ktime_get_ns() - begin;
		return 0;
	}
	counter->taken++;

	leader = BPF_CORE_READ(task, group_leader);
	record->header.time_ns = begin;
	record->header.start_boottime_ns = BPF_CORE_READ(leader, start_boottime);
	record->header.cgroup_id = bpf_get_current_cgroup_id();
	record->header.tgid = pid_tgid >> 32;
	record->header.tid = (u32)pid_tgid;
	record->header.cpu = bpf_get_smp_processor_id();
	record->header.exec_id = (u32)BPF_CORE_READ(task, self_exec_id);
	bpf_get_current_comm(record->header.comm, sizeof(record->header.comm));
	task_flags = BPF_CORE_READ(task, flags);

	if (in_user_mode(ctx)) {
		flags |= SO_SAMPLE_IN_USER;
	} else {
		bytes = bpf_get_stack(ctx, record->frames, SO_MAX_KERNEL_FRAMES * sizeof(u64), 0);
		if (bytes > 0)
			kernel_frames = (u32)bytes / sizeof(u64);
		if (kernel_frames >= SO_MAX_KERNEL_FRAMES) {
			kernel_frames = SO_MAX_KERNEL_FRAMES;
			flags |= SO_SAMPLE_KERNEL_CUT;
		}
	}

	record->header.stack_top[0] = 0;
	record->header.stack_top[1] = 0;
	if (task_flags & PF_KTHREAD || (u32)pid_tgid == 0) {
		flags |= SO_SAMPLE_KERNEL_THREAD;
	} else if (BPF_CORE_READ(task, mm)) {
		if (flags & SO_SAMPLE_IN_USER) {
			state.pc = ctx->PC_FIELD;
			state.sp = ctx->sp;
			state.fp = ctx->FP_FIELD;
		} else {
			struct pt_regs *regs = entry_registers(task);

			state.pc = BPF_CORE_READ(regs, PC_FIELD);
			state.sp = BPF_CORE_READ(regs, sp);
			state.fp = BPF_CORE_READ(regs, FP_FIELD);
		}
		if (so_read_user(record->header.stack_top, sizeof(record->header.stack_top), state.sp)) {
			record->header.stack_top[0] = 0;
			record->header.stack_top[1] = 0;
		}
		/* Stated for the verifier, which does not remember the clamp above through the branches. */
		kernel_frames &= SO_MAX_KERNEL_FRAMES;
		walk_end = so_walk_user(&state, &record->frames[kernel_frames], &user_frames);
	}

	record->header.kernel_frames = kernel_frames;
	record->header.user_frames = user_frames;
	record->header.walk_end = walk_end;
	record->header.flags = flags;
	record->header.reserved = 0;
	size = sizeof(record->header) + (kernel_frames + user_frames) * sizeof(u64);
	if (size > sizeof(*record))
		size = sizeof(*record);
	if (bpf_ringbuf_output(&samples, record, size, BPF_RB_NO_WAKEUP))
		counter->lost_ring_full++;
	counter->run_ns += bpf_ktime_get_ns() - begin;
	return 0;
}
