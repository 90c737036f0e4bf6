/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Who a task is, beyond its numbers: which program it executes, and who it is to the agent's /proc. */
#ifndef STAKEOUT_IDENTITY_H
#define STAKEOUT_IDENTITY_H

/* MAX_PID_NS_LEVEL of the kernel is 32. */
#define SO_MAX_PID_LEVELS 33

/*
 * The process id namespace of the agent's /proc, by its inode; 0 where that is the machine's first one, in which
 * all are seen.
 */
const volatile u32 proc_namespace = 0;

/* The process id in the agent's /proc; 0 for a process that is not seen there. */
SO_INLINE u32 so_proc_tgid(struct task_struct *leader, u32 tgid)
{
	struct pid *pid;
	u32 i, level;

	if (!proc_namespace)
		return tgid;
	pid = BPF_CORE_READ(leader, thread_pid);
	if (!pid)
		return 0;
	level = BPF_CORE_READ(pid, level);
	for (i = 0; i < SO_MAX_PID_LEVELS; i++) {
		struct upid *id = (void *)pid + bpf_core_field_offset(struct pid, numbers) + i * bpf_core_type_size(struct upid);

		if (i > level)
			break;
		if (BPF_CORE_READ(id, ns, ns.inum) == proc_namespace)
			return (u32)BPF_CORE_READ(id, nr);
	}
	return 0;
}

/* Where the stack of the executed program began: each execve draws it anew. 0 without user memory. */
SO_INLINE u64 so_image(struct mm_struct *mm)
{
	return mm ? BPF_CORE_READ(mm, start_stack) : 0;
}

#endif
