/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * One step of the walk of a user stack: from a frame to its caller's. Pure C, compiled for BPF, into the agent (for
 * stacks whose tables came later than the sample) and into tests. Whoever includes it defines before:
 *
 *   int so_read_user(void *to, u32 size, u64 address)   0 where the memory of the walked thread could be read
 *   const struct so_slab *so_slab_at(u32 number)        a slab of tables, or NULL
 *   const u64 *so_rule_at(u32 number)                   a packed rule, or NULL
 *   struct so_cached *so_cached_at(u32 number)          a slot of the cache of rules, or NULL
 *   so_step_by(walk, rule)                              so_step_by_once, perhaps as a function of its own
 *
 * and what recover.h and runtime.h, which stand behind it, name.
 *
 * A mapping of executable memory leads to a directory of chunks of 64 KiB of code, a chunk to its rows, a row to a
 * rule (abi.h says how each is laid out; agent/src/unwind makes them). Where nothing says how a function's frame
 * looks, the chain of frame pointers is tried.
 */
#ifndef STAKEOUT_UNWIND_H
#define STAKEOUT_UNWIND_H

#ifdef __TARGET_ARCH_arm64
/* Pointer authentication puts a signature above the 48 bits of an address. */
#define SO_STRIP_ADDRESS(address) ((address) & 0x0000ffffffffffffULL)
#else
#define SO_STRIP_ADDRESS(address) (address)
#endif

/* Below lies the page that is never mapped, above lies the kernel. */
#define SO_LOWEST_USER_ADDRESS 4096ULL
#define SO_HIGHEST_USER_ADDRESS 0x00ffffffffffffffULL

SO_INLINE int so_is_user_address(u64 address)
{
	return address >= SO_LOWEST_USER_ADDRESS && address <= SO_HIGHEST_USER_ADDRESS;
}

SO_INLINE u32 so_word(const struct so_slab *slab, u32 index)
{
	return slab->words[index & (SO_SLAB_WORDS - 1)];
}

SO_INLINE u64 so_double_word(const struct so_slab *slab, u32 index)
{
	return so_word(slab, index) | (u64)so_word(slab, index + 1) << 32;
}

/* The mapping that covers pc: its first word's index, or 0, which is never a mapping. */
SO_INLINE u32 so_find_mapping(const struct so_slab *slab, u32 first, u32 count, u64 pc)
{
	u32 i;

	/* At most SO_MAX_MAPPINGS, which is 2^12. */
	for (i = 0; i < 13 && count > 1; i++) {
		u32 half = count / 2;

		if (so_double_word(slab, first + half * SO_MAPPING_WORDS) <= pc)
			first += half * SO_MAPPING_WORDS;
		count -= half;
	}
	if (count == 0 || pc < so_double_word(slab, first) || pc >= so_double_word(slab, first + 2))
		return 0;
	return first;
}

/*
 * The row that covers an offset in a chunk gives the rule's number. The first row of a chunk is at its very
 * beginning.
 */
SO_INLINE u32 so_find_row(const struct so_slab *slab, u32 first, u32 count, u32 offset)
{
	u32 i;

	/* At most 2^16 rows: one for each byte of the chunk. */
	for (i = 0; i < 17 && count > 1; i++) {
		u32 half = count / 2;

		if (so_word(slab, first + half) >> 16 <= offset)
			first += half;
		count -= half;
	}
	return so_word(slab, first) & 0xffff;
}

enum so_found {
	SO_FOUND_RULE,
	/* No executable memory is known there. */
	SO_FOUND_NO_MAPPING,
	/* There is code, and its table is not there yet. */
	SO_FOUND_NO_TABLE,
	/* There is code with a table, and no call ends there. */
	SO_FOUND_NO_CALL,
};

#include "call.h"

/*
 * The rule for the code at pc, from the cache or from the tables. Where a call is said to end behind pc, that is
 * looked at once for each rule that enters the cache.
 */
