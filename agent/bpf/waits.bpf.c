// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * Where threads' time goes while they don't run. Each switch counts the wait of the thread that comes back; where its
 * clock has passed a point (waits.h), the wait becomes a sample: the kernel stack is taken at once, the user stack
 * by the thread itself: on its way back to user mode, or where the kernel has no means for that, as it comes back from
 * schedule(). Where neither is, and where the thread waits again first, it is taken at the next switch, if the thread
 * is still where it entered the kernel.
 *
 * Threads that sleep on are visited by an iterator, so that their time is told while it passes.
 */
#include "kernel_types.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "abi.h"
#include "maps.h"
#include "identity.h"
#include "stack.h"
#include "waits.h"
#include "wait_counters.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Brings the types into the skeleton. */
const struct so_waited *unused_waited __attribute__((unused));
const struct so_wait_counters *unused_wait_counters __attribute__((unused));
const struct so_queue_key *unused_queue_key __attribute__((unused));
const struct so_queue *unused_queue __attribute__((unused));
const struct so_queue_lengths *unused_queue_lengths __attribute__((unused));

/* Written by user space between visits: what a sample stands for of a thread that was seen to run, and of others. */
volatile u64 period_ns = 50000000;
volatile u64 sleeper_period_ns = 50000000;
/* When the turn began that is observed; 0 in the others. */
volatile u64 turn_ns = 0;
/* Of a visit: the turn, the end of what is counted (0: now), and when the visit before was. */
volatile u64 visit_turn_ns = 0;
volatile u64 visit_until_ns = 0;
volatile u64 visited_ns = 0;
/* Not 0 while there is a visit: only then do switches take the threads' locks, which cost as much as all the rest. */
volatile u64 visiting = 0;
/* Threads that are observed, and the next entry to try for a wait that ends. */
u64 threads = 0;
u32 next_pending = 0;

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct so_wait);
} waits SEC(".maps");

/* A wait that has ended. In the ring it stands from `wait` on. */
struct so_pending {
	struct bpf_task_work work;
	/* The thread's id, or 0; and where it entered the kernel. */
	u32 owner;
	u32 unused;
	u64 pc;
	u64 sp;
	struct so_waited wait;
	struct so_sample header;
	u64 words[SO_MAX_KERNEL_FRAMES + 1];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SO_MAX_PENDING);
	__type(key, u32);
	__type(value, struct so_pending);
} pending SEC(".maps");

/* 1 while this CPU's scratch is used where interrupts, and so wake-ups, can come. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} scratch_in_use SEC(".maps");

/* Linux 6.18 runs a function in a thread's own context, before it is in user mode again. */
extern int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *work, void *map,
					      int (*callback)(struct bpf_map *map, void *key, void *value),
					      void *aux) __ksym __weak;
extern void bpf_preempt_disable(void) __ksym __weak;
extern void bpf_preempt_enable(void) __ksym __weak;

/* The thread's clock, which may begin here. */
SO_INLINE struct so_wait *clock_of(struct task_struct *task, struct so_wait_counters *counter)
{
	struct so_wait *wait = bpf_task_storage_get(&waits, task, NULL, 0);

	if (wait || task->flags & PF_EXITING)
		return wait;
	if (threads >= SO_MAX_THREADS) {
		counter->threads_left_out++;
		return NULL;
	}
	wait = bpf_task_storage_get(&waits, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!wait) {
		counter->threads_left_out++;
		return NULL;
	}
	__sync_fetch_and_add(&threads, 1);
	wait->random = bpf_get_prandom_u32();
	so_set_period(wait, period_ns);
	return wait;
}

/* Whom the sample is of. */
SO_INLINE void set_thread(struct so_sample *header, struct task_struct *task)
{
	struct task_struct *leader = task->group_leader;
	struct mm_struct *mm = task->mm;

	header->time_ns = bpf_ktime_get_ns();
	header->start_boottime_ns = leader->start_boottime;
	header->cgroup_id = task->cgroups->dfl_cgrp->kn->id;
	header->tgid = task->tgid;
	header->tid = task->pid;
	header->cpu = bpf_get_smp_processor_id();
	header->exec_id = (u32)task->self_exec_id;
	header->kernel_frames = 0;
	header->user_frames = 0;
	header->walk_end = SO_WALK_NONE;
	header->flags = 0;
	header->stack_bytes = 0;
	header->image = mm ? mm->start_stack : 0;
	header->proc_tgid = so_proc_tgid(leader, header->tgid);
	header->period_ns = 0;
	bpf_probe_read_kernel(header->comm, sizeof(header->comm), task->comm);
}

