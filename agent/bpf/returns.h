/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The end of a wait by its own thread; and the hook for that on kernels that can't run a function in its context. */
#ifndef STAKEOUT_RETURNS_H
#define STAKEOUT_RETURNS_H

/* The wait is lost, and counted. */
SO_INLINE void lose_wait(u32 number)
{
	struct so_pending *ended = bpf_map_lookup_elem(&pending, &number);
	struct so_wait_counters *counter = counters_of_waits();
	u32 count;

	if (!ended || !counter)
		return;
	count = (ended->wait.off_cpu_ns != 0) + (ended->wait.run_queue_ns != 0);
	counter->taken += count;
	counter->lost_ring_full += count;
	ended->owner = 0;
}

/*
 * The same number, unless a stack is just being walked on this CPU, by a thread that was preempted there: then the wait
 * is lost, and the number is none. Apart, so that the verifier follows what comes behind it once.
 */
APART int while_free(u32 number)
{
	u32 zero = 0, *in_use = bpf_map_lookup_elem(&scratch_in_use, &zero);

	if (!in_use || !*in_use)
		return number;
	lose_wait(number);
	return SO_MAX_PENDING;
}

/* 1 where the scratch is this thread's from now on: of two that look at the same time one has it. Else as above. */
APART int take_scratch(u32 number)
{
	u32 zero = 0, *in_use = bpf_map_lookup_elem(&scratch_in_use, &zero);

	if (in_use && __sync_val_compare_and_swap(in_use, 0, 1) == 0)
		return 1;
	lose_wait(number);
	return 0;
}

/*
 * Ends a wait of the running thread where other threads and interrupts may come between: the scratch may be that of a
 * thread that was preempted in its walk, and wake-ups must find that it is used.
 */
SO_INLINE void finish_where_free(u32 number)
{
	u32 zero = 0, *in_use = bpf_map_lookup_elem(&scratch_in_use, &zero);

	if (!in_use || !take_scratch(number))
		return;
	finish_wait(number);
	*(volatile u32 *)in_use = 0;
}

/*
 * schedule() returns to the thread that called it, with its own memory: where most threads come back from a wait, and
 * those that were preempted on their way to user mode. For kernels before 6.18.
 */
SEC("fexit/schedule")
int on_back(u64 *ctx)
{
	struct so_wait_counters *counter = counters_of_waits();
	u32 zero = 0, number, *in_use;
	struct task_struct *task;
	struct so_wait *wait;
	u64 begin;

	/* Mostly its last wait is no sample. */
	if (!counter || !counter->coming)
		return 0;
	task = bpf_get_current_task_btf();
	if (counter->coming != (u32)task->pid)
		return 0;
	counter->coming = 0;
	begin = bpf_ktime_get_ns();
	wait = bpf_task_storage_get(&waits, task, NULL, 0);
	in_use = bpf_map_lookup_elem(&scratch_in_use, &zero);
	if (!wait || !in_use || *in_use)
		return 0;
	/* Where the kernel preempts itself, a switch may come: who has the number finishes the wait. */
	number = __sync_fetch_and_and(&wait->pending, 0);
	if (!number)
		return 0;
	finish_where_free(number - 1);
	counter = counters_of_waits();
	if (counter)
		counter->run_ns += bpf_ktime_get_ns() - begin;
	return 0;
}

#endif
