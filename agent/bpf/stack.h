/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The user stack of the running thread, walked in BPF: what the sampler and what looks at waits share. Each of them has
 * a scratch of its own, since one may interrupt the other.
 */
#ifndef STAKEOUT_STACK_H
#define STAKEOUT_STACK_H

SO_INLINE int so_read_user(void *to, u32 size, u64 address)
{
	return bpf_probe_read_user(to, size, (const void *)address) != 0;
}

SO_INLINE const struct so_slab *so_slab_at(u32 number)
{
	void *slab = bpf_map_lookup_elem(&slabs, &number);
	u32 zero = 0;

	return slab ? bpf_map_lookup_elem(slab, &zero) : NULL;
}

SO_INLINE const u64 *so_rule_at(u32 number)
{
	u32 zero = 0;
	struct so_rules *all = bpf_map_lookup_elem(&rules, &zero);

	return all ? &all->rules[number & (SO_MAX_RULES - 1)] : NULL;
}

SO_INLINE struct so_cached *so_cached_at(u32 number)
{
	u32 zero = 0;
	struct so_cache *all = bpf_map_lookup_elem(&cache, &zero);

	return all ? &all->slots[number & (SO_CACHE_SLOTS - 1)] : NULL;
}

SO_INLINE int so_read_code(void *to, u32 size, u64 address)
{
	return bpf_probe_read_user(to, size, (const void *)address) != 0;
}

SO_INLINE int so_read_memory(void *to, u32 size, u64 address)
{
	return bpf_probe_read_user(to, size, (const void *)address) != 0;
}

SO_INLINE const struct so_runtime *so_runtime_at(u32 number)
{
	return bpf_map_lookup_elem(&runtimes, &number);
}

/*
 * A function that the verifier looks at once, whatever its arguments are. Weak, so that the compiler cannot look into
 * it either: it would leave out arguments that are not used, and the verifier wants them ("R1 is not a scalar", on
 * 6.18).
 */
#define APART __attribute__((noinline, weak))

/* What a search does again and again, verified once each: what they work on is in the scratch of this CPU. */
int look_user(u64 pc);
int try_user(u64 at, u64 word);
int scan_user(u64 address);
int runtime_user(u32 unused);
int rule_user(u64 rule);
int python_seek_user(u32 unused);
int ruby_seek_user(u32 unused);
int v8_share_user(u64 function);
int v8_state_user(u64 top);
#define so_runtime_step(walk) runtime_user(0)
#define so_step_by(walk, rule) rule_user(rule)
#define so_python_seek(walk, py, words) python_seek_user(0)
#define so_ruby_seek(walk, ruby, words) ruby_seek_user(0)
#define so_v8_share(walk, v8, words, function) v8_share_user(function)
#define so_v8_state(walk, top) v8_state_user(top)
#define so_look(walk, scan, pc) look_user(pc)
#define so_try(walk, scan, at, word) try_user(at, word)
#define so_scan(walk, scan, address) scan_user(address)

#include "unwind.h"

/* THREAD_SIZE of both architectures (with pages of 4 KiB). */
#define KERNEL_STACK_BYTES 16384

/* Linux 5.15 gives the task as something whose fields are loaded without a helper each, and where its registers are. */
SO_INLINE int has_loadable_task(void)
{
	return bpf_core_enum_value_exists(enum bpf_func_id___stakeout, BPF_FUNC_task_pt_regs___stakeout);
}

/* Whom the sample is of. Returns the task's user memory. */
SO_INLINE struct mm_struct *set_task(struct so_sample *header, struct task_struct *task, u32 tgid, u32 *flags)
{
	struct task_struct *leader;
	struct mm_struct *mm;

	if (has_loadable_task()) {
		task = bpf_get_current_task_btf();
		leader = task->group_leader;
		mm = task->mm;
		header->start_boottime_ns = leader->start_boottime;
		header->exec_id = (u32)task->self_exec_id;
		header->image = mm ? mm->start_stack : 0;
		*flags = task->flags;
	} else {
		leader = BPF_CORE_READ(task, group_leader);
		mm = BPF_CORE_READ(task, mm);
		header->start_boottime_ns = BPF_CORE_READ(leader, start_boottime);
		header->exec_id = (u32)BPF_CORE_READ(task, self_exec_id);
		header->image = so_image(mm);
		*flags = BPF_CORE_READ(task, flags);
	}
	header->proc_tgid = so_proc_tgid(leader, tgid);
	return mm;
}

