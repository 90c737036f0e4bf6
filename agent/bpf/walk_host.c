// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The walk of unwind.h in user space, on a copied stack: for samples that came before their tables. Compiled into the
 * agent.
 */
#include <stddef.h>
#include <string.h>

#include "host_types.h"
#include "abi.h"

/* What the walk reads: the tables, and a part of a stack. */
struct so_memory {
	/* Gives a slab, or NULL. It is good until the next one is asked for: the walk reads one at a time. */
	const struct so_slab *(*slab_at)(void *slabs, u32 number);
	void *slabs;
	const u64 *rules;
	const u8 *stack;
	u64 stack_address;
	u64 stack_bytes;
	/* And a part of the code, where it is there. */
	const u8 *code;
	u64 code_address;
	u64 code_bytes;
	/* Reads any memory of the process as it is now; 0 where it could be read. NULL: there is none. */
	int (*read_memory)(void *process, void *to, u32 size, u64 address);
	void *process;
	/* Or NULL. */
	const struct so_runtime *runtime;
};

static _Thread_local const struct so_memory *memory;

/* How far above the copy of a stack a frame may begin, and how many frames there may be of it up to the root. */
#define SO_ABOVE_BYTES (8 << 20)
#define SO_ABOVE_FRAMES 8
/* How far apart two calls of one function may be. */
#define SO_FUNCTION_BYTES 4096

/* Of what lies above the copy: whether it was asked for, and whether it is read as it is now. */
static _Thread_local u32 above_wanted, above_read;

SO_INLINE int so_read_memory(void *to, u32 size, u64 address)
{
	return memory->read_memory ? memory->read_memory(memory->process, to, size, address) : 1;
}

SO_INLINE int so_read_user(void *to, u32 size, u64 address)
{
	u64 offset = address - memory->stack_address;

	if (address < memory->stack_address)
		return 1;
	if (offset > memory->stack_bytes || size > memory->stack_bytes - offset) {
		above_wanted = 1;
		return above_read && offset < memory->stack_bytes + SO_ABOVE_BYTES ? so_read_memory(to, size, address) : 1;
	}
	memcpy(to, memory->stack + offset, size);
	return 0;
}

SO_INLINE const struct so_slab *so_slab_at(u32 number)
{
	return memory->slab_at(memory->slabs, number);
}

SO_INLINE const u64 *so_rule_at(u32 number)
{
	return &memory->rules[number & (SO_MAX_RULES - 1)];
}

SO_INLINE struct so_cached *so_cached_at(u32 number)
{
	(void)number;
	return NULL;
}

SO_INLINE int so_read_code(void *to, u32 size, u64 address)
{
	u64 offset = address - memory->code_address;

	if (memory->code_bytes == 0)
		return SO_NO_CODE;
	if (address < memory->code_address || offset > memory->code_bytes || size > memory->code_bytes - offset)
		return 1;
	memcpy(to, memory->code + offset, size);
	return 0;
}

SO_INLINE const struct so_runtime *so_runtime_at(u32 number)
{
	(void)number;
	return memory->runtime;
}

static _Thread_local u64 runtime_words[SO_SCAN_WORDS];

#define so_runtime_step(walk) so_runtime_step_once(walk, runtime_words)
#define so_step_by(walk, rule) so_step_by_once(walk, rule)
#define so_python_seek(walk, py, words) so_python_seek_once(walk, py, words)
#define so_ruby_seek(walk, ruby, words) so_ruby_seek_once(walk, ruby, words)
#define so_v8_share(walk, v8, words, function) so_v8_share_once(walk, v8, words, function)
#define so_v8_state(walk, top) so_v8_state_once(walk, top)
#define so_look(walk, scan, pc) so_look_once(walk, scan, pc)
#define so_try(walk, scan, at, word) so_try_once(walk, scan, at, word)
#define so_scan(walk, scan, address) so_scan_once(walk, scan, address)

#include "unwind.h"

/*
 * Whether the thread is still in the frame that the walk came to: what it called returns to the same function, from the
 * same place of the stack. It may be another call by now: a function that waits for its next task has called others.
 */
