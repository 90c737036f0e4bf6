/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Who ends a wait: the running thread, as a record of its own. */
#ifndef STAKEOUT_WAKERS_H
#define STAKEOUT_WAKERS_H

SO_INLINE void set_woken(struct so_woken *woken, struct task_struct *task)
{
	struct task_struct *leader = task->group_leader;
	struct mm_struct *mm = task->mm;

	woken->start_boottime_ns = leader->start_boottime;
	woken->cgroup_id = task->cgroups->dfl_cgrp->kn->id;
	woken->image = mm ? mm->start_stack : 0;
	woken->tgid = task->tgid;
	woken->tid = task->pid;
	woken->exec_id = (u32)task->self_exec_id;
	woken->proc_tgid = so_proc_tgid(leader, task->tgid);
	woken->flags = task->flags & PF_KTHREAD ? SO_SAMPLE_KERNEL_THREAD : 0;
	woken->unused = 0;
	bpf_probe_read_kernel(woken->comm, sizeof(woken->comm), task->comm);
}

/* Hands over who ends a wait, with what was walked of its stack. */
APART int put_waker(u32 walk_end)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct so_wait_counters *counter = counters_of_waits();
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);
	u64 size;

	if (!counter || !record)
		return 0;
	size = sizeof(record->wait) + sizeof(record->header);
	size += (u64)(record->header.kernel_frames & (SO_RECORD_FRAMES / 2 - 1)) * sizeof(u64);
	record->header.walk_end = walk_end;
	if (walk_end != SO_WALK_NONE)
		size += (u32)end_stack(0);
	if (size > sizeof(record->wait) + sizeof(record->header) + sizeof(record->words))
		size = sizeof(record->wait) + sizeof(record->header) + sizeof(record->words);
	put_record(counter, &record->wait, size);
	return 0;
}

/* Puts the running thread into the scratch as who ends a wait. 1 where it has a user stack. */
SO_INLINE int enter_waker(void *ctx, struct task_struct *woken, struct so_wait *wait, u64 now, u64 ended_ns)
{
	u32 cpu = bpf_get_smp_processor_id(), frames;
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);
	struct task_struct *task = bpf_get_current_task_btf();
	struct so_walk *walk;
	long bytes;

	if (!record)
		return 0;
	record->wait.off_cpu_ns = ended_ns;
	record->wait.run_queue_ns = 0;
	record->wait.asleep_ns = now - wait->began_ns;
	record->wait.queued_ns = 0;
	record->wait.run_count = 0;
	record->wait.state = SO_WAIT_ENDED | (wait->state & SO_WAIT_STATE_BITS);
	record->wait.unused = 0;
	set_woken(&record->wait.woken, woken);
	set_thread(&record->header, task);
	bytes = bpf_get_stack(ctx, record->words, SO_MAX_KERNEL_FRAMES * sizeof(u64), 0);
	frames = bytes > 0 ? (u32)bytes / sizeof(u64) : 0;
	if (frames >= SO_MAX_KERNEL_FRAMES) {
		frames = SO_MAX_KERNEL_FRAMES;
		record->header.flags |= SO_SAMPLE_KERNEL_CUT;
	}
	record->header.kernel_frames = frames;
	if (task->flags & PF_KTHREAD || !task->mm) {
		record->header.flags |= SO_SAMPLE_KERNEL_THREAD;
		return 0;
	}
	walk = &record->walk;
	SET_ENTERED_REGISTERS(walk, record->scan.words, (struct pt_regs *)bpf_task_pt_regs(task));
	return 1;
}

#endif
