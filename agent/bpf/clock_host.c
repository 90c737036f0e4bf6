// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* The clock and the buckets of waits.h in user space, for their tests. */
#include "host_types.h"

struct bpf_spin_lock {
	u32 val;
};

#include "abi.h"
#include "waits.h"

void so_set_period_on_host(struct so_wait *wait, u64 period_ns)
{
	so_set_period(wait, period_ns);
}

void so_settle_on_host(struct so_wait *wait, u64 now_ns, int has_come_back, struct so_passed *passed)
{
	so_settle(wait, now_ns, has_come_back, passed);
}

void so_enter_turn_on_host(struct so_wait *wait, u64 switches, u64 turn_ns, u32 state, int is_away)
{
	so_enter_turn(wait, switches, turn_ns, state, is_away);
}

u32 so_queue_bucket_on_host(u64 ns)
{
	return so_queue_bucket(ns);
}
