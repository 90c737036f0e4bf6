/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Waits for a CPU, counted by program, CPU and length. */
#ifndef STAKEOUT_QUEUES_H
#define STAKEOUT_QUEUES_H

/* Another one whenever the entries of `queues` were read. */
volatile u64 queue_interval = 0;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SO_MAX_QUEUES);
	__type(key, struct so_queue_key);
	__type(value, struct so_queue);
} queues SEC(".maps");

/* What an entry begins as. */
const struct so_queue no_queue = {};

/* A new entry. Apart, so that a switch has the more of the BPF stack. */
static __attribute__((noinline)) struct so_queue *begin_queue(struct task_struct *task, struct so_queue_key *key,
			struct so_wait_counters *counter)
{
	struct mm_struct *mm = task->mm;
	struct so_queue *queue;

	bpf_map_update_elem(&queues, key, &no_queue, 0);
	queue = bpf_map_lookup_elem(&queues, key);
	if (queue) {
		queue->image = mm ? mm->start_stack : 0;
		queue->proc_tgid = so_proc_tgid(task->group_leader, task->tgid);
		queue->flags = task->flags & PF_KTHREAD ? SO_SAMPLE_KERNEL_THREAD : 0;
		bpf_probe_read_kernel(queue->comm, sizeof(queue->comm), task->comm);
		return queue;
	}
	counter->queues_left_out++;
	key->start_boottime_ns = 0;
	key->cgroup_id = 0;
	key->tgid = 0;
	key->exec_id = 0;
	return bpf_map_lookup_elem(&queues, key);
}

/* Counts a wait for this CPU by its length. Nothing else writes its entry. */
SO_INLINE void count_queue(struct task_struct *task, u64 ns, struct so_wait_counters *counter)
{
	struct so_queue_key key = {
		.start_boottime_ns = task->group_leader->start_boottime,
		.cgroup_id = task->cgroups->dfl_cgrp->kn->id,
		.tgid = task->tgid,
		.exec_id = (u32)task->self_exec_id,
		.cpu = bpf_get_smp_processor_id(),
	};
	struct so_queue *queue = bpf_map_lookup_elem(&queues, &key);
	u64 interval = queue_interval;

	if (!queue) {
		queue = begin_queue(task, &key, counter);
		if (!queue)
			return;
	}
	if (queue->interval != interval) {
		queue->interval = interval;
		queue->longest_ns = 0;
	}
	queue->total_ns += ns;
	if (ns > queue->longest_ns)
		queue->longest_ns = ns;
	queue->buckets[so_queue_bucket(ns) & (SO_QUEUE_BUCKETS - 1)]++;
}

#endif
