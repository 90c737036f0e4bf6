/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Maps of the sampler. The size of the ring is set from user space before load: it depends on CPUs and rate. */
#ifndef STAKEOUT_MAPS_H
#define STAKEOUT_MAPS_H

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct so_counters);
} counters SEC(".maps");

/* A record is put together here, since it is longer than the BPF stack, and copied out in its true length. */
struct so_scratch {
	struct so_sample header;
	u64 frames[SO_MAX_KERNEL_FRAMES + 1 + SO_MAX_USER_FRAMES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct so_scratch);
} scratch SEC(".maps");

#endif