SO_INLINE void set_wait(struct so_waited *waited, struct so_wait *wait, struct so_passed *passed, u64 period)
{
	waited->off_cpu_ns = passed->off_cpu * period;
	waited->run_queue_ns = passed->run_queue * period;
	waited->asleep_ns = passed->asleep_ns;
	waited->queued_ns = passed->queued_ns;
	waited->state = wait->state;
	waited->run_count = 0;
	waited->unused = 0;
	__builtin_memset(&waited->woken, 0, sizeof(waited->woken));
}

SO_INLINE u32 take_kernel_stack(struct task_struct *task, u64 *words, struct so_sample *header)
{
	long bytes = bpf_get_task_stack(task, words, SO_MAX_KERNEL_FRAMES * sizeof(u64), 0);
	u32 frames = bytes > 0 ? (u32)bytes / sizeof(u64) : 0;

	if (frames >= SO_MAX_KERNEL_FRAMES) {
		frames = SO_MAX_KERNEL_FRAMES;
		header->flags |= SO_SAMPLE_KERNEL_CUT;
	}
	header->kernel_frames = frames;
	return frames;
}

/* A record of one or two samples. */
SO_INLINE void put_record(struct so_wait_counters *counter, struct so_waited *waited, u64 size)
{
	u32 count = (waited->off_cpu_ns != 0) + (waited->run_queue_ns != 0);

	counter->taken += count;
	if (bpf_ringbuf_output(&samples, waited, size, wake_up_if_filled()))
		counter->lost_ring_full += count;
}

/* Puts a wait of the running thread into the scratch; 1 where its user stack is still the wait's. */
APART int enter_wait(u32 number)
{
	u32 cpu = bpf_get_smp_processor_id(), frames;
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);
	struct so_pending *ended = bpf_map_lookup_elem(&pending, &number);
	struct task_struct *task = bpf_get_current_task_btf();
	struct so_walk *walk;

	if (!record || !ended)
		return 0;
	record->wait = ended->wait;
	record->header = ended->header;
	record->header.time_ns = bpf_ktime_get_ns();
	frames = ended->header.kernel_frames;
	if (frames > SO_MAX_KERNEL_FRAMES)
		frames = SO_MAX_KERNEL_FRAMES;
	bpf_probe_read_kernel(record->words, frames * sizeof(u64), ended->words);
	walk = &record->walk;
	SET_ENTERED_REGISTERS(walk, record->scan.words, (struct pt_regs *)bpf_task_pt_regs(task));
	return task->mm && walk->pc == ended->pc && walk->sp == ended->sp;
}

/* Hands the wait over, with what was walked. */
APART int put_wait(u32 number, u32 is_still, u32 walk_end)
{
	u32 cpu = bpf_get_smp_processor_id(), frames;
	struct so_wait_counters *counter = counters_of_waits();
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);
	struct so_pending *ended = bpf_map_lookup_elem(&pending, &number);
	u64 size;

	if (!counter || !record || !ended)
		return 0;
	frames = record->header.kernel_frames & (SO_RECORD_FRAMES / 2 - 1);
	size = sizeof(record->wait) + sizeof(record->header) + (u64)frames * sizeof(u64);
	if (is_still) {
		record->header.walk_end = walk_end;
		size += (u32)end_stack(0);
	} else {
		counter->stacks_moved++;
		record->header.walk_end = SO_WALK_BROKEN;
		record->words[frames] = ended->pc;
		record->header.user_frames = 1;
		size += sizeof(u64);
	}
	ended->owner = 0;
	if (size > sizeof(record->wait) + sizeof(record->header) + sizeof(record->words))
		size = sizeof(record->wait) + sizeof(record->header) + sizeof(record->words);
	put_record(counter, &record->wait, size);
	return 0;
}

/*
 * Ends a wait of the running thread with its user stack. Nothing else may use this CPU's scratch meanwhile: no other
 * switch may come between.
 */
