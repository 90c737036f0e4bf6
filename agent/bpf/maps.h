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

/* By CPU; their number is set from user space before load. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8);
	__type(key, u32);
	__type(value, struct so_burst);
} bursts SEC(".maps");

/* By process id; the values say nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SO_MAX_BURST_MEMBERS);
	__type(key, u32);
	__type(value, u32);
} burst_members SEC(".maps");

struct so_thread_name {
	u8 comm[SO_COMM_LENGTH];
};

/* The same of threads, by name, and by id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SO_MAX_BURST_THREADS);
	__type(key, struct so_thread_name);
	__type(value, u32);
} burst_names SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SO_MAX_BURST_THREADS);
	__type(key, u32);
	__type(value, u32);
} burst_tids SEC(".maps");

/* Longest stack of both kinds; a power of two. */
#define SO_RECORD_FRAMES 2048
#define SO_RECORD_WORDS (SO_RECORD_FRAMES + sizeof(struct so_walk) / sizeof(u64) + SO_MAX_STACK_BYTES / sizeof(u64))

/* A record is put together here, since it is longer than the BPF stack, and copied out in its true length. */
struct so_scratch {
	struct so_walk walk;
	struct so_scan scan;
	struct so_waited wait;
	struct so_sample header;
	u64 words[SO_RECORD_WORDS];
	/* Stacks copied in the second of copied_since. */
	u64 copied_since_ns;
	u64 copied;
};

/* One a CPU; their number is set from user space before load. A per-CPU map takes no values beyond 32 KiB. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8);
	__type(key, u32);
	__type(value, struct so_scratch);
} scratch SEC(".maps");

/* Made one by one from user space, as tables come; written through a mapping of their memory. */
struct so_slab_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct so_slab));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, SO_MAX_SLABS);
	__type(key, u32);
	__array(values, struct so_slab_map);
} slabs SEC(".maps");

struct so_rules {
	u64 rules[SO_MAX_RULES];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct so_rules);
} rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SO_MAX_PROCESSES);
	__type(key, u32);
	__type(value, struct so_process);
} processes SEC(".maps");

/* Of processes with a language's runtime, by numbers that user space gives. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SO_MAX_RUNTIMES);
	__type(key, u32);
	__type(value, struct so_runtime);
} runtimes SEC(".maps");

struct so_cache {
	struct so_cached slots[SO_CACHE_SLOTS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct so_cache);
} cache SEC(".maps");

#endif
