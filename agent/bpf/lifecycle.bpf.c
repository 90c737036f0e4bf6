// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Tells the agent which processes begin, become another program, are moved or end, and which control groups are made.
 * Only an exec wakes it, at once, so that it can open the files of a process that lives for a few milliseconds; the
 * agent pauses between two passes, which limits the wake-ups. An exec's record names the program, so that one has its
 * name that has ended by then.
 */
#include "kernel_types.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "abi.h"
#include "identity.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Brings the types into the skeleton. */
const struct so_event *unused_event __attribute__((unused));

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct so_event_counters);
} event_counters SEC(".maps");

/*
 * An event is put together here, since its text is longer than the BPF stack. Tracepoints of one CPU do not
 * interrupt each other.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct so_told);
} told SEC(".maps");

/* An empty event. */
SO_INLINE struct so_told *begin_event(u32 kind, u64 time_ns)
{
	u32 zero = 0;
	struct so_told *record = bpf_map_lookup_elem(&told, &zero);

	if (!record)
		return NULL;
	__builtin_memset(&record->event, 0, sizeof(record->event));
	record->event.kind = kind;
	record->event.time_ns = time_ns;
	return record;
}

SO_INLINE void set_process(struct so_event *event, struct task_struct *task)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	event->tgid = BPF_CORE_READ(task, tgid);
	event->start_boottime_ns = BPF_CORE_READ(leader, start_boottime);
	event->exec_id = (u32)BPF_CORE_READ(task, self_exec_id);
	event->proc_tgid = so_proc_tgid(leader, event->tgid);
}

/* Appends a string after those that are there; with a zero byte between them. */
SO_INLINE void add_text(struct so_told *record, const void *from)
{
	u32 at = record->event.text_bytes;
	long bytes;

	if (at > SO_TEXT_BYTES)
		return;
	bytes = bpf_probe_read_kernel_str(&record->text[at], SO_TEXT_BYTES, from);
	if (bytes > 0)
		record->event.text_bytes = at + (bytes & (2 * SO_TEXT_BYTES - 1));
}

SO_INLINE int report(struct so_told *record, u64 wake)
{
	struct so_event_counters *counter;
	u32 zero = 0;
	u64 size;

	counter = bpf_map_lookup_elem(&event_counters, &zero);
	if (!counter)
		return 0;
	size = sizeof(record->event) + record->event.text_bytes;
	if (size > sizeof(*record))
		size = sizeof(*record);
	counter->events++;
	if (bpf_ringbuf_output(&events, record, size, wake))
		counter->lost_ring_full++;
	counter->run_ns += bpf_ktime_get_ns() - record->event.time_ns;
	return 0;
}

/*
 * Arguments: the task, its old thread id, the binary. Forced, since records that wake nobody may stand before this
 * one.
 */
SEC("raw_tp/sched_process_exec")
int on_exec(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx->args[0];
	struct linux_binprm *binary = (struct linux_binprm *)ctx->args[2];
	struct so_told *record = begin_event(SO_EVENT_EXEC, bpf_ktime_get_ns());
	struct mm_struct *mm;

	if (!record)
		return 0;
	set_process(&record->event, task);
	mm = BPF_CORE_READ(task, mm);
	record->event.image = so_image(mm);
	record->event.cgroup_id = bpf_get_current_cgroup_id();
	add_text(record, BPF_CORE_READ(mm, exe_file, f_path.dentry, d_name.name));
	/* Of a script, its interpreter's, which is what runs. */
	add_text(record, BPF_CORE_READ(binary, interp));
	return report(record, BPF_RB_FORCE_WAKEUP);
}

/* Arguments: parent, child. New threads are no news; a new process is its parent's program until it calls exec. */
SEC("raw_tp/sched_process_fork")
int on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	u64 begin = bpf_ktime_get_ns();
	struct task_struct *parent = (struct task_struct *)ctx->args[0], *child = (struct task_struct *)ctx->args[1];
	struct so_told *record;

	if (BPF_CORE_READ(child, pid) != BPF_CORE_READ(child, tgid))
		return 0;
	record = begin_event(SO_EVENT_FORK, begin);
	if (!record)
		return 0;
	set_process(&record->event, child);
	record->event.parent_tgid = BPF_CORE_READ(parent, tgid);
	record->event.parent_start_boottime_ns = BPF_CORE_READ(parent, group_leader, start_boottime);
	return report(record, BPF_RB_NO_WAKEUP);
}

/* Argument: the task. Only the last thread's exit ends a process, and nobody has to hurry for it. */
SEC("raw_tp/sched_process_exit")
int on_exit(struct bpf_raw_tracepoint_args *ctx)
{
	u64 begin = bpf_ktime_get_ns();
	struct task_struct *task = (struct task_struct *)ctx->args[0];
	struct so_told *record;

	if (BPF_CORE_READ(task, signal, live.counter) != 0)
		return 0;
	record = begin_event(SO_EVENT_EXIT, begin);
	if (!record)
		return 0;
	set_process(&record->event, task);
	return report(record, BPF_RB_NO_WAKEUP);
}

/* Arguments: the group, its path. Those of version 1 have ids of their own, which samples don't carry. */
SEC("raw_tp/cgroup_mkdir")
int on_group(struct bpf_raw_tracepoint_args *ctx)
{
	u64 begin = bpf_ktime_get_ns();
	struct cgroup *group = (struct cgroup *)ctx->args[0];
	struct so_told *record;
	long bytes;

	if (BPF_CORE_READ(group, root, hierarchy_id) != 0)
		return 0;
	record = begin_event(SO_EVENT_GROUP, begin);
	if (!record)
		return 0;
	record->event.cgroup_id = BPF_CORE_READ(group, kn, id);
	/* What does not fit is looked up by its id. */
	bytes = bpf_probe_read_kernel_str(record->text, 2 * SO_TEXT_BYTES, (const void *)ctx->args[1]);
	if (bytes <= 0 || bytes >= 2 * SO_TEXT_BYTES)
		return 0;
	record->event.text_bytes = bytes;
	return report(record, BPF_RB_NO_WAKEUP);
}

/* Arguments: the group, its path, the task, whether its whole process. */
SEC("raw_tp/cgroup_attach_task")
int on_move(struct bpf_raw_tracepoint_args *ctx)
{
	u64 begin = bpf_ktime_get_ns();
	struct cgroup *group = (struct cgroup *)ctx->args[0];
	struct so_told *record;

	/* Samples carry the group of version 2 themselves. */
	if (BPF_CORE_READ(group, root, hierarchy_id) == 0)
		return 0;
	record = begin_event(SO_EVENT_MOVE, begin);
	if (!record)
		return 0;
	set_process(&record->event, (struct task_struct *)ctx->args[2]);
	return report(record, BPF_RB_NO_WAKEUP);
}
