/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The clock of a thread's waits: time off its CPU, asleep or runnable. It passes a multiple of its period once a period on
 * average, at a random phase, so that multiples passed times the period are the time waited, in the mean exactly.
 */
#ifndef STAKEOUT_WAITS_H
#define STAKEOUT_WAITS_H

/*
 * Of one thread. The CPU that it leaves or gets writes it, the one that wakes it writes `wake_ns` alone, and whoever
 * visits sleepers writes beside the first: the lock is for these two.
 */
struct so_wait {
	struct bpf_spin_lock lock;
	u32 state;		/* enum so_wait_state */
	u64 began_ns;
	/* Waited since, and not counted yet; 0 where the thread runs. */
	u64 from_ns;
	u64 wake_ns;
	/* The turn of observation in which the above was written. */
	u64 turn_ns;
	/* Until the clock passes the next multiple. */
	u64 left_ns;
	u64 period_ns;
	u32 pending;		/* one more than the number of its entry in `pending`; 0 without one */
	u32 unused;
};

/* Multiples passed. */
struct so_passed {
	u64 off_cpu;
	u64 run_queue;
};

/* Lets the clock run; gives the multiples that it passed. */
SO_INLINE u64 so_clock_run(struct so_wait *wait, u64 ns)
{
	u64 over;

	if (ns < wait->left_ns) {
		wait->left_ns -= ns;
		return 0;
	}
	over = ns - wait->left_ns;
	if (over < wait->period_ns) {
		wait->left_ns = wait->period_ns - over;
		return 1;
	}
	wait->left_ns = wait->period_ns - over % wait->period_ns;
	return 1 + over / wait->period_ns;
}

/*
 * Counts the wait up to now. A thread that slept is runnable from its wake-up on. One that has come back, or could,
 * without a wake-up since the wait began was woken while it left its CPU.
 */
SO_INLINE void so_settle(struct so_wait *wait, u64 now_ns, int is_runnable, struct so_passed *passed)
{
	u64 from = wait->from_ns, woken;

	if (wait->state == SO_WAIT_NEW || wait->state == SO_WAIT_PREEMPTED)
		woken = from;
	else if (wait->wake_ns >= wait->began_ns)
		woken = wait->wake_ns;
	else
		woken = is_runnable ? from : now_ns;
	if (woken < from)
		woken = from;
	if (woken > now_ns)
		woken = now_ns;
	passed->off_cpu = so_clock_run(wait, woken - from);
	passed->run_queue = so_clock_run(wait, now_ns - woken);
}

#endif