SO_INLINE enum so_found so_find_rule(const struct so_walk *walk, u64 pc, u64 *rule, int is_call)
{
	u64 tag = pc ^ walk->address_space * 0x9e3779b97f4a7c15ULL;
	struct so_cached *cached = so_cached_at((tag * 0xd6e8feb86659fd93ULL) >> (64 - SO_CACHE_BITS));
	const struct so_slab *slab;
	const u64 *found;
	u32 mapping, directory, chunk, state;
	u64 relative;

	if (cached) {
		u64 known = cached->rule;

		if ((cached->tag_and_rule ^ known) == tag) {
			*rule = known;
			return SO_FOUND_RULE;
		}
	}
	slab = so_slab_at(walk->mappings >> SO_SLAB_BITS);
	if (!slab)
		return SO_FOUND_NO_TABLE;
	mapping = so_find_mapping(slab, walk->mappings, walk->mapping_count, pc);
	if (mapping == 0)
		return SO_FOUND_NO_MAPPING;
	relative = pc - so_double_word(slab, mapping + 4);
	directory = so_word(slab, mapping + 6);
	state = so_word(slab, mapping + 7);
	if (state == SO_TABLE_PENDING)
		return SO_FOUND_NO_TABLE;
	*rule = SO_RULE_UNKNOWN;
	chunk = relative >> 16 > 0xffffffff ? 0xffffffff : (u32)(relative >> 16);
	if (state != SO_TABLE_NONE && chunk < state - SO_TABLE_CHUNKS) {
		u32 first, count;
		u64 entry;

		/* Eight bytes a chunk; a directory does not leave its slab. */
		slab = so_slab_at(directory >> SO_SLAB_BITS);
		if (!slab)
			return SO_FOUND_NO_TABLE;
		/* Read at once: user space may fill or empty the chunk meanwhile. */
		entry = *(const volatile u64 *)&slab->pairs[(directory / 2 + chunk) & (SO_SLAB_WORDS / 2 - 1)];
		first = (u32)entry;
		count = (u32)(entry >> 32);
		if (count == SO_CHUNK_PENDING)
			return SO_FOUND_NO_TABLE;
		if (count != 0) {
			slab = so_slab_at(first >> SO_SLAB_BITS);
			if (!slab)
				return SO_FOUND_NO_TABLE;
			found = so_rule_at(so_find_row(slab, first, count, relative & 0xffff));
			if (!found)
				return SO_FOUND_NO_TABLE;
			*rule = *found;
		}
	}
	if (*rule == SO_RULE_UNKNOWN && state != SO_TABLE_NONE)
		*rule = SO_RULE_UNKNOWN_OF_FILE;
	if (is_call && so_has_caller(*rule) && so_is_behind_call(pc + 1) == SO_CALL_NO)
		return SO_FOUND_NO_CALL;
	if (cached) {
		/* Another CPU may write the same slot: whoever reads half of each sees a tag that fits nothing. */
		cached->rule = *rule;
		cached->tag_and_rule = tag ^ *rule;
	}
	return SO_FOUND_RULE;
}

/* Two words at the frame pointer, the same on x86-64 and arm64. */
struct so_frame_record {
	u64 caller_fp;
	u64 return_address;
};

/*
 * By the chain of frame pointers. Start files and thread starts of every C library clear the frame pointer, so a zero
 * is the root; at the innermost frame it only says that the interrupted code keeps something else in that register.
 */
SO_INLINE enum so_step so_step_frame_pointer(struct so_walk *walk, int other_stack)
{
	struct so_frame_record record = {};

	if (walk->fp == 0) {
		if (walk->innermost)
			return SO_STEP_BROKEN;
		return other_stack ? SO_STEP_ROOT : SO_STEP_PERHAPS_ROOT;
	}
	if (walk->fp & 7 || (walk->fp < walk->sp && !other_stack))
		return SO_STEP_BROKEN;
	if (so_read_user(&record, sizeof(record), walk->fp))
		return SO_STEP_BROKEN;
	record.return_address = SO_STRIP_ADDRESS(record.return_address);
	if (record.return_address == 0)
		return other_stack ? SO_STEP_ROOT : SO_STEP_PERHAPS_ROOT;
	if (!so_is_user_address(record.return_address))
		return SO_STEP_BROKEN;
	walk->sp = walk->fp + sizeof(record);
	walk->fp = record.caller_fp;
	walk->pc = record.return_address;
	return SO_STEP_FRAME;
}

