/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What is counted of waits, and of what it takes to see them. */
#ifndef STAKEOUT_WAIT_COUNTERS_H
#define STAKEOUT_WAIT_COUNTERS_H

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct so_wait_counters);
} wait_counters SEC(".maps");

SO_INLINE struct so_wait_counters *counters_of_waits(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&wait_counters, &zero);
}

/* What takes longer was interrupted, by a hypervisor or an NMI: it is not to stand for 64. */
#define MOST_WITHOUT_STACK_NS 20000ULL

/*
 * Counts what a hook takes that began then. Where it has a stack it takes a hundred times as much, and is counted by
 * itself; of the others one of 64 is for all, which is chosen by the time, whatever the clock's steps are (Fibonacci
 * hashing).
 */
SO_INLINE void count_run(u64 begin, u32 has_stack)
{
	struct so_wait_counters *counter;
	u64 took;

	if (!has_stack && begin * 0x9e3779b97f4a7c15 >> 58)
		return;
	counter = counters_of_waits();
	if (!counter)
		return;
	took = bpf_ktime_get_ns() - begin;
	if (has_stack)
		counter->run_ns += took;
	else
		counter->run_ns += 64 * (took < MOST_WITHOUT_STACK_NS ? took : MOST_WITHOUT_STACK_NS);
}

#endif
