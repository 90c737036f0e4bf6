// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Tells the agent which processes begin, become another program, or end. Only an exec wakes it, at once, so that it can open
 * the files of a process that lives for a few milliseconds; the agent pauses between two passes, which limits the wake-ups.
 */
#include "kernel_types.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "abi.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Brings the types into the skeleton. */
const struct so_event *unused_event __attribute__((unused));

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 128 * 1024);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct so_event_counters);
} event_counters SEC(".maps");

static inline __attribute__((always_inline)) int report(u32 kind, struct task_struct *task, struct task_struct *parent, u64 begin,
							u64 wake)
{
	struct so_event_counters *counter;
	struct task_struct *leader;
	struct so_event event = {};
	u32 zero = 0;

	counter = bpf_map_lookup_elem(&event_counters, &zero);
	if (!counter)
		return 0;
	leader = BPF_CORE_READ(task, group_leader);
	event.kind = kind;
	event.tgid = BPF_CORE_READ(task, tgid);
	event.start_boottime_ns = BPF_CORE_READ(leader, start_boottime);
	event.exec_id = (u32)BPF_CORE_READ(task, self_exec_id);
	if (parent) {
		leader = BPF_CORE_READ(parent, group_leader);
		event.parent_tgid = BPF_CORE_READ(parent, tgid);
		event.parent_start_boottime_ns = BPF_CORE_READ(leader, start_boottime);
	}
	counter->events++;
	if (bpf_ringbuf_output(&events, &event, sizeof(event), wake))
		counter->lost_ring_full++;
	counter->run_ns += bpf_ktime_get_ns() - begin;
	return 0;
}

/* Arguments: the task, its old thread id, the binary. Forced, since records that wake nobody may stand before this one. */
SEC("raw_tp/sched_process_exec")
int on_exec(struct bpf_raw_tracepoint_args *ctx)
{
	return report(SO_EVENT_EXEC, (struct task_struct *)ctx->args[0], NULL, bpf_ktime_get_ns(), BPF_RB_FORCE_WAKEUP);
}

/* Arguments: parent, child. New threads are no news; a new process is its parent's program until it calls exec. */
SEC("raw_tp/sched_process_fork")
int on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	u64 begin = bpf_ktime_get_ns();
	struct task_struct *child = (struct task_struct *)ctx->args[1];

	if (BPF_CORE_READ(child, pid) != BPF_CORE_READ(child, tgid))
		return 0;
	return report(SO_EVENT_FORK, child, (struct task_struct *)ctx->args[0], begin, BPF_RB_NO_WAKEUP);
}

/* Argument: the task. Only the last thread's exit ends a process, and nobody has to hurry for it. */
SEC("raw_tp/sched_process_exit")
int on_exit(struct bpf_raw_tracepoint_args *ctx)
{
	u64 begin = bpf_ktime_get_ns();
	struct task_struct *task = (struct task_struct *)ctx->args[0];

	if (BPF_CORE_READ(task, signal, live.counter) != 0)
		return 0;
	return report(SO_EVENT_EXIT, task, NULL, begin, BPF_RB_NO_WAKEUP);
}