#include "runtime.h"

/* The kernel pushed a frame with all registers and jumped to the handler, whose return address leads here. */
SO_INLINE enum so_step so_step_signal(struct so_walk *walk)
{
#ifdef __TARGET_ARCH_arm64
	/* siginfo (128), then ucontext, whose sigcontext begins at 176: fault address, x0 to x30, sp, pc. */
	struct {
		u64 fp, lr, sp, pc;
	} saved = {};
	const u64 at = 128 + 176 + 8 + 29 * 8;
#else
	/* ucontext: flags, link, stack (5 words), then r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip. */
	struct {
		u64 fp, bx, dx, ax, cx, sp, pc;
	} saved = {};
	const u64 at = 5 * 8 + 10 * 8;
#endif

	if (so_read_user(&saved, sizeof(saved), walk->sp + at) || !so_is_user_address(saved.pc))
		return SO_STEP_BROKEN;
	walk->pc = saved.pc;
	walk->sp = saved.sp;
	walk->fp = saved.fp;
#ifdef __TARGET_ARCH_arm64
	walk->lr = saved.lr;
#endif
#ifndef __TARGET_ARCH_arm64
	walk->registers[SO_RBX] = saved.bx;
#endif
	walk->innermost = 1;
	walk->guessed = 0;
	return SO_STEP_FRAME;
}

SO_INLINE u64 so_register(const struct so_walk *walk, u32 number)
{
	return walk->registers[number & (SO_REGISTERS - 1)];
}

/* Where the caller's frame ends (the canonical frame address), or 0. */
SO_INLINE u64 so_frame_address(const struct so_walk *walk, u64 rule)
{
	s64 offset = (s64)(rule << 32) >> 40;
	s64 aux = (s64)rule >> 48;
	u64 base;

	switch (rule & 15) {
	case SO_CFA_SP:
		return walk->sp + offset;
	case SO_CFA_FP:
		return walk->fp + offset;
	case SO_CFA_REGISTER:
		/* Of code that called others only rbx is known, which the dynamic loader uses for lazy binding. */
		if (!walk->has_registers || (!walk->innermost && aux != SO_RBX))
			return 0;
		return so_register(walk, (u32)aux) + offset;
	case SO_CFA_SP_DEREF:
	case SO_CFA_FP_DEREF:
		if (so_read_user(&base, sizeof(base), ((rule & 15) == SO_CFA_SP_DEREF ? walk->sp : walk->fp) + aux))
			return 0;
		return base + offset;
	case SO_CFA_PLT:
		return walk->sp + offset + ((walk->pc & 15) >= (u64)aux ? 8 : 0);
	default:
		return 0;
	}
}

/*
 * A register that was saved at the canonical frame address + 8 * offset: mostly in the last `known` words, which
 * were read already.
 */
SO_INLINE int so_saved_word(const struct so_walk *walk, u64 cfa, s64 offset, s64 known, u64 *to)
{
	if (offset < 0 && offset >= -known) {
		*to = walk->saved[(u64)offset & (SO_SAVED_WORDS - 1)];
		return 0;
	}
	return so_read_user(to, sizeof(*to), cfa + offset * 8);
}

