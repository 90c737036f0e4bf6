/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the kernel side and the Rust side share: records of both ring buffers, counters, limits. Rust sees these types
 * through the generated skeletons. Only fixed-width fields, no implicit padding.
 */
#ifndef STAKEOUT_ABI_H
#define STAKEOUT_ABI_H

enum so_limits {
	/* perf's own default limit (kernel.perf_event_max_stack); bpf_get_stack gives no more. */
	SO_MAX_KERNEL_FRAMES = 127,
	SO_MAX_USER_FRAMES = 512,
	SO_COMM_LENGTH = 16,
};

/* How the walk of the user stack ended. */
enum so_walk_end {
	/* There is no user stack: a kernel thread, an idle CPU, a process that is exiting. */
	SO_WALK_NONE = 0,
	/* The outermost frame was reached. */
	SO_WALK_ROOT = 1,
	/* More than SO_MAX_USER_FRAMES frames. */
	SO_WALK_CUT = 2,
	/* The chain of frames led nowhere: code without frame pointers, or memory that is paged out. */
	SO_WALK_BROKEN = 3,
};

enum so_sample_flags {
	/* The CPU ran user code when the timer fired. */
	SO_SAMPLE_IN_USER = 1,
	SO_SAMPLE_KERNEL_THREAD = 2,
	/* The kernel stack has SO_MAX_KERNEL_FRAMES frames and may be longer. */
	SO_SAMPLE_KERNEL_CUT = 4,
};

/* One sample: this header, then kernel_frames and user_frames addresses of 8 bytes, both leaf first. */
struct so_sample {
	u64 time_ns;		/* CLOCK_MONOTONIC */
	u64 start_boottime_ns;	/* start of the process, CLOCK_BOOTTIME */
	u64 cgroup_id;
	u32 tgid;
	u32 tid;
	u32 cpu;
	u32 exec_id;		/* the kernel's own count of execs that led to this program */
	u16 kernel_frames;
	u16 user_frames;
	u8 walk_end;		/* enum so_walk_end */
	u8 flags;		/* enum so_sample_flags */
	u16 reserved;
	u64 stack_top[2];	/* the two words at the user stack pointer; zero where there is no user stack */
	u8 comm[SO_COMM_LENGTH];
};

/* Per CPU, cumulative since load. ticks = idle_ticks + taken; taken = records in the ring + lost_ring_full. */
struct so_counters {
	u64 ticks;
	u64 idle_ticks;
	u64 taken;
	u64 lost_ring_full;
	u64 run_ns;
};

enum so_event_kind {
	SO_EVENT_EXEC = 1,
	SO_EVENT_FORK = 2,
	SO_EVENT_EXIT = 3,
};

/* A process began, became another program, or ended. */
struct so_event {
	u64 start_boottime_ns;
	u64 parent_start_boottime_ns;	/* fork only */
	u32 kind;			/* enum so_event_kind */
	u32 tgid;
	u32 parent_tgid;		/* fork only */
	u32 exec_id;
};

/* Per CPU, cumulative since load. */
struct so_event_counters {
	u64 events;
	u64 lost_ring_full;
	u64 run_ns;
};

#endif
