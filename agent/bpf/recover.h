/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What is tried where neither tables nor frame pointers lead on: the stack is searched for the return address, from
 * the stack pointer upwards. Included by unwind.h, under the same rules; who includes that defines before, beside the
 * others:
 *
 *   int so_read_code(void *to, u32 size, u64 address)   0 where code of the walked program could be read; SO_NO_CODE:
 *   never
 *   so_look(walk, scan, pc)      so_look_once, so_try_once and so_scan_once, each perhaps as a function of its own,
 *   so that
 *   so_try(walk, scan, at, word)     the verifier of BPF looks at it once
 *   so_scan(walk, scan, address)
 *
 * A word is taken for a return address where it leads right behind a call in known executable memory, and where that
 * code's table, if it has one, finds such an address again. What looks so may be left from an earlier call, so that
 * such a walk is not called whole before tables have led on from there. On arm64 a return address says nothing of the
 * stack pointer, and frame pointers are kept by its calling convention: there is no search.
 */
#ifndef STAKEOUT_RECOVER_H
#define STAKEOUT_RECOVER_H

SO_INLINE u32 so_look_once(struct so_walk *walk, struct so_scan *scan, u64 pc)
{
	scan->rule = SO_RULE_UNKNOWN;
	return so_find_rule(walk, pc, &scan->rule, 1);
}

/* Whether a frame with this rule finds a return address, too, where it was called with these registers. */
SO_INLINE int so_leads_on(struct so_walk *walk, struct so_scan *scan, u64 rule, u64 sp, u64 fp)
{
	s64 offset = (s64)(rule << 32) >> 40, aux = (s64)rule >> 48;
	u64 cfa = ((rule & 15) == SO_CFA_FP ? fp : sp) + offset, address = 0;
	u32 found;

	if (cfa <= sp || so_read_user(&address, sizeof(address), cfa + ((rule >> 6 & 3) == SO_RA_AT_CFA ? aux * 8 : -8)))
		return 0;
	if (!so_is_user_address(address))
		return 0;
	found = so_look(walk, scan, address - 1);
	/* Of code whose table is still to come its instructions can be read all the same. */
	return (found == SO_FOUND_RULE || found == SO_FOUND_NO_TABLE) && so_is_behind_call(address) != SO_CALL_NO;
}

/* Whether the word at an address of the stack is a return address: the walk then stands at that frame. */
SO_INLINE u32 so_try_once(struct so_walk *walk, struct so_scan *scan, u64 at, u64 word)
{
	u32 found = so_look(walk, scan, word - 1), i, kind, is_sure = 0;
	u64 rule = scan->rule, fp = walk->fp, sp = at + sizeof(word);

	if (found != SO_FOUND_RULE && found != SO_FOUND_NO_TABLE)
		return 0;
	kind = rule & 15;
	if (found == SO_FOUND_RULE && kind == SO_CFA_END) {
		is_sure = 1;
	} else if (found == SO_FOUND_RULE && kind == SO_CFA_SP) {
		if (!so_leads_on(walk, scan, rule, sp, 0))
			return 0;
		is_sure = 1;
	} else if (found == SO_FOUND_RULE && kind == SO_CFA_FP) {
		/*
		 * Its frame pointer is still in its register, or whoever it called has saved it right below. One loop for both:
		 * Linux 6.1 refuses one that is entered in its middle.
		 */
		for (i = 0; i <= SO_SEEN_WORDS; i++) {
			if (i > 0)
				fp = scan->seen[(scan->seen_count - i) & (SO_SEEN_WORDS - 1)];
			if ((i == 0 || fp != 0) && so_leads_on(walk, scan, rule, sp, fp)) {
				is_sure = 1;
				break;
			}
		}
		if (!is_sure)
			return 0;
	}
	if (!is_sure && (scan->only_sure || so_is_behind_call(word) != SO_CALL_YES))
		return 0;
	if (is_sure && kind == SO_CFA_END && so_is_behind_call(word) != SO_CALL_YES)
		return 0;
	/* What no longer points into the rest of the stack is the frame pointer of nobody there. */
	if (fp < sp && scan->seen[(scan->seen_count - 1) & (SO_SEEN_WORDS - 1)] >= sp)
		fp = scan->seen[(scan->seen_count - 1) & (SO_SEEN_WORDS - 1)];
	walk->pc = word;
	walk->sp = sp;
	walk->fp = fp;
	walk->guessed = 1;
	walk->doubtful = 1;
	walk->innermost = 0;
	return 1;
}