static int so_is_still_there(const struct so_walk *walk)
{
#ifdef __TARGET_ARCH_arm64
	u64 at = walk->before_fp + sizeof(u64);
#else
	u64 at = walk->sp - sizeof(u64);
#endif
	u64 now, rule, rule_now;

	if (walk->innermost || walk->guessed || walk->doubtful || so_read_memory(&now, sizeof(now), at))
		return 0;
	/* Nearby, with a frame of the same kind: that is how far the tables know functions. */
	return now - walk->pc + SO_FUNCTION_BYTES < 2 * SO_FUNCTION_BYTES &&
	       so_find_rule(walk, walk->pc - 1, &rule, 1) == SO_FOUND_RULE &&
	       so_find_rule(walk, now - 1, &rule_now, 1) == SO_FOUND_RULE && rule == rule_now;
}

/* Puts the frames of a call of an interpreter's loop where the loop's own frame stands, the last one. */
static void so_put_chain(struct so_walk *walk, u64 *frames, u32 before, u32 capacity, u32 *count, u32 call)
{
	u32 i, place = before + *count - 1;

	for (i = 0; i < SO_MAX_CALL_FRAMES && place + 2 <= before + capacity; i++) {
		enum so_chain_step step = so_chain_frame_once(walk, runtime_words);

		if (step == SO_CHAIN_HIDDEN)
			continue;
		if (step != SO_CHAIN_FRAME)
			break;
		frames[place++] = walk->runtime_frame;
		frames[place++] = SO_FRAME_WORD(SO_FRAME_DETAIL, walk->runtime_detail);
	}
	walk->runtime_frame = 0;
	if (place < before + *count)
		return;
	if (call == 2 && place < before + capacity)
		frames[place++] = walk->before_pc;
	*count = place - before;
}

/*
 * A frame with room for much begins above the copy: a buffer, or the stack of an interpreter's thread. What lies there
 * is read as it is now, as long as the thread is in that frame. *copied: how many frames there are from the copy.
 */
static u32 so_step_above(struct so_walk *walk, u32 step, u32 count, u32 *copied)
{
	if (step != SO_STEP_BROKEN || !above_wanted || above_read || !so_is_still_there(walk))
		return step;
	above_read = 1;
	*copied = count;
	return so_step_once(walk);
}

static u32 so_walk_frames(struct so_walk *walk, u64 *frames, u32 before, u32 capacity, u32 *count, u32 *copied)
{
	struct so_scan scan = {};
	u32 step, call;

	for (*count = 0; *count < capacity;) {
		u32 innermost = walk->innermost;

		above_wanted = 0;
		step = so_step_above(walk, so_step_once(walk), *count, copied);
		/* The frame that was stepped from is its runtime's: two words. */
		if (walk->runtime_frame && before + *count > 0) {
			if (walk->is_folded && *count > 0)
				--*count;
			frames[before + *count - 1] = walk->runtime_frame;
			frames[before + (*count)++] = SO_FRAME_WORD(SO_FRAME_DETAIL, walk->runtime_detail);
			if (*count >= capacity)
				break;
		} else if (step == SO_STEP_FRAME && before + *count > 0 &&
			   (call = so_chain_call_once(walk, runtime_words, innermost)) != 0) {
			so_put_chain(walk, frames, before, capacity, count, call);
			if (*count >= capacity)
				break;
		}
		if (step != SO_STEP_FRAME && step != SO_STEP_ROOT && step != SO_STEP_NO_TABLE)
			step = so_recover_once(walk, &scan, step);
		if (step == SO_STEP_FRAME)
			++*count;
		else if (step == SO_STEP_ROOT)
			return walk->doubtful ? SO_STEP_BROKEN : SO_STEP_ROOT;
		else if (step != SO_STEP_INSTEAD)
			return step;
		if (before + *count > 0)
			frames[before + *count - 1] = walk->pc | (walk->innermost ? SO_EXACT_ADDRESS : 0);
	}
	return SO_STEP_FRAME;
}

/*
 * Goes on from walk, whose own frame is the last of the `before` that are there already; adds at most capacity
 * frames. Says why it stopped: with SO_STEP_FRAME because there is no more room.
 */
u32 so_walk_on(struct so_walk *walk, const struct so_memory *from, u64 *frames, u32 before, u32 capacity, u32 *count)
{
	u32 step, copied = 0;

	memory = from;
	above_read = 0;
	step = so_walk_frames(walk, frames, before, capacity, count, &copied);
	/* The first functions of a thread stay while it lives; others may be others by now. */
	if (above_read && (step != SO_STEP_ROOT || *count > copied + SO_ABOVE_FRAMES)) {
		*count = copied;
		return SO_STEP_BROKEN;
	}
	return step;
}