/* The registers with which the thread entered the kernel. Before the helper, they are where every kernel keeps them. */
SO_INLINE struct pt_regs *entry_registers(struct task_struct *task)
{
	if (has_loadable_task())
		return (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	return (struct pt_regs *)(BPF_CORE_READ(task, stack) + KERNEL_STACK_BYTES - bpf_core_type_size(struct pt_regs));
}

/* The registers of the code that was interrupted, or that entered the kernel. */
#if defined(__TARGET_ARCH_x86)
#define SET_REGISTERS(walk, get)		\
	do {					\
		(walk)->pc = get(ip);		\
		(walk)->sp = get(sp);		\
		(walk)->fp = get(bp);		\
		(walk)->registers[0] = get(ax);	\
		(walk)->registers[1] = get(dx);	\
		(walk)->registers[2] = get(cx);	\
		(walk)->registers[3] = get(bx);	\
		(walk)->registers[4] = get(si);	\
		(walk)->registers[5] = get(di);	\
		(walk)->registers[6] = get(bp);	\
		(walk)->registers[7] = get(sp);	\
		(walk)->registers[8] = get(r8);	\
		(walk)->registers[9] = get(r9);	\
		(walk)->registers[10] = get(r10);	\
		(walk)->registers[11] = get(r11);	\
		(walk)->registers[12] = get(r12);	\
		(walk)->registers[13] = get(r13);	\
		(walk)->registers[14] = get(r14);	\
		(walk)->registers[15] = get(r15);	\
		(walk)->has_registers = 1;	\
	} while (0)
#else
#define SET_REGISTERS(walk, get)		\
	do {					\
		(walk)->pc = get(pc);		\
		(walk)->sp = get(sp);		\
		(walk)->fp = get(regs[29]);	\
		(walk)->lr = get(regs[30]);	\
		(walk)->has_registers = 0;	\
	} while (0)
#endif

/*
 * Those with which the thread entered the kernel, from where it keeps them. They pass through `words`, since on the BPF
 * stack there is no room; what cannot be read is zero.
 */
#if defined(__TARGET_ARCH_x86)
#define ENTERED(field) entered->field
#define SET_ENTERED_REGISTERS(walk, words, from)					\
	do {									\
		struct user_registers *entered = (struct user_registers *)(words);	\
										\
		bpf_probe_read_kernel(entered, sizeof(*entered), from);		\
		SET_REGISTERS(walk, ENTERED);					\
	} while (0)
#else
#define ENTERED(field) BPF_CORE_READ(entered, field)
#define SET_ENTERED_REGISTERS(walk, words, from)			\
	do {							\
		struct pt_regs *entered = from;			\
								\
		SET_REGISTERS(walk, ENTERED);			\
	} while (0)
#endif

/* Where the thread's own storage is. */
SO_INLINE u64 thread_base(struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(task, thread.fsbase);
#else
	return 0;
#endif
}

/* Stacks that one CPU may hand to user space in a second: more would fill the ring. */
#define MAX_COPIES_PER_SECOND 200
/* Pages in a row inside of a stack that may never have been touched. */
#define MAX_HOLE_PAGES 4
#define SECOND_NS 1000000000ULL
#define USER_TICK_NS 10000000ULL

#include "apart.h"

/* Frames that are walked before the verifier looks at the loop again. */
#define PIECE_FRAMES 64

/* Puts a word of the user stack behind the kernel's frames, of which there are `first`. */
SO_INLINE void put_word(struct so_scratch *record, u32 first, u32 place, u64 word)
{
	if (place >= SO_LEAF_FRAMES)
		place = SO_LEAF_FRAMES + ((place - SO_LEAF_FRAMES) & (SO_ROOT_FRAMES - 1));
	record->words[(first + place) & (SO_RECORD_FRAMES - 1)] = word;
}

/* Frames of a call that are put before the verifier looks at the loop again. */
#define PIECE_CALL_FRAMES 16

/* Puts some of the frames of a call of an interpreter's loop behind what there is; 1 where there may be more. */
APART int put_chain_piece(u32 first)
{
	u32 cpu = bpf_get_smp_processor_id(), i;
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);

	if (!record)
		return 0;
	for (i = 0; i < PIECE_CALL_FRAMES; i++) {
		u32 step = chain_frame_user(0), place = record->header.user_frames;

		if (step == SO_CHAIN_DONE || step == SO_CHAIN_BROKEN)
			return 0;
		if (step == SO_CHAIN_FRAME) {
			put_word(record, first, place, record->walk.runtime_frame);
			put_word(record, first, place + 1, SO_FRAME_WORD(SO_FRAME_DETAIL, record->walk.runtime_detail));
			record->header.user_frames = place + 2;
		}
	}
	return 1;
}