/* Searches one piece of the stack: 1 where the walk stands at the next frame, 2 where there is no more stack. */
SO_INLINE u32 so_scan_once(struct so_walk *walk, struct so_scan *scan, u64 address)
{
	u32 i;

	if (so_read_user(scan->words, sizeof(scan->words), address))
		return 2;
	for (i = 0; i < SO_SCAN_WORDS; i++) {
		u64 word = scan->words[i], at = address + i * sizeof(word);

		if (word - scan->code_begin < scan->code_bytes && so_try(walk, scan, at, word))
			return 1;
		if (word > at && word - at < SO_SEEN_BYTES && !(word & 7))
			scan->seen[scan->seen_count++ & (SO_SEEN_WORDS - 1)] = word;
	}
	return 0;
}

/* From the lowest known code to the highest. */
SO_INLINE int so_set_code(const struct so_walk *walk, struct so_scan *scan)
{
	const struct so_slab *slab = so_slab_at(walk->mappings >> SO_SLAB_BITS);
	u32 last = walk->mappings + (walk->mapping_count - 1) * SO_MAPPING_WORDS;

	if (!slab || walk->mapping_count == 0)
		return 0;
	scan->code_begin = so_double_word(slab, walk->mappings);
	scan->code_bytes = so_double_word(slab, last + 2) - scan->code_begin;
	return 1;
}

/*
 * After a step that led nowhere, or to what is no caller: the walk stands at the next frame (SO_STEP_FRAME), at
 * another one instead of its last (SO_STEP_INSTEAD), or as it was.
 */
SO_INLINE enum so_step so_recover_once(struct so_walk *walk, struct so_scan *scan, enum so_step step)
{
#ifdef __TARGET_ARCH_arm64
	(void)walk;
	(void)scan;
	return step == SO_STEP_PERHAPS_ROOT ? SO_STEP_ROOT : step;
#else
	u64 pc = walk->pc, sp = walk->sp, fp = walk->fp, address;
	int is_astray = step == SO_STEP_NO_MAPPING || step == SO_STEP_ASTRAY;
	u32 pieces = SO_SCAN_PIECES, i;

	if (step == SO_STEP_NO_MAPPING) {
		enum so_call call = so_is_behind_call(pc);

		/* Code that was mapped since, or so it must be taken for. */
		if (walk->innermost || call == SO_CALL_YES || call == SO_CALL_UNKNOWN)
			return step;
	}
	/* A signal's or a runtime's hand may have put a frame there as if it had called: then its own table leads on. */
	if (step == SO_STEP_ASTRAY && !walk->guessed) {
		so_look(walk, scan, pc - 1);
		if (so_leads_on(walk, scan, scan->rule, sp, fp)) {
			walk->trusted = pc;
			return SO_STEP_INSTEAD;
		}
	}
	if (is_astray) {
		walk->pc = walk->before_pc;
		walk->sp = walk->before_sp;
		walk->fp = walk->before_fp;
		/* A table that is wrong is so by a few words; and some code is returned to without having called. */
		if (!walk->guessed)
			pieces = SO_NEAR_PIECES;
	}
	if (step == SO_STEP_PERHAPS_ROOT)
		pieces = SO_ROOT_PIECES;
	scan->only_sure = step == SO_STEP_PERHAPS_ROOT || (is_astray && !walk->guessed);
	scan->seen_count = 0;
	__builtin_memset(scan->seen, 0, sizeof(scan->seen));
	address = (walk->sp + 7) & ~7ULL;
	if (so_set_code(walk, scan)) {
		for (i = 0; i < SO_SCAN_PIECES; i++) {
			u32 found;

			if (i >= pieces || walk->scan_left < SO_SCAN_WORDS)
				break;
			walk->scan_left -= SO_SCAN_WORDS;
			found = so_scan(walk, scan, address + i * sizeof(scan->words));
			if (found == 1)
				return is_astray ? SO_STEP_INSTEAD : SO_STEP_FRAME;
			if (found == 2)
				break;
		}
	}
	walk->pc = pc;
	walk->sp = sp;
	walk->fp = fp;
	if (step == SO_STEP_PERHAPS_ROOT)
		return SO_STEP_ROOT;
	if (step == SO_STEP_ASTRAY) {
		/* Nothing better is there. */
		walk->trusted = pc;
		walk->doubtful = 1;
		return SO_STEP_INSTEAD;
	}
	walk->guessed = 1;
	return step;
#endif
}

#endif