SO_INLINE void finish_wait(u32 number)
{
	u32 is_still = enter_wait(number), walk_end = is_still ? walk_stack(0) : SO_WALK_BROKEN;

	put_wait(number, is_still, walk_end);
}

#include "returns.h"

/* Runs in the thread's own context, on its way to user mode. */
static int on_way_back(struct bpf_map *map, void *key, void *value)
{
	struct so_pending *ended = value;
	struct task_struct *task = bpf_get_current_task_btf();
	struct so_wait *wait = bpf_task_storage_get(&waits, task, NULL, 0);
	u64 begin = bpf_ktime_get_ns();
	struct so_wait_counters *counter;
	u32 number;

	/* It was told at a switch, and the entry may be another thread's by now. */
	if (!wait || !wait->pending || ended->owner != (u32)task->pid)
		return 0;
	bpf_preempt_disable();
	number = wait->pending;
	if (number) {
		wait->pending = 0;
		finish_where_free(number - 1);
		counter = counters_of_waits();
		if (counter)
			counter->run_ns += bpf_ktime_get_ns() - begin;
	}
	bpf_preempt_enable();
	return 0;
}

#define PENDING_ATTEMPTS 8

/* The thread comes back, and its clock has passed a point. Apart, so that a walk has the more of the BPF stack. */
static __attribute__((noinline)) void end_wait(struct task_struct *task, struct so_wait *wait, struct so_passed *passed,
			struct so_wait_counters *counter)
{
	struct so_pending *ended = NULL;
	struct pt_regs *registers;
	u32 number = 0, frames, i;
	u64 size;

	for (i = 0; i < PENDING_ATTEMPTS; i++) {
		number = __sync_fetch_and_add(&next_pending, 1) & (SO_MAX_PENDING - 1);
		ended = bpf_map_lookup_elem(&pending, &number);
		if (!ended || __sync_val_compare_and_swap(&ended->owner, 0, (u32)task->pid) == 0)
			break;
		ended = NULL;
	}
	if (!ended) {
		/* Never seen: it takes as many threads between their waits and user mode as there are entries. */
		counter->taken += (passed->off_cpu != 0) + (passed->run_queue != 0);
		counter->lost_ring_full += (passed->off_cpu != 0) + (passed->run_queue != 0);
		return;
	}
	set_thread(&ended->header, task);
	/* A visit may change the period at this moment: then this one sample has the new one. */
	set_wait(&ended->wait, wait, passed, wait->period_ns);
	frames = take_kernel_stack(task, ended->words, &ended->header);
	size = sizeof(ended->wait) + sizeof(ended->header) + (u64)frames * sizeof(u64);
	if (task->flags & PF_KTHREAD || !task->mm) {
		ended->header.flags |= SO_SAMPLE_KERNEL_THREAD;
		put_record(counter, &ended->wait, size);
		ended->owner = 0;
		return;
	}
	registers = (struct pt_regs *)bpf_task_pt_regs(task);
#if defined(__TARGET_ARCH_x86)
	ended->pc = BPF_CORE_READ(registers, ip);
#else
	ended->pc = BPF_CORE_READ(registers, pc);
#endif
	ended->sp = BPF_CORE_READ(registers, sp);
	wait->pending = number + 1;
}

/* Has the thread tell its own stack before it is in user mode again. Where that fails, the next switch is a chance. */
SO_INLINE void ask_thread(struct task_struct *task, struct so_wait *wait, struct so_wait_counters *counter)
{
	u32 number = wait->pending - 1;
	struct so_pending *ended = bpf_map_lookup_elem(&pending, &number);

	if (ended && bpf_task_work_schedule_resume_impl(task, &ended->work, &pending, on_way_back, NULL))
		counter->stacks_refused++;
}

/* The thread leaves its CPU. */
SO_INLINE void begin_wait(struct task_struct *task, u64 now, u64 turn, u32 is_preempted, u32 state,
			  struct so_wait_counters *counter)
{
	struct so_wait *wait = clock_of(task, counter);
	u32 number;

	if (!wait)
		return;
	number = wait->pending;
	if (number) {
		wait->pending = 0;
		counter->with_stack++;
		finish_wait(while_free(number - 1));
	}
	wait->state = is_preempted ? SO_WAIT_PREEMPTED : state & SO_WAIT_STATE_BITS;
	wait->told_ns = 0;
	wait->switches = task->nvcsw + task->nivcsw;
	wait->began_ns = now;
	wait->turn_ns = turn;
	*(volatile u64 *)&wait->from_ns = now;
}

