/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Waits for a CPU, counted by CPU, by program on each CPU, and by length. A thread holds some of its own before they
 * are counted with its program's, since to find that costs as much as all else that a switch does. They are counted
 * where it comes to another CPU, and by a visit.
 */
#ifndef STAKEOUT_QUEUES_H
#define STAKEOUT_QUEUES_H

/* Another one whenever `queues` was read. */
volatile u64 queue_interval = 0;
/* Entries of `queues` that have a CPU: how many were made, and how many user space has removed. */
u64 queues_made = 0;
volatile u64 queues_removed = 0;

struct so_locked_queue {
	struct bpf_spin_lock lock;
	u32 unused;
	struct so_queue queue;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, SO_MAX_QUEUES);
	__type(key, struct so_queue_key);
	__type(value, struct so_locked_queue);
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct so_queue_lengths);
} queues_of_cpus SEC(".maps");

/* What an entry begins as. */
const u8 no_queue[sizeof(struct so_locked_queue)] = {};

/* A new entry. */
static __attribute__((noinline)) struct so_locked_queue *begin_queue(struct task_struct *task,
			struct so_queue_key *key, u32 waits, struct so_wait_counters *counter)
{
	struct mm_struct *mm = task->mm;
	struct so_locked_queue *entry;

	/* A large machine has more programs on more CPUs than there is room: then a program has one entry for them all. */
	if (key->cpu && queues_made - queues_removed >= SO_MAX_QUEUES_OF_CPUS) {
		counter->queues_without_cpu += waits;
		key->cpu = 0;
		entry = bpf_map_lookup_elem(&queues, key);
		if (entry)
			return entry;
	}
	if (!bpf_map_update_elem(&queues, key, no_queue, BPF_NOEXIST) && key->cpu)
		__sync_fetch_and_add(&queues_made, 1);
	entry = bpf_map_lookup_elem(&queues, key);
	if (entry) {
		/* Who it was before an exec is known from elsewhere or not at all: this name is another program's. */
		if (key->exec_id == (u32)task->self_exec_id) {
			if (task->flags & PF_KTHREAD || mm) {
				entry->queue.image = mm ? mm->start_stack : 0;
				entry->queue.proc_tgid = so_proc_tgid(task->group_leader, task->tgid);
			}
			bpf_probe_read_kernel(entry->queue.comm, sizeof(entry->queue.comm), task->comm);
		}
		entry->queue.flags = task->flags & PF_KTHREAD ? SO_SAMPLE_KERNEL_THREAD : 0;
		return entry;
	}
	counter->queues_left_out += waits;
	/* User space has made it. */
	key->start_boottime_ns = 0;
	key->cgroup_id = 0;
	key->tgid = 0;
	key->exec_id = 0;
	key->cpu = 0;
	return bpf_map_lookup_elem(&queues, key);
}

SO_INLINE void begin_interval(struct so_queue_lengths *lengths, u64 interval)
{
	if (lengths->interval != interval) {
		lengths->interval = interval;
		lengths->longest_ns = 0;
	}
}

/* Counts what a thread holds. Apart, so that a switch has the more of the BPF stack. */
static __attribute__((noinline)) void count_held(struct task_struct *task, struct so_held_waits *held,
			struct so_wait_counters *counter)
{
	struct so_queue_key key = {
		.start_boottime_ns = task->group_leader->start_boottime,
		.cgroup_id = held->cgroup_id,
		.tgid = task->tgid,
		.exec_id = held->exec_id,
		.cpu = held->cpu,
	};
	u64 interval = queue_interval;
	u32 count = held->count, i;
	struct so_locked_queue *entry;

	/* Whoever ends and whoever visits may both be about to. */
	if (!count || __sync_val_compare_and_swap(&held->count, count, 0) != count)
		return;
	entry = bpf_map_lookup_elem(&queues, &key);
	if (!entry) {
		entry = begin_queue(task, &key, count, counter);
		if (!entry)
			return;
	}
	bpf_spin_lock(&entry->lock);
	begin_interval(&entry->queue.lengths, interval);
	entry->queue.lengths.total_ns += held->total_ns;
	if (held->longest_ns > entry->queue.lengths.longest_ns)
		entry->queue.lengths.longest_ns = held->longest_ns;
	/* Without a branch, so that the verifier follows it once: 1 for those that are held, 0 for the others. */
	for (i = 0; i < SO_HELD_WAITS; i++)
		entry->queue.lengths.buckets[held->buckets[i] & (SO_QUEUE_BUCKETS - 1)] += (i - count) >> 31;
	bpf_spin_unlock(&entry->lock);
}

SO_INLINE void hold_wait(struct so_held_waits *held, u64 cgroup_id, u32 exec_id, u32 cpu, u64 ns, u32 bucket)
{
	u32 count = held->count;

	if (!count) {
		held->cgroup_id = cgroup_id;
		held->exec_id = exec_id;
		held->cpu = cpu;
		held->total_ns = 0;
		held->longest_ns = 0;
	}
	held->total_ns += ns;
	if (ns > held->longest_ns)
		held->longest_ns = ns;
	if (count < SO_HELD_WAITS)
		held->buckets[count] = bucket;
	held->count = count + 1;
}

/* While there is a visit, what the thread holds is the visit's. */
static __attribute__((noinline)) void count_at_once(struct task_struct *task, u64 cgroup_id, u64 ns,
			struct so_wait_counters *counter)
{
	u32 cpu = bpf_get_smp_processor_id() + 1;
	struct so_held_waits held = {};

	hold_wait(&held, cgroup_id, (u32)task->self_exec_id, cpu, ns, so_queue_bucket(ns));
	count_held(task, &held, counter);
}

/* Counts a wait for this CPU by its length. */
SO_INLINE void count_queue(struct task_struct *task, struct so_wait *wait, u64 ns, struct so_wait_counters *counter)
{
	u32 zero = 0, bucket = so_queue_bucket(ns) & (SO_QUEUE_BUCKETS - 1), exec_id = (u32)task->self_exec_id;
	struct so_queue_lengths *of_cpu = bpf_map_lookup_elem(&queues_of_cpus, &zero);
	u64 cgroup_id = task->cgroups->dfl_cgrp->kn->id;
	struct so_held_waits *held = &wait->held;
	u32 cpu = bpf_get_smp_processor_id() + 1;
	u64 is_others;

	if (!of_cpu)
		return;
	begin_interval(of_cpu, queue_interval);
	of_cpu->total_ns += ns;
	if (ns > of_cpu->longest_ns)
		of_cpu->longest_ns = ns;
	of_cpu->buckets[bucket]++;
	if (visiting) {
		count_at_once(task, cgroup_id, ns, counter);
		return;
	}
	/* Without branches, as above. */
	is_others = (held->cgroup_id ^ cgroup_id) | (held->exec_id ^ exec_id) | (held->cpu ^ cpu);
	if (held->count >= SO_HELD_WAITS || (held->count && is_others))
		count_held(task, held, counter);
	hold_wait(held, cgroup_id, exec_id, cpu, ns, bucket);
}

#endif