/*
 * The frames of a call of an interpreter's loop stand where the loop's own frame stood, the last one; or, where the
 * loop is not on the stack, before that frame.
 */
APART int put_chain(u32 first, u32 is_before)
{
	u32 cpu = bpf_get_smp_processor_id(), i;
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);
	u32 before;

	if (!record)
		return 0;
	before = --record->header.user_frames;
	for (i = 0; i < SO_MAX_CALL_FRAMES / PIECE_CALL_FRAMES; i++) {
		if (!put_chain_piece(first))
			break;
	}
	record->walk.runtime_frame = 0;
	/* Without any, the loop stands for itself. */
	if (record->header.user_frames == before) {
		record->header.user_frames = before + 1;
	} else if (is_before) {
		put_word(record, first, record->header.user_frames, record->walk.before_pc);
		record->header.user_frames++;
	}
	return 0;
}

/*
 * Walks a few frames, and puts them behind those of the kernel, of which there are `first`. Says why it stopped,
 * if it did.
 */
APART int walk_piece(u32 first)
{
	u32 cpu = bpf_get_smp_processor_id(), i;
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);

	if (!record)
		return SO_STEP_BROKEN;
	for (i = 0; i < PIECE_FRAMES; i++) {
		u32 innermost = record->walk.innermost, step = step_user(0), place = record->header.user_frames, call;

		/* The frame that was stepped from is its runtime's. */
		if (record->walk.runtime_frame) {
			/* Without a branch, which the verifier would follow through all frames. There are two frames at least. */
			place -= record->walk.is_folded & 1;
			put_word(record, first, place - 1, record->walk.runtime_frame);
			put_word(record, first, place, SO_FRAME_WORD(SO_FRAME_DETAIL, record->walk.runtime_detail));
			record->header.user_frames = ++place;
		} else if (step == SO_STEP_FRAME && record->walk.runtime) {
			call = chain_call_user(innermost);
			if (call) {
				put_chain(first, call == 2);
				place = record->header.user_frames;
			}
		}
		if (step == SO_STEP_ROOT || step == SO_STEP_NO_TABLE)
			return step;
		if (step != SO_STEP_FRAME)
			step = recover_user(step);
		if (step != SO_STEP_FRAME && step != SO_STEP_INSTEAD)
			return step;
		if (step == SO_STEP_FRAME)
			record->header.user_frames = place + 1;
		else
			place--;
		put_word(record, first, place, record->walk.pc | (record->walk.innermost ? SO_EXACT_ADDRESS : 0));
	}
	return SO_STEP_FRAME;
}

/* User frames that are in the record. */
SO_INLINE u32 kept_frames(const struct so_scratch *record)
{
	return record->header.user_frames < SO_MAX_USER_FRAMES ? record->header.user_frames : SO_MAX_USER_FRAMES;
}

