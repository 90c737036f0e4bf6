// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* The clock of waits.h in user space, for the test of it. */
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

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