/* The thread has a CPU again. Gives since when it could have had one, where that is known, else 0. */
SO_INLINE u64 come_back(struct so_wait *wait, struct task_struct *task, u64 now, u64 turn, struct so_passed *passed)
{
	u64 since;

	if (wait->turn_ns != turn)
		so_enter_turn(wait, task->nvcsw + task->nivcsw, turn, SO_WAIT_UNKNOWN, 1);
	since = wait->began_ns;
	if (wait->from_ns && wait->from_ns <= now)
		so_settle(wait, now, 1, passed);
	else
		since = 0;
	wait->from_ns = 0;
	if (wait->state == SO_WAIT_NEW || wait->state == SO_WAIT_PREEMPTED)
		return since;
	return since && wait->wake_ns >= since && wait->wake_ns <= now ? wait->wake_ns : 0;
}

#include "queues.h"
#include "wakers.h"
#include "sleepers.h"

/* Arguments: whether it is preempted, who leaves, who comes, the state of who leaves. */
SO_INLINE int switch_threads(u64 *ctx, int can_ask)
{
	u64 now = bpf_ktime_get_ns(), turn = turn_ns, since;
	struct task_struct *before = (struct task_struct *)ctx[1], *task = (struct task_struct *)ctx[2];
	struct so_wait_counters *counter = counters_of_waits();
	struct so_passed passed = {};
	struct so_wait *wait;
	u64 with_stack;

	if (!counter)
		return 0;
	counter->switches++;
	counter->coming = 0;
	with_stack = counter->with_stack;
	if (turn && before->pid)
		begin_wait(before, now, turn, (u32)ctx[0] & 1, (u32)ctx[3], counter);
	if (turn && task->pid) {
		wait = bpf_task_storage_get(&waits, task, NULL, 0);
		if (wait) {
			if (visiting) {
				bpf_spin_lock(&wait->lock);
				since = come_back(wait, task, now, turn, &passed);
				bpf_spin_unlock(&wait->lock);
			} else {
				since = come_back(wait, task, now, turn, &passed);
			}
			if (since)
				count_queue(task, wait, now - since, counter);
			if (passed.off_cpu | passed.run_queue) {
				counter->with_stack++;
				end_wait(task, wait, &passed, counter);
			}
			if (can_ask && wait->pending)
				ask_thread(task, wait, counter);
			if (!can_ask)
				counter->coming = (u32)task->pid & -(u32)(wait->pending != 0);
		}
	}
	/* Read anew: what the verifier knows of it would have it follow all of this twice. */
	count_run(now, *(volatile u64 *)&counter->with_stack != with_stack);
	return 0;
}

/*
 * One of these two is loaded, by whether the kernel can have a thread tell its stack. The verifier of older ones
 * adds the BPF stack of what is never run.
 */
SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
	return switch_threads(ctx, 1);
}

SEC("tp_btf/sched_switch")
int on_switch_old(u64 *ctx)
{
	return switch_threads(ctx, 0);
}

/* Argument: who is woken. It stands in the queue of its CPU from now on, wherever it was woken from. */
SEC("tp_btf/sched_wakeup")
int on_wakeup(u64 *ctx)
{
	struct so_wait *wait;
	u64 now;

	if (!turn_ns)
		return 0;
	now = bpf_ktime_get_ns();
	wait = bpf_task_storage_get(&waits, (struct task_struct *)ctx[0], NULL, 0);
	if (wait)
		*(volatile u64 *)&wait->wake_ns = now;
	count_run(now, 0);
	return 0;
}

/* Tells who ends a wait, where the sleeper's clock passes a point by now. 1 where it does. */
SO_INLINE u32 tell_waker(void *ctx, struct task_struct *task, u64 turn, u64 now)
{
	struct so_wait *wait = bpf_task_storage_get(&waits, task, NULL, 0);
	struct so_wait_counters *counter;
	u32 zero = 0, *in_use;
	u64 ended_ns, from;

	if (!wait)
		return 0;
	from = wait->from_ns;
	if (!from || wait->turn_ns != turn || (wait->state & SO_WAIT_STATE_BITS) == SO_WAIT_PREEMPTED)
		return 0;
	/* Most waits pass no point. */
	if (from >= now || (!wait->told_ns && wait->at_ns + (now - from) < wait->point_ns))
		return 0;
	ended_ns = so_would_tell(wait, now);
	in_use = bpf_map_lookup_elem(&scratch_in_use, &zero);
	if (!ended_ns || !in_use)
		return 0;
	if (*in_use) {
		counter = counters_of_waits();
		if (counter)
			counter->wakers_left_out++;
		return 0;
	}
	if (enter_waker(ctx, task, wait, now, ended_ns))
		put_waker(walk_stack(0));
	else
		put_waker(SO_WALK_NONE);
	return 1;
}

