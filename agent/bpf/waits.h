/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The clock of a thread's waits: time off its CPU, asleep or runnable. In each period of it lies one point,
 * anywhere in it with the same chance, so that points passed times the period are the time waited: of any part of
 * it in the mean, of all of it to a period. Points that were a period apart would be in step with threads that wait
 * periodically.
 */
#ifndef STAKEOUT_WAITS_H
#define STAKEOUT_WAITS_H

/* Waits for a CPU that are not counted in `queues` yet: whose, for which CPU, and the bucket of each. */
struct so_held_waits {
	u64 cgroup_id;
	u64 total_ns;
	u64 longest_ns;
	u32 exec_id;
	u32 count;
	u32 cpu;		/* as in struct so_queue_key */
	u8 buckets[SO_HELD_WAITS];
};

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
	/* How far the present period has come, and where its point is. */
	u64 at_ns;
	u64 point_ns;
	u64 period_ns;
	/* What was told already of the wait that began after so many switches. */
	u64 told_ns;
	u64 switches;
	u32 pending;		/* one more than the number of its entry in `pending`; 0 without one */
	u32 random;
	struct so_held_waits held;
};

/* 1 where a number below 2^63 is above another one, without a branch. */
SO_INLINE u64 so_is_above(u64 number, u64 other)
{
	return (other - number) >> 63;
}

/*
 * The bucket of a wait for a CPU in struct so_queue_lengths. It has no branches: the verifier would follow all that
 * comes behind them once for each way through.
 */
SO_INLINE u32 so_queue_bucket(u64 ns)
{
	u64 length = ns >> 10, rest = length >> 2, has = so_is_above(rest, 0), power = 0, shift, bucket, over;

	shift = so_is_above(rest, 0xffffffff) << 5;
	rest >>= shift;
	power += shift;
	shift = so_is_above(rest, 0xffff) << 4;
	rest >>= shift;
	power += shift;
	shift = so_is_above(rest, 0xff) << 3;
	rest >>= shift;
	power += shift;
	shift = so_is_above(rest, 0xf) << 2;
	rest >>= shift;
	power += shift;
	shift = so_is_above(rest, 3) << 1;
	rest >>= shift;
	power += shift;
	power += rest >> 1;
	bucket = (power + has) * 4 + (length >> power & 3);
	over = so_is_above(bucket, SO_QUEUE_BUCKETS - 1);
	return bucket * (1 - over) + (SO_QUEUE_BUCKETS - 1) * over;
}

/* Points passed by what was not counted yet of a wait, and how long the whole wait is: asleep, and runnable. */
struct so_passed {
	u64 off_cpu;
	u64 run_queue;
	u64 asleep_ns;
	u64 queued_ns;
};

/* A point in a new period, from 1 to its end (xorshift of 32 bits: Marsaglia, Xorshift RNGs, 2003). */
SO_INLINE void so_draw_point(struct so_wait *wait)
{
	u32 random = wait->random | !wait->random;

	random ^= random << 13;
	random ^= random >> 17;
	random ^= random << 5;
	wait->random = random;
	wait->point_ns = ((u64)random * (wait->period_ns >> 8) >> 24) + 1;
}

/* Begins a period of this length. */
SO_INLINE void so_set_period(struct so_wait *wait, u64 period_ns)
{
	wait->period_ns = period_ns;
	wait->at_ns = 0;
	so_draw_point(wait);
}

/* Lets the clock run; gives the points that it passed. */
SO_INLINE u64 so_clock_run(struct so_wait *wait, u64 ns)
{
	u64 passed = 0, end = wait->at_ns + ns, periods;

	if (end < wait->period_ns) {
		passed = wait->at_ns < wait->point_ns && end >= wait->point_ns;
		wait->at_ns = end;
		return passed;
	}
	/* This period's point, those of the periods that are passed whole, and that of the one that it comes into. */
	periods = end / wait->period_ns;
	passed = (wait->at_ns < wait->point_ns) + periods - 1;
	wait->at_ns = end % wait->period_ns;
	so_draw_point(wait);
	return passed + (wait->at_ns >= wait->point_ns);
}

/*
 * The first that is seen of a thread in a turn is that it has waited since the turn began, or before: since when, and
 * how, is known where it is a wait of a turn before. `switches` is how often it has left a CPU.
 */
SO_INLINE void so_enter_turn(struct so_wait *wait, u64 switches, u64 turn_ns, u32 state, int is_away)
{
	if (wait->switches != switches || !wait->began_ns) {
		wait->switches = switches;
		wait->told_ns = 0;
		wait->state = state;
		wait->began_ns = turn_ns;
	}
	wait->turn_ns = turn_ns;
	wait->from_ns = is_away ? turn_ns : 0;
}

/* What this wait would stand for, if it ended now. The clock stays as it is, and will draw the same points again. */
SO_INLINE u64 so_would_tell(const struct so_wait *wait, u64 now_ns)
{
	struct so_wait copy = *wait;

	return wait->told_ns + so_clock_run(&copy, now_ns - wait->from_ns) * wait->period_ns;
}

/*
 * Counts the wait up to now. A thread that slept is runnable from its wake-up on. One that has come back without a
 * wake-up since the wait began did not sleep: a signal was there already, or it was woken before the turn began.
 */
SO_INLINE void so_settle(struct so_wait *wait, u64 now_ns, int has_come_back, struct so_passed *passed)
{
	u64 from = wait->from_ns, woken;

	if (wait->state == SO_WAIT_NEW || wait->state == SO_WAIT_PREEMPTED)
		woken = wait->began_ns;
	else if (wait->wake_ns >= wait->began_ns)
		woken = wait->wake_ns;
	else
		woken = has_come_back ? from : now_ns;
	if (woken > now_ns)
		woken = now_ns;
	passed->asleep_ns = woken - wait->began_ns;
	passed->queued_ns = now_ns - woken;
	if (woken < from)
		woken = from;
	passed->off_cpu = so_clock_run(wait, woken - from);
	passed->run_queue = so_clock_run(wait, now_ns - woken);
}

#endif
