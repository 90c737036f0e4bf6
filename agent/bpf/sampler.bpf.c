// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Runs at every tick of the perf event of every CPU: counts the tick, and unless the CPU is idle writes one record with
 * both stacks to the ring. It wakes nobody until that fills up: the agent drains it a few times a second.
 */
#include "kernel_types.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "abi.h"
#include "maps.h"
#include "identity.h"

#include "stack.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/*
 * The idle task with nothing on top of it: neither a softirq nor an interrupt other than the timer that runs this
 * program.
 *
 * arm64 keeps the preemption count in the task: bits 8 to 15 count softirq, bits 16 to 19 hard interrupts, of which
 * the timer is one (include/linux/preempt.h). x86 keeps it in a per-CPU variable, which BPF can reach only where the
 * kernel lists data symbols (CONFIG_KALLSYMS_ALL; without it the load fails with "ldimm64 failed to find the address
 * for kernel symbol '__preempt_count'", seen on 6.18). But x86 runs softirqs and interrupts on a stack of their own:
 * where the timer interrupted code on the idle task's own stack, there was nothing else.
 */
SO_INLINE int cpu_is_idle(struct bpf_perf_event_data *ctx, struct task_struct *task, u32 tid)
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

SO_INLINE int in_user_mode(struct bpf_perf_event_data *ctx)
{
#if defined(__TARGET_ARCH_x86)
	return (ctx->cs & 3) != 0;
#else
	return (ctx->pstate & 0xf) == 0;
#endif
}

/*
 * Puts whom the sample is of into the scratch. Says whether it is a thread of the kernel (1), and whether it has user
 * memory (2). A function of its own, for the same reason as walk_stack.
 */
APART int identify(u32 tgid)
{
	u32 cpu = bpf_get_smp_processor_id(), flags;
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);
	struct mm_struct *mm;

	if (!record)
		return 0;
	mm = set_task(&record->header, (struct task_struct *)bpf_get_current_task(), tgid, &flags);
	return (flags & PF_KTHREAD ? 1 : 0) | (mm ? 2 : 0);
}

/* Whether a burst of some threads is of the running one. Apart, so that a walk has the more of the BPF stack. */
APART int is_chosen(u32 of_names, u32 of_tids)
{
	u32 tid = (u32)bpf_get_current_pid_tgid();
	u8 name[SO_COMM_LENGTH] = {};
	u32 is_listed;

	if (of_names) {
		bpf_get_current_comm(name, sizeof(name));
		is_listed = bpf_map_lookup_elem(&burst_names, name) != NULL;
		if (is_listed != (of_names == SO_BURST_LISTED))
			return 0;
	}
	if (of_tids) {
		is_listed = bpf_map_lookup_elem(&burst_tids, &tid) != NULL;
		if (is_listed != (of_tids == SO_BURST_LISTED))
			return 0;
	}
	return 1;
}

/*
 * The period of the burst that tells of this thread now; 0 where none does. Both timers of a CPU ask it: a thread's
 * time is always told by one of them.
 */
SO_INLINE u32 burst_period_ns(u32 cpu, u32 tgid, u64 now_ns)
{
	struct so_burst *burst = bpf_map_lookup_elem(&bursts, &cpu);

	if (!burst || now_ns < burst->from_ns || now_ns >= burst->until_ns)
		return 0;
	if (burst->of_members && !bpf_map_lookup_elem(&burst_members, &tgid))
		return 0;
	if ((burst->of_names | burst->of_tids) && !is_chosen(burst->of_names, burst->of_tids))
		return 0;
	return burst->period_ns;
}

/* When user space was last told of what does not wait, and how often it is. */
#define SOON_TOLD_NS (100 * 1000000ULL)
volatile u64 soon_told_ns = 0;
/* For so long after its start a process may be gone before anybody looks into the ring by himself. */
#define YOUNG_NS (1000 * 1000000ULL)

/*
 * The rest of a deferred stack is known as long as its process lives, and what a runtime says of it as long as it is
 * in those functions; so are the names of a runtime's functions, of which a young process may be gone soon. Whoever
 * finds it out is woken soon, but not for each CPU, nor for each stack.
 */
