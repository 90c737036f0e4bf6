/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Records of threads that sleep on. */
#ifndef STAKEOUT_SLEEPERS_H
#define STAKEOUT_SLEEPERS_H

/* A record of a thread that sleeps. One visit at a time. */
struct so_visit {
	struct so_waited wait;
	struct so_sample header;
	u64 words[SO_MAX_KERNEL_FRAMES + 1 + sizeof(struct so_walk) / sizeof(u64)];
	struct so_walk walk;
	u64 registers[32];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct so_visit);
} visits SEC(".maps");

/* A sample of a thread that sleeps or waits on. */
SO_INLINE void tell_sleeper(struct task_struct *task, struct so_wait *wait, struct so_passed *passed, u64 period,
			    struct so_wait_counters *counter)
{
	u32 zero = 0, frames;
	struct so_visit *record = bpf_map_lookup_elem(&visits, &zero);
	u64 size;

	if (!record)
		return;
	set_thread(&record->header, task);
	set_wait(&record->wait, wait, passed, period);
	if (bpf_core_field_exists(struct task_struct, sched_info.pcount))
		record->wait.run_count = task->sched_info.pcount;
	frames = take_kernel_stack(task, record->words, &record->header);
	size = sizeof(record->wait) + sizeof(record->header) + (u64)frames * sizeof(u64);
	if (task->flags & PF_KTHREAD || !task->mm) {
		record->header.flags |= SO_SAMPLE_KERNEL_THREAD;
	} else {
		struct so_walk *walk = &record->walk;

		SET_ENTERED_REGISTERS(walk, record->registers, (struct pt_regs *)bpf_task_pt_regs(task));
		begin_walk(walk);
		walk->tls_base = thread_base(task);
		if (so_is_user_address(walk->pc)) {
			frames &= SO_MAX_KERNEL_FRAMES;
			record->words[frames] = walk->pc;
			record->header.user_frames = 1;
			record->header.walk_end = SO_WALK_ASLEEP;
			__builtin_memcpy(&record->words[frames + 1], walk, sizeof(*walk));
			size += sizeof(u64) + sizeof(*walk);
		}
	}
	counter->sleepers_told++;
	if (size > sizeof(record->wait) + sizeof(record->header) + sizeof(record->words))
		size = sizeof(record->wait) + sizeof(record->header) + sizeof(record->words);
	put_record(counter, &record->wait, size);
}

#endif