/* By a rule of the tables. */
SO_INLINE enum so_step so_step_rule(struct so_walk *walk, u64 rule)
{
	u64 cfa = so_frame_address(walk, rule);
	s64 fp_offset = (s64)(rule << 16) >> 48, aux = (s64)rule >> 48;
	u32 fp_kind = rule >> 4 & 3, ra_kind = rule >> 6 & 3;
	s64 known = SO_SAVED_WORDS;
	u64 fp = walk->fp, pc;

	/* Towards the base of the stack, except that a function which has pushed nothing yet stays where it is. */
	if (cfa < walk->sp || !so_is_user_address(cfa))
		return SO_STEP_BROKEN;
	/* One read, since nearly all functions save what they save right below their return address. */
	if (so_read_user(walk->saved, sizeof(walk->saved), cfa - sizeof(walk->saved))) {
		/* They reach below the stack pointer, perhaps into a page that was never touched. */
		known = 1;
		if (so_read_user(&walk->saved[SO_SAVED_WORDS - 1], sizeof(u64), cfa - sizeof(u64)))
			return SO_STEP_BROKEN;
	}
	if (fp_kind == SO_FP_AT_CFA && so_saved_word(walk, cfa, fp_offset, known, &fp))
		return SO_STEP_BROKEN;
	if (fp_kind == SO_FP_AT_FP && so_read_user(&fp, sizeof(fp), walk->fp + fp_offset * 8))
		return SO_STEP_BROKEN;
	pc = walk->saved[SO_SAVED_WORDS - 1];
	if (ra_kind == SO_RA_AND_RBX) {
		if (so_saved_word(walk, cfa, aux, known, &walk->registers[SO_RBX]))
			return SO_STEP_BROKEN;
	} else if (ra_kind == SO_RA_AT_CFA) {
		if (so_saved_word(walk, cfa, aux, known, &pc))
			return SO_STEP_BROKEN;
	} else if (ra_kind == SO_RA_IN_REGISTER) {
		if (!walk->innermost)
			return SO_STEP_BROKEN;
		pc = walk->lr;
	}
	pc = SO_STRIP_ADDRESS(pc);
	if (pc == 0)
		return SO_STEP_ROOT;
	if (!so_is_user_address(pc))
		return SO_STEP_BROKEN;
	walk->sp = cfa;
	walk->fp = fp;
	walk->pc = pc;
	return SO_STEP_FRAME;
}

/* By a rule of any kind, without a runtime. Perhaps a function of its own, as `so_step_by`. */
SO_INLINE enum so_step so_step_by_once(struct so_walk *walk, u64 rule)
{
	switch (rule & 15) {
	case SO_CFA_SIGNAL:
		return so_step_signal(walk);
	case SO_CFA_FP_CHAIN:
		return so_step_frame_pointer(walk, 1);
	case SO_CFA_UNKNOWN:
		return so_step_frame_pointer(walk, 0);
	default:
		return so_step_rule(walk, rule);
	}
}

/* From one frame to its caller's. What ends the walk leaves it as it was. */
SO_INLINE enum so_step so_step_once(struct so_walk *walk)
{
	/* A return address may lie behind its function's last instruction, which was the call. */
	u64 pc = walk->innermost ? walk->pc : walk->pc - 1;
	u64 before_pc = walk->pc, before_sp = walk->sp, before_fp = walk->fp;
	enum so_step step;
	u64 rule = SO_RULE_UNKNOWN;

	walk->runtime_frame = 0;
	walk->is_folded = 0;
	switch (so_find_rule(walk, pc, &rule, !walk->innermost && walk->pc != walk->trusted)) {
	case SO_FOUND_NO_MAPPING:
		if (!walk->runtime || !so_runtime_has(walk, pc))
			return SO_STEP_NO_MAPPING;
		break;
	case SO_FOUND_NO_CALL:
		return SO_STEP_ASTRAY;
	case SO_FOUND_NO_TABLE:
		return SO_STEP_NO_TABLE;
	default:
		break;
	}
	switch (rule & 15) {
	case SO_CFA_END:
		return SO_STEP_ROOT;
	case SO_CFA_SIGNAL:
		return so_step_by(walk, rule);
	case SO_CFA_FP_CHAIN:
		step = so_step_by(walk, rule);
		break;
	case SO_CFA_UNKNOWN:
		walk->of_file = rule == SO_RULE_UNKNOWN_OF_FILE;
		step = walk->runtime ? so_runtime_step(walk) : so_step_by(walk, rule);
		if (step != SO_STEP_AS_LOOP)
			break;
		rule = walk->php_rule;
		/* fall through */
	default:
		step = so_step_by(walk, rule);
		if (step == SO_STEP_FRAME)
			walk->doubtful = 0;
		break;
	}
	if (step == SO_STEP_FRAME) {
		walk->before_pc = before_pc;
		walk->before_sp = before_sp;
		walk->before_fp = before_fp;
		walk->innermost = 0;
		walk->guessed = (rule & 15) == SO_CFA_UNKNOWN && !walk->runtime_frame;
	}
	return step;
}

#include "recover.h"

#endif