SO_INLINE u64 wake_up_for(const struct so_scratch *record)
{
	const struct so_sample *sample = &record->header;
	int is_soon = sample->stack_bytes != 0;

	if (!is_soon && sample->walk_end != SO_WALK_NONE && record->walk.runtime)
		is_soon = bpf_ktime_get_boot_ns() - sample->start_boottime_ns < YOUNG_NS;
	if (is_soon && sample->time_ns - soon_told_ns >= SOON_TOLD_NS) {
		soon_told_ns = sample->time_ns;
		return BPF_RB_FORCE_WAKEUP;
	}
	return wake_up_if_filled();
}

SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
	u64 begin = bpf_ktime_get_ns();
	struct so_counters *counter;
	struct so_scratch *record;
	struct so_walk *walk;
	struct task_struct *task;
	u64 pid_tgid = bpf_get_current_pid_tgid();
	u32 zero = 0, cpu = bpf_get_smp_processor_id(), kernel_frames = 0, flags = 0;
	u32 identity, burst_ns, tgid = pid_tgid >> 32;
	/* The periods of bursts' timers are odd, of all others even. */
	int is_burst = ctx->sample_period & 1;
	u64 size;
	long bytes;

	counter = bpf_map_lookup_elem(&counters, &zero);
	record = bpf_map_lookup_elem(&scratch, &cpu);
	if (!counter || !record)
		return 0;
	task = (struct task_struct *)bpf_get_current_task();
	burst_ns = burst_period_ns(cpu, tgid, begin);
	if (is_burst) {
		if (!burst_ns || cpu_is_idle(ctx, task, (u32)pid_tgid)) {
			counter->run_ns += bpf_ktime_get_ns() - begin;
			return 0;
		}
		counter->burst_taken++;
	} else {
		counter->ticks++;
		if (cpu_is_idle(ctx, task, (u32)pid_tgid)) {
			counter->idle_ticks++;
			counter->run_ns += bpf_ktime_get_ns() - begin;
			return 0;
		}
		if (burst_ns) {
			counter->left_to_burst++;
			counter->run_ns += bpf_ktime_get_ns() - begin;
			return 0;
		}
	}
	counter->taken++;

	record->header.time_ns = begin;
	identity = identify(tgid);
	record->header.cgroup_id = bpf_get_current_cgroup_id();
	record->header.tgid = tgid;
	record->header.tid = (u32)pid_tgid;
	record->header.cpu = cpu;
	record->header.period_ns = is_burst ? burst_ns : 0;
	record->header.user_frames = 0;
	record->header.walk_end = SO_WALK_NONE;
	record->header.stack_bytes = 0;
	bpf_get_current_comm(record->header.comm, sizeof(record->header.comm));

	if (in_user_mode(ctx)) {
		flags |= SO_SAMPLE_IN_USER;
	} else {
		bytes = bpf_get_stack(ctx, record->words, SO_MAX_KERNEL_FRAMES * sizeof(u64), 0);
		if (bytes > 0)
			kernel_frames = (u32)bytes / sizeof(u64);
		if (kernel_frames >= SO_MAX_KERNEL_FRAMES) {
			kernel_frames = SO_MAX_KERNEL_FRAMES;
			flags |= SO_SAMPLE_KERNEL_CUT;
		}
	}
	size = sizeof(record->header) + (u64)kernel_frames * sizeof(u64);

	if (identity & 1 || (u32)pid_tgid == 0) {
		flags |= SO_SAMPLE_KERNEL_THREAD;
	} else if (identity & 2) {
		walk = &record->walk;
		if (flags & SO_SAMPLE_IN_USER) {
#define INTERRUPTED(field) ctx->field
			SET_REGISTERS(walk, INTERRUPTED);
		} else {
			/* Where nothing is searched yet. */
			SET_ENTERED_REGISTERS(walk, record->scan.words, entry_registers(task));
			/* Else both ways share their last loads, and the verifier wants each load to be of one kind of memory. */
			asm volatile("" ::: "memory");
		}
		record->header.kernel_frames = kernel_frames;
		record->header.walk_end = walk_stack(0);
		size += (u32)end_stack(0);
	}

	record->header.kernel_frames = kernel_frames;
	record->header.flags = flags;
	if (size > sizeof(record->header) + sizeof(record->words))
		size = sizeof(record->header) + sizeof(record->words);
	if (bpf_ringbuf_output(&samples, &record->header, size, wake_up_for(record)))
		counter->lost_ring_full++;
	counter->run_ns += bpf_ktime_get_ns() - begin;
	return 0;
}
