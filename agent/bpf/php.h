/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * PHP frames of the thread that runs PHP, or of any thread in builds with threads. Included by runtime.h, under its
 * rules.
 *
 * PHP keeps its own chain of frames, of its code and of internal functions alike. The walk of the native stack goes on
 * as ever; where a native frame is one of the interpreter's loop (execute_ex), the frames that this call of it runs are
 * taken from the chain: up to the one that was called by C code and not by PHP code, which says so. Internal functions
 * that are called by PHP code stand first: their C functions were met before. Code that OPcache made is jumped to by
 * the loop and runs in its frame, below which it may keep some words of its own.
 */
#ifndef STAKEOUT_PHP_H
#define STAKEOUT_PHP_H

/* Instead of the number of an instruction. */
#define SO_PHP_NO_INSTRUCTION 0xfffffU
/* Begun by nobody. */
#define SO_PHP_MAIN (1U << 20)
/* zend_op: its bytes as a power of two. */
#define SO_PHP_INSTRUCTION_SHIFT 5
/* zend_execute_data, in words: the instruction, the function, flags of the call, and the caller. */
#define SO_PHP_AT_INSTRUCTION 0
#define SO_PHP_AT_FUNCTION 3
#define SO_PHP_AT_FLAGS 5
#define SO_PHP_AT_PREVIOUS 6
/* ZEND_CALL_CODE: a file's own code. ZEND_CALL_TOP: the last frame of its call of the loop. */
#define SO_PHP_CALL_CODE (1U << 16)
#define SO_PHP_CALL_TOP (1U << 17)
/* zend_function: a type that is odd is an internal function's. In words: its name, and its class. */
#define SO_PHP_AT_NAME 1
#define SO_PHP_AT_CLASS 2
/* zend_class_entry: its name. zend_string: its hash. In bytes. */
#define SO_PHP_CLASS_NAME 8
#define SO_PHP_TEXT_HASH 8
/* Words that made code may keep below the loop's frame. */
#define SO_PHP_KEPT_WORDS 32
/*
 * What jump_fcontext leaves on a stack that waits, in words: some registers, of which the last two are rbx and rbp, and
 * the return address. Since 8.2 there is one word more before them.
 */
#define SO_PHP_WAITING_WORDS 9
/* How far below the end of its stack a fiber's first function may stand. */
#define SO_PHP_FIBER_BASE_BYTES 256
#define SO_R14 14
#define SO_R15 15

SO_INLINE int so_is_php_made(const struct so_php *php, u64 pc)
{
	return pc - php->made_begin[0] < php->made_bytes[0] || pc - php->made_begin[1] < php->made_bytes[1];
}

SO_INLINE int so_is_php_loop(const struct so_php *php, u64 pc)
{
	return pc - php->loop_begin[0] < php->loop_bytes[0] || pc - php->loop_begin[1] < php->loop_bytes[1] ||
	       so_is_php_made(php, pc);
}

SO_INLINE int so_is_php_caller(const struct so_php *php, u64 pc)
{
	return pc - php->caller_begin[0] < php->caller_bytes[0] || pc - php->caller_begin[1] < php->caller_bytes[1];
}

SO_INLINE u64 so_php_word(u64 address)
{
	u64 word = 0;

	return so_is_user_address(address) && !so_read_memory(&word, sizeof(word), address) ? word : 0;
}

/* What addresses of the executor's globals count from: where each thread has its own, where this one has them. */
SO_INLINE u64 so_php_globals(const struct so_walk *walk, const struct so_php *php)
{
	return php->is_local ? so_php_word(walk->tls_base + php->local) : 0;
}

SO_INLINE int so_is_php_call(u64 word)
{
	return so_is_user_address(word) && so_is_behind_call(word) == SO_CALL_YES;
}

/* Does a fiber's stack begin right above? Goes on where the one waits that it was resumed by. */
SO_INLINE int so_php_leave_fiber(struct so_walk *walk, const struct so_php *php, u64 *words)
{
	u64 stack[2] = {}, at;

	if (!php->fiber)
		return 0;
	if (!walk->php_fiber)
		walk->php_fiber = so_php_word(so_php_globals(walk, php) + php->fiber);
	at = so_php_word(walk->php_fiber + php->fiber_stack);
	if (!so_is_user_address(at) || so_read_memory(stack, sizeof(stack), at) ||
	    stack[0] + stack[1] - walk->sp > SO_PHP_FIBER_BASE_BYTES)
		return 0;
	walk->php_fiber = so_php_word(walk->php_fiber + php->fiber_caller);
	/* What a context begins with is the stack pointer of who waits. */
	at = so_php_word(walk->php_fiber);
	if (!so_is_user_address(at) || so_read_user(words, SO_PHP_WAITING_WORDS * sizeof(u64), at))
		return 0;
	if (so_is_php_call(words[SO_PHP_WAITING_WORDS - 1])) {
		walk->sp = at + SO_PHP_WAITING_WORDS * sizeof(u64);
		walk->registers[SO_RBX] = words[SO_PHP_WAITING_WORDS - 3];
		walk->fp = words[SO_PHP_WAITING_WORDS - 2];
		walk->pc = words[SO_PHP_WAITING_WORDS - 1];
	} else {
		if (!so_is_php_call(words[SO_PHP_WAITING_WORDS - 2]))
			return 0;
		walk->sp = at + (SO_PHP_WAITING_WORDS - 1) * sizeof(u64);
		walk->registers[SO_RBX] = words[SO_PHP_WAITING_WORDS - 4];
		walk->fp = words[SO_PHP_WAITING_WORDS - 3];
		walk->pc = words[SO_PHP_WAITING_WORDS - 2];
	}
	return 1;
}