/*
 * Argument: who is being woken, by the running thread or by an interrupt of it; the above may be on another CPU, and
 * later.
 */
SEC("tp_btf/sched_waking")
int on_waking(u64 *ctx)
{
	u64 turn = turn_ns, now;

	if (!turn)
		return 0;
	now = bpf_ktime_get_ns();
	count_run(now, tell_waker(ctx, (struct task_struct *)ctx[0], turn, now));
	return 0;
}

/* Argument: a new thread, which waits for its first CPU. */
SEC("tp_btf/sched_wakeup_new")
int on_new(u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	struct so_wait_counters *counter = counters_of_waits();
	struct so_wait *wait;

	if (!counter || !turn_ns)
		return 0;
	wait = clock_of(task, counter);
	if (wait) {
		wait->state = SO_WAIT_NEW;
		wait->began_ns = bpf_ktime_get_ns();
		wait->turn_ns = turn_ns;
		*(volatile u64 *)&wait->from_ns = wait->began_ns;
	}
	return 0;
}

/* Argument: who ends. What its last wait lacks is taken here, where the thread still has its memory. */
SEC("tp_btf/sched_process_exit")
int on_end(u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx[0];
	struct so_wait *wait = bpf_task_storage_get(&waits, task, NULL, 0);
	struct so_wait_counters *counter = counters_of_waits();
	u32 number;

	if (!wait)
		return 0;
	number = __sync_fetch_and_and(&wait->pending, 0);
	if (number)
		finish_where_free(number - 1);
	if (counter)
		count_held(task, &wait->held, counter);
	if (bpf_task_storage_delete(&waits, task) == 0)
		__sync_fetch_and_sub(&threads, 1);
	return 0;
}

/*
 * Looks at every thread, at times that nothing about the threads decides: only then may a period change. The first
 * visit of a turn finds out who waits, the last one ends the turn for those that do.
 */
SEC("iter/task")
int visit(struct bpf_iter__task *ctx)
{
	struct so_wait_counters *counter = counters_of_waits();
	struct task_struct *task = ctx->task;
	u64 until = visit_until_ns, turn = visit_turn_ns, wanted = period_ns, period;
	struct so_passed passed = {};
	struct so_wait *wait;
	u32 state, is_away, is_last = until != 0;

	if (!task || !counter || !task->pid)
		return 0;
	if (!is_last)
		until = bpf_ktime_get_ns();
	state = task->__state;
	is_away = !task->on_cpu;
	wait = bpf_task_storage_get(&waits, task, NULL, 0);
	if (!wait)
		wait = clock_of(task, counter);
	if (!wait)
		return 0;
	/* It sleeps since the visit before. */
	if (is_away && wait->from_ns && wait->turn_ns == turn && wait->began_ns <= visited_ns) {
		wanted = sleeper_period_ns;
		counter->sleepers++;
	}
	bpf_spin_lock(&wait->lock);
	period = wait->period_ns;
	if (wait->turn_ns != turn) {
		if (!is_last)
			so_enter_turn(wait, task->nvcsw + task->nivcsw, turn, state & SO_WAIT_STATE_BITS, is_away);
	} else if ((is_away || is_last) && wait->from_ns && wait->from_ns <= until) {
		so_settle(wait, until, 0, &passed);
		wait->told_ns += passed.off_cpu * period;
		wait->from_ns = is_last ? 0 : until;
	}
	if (wanted != period)
		so_set_period(wait, wanted);
	bpf_spin_unlock(&wait->lock);
	count_held(task, &wait->held, counter);
	if (passed.off_cpu | passed.run_queue)
		tell_sleeper(task, wait, &passed, period, counter);
	return 0;
}
