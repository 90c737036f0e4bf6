/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The little of the kernel that the programs touch, declared by hand: only the fields that are read. Every struct is
 * relocated at load time against the running kernel's BTF, so that one object fits all kernels and the machine that
 * builds needs neither BTF nor kernel headers.
 */
#ifndef STAKEOUT_KERNEL_TYPES_H
#define STAKEOUT_KERNEL_TYPES_H

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef signed short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef long long s64;

#define NULL ((void *)0)

/* Values of the kernel's stable user API (uapi/linux/bpf.h). */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum {
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1U << 0,
	BPF_F_MMAPABLE = 1U << 10,
};
enum {
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1ULL << 0,
};
enum {
	BPF_RB_NO_WAKEUP = 1ULL << 0,
	BPF_RB_FORCE_WAKEUP = 1ULL << 1,
};
enum {
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
};
/* uapi/linux/sched.h and include/linux/sched.h */
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000

#define CORE __attribute__((preserve_access_index))

typedef struct {
	int counter;
} atomic_t;

struct qstr {
	const unsigned char *name;
} CORE;

struct dentry {
	struct qstr d_name;
} CORE;

struct path {
	struct dentry *dentry;
} CORE;

struct file {
	struct path f_path;
} CORE;

struct mm_struct {
	unsigned long start_stack;
	struct file *exe_file;
} CORE;

/* What execve works on. */
struct linux_binprm {
	const char *interp;
} CORE;

struct ns_common {
	unsigned int inum;
} CORE;

struct pid_namespace {
	struct ns_common ns;
} CORE;

struct upid {
	int nr;
	struct pid_namespace *ns;
} CORE;

/* Ids of a process in its namespace and those around it, the outermost first. */
struct pid {
	unsigned int level;
	struct upid numbers[1];
} CORE;

struct kernfs_node {
	u64 id;
} CORE;

struct cgroup_root {
	int hierarchy_id;
} CORE;

struct cgroup {
	struct kernfs_node *kn;
	struct cgroup_root *root;
} CORE;

struct css_set {
	struct cgroup *dfl_cgrp;
} CORE;

struct sched_info {
	unsigned long pcount;
} CORE;

struct signal_struct {
	atomic_t live;
} CORE;

/* arm64 keeps the preemption count here. */
struct thread_info {
	u64 preempt_count;
} CORE;

#if defined(__TARGET_ARCH_x86)
struct thread_struct {
	unsigned long fsbase;
} CORE;
#endif

struct task_struct {
#if defined(__TARGET_ARCH_x86)
	struct thread_struct thread;
#endif
	struct thread_info thread_info;
	void *stack;
	unsigned int __state;
	unsigned int flags;
	int on_cpu;
	struct mm_struct *mm;
	int pid;
	int tgid;
	u64 self_exec_id;
	unsigned long nvcsw;
	unsigned long nivcsw;
	u64 start_boottime;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct signal_struct *signal;
	struct css_set *cgroups;
	struct sched_info sched_info;
	char comm[16];
} CORE;

#if defined(__TARGET_ARCH_x86)

/* What a perf event program gets; the layout is stable user API. */
struct bpf_perf_event_data {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
	u64 sample_period;
	u64 addr;
};

struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, ip, cs, sp;
} CORE;

/* The same whole, as ptrace(2) shows it, which no kernel changes: read at once. */
struct user_registers {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

#elif defined(__TARGET_ARCH_arm64)

struct bpf_perf_event_data {
	u64 regs[31];
	u64 sp;
	u64 pc;
	u64 pstate;
	u64 sample_period;
	u64 addr;
};

struct pt_regs {
	u64 regs[31];
	u64 sp;
	u64 pc;
	u64 pstate;
} CORE;

#else
#error "this architecture is not supported: x86-64 and arm64 are"
#endif

/* Only asked for whether the running kernel has the helper. */
enum bpf_func_id___stakeout {
	BPF_FUNC_task_pt_regs___stakeout = 175,
};

/* What maps may hold beside plain values; the layouts are stable user API. */
struct bpf_spin_lock {
	u32 val;
};
struct bpf_task_work {
	u64 opaque;
} __attribute__((aligned(8)));

struct bpf_map {
	u32 id;
} CORE;

/* What an iterator over tasks gets. */
struct bpf_iter__task {
	struct task_struct *task;
} CORE;

/* Raw tracepoints get their arguments as an array of words. */
struct bpf_raw_tracepoint_args {
	u64 args[0];
};

#endif