SO_INLINE u64 so_php_stack_word(u64 address)
{
	u64 word = 0;

	return so_read_user(&word, sizeof(word), address) ? 0 : word;
}

/* From code that no table describes. */
SO_INLINE enum so_step so_step_php(struct so_walk *walk, const struct so_php *php, u64 *words)
{
	u64 rule = SO_RULE_UNKNOWN, at;
	s64 offset;
	u32 i, is_fp;

	if (!so_is_php_made(php, walk->innermost ? walk->pc : walk->pc - 1)) {
		if (!walk->innermost && so_php_leave_fiber(walk, php, words))
			return SO_STEP_FRAME;
		return so_step_frame_pointer(walk, 0);
	}
	walk->php_wanted = 0;
	if (so_find_rule(walk, php->loop_inside, &rule, 0) != SO_FOUND_RULE) {
		walk->php_wanted = php->loop_inside;
		return SO_STEP_NO_TABLE;
	}
	offset = (s64)(rule << 32) >> 40;
	walk->php_rule = rule;
	is_fp = (rule & 15) == SO_CFA_FP;
	if (is_fp && walk->fp >= walk->sp && so_is_php_call(so_php_stack_word(walk->fp + offset - sizeof(u64))))
		return SO_STEP_AS_LOOP;
	if (!is_fp && (rule & 15) != SO_CFA_SP)
		return so_step_frame_pointer(walk, 0);
	/*
	 * The loop's return address is the first one that a call stands before, from where it is if nothing was kept. Where
	 * its frame has a frame pointer, made code may keep something else in that: what was saved of the caller's is below.
	 */
	at = is_fp ? walk->sp : walk->sp + offset - sizeof(u64);
	if (so_read_user(words, SO_PHP_KEPT_WORDS * sizeof(u64), at))
		return SO_STEP_BROKEN;
	for (i = 0; i < SO_PHP_KEPT_WORDS; i++) {
		if (!so_is_php_call(words[i]))
			continue;
		if (!is_fp)
			walk->sp += i * sizeof(u64);
		else if (i > 0 && words[i - 1] > at)
			walk->fp = at + (i + 1) * sizeof(u64) - offset;
		else
			continue;
		return SO_STEP_AS_LOOP;
	}
	return SO_STEP_BROKEN;
}

/*
 * At the first native frame of the loop: finds the innermost PHP frame, and remembers in chain_entry the instruction
 * that the processor has in a register, where it has.
 */
SO_INLINE enum so_chain_step so_php_begin(struct so_walk *walk, const struct so_php *php, u64 *words, int innermost)
{
	u64 frame = so_php_word(so_php_globals(walk, php) + php->current);

	walk->chain_entry = 0;
	walk->chain_frame = frame;
	if (!frame)
		return SO_CHAIN_DONE;
	if (!innermost || !walk->has_registers)
		return SO_CHAIN_FRAME;
	if (walk->registers[SO_R14] == frame) {
		walk->chain_entry = walk->registers[SO_R15];
	} else if (so_is_user_address(walk->registers[SO_R14]) && !(walk->registers[SO_R14] & 7) &&
		   !so_read_memory(words, SO_PHP_FRAME_WORDS * sizeof(u64), walk->registers[SO_R14]) &&
		   words[SO_PHP_AT_PREVIOUS] == frame && words[SO_PHP_AT_FLAGS] & SO_PHP_CALL_TOP) {
		/* It is being left, and its caller belongs to the next call of the loop. */
		return SO_CHAIN_DONE;
	}
	return SO_CHAIN_FRAME;
}

/* The hash that a text has in itself; where that is not in memory, where it is. */
SO_INLINE u64 so_php_text(u64 address)
{
	u64 hash = 0;

	if (!so_is_user_address(address) || so_read_memory(&hash, sizeof(hash), address + SO_PHP_TEXT_HASH))
		return address;
	return hash;
}

/*
 * What tells a function from another one that takes its place: its names, its lines and how many instructions it has,
 * in 39 bits. Remembered, since recursion meets the same one again.
 */