/* Fills words[] after the first ones; says how it ended. */
SO_INLINE u32 walk_user(struct so_scratch *record, struct so_process *process, u32 first)
{
	u32 i;

	record->words[first & (SO_RECORD_FRAMES - 1)] = record->walk.pc;
	record->header.user_frames = 1;
	for (i = 0; i < SO_MAX_WALKED_FRAMES / PIECE_FRAMES; i++) {
		switch (walk_piece(first)) {
		case SO_STEP_FRAME:
			break;
		case SO_STEP_ROOT:
			return record->walk.doubtful ? SO_WALK_BROKEN : SO_WALK_ROOT;
		case SO_STEP_NO_TABLE:
			return SO_WALK_NO_TABLE;
		case SO_STEP_NO_MAPPING:
			/* There is code: mapped since the mappings were read. */
			if (!record->walk.guessed)
				return SO_WALK_NO_TABLE;
			/*
			 * The same, or no code at all: user space looks, but not every time, since run-time compilers without
			 * frame pointers lead into nowhere with every sample.
			 */
			if (process && record->header.time_ns - process->unmapped_ns >= SECOND_NS) {
				process->unmapped_ns = record->header.time_ns;
				return SO_WALK_NO_TABLE;
			}
			/* What returns to where there is no code is no frame. Of a deep stack user space leaves it out. */
			if (record->header.user_frames > 1 && record->header.user_frames <= SO_MAX_USER_FRAMES)
				record->header.user_frames--;
			return SO_WALK_BROKEN;
		default:
			return SO_WALK_BROKEN;
		}
	}
	return SO_WALK_CUT;
}

/*
 * Puts the walk's state and what the stack holds from there on behind the frames, page by page. A page that cannot be
 * read is zero (the helper clears it): inside of a stack it was never touched, as a large array of a function may be.
 * Where several in a row cannot, the stack has ended.
 */
SO_INLINE u32 copy_stack(struct so_scratch *record, u32 frames)
{
	u64 address = record->walk.sp - SO_RED_ZONE_BYTES;
	u32 first = SO_STACK_PIECE_BYTES - (address & (SO_STACK_PIECE_BYTES - 1));
	u32 i, copied = 0, unreadable = 0;
	u8 *to;

	frames &= SO_RECORD_FRAMES - 1;
	__builtin_memcpy(&record->words[frames], &record->walk, sizeof(struct so_walk));
	to = (u8 *)&record->words[frames + sizeof(struct so_walk) / sizeof(u64)];
	if (first == 0 || first > SO_STACK_PIECE_BYTES)
		return 0;
	/* All of it may lie below the stack pointer, in a page that was never touched. */
	if (so_read_user(to, first, address) && first > SO_RED_ZONE_BYTES)
		return 0;
	copied = first;
	for (i = 0; i < SO_MAX_STACK_BYTES / SO_STACK_PIECE_BYTES - 1; i++) {
		u32 at = first + i * SO_STACK_PIECE_BYTES;

		if (at > SO_MAX_STACK_BYTES - SO_STACK_PIECE_BYTES)
			break;
		if (!so_read_user(to + at, SO_STACK_PIECE_BYTES, address + at)) {
			copied = at + SO_STACK_PIECE_BYTES;
			unreadable = 0;
		} else if (++unreadable > MAX_HOLE_PAGES) {
			break;
		}
	}
	return copied;
}

/* A copy must never cost another sample its place in the ring. */
SO_INLINE int may_copy(struct so_scratch *record, u64 now)
{
	if (bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) > bpf_ringbuf_query(&samples, BPF_RB_RING_SIZE) / 2)
		return 0;
	if (now - record->copied_since_ns >= SECOND_NS) {
		record->copied_since_ns = now;
		record->copied = 0;
	}
	return record->copied++ < MAX_COPIES_PER_SECOND;
}

/*
 * Whoever takes samples out of the ring looks into it at times of its own, in which copies could use up what they
 * may, and deep stacks on many CPUs all that there is.
 */
SO_INLINE u64 wake_up_if_filled(void)
{
	if (bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) > bpf_ringbuf_query(&samples, BPF_RB_RING_SIZE) / 8)
		return BPF_RB_FORCE_WAKEUP;
	return BPF_RB_NO_WAKEUP;
}

/* A walk that stands at its first frame, whose registers are set already. */
SO_INLINE void begin_walk(struct so_walk *walk)
{
	walk->innermost = 1;
	walk->guessed = 0;
	walk->doubtful = 0;
	walk->trusted = 0;
	walk->scan_left = SO_MAX_SCANNED_WORDS;
	walk->mappings = 0;
	walk->mapping_count = 0;
	walk->address_space = 0;
	walk->runtime = 0;
	walk->runtime_frame = 0;
	walk->tls_base = 0;
	walk->chain_frame = 0;
	walk->chain_entry = 0;
	walk->chain = 0;
	walk->chain_given = 0;
	walk->chain_compiled = 0;
	walk->chain_called = 0;
	walk->php_function = 0;
	walk->php_fiber = 0;
	walk->php_wanted = 0;
	walk->of_file = 0;
	walk->v8_function = 0;
	walk->v8_function_map = 0;
	walk->v8_bytecode_map = 0;
	walk->v8_shared = 0;
	walk->v8_before = 0;
	walk->is_folded = 0;
}

/* What is known of the program: its tables, and its language's runtime. */
SO_INLINE struct so_process *find_process(struct so_scratch *record)
{
	u32 tgid = record->header.tgid;
	struct so_process *process = bpf_map_lookup_elem(&processes, &tgid);

	if (!process || process->exec_id != record->header.exec_id ||
	    process->start_ticks != record->header.start_boottime_ns / USER_TICK_NS)
		return NULL;
	return process;
}

/*
 * Walks the user stack of the running thread, whose first frame's registers are set, and puts its frames behind those
 * of the kernel. Says how it ended. A function of its own: with the walk's, a program's stack has room for little else
 * ("combined stack size of 4 calls is 528. Too large", on 6.12).
 */
APART int walk_stack(u32 unused)
{
	u32 cpu = bpf_get_smp_processor_id(), kernel_frames;
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);
	struct so_process *process;
	struct so_walk *walk;

	if (!record)
		return SO_WALK_NONE;
	kernel_frames = record->header.kernel_frames & (SO_RECORD_FRAMES / 2 - 1);
	walk = &record->walk;
	begin_walk(walk);
	process = find_process(record);
	if (process) {
		walk->mappings = process->mappings;
		walk->mapping_count = process->mapping_count;
		walk->address_space = process->address_space;
		walk->runtime = process->runtime;
		if (walk->runtime)
			walk->tls_base = thread_base((struct task_struct *)bpf_get_current_task());
	}
	if (!so_is_user_address(walk->pc))
		return SO_WALK_NONE;
	if (walk->address_space)
		return walk_user(record, process, kernel_frames);
	record->words[kernel_frames & (SO_RECORD_FRAMES - 1)] = walk->pc;
	record->header.user_frames = 1;
	return SO_WALK_NO_TABLE;
}

/* After the walk: adds a copy of the stack where that is wanted. Gives the bytes that all user frames take. */
APART int end_stack(u32 unused)
{
	u32 cpu = bpf_get_smp_processor_id(), zero = 0, size;
	struct so_scratch *record = bpf_map_lookup_elem(&scratch, &cpu);
	struct so_counters *counter = bpf_map_lookup_elem(&counters, &zero);

	if (!record || !counter)
		return 0;
	size = kept_frames(record) * sizeof(u64);
	counter->frames += record->header.user_frames;
	if (record->header.walk_end == SO_WALK_NO_TABLE) {
		if (may_copy(record, record->header.time_ns)) {
			u32 frames = (record->header.kernel_frames & (SO_RECORD_FRAMES / 2 - 1)) + kept_frames(record);

			record->header.stack_bytes = copy_stack(record, frames);
			size += sizeof(struct so_walk) + record->header.stack_bytes;
			counter->stacks_copied++;
		} else {
			record->header.walk_end = SO_WALK_BROKEN;
			counter->stacks_not_copied++;
		}
	}
	return size;
}

#endif