SO_INLINE enum so_chain_step so_php_function(struct so_walk *walk, const struct so_php *php, u64 *words, u64 function)
{
	const u64 mix = 0x9e3779b97f4a7c15ULL;
	u64 hash, class;

	if (function == walk->php_function)
		return SO_CHAIN_FRAME;
	walk->php_function = 0;
	if (!so_is_user_address(function) || so_read_memory(words, SO_PHP_FUNCTION_WORDS * sizeof(u64), function))
		return SO_CHAIN_BROKEN;
	/* What a fiber begins with is called nothing. */
	if (words[0] & 1 && !words[SO_PHP_AT_NAME])
		return SO_CHAIN_HIDDEN;
	walk->php_code = 0;
	walk->php_code_bytes = 0;
	hash = (words[0] & 0xff) * mix;
	class = words[SO_PHP_AT_CLASS];
	hash = (hash ^ so_php_text(words[SO_PHP_AT_NAME])) * mix;
	if (class)
		class = so_php_text(so_php_word(class + SO_PHP_CLASS_NAME));
	hash = (hash ^ hash >> 32 ^ class) * mix;
	if (!(words[0] & 1)) {
		if (so_read_memory(words, SO_PHP_CODE_WORDS * sizeof(u64), function))
			return SO_CHAIN_BROKEN;
		walk->php_code = so_field(words, php->code, 8, SO_SCAN_WORDS);
		walk->php_code_bytes = so_field(words, php->code_count, 4, SO_SCAN_WORDS) << SO_PHP_INSTRUCTION_SHIFT;
		hash = (hash ^ hash >> 32 ^ so_php_text(so_field(words, php->file, 8, SO_SCAN_WORDS))) * mix;
		hash = (hash ^ hash >> 32 ^ so_field(words, php->lines, 8, SO_SCAN_WORDS)) * mix;
		hash = (hash ^ hash >> 32 ^ walk->php_code_bytes) * mix;
	}
	walk->php_hash = hash >> 25;
	walk->php_function = function;
	return SO_CHAIN_FRAME;
}

/* The next frame of the call of the loop that was stepped from; to be asked until it says SO_CHAIN_DONE. */
SO_INLINE enum so_chain_step so_php_next(struct so_walk *walk, const struct so_php *php, u64 *words)
{
	u64 frame = walk->chain_frame, instruction, function, flags, held = walk->chain_entry;
	u32 number = SO_PHP_NO_INSTRUCTION;
	enum so_chain_step step = SO_CHAIN_HIDDEN;

	if (frame & 1) {
		walk->chain_frame = frame - 1;
		return SO_CHAIN_DONE;
	}
	if (!frame)
		return SO_CHAIN_DONE;
	walk->chain_frame = 0;
	walk->chain_entry = 0;
	if (!so_is_user_address(frame) || frame & 7 ||
	    so_read_memory(words, SO_PHP_FRAME_WORDS * sizeof(u64), frame))
		return SO_CHAIN_BROKEN;
	instruction = words[SO_PHP_AT_INSTRUCTION];
	function = words[SO_PHP_AT_FUNCTION];
	flags = words[SO_PHP_AT_FLAGS];
	frame = words[SO_PHP_AT_PREVIOUS];
	/* Frames without a function stand for a generator's, and for what a fiber began with. */
	if (function)
		step = so_php_function(walk, php, words, function);
	if (step != SO_CHAIN_FRAME) {
		if (step == SO_CHAIN_HIDDEN)
			walk->chain_frame = frame;
		return step;
	}
	if (walk->php_code) {
		if (instruction - walk->php_code >= walk->php_code_bytes) {
			u64 globals = so_php_globals(walk, php);

			if (instruction - globals - php->exception_code < 96)
				instruction = so_php_word(globals + php->exception_at);
		}
		if (held - walk->php_code < walk->php_code_bytes)
			instruction = held;
		if (instruction - walk->php_code < walk->php_code_bytes)
			number = (instruction - walk->php_code) >> SO_PHP_INSTRUCTION_SHIFT;
		if (number > SO_PHP_NO_INSTRUCTION)
			number = SO_PHP_NO_INSTRUCTION;
		if (flags & SO_PHP_CALL_CODE && !frame)
			number |= SO_PHP_MAIN;
		/* Where C is about to call it, or was returned to, there is no call of the loop for it. */
		if (flags & SO_PHP_CALL_TOP && !walk->chain_called)
			frame |= 1;
		walk->chain_called = 0;
	} else {
		walk->chain_called = 0;
	}
	walk->chain_frame = frame;
	walk->runtime_frame = SO_FRAME_WORD(SO_FRAME_PHP, function);
	walk->runtime_detail = number | walk->php_hash << 21;
	return SO_CHAIN_FRAME;
}

#endif
