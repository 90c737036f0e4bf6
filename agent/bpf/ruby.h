/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Ruby frames of a thread that CRuby runs. Included by runtime.h, under its rules; who includes that defines before,
 * beside the others (runtime_abi.h has its limits, and what it is told of a process):
 *
 *   so_ruby_seek(walk, ruby, words)   so_ruby_seek_once, perhaps as a function of its own
 *
 * The interpreter keeps its own chain of control frames, the innermost one lowest, also of methods that are written
 * in C. The walk of the native stack goes on as ever; each call of the interpreter runs its loop, or code that was
 * compiled while it runs, and the frames of that call end with one that has a mark. They stand in the place of the
 * loop's or the compiled code's native frame, or, while the call looks for who handles an exception, before that of
 * what calls the loop.
 */
#ifndef STAKEOUT_RUBY_H
#define STAKEOUT_RUBY_H

/* VM_FRAME_MAGIC_MASK and its values; VM_FRAME_FLAG_FINISH, VM_FRAME_FLAG_BMETHOD, VM_ENV_FLAG_LOCAL. */
#define SO_RUBY_MAGIC 0x7fff0001U
#define SO_RUBY_CFUNC 0x55550001U
#define SO_RUBY_IFUNC 0x66660001U
#define SO_RUBY_DUMMY 0x79990001U
#define SO_RUBY_FINISH 0x20U
#define SO_RUBY_BMETHOD 0x40U
#define SO_RUBY_LOCAL 2U
/* Of objects: the type's bits, T_IMEMO, and where that has its kind: imemo_svar, imemo_ment. */
#define SO_RUBY_TYPE 0x1fU
#define SO_RUBY_IMEMO 0x1aU
#define SO_RUBY_IMEMO_SHIFT 12
#define SO_RUBY_IMEMO_KIND 15U
#define SO_RUBY_SVAR 2U
#define SO_RUBY_METHOD 6U
#define SO_RUBY_ISEQ 7U
/* Instead of the offset of an instruction. */
#define SO_RUBY_NO_INSTRUCTION 0xffffU
/* Bits of an address without its lowest three. */
#define SO_RUBY_OBJECT_BITS 44
#define SO_RUBY_NO_NATIVE 0xffff
/* Where a frame's parts are read to, in words. */
#define SO_RUBY_AT_ENV 5
#define SO_RUBY_AT_ISEQ 8
#define SO_RUBY_AT_BODY 11
#define SO_RUBY_AT_METHOD 27

SO_INLINE int so_is_in(const u64 *begins, const u64 *bytes, u64 pc)
{
	return pc - begins[0] < bytes[0] || pc - begins[1] < bytes[1];
}

SO_INLINE int so_is_ruby_loop(const struct so_ruby *ruby, u64 pc)
{
	return so_is_in(ruby->loop_begin, ruby->loop_bytes, pc);
}

SO_INLINE int so_is_ruby_exec(const struct so_ruby *ruby, u64 pc)
{
	return so_is_in(ruby->exec_begin, ruby->exec_bytes, pc);
}

SO_INLINE u64 so_ruby_word(u64 address)
{
	u64 word = 0;

	return so_is_user_address(address) && !(address & 7) && !so_read_memory(&word, sizeof(word), address) ? word : 0;
}

/* Whether a thread's structure is the sampled thread's. */
SO_INLINE int so_is_ruby_thread(const struct so_walk *walk, const struct so_ruby *ruby, u64 thread)
{
	if (ruby->thread_native != SO_RUBY_NO_NATIVE)
		thread = so_ruby_word(thread + ruby->thread_native);
	return thread && so_ruby_word(thread + ruby->thread_id) == walk->tls_base;
}

/* Where a search for a thread stands, behind the words that it reads. */
#define SO_RUBY_AT_THREAD 31

/* Looks at one thread of the list, and goes on to the next one. 1: it is the sampled thread's. 2: there are no more. */
SO_INLINE int so_ruby_seek_once(struct so_walk *walk, const struct so_ruby *ruby, u64 *words)
{
	u64 thread = words[SO_RUBY_AT_THREAD];

	/* The list's links are what a thread's structure begins with. */
	if (!thread || thread == ruby->threads)
		return 2;
	words[SO_RUBY_AT_THREAD] = so_ruby_word(thread);
	if (!so_is_ruby_thread(walk, ruby, thread))
		return 0;
	walk->chain_frame = so_ruby_word(thread + ruby->thread_context);
	return 1;
}

/* Finds what the sampled thread executes in: its execution context is chain_frame of the walk then. */
SO_INLINE int so_ruby_find(struct so_walk *walk, const struct so_ruby *ruby, u64 *words)
{
	u32 i;
	int found;

	if (!walk->tls_base)
		return 0;
	if (ruby->is_current_local) {
		walk->chain_frame = so_ruby_word(walk->tls_base + ruby->current);
		if (walk->chain_frame)
			return 1;
	} else {
		/* Of the thread that has the lock. */
		walk->chain_frame = so_ruby_word(ruby->current);
		if (walk->chain_frame && so_is_ruby_thread(walk, ruby, so_ruby_word(walk->chain_frame + ruby->context_thread)))
			return 1;
	}
	words[SO_RUBY_AT_THREAD] = so_ruby_word(ruby->threads);
	for (i = 0; i < SO_RUBY_THREADS; i++) {
		found = so_ruby_seek(walk, ruby, words);
		if (found)
			return found == 1;
	}
	return 0;
}

/* Reads a control frame, of which five words matter, and the three words of its environment that tell what it is. */
SO_INLINE int so_read_ruby_frame(u64 *words, u64 frame)
{
	return so_read_memory(words, 5 * sizeof(u64), frame) || !so_is_user_address(words[4]) || words[4] & 7 ||
	       so_read_memory(words + SO_RUBY_AT_ENV, 3 * sizeof(u64), words[4] - 2 * sizeof(u64));
}

/*
 * At the first native frame of the interpreter: finds the thread's innermost control frame, and where they end.
 * SO_CHAIN_DONE says that this native frame has none. `innermost` says that it was interrupted there.
 */
SO_INLINE enum so_chain_step so_ruby_begin(struct so_walk *walk, const struct so_ruby *ruby, u64 *words, u64 pc,
					   int innermost)
{
	u64 context, flags;
	int found, is_loop = so_is_ruby_loop(ruby, pc);

	walk->chain_frame = 0;
	walk->chain_entry = 0;
	found = so_ruby_find(walk, ruby, words);
	context = walk->chain_frame;
	walk->chain_frame = 0;
	/* Its stack, the number of words there, and the innermost frame. */
	if (!found || !so_is_user_address(context) || context & 7 || so_read_memory(words, 3 * sizeof(u64), context))
		return SO_CHAIN_DONE;
	walk->chain_entry = words[0] + words[1] * sizeof(u64);
	if (words[2] < words[0] || words[2] >= walk->chain_entry || words[2] & 7)
		return SO_CHAIN_DONE;
	walk->chain_frame = words[2];
	if (so_read_ruby_frame(words, walk->chain_frame))
		return SO_CHAIN_FRAME;
	flags = words[SO_RUBY_AT_ENV + 2];
	if ((flags & SO_RUBY_MAGIC) == SO_RUBY_CFUNC || (flags & SO_RUBY_MAGIC) == SO_RUBY_IFUNC) {
		/* The interpreter itself runs no C: its call is over, and this is the frame of who called it. */
		if (!innermost || walk->chain_compiled)
			return SO_CHAIN_FRAME;
		walk->chain_given = is_loop && ruby->exec_bytes[0] != 0;
		return SO_CHAIN_DONE;
	}
	/*
	 * C has made a frame for a block, and has not called the interpreter yet: a frame that it runs has gone beyond the
	 * first instruction.
	 */
	if (is_loop && !innermost && flags & SO_RUBY_FINISH &&
	    words[0] == so_ruby_word(so_ruby_word(words[2] + 2 * sizeof(u64)) + sizeof(u64)))
		walk->chain_frame += ruby->frame_bytes;
	return SO_CHAIN_FRAME;
}

/*
 * After a step from a native frame: whether frames of the chain stand in its place (1), before it (2), or neither (0).
 */
SO_INLINE u32 so_ruby_call(struct so_walk *walk, const struct so_ruby *ruby, u64 pc)
{
	if (so_is_ruby_exec(ruby, pc)) {
		u32 given = walk->chain_given;

		walk->chain_given = 0;
		return given ? 0 : 2;
	}
	if (walk->chain_given)
		return 0;
	/* Where nothing says what calls the loop, each of its frames has its own. */
	walk->chain_given = ruby->exec_bytes[0] != 0;
	return 1;
}

/* What tells a frame's objects from others that take their places: 16 bits. */
SO_INLINE u64 so_ruby_mix(u64 hash, u64 word)
{
	return (hash ^ hash >> 29 ^ word) * 0x9e3779b97f4a7c15ULL;
}

/*
 * The method entry of a frame, whose environment's words are there, is at words[SO_RUBY_AT_METHOD] then; 0: there is
 * none.
 */
SO_INLINE u64 so_ruby_method(u64 *words)
{
	u64 *env = words + SO_RUBY_AT_ENV, *entry = words + SO_RUBY_AT_METHOD, method;
	u32 i;

	/* A block's frame leads to those around it, the outermost of which, or one made a method of, has the method. */
	for (i = 0; i < SO_RUBY_BLOCKS; i++) {
		u64 outer = env[1] & ~3ULL;

		if (env[2] & (SO_RUBY_LOCAL | SO_RUBY_BMETHOD))
			break;
		if (!so_is_user_address(outer) || outer & 7 || so_read_memory(env, 3 * sizeof(u64), outer - 2 * sizeof(u64)))
			return 0;
	}
	if (!(env[2] & (SO_RUBY_LOCAL | SO_RUBY_BMETHOD)))
		return 0;
	method = env[0];
	for (i = 0; i < 2; i++) {
		if (!so_is_user_address(method) || method & 7 || so_read_memory(entry, 5 * sizeof(u64), method))
			return 0;
		if ((entry[0] & SO_RUBY_TYPE) != SO_RUBY_IMEMO)
			return 0;
		if ((entry[0] >> SO_RUBY_IMEMO_SHIFT & SO_RUBY_IMEMO_KIND) == SO_RUBY_METHOD)
			return method;
		/* What regular expressions have matched stands before it. */
		if ((entry[0] >> SO_RUBY_IMEMO_SHIFT & SO_RUBY_IMEMO_KIND) != SO_RUBY_SVAR)
			return 0;
		method = entry[1];
	}
	return 0;
}

/*
 * The next Ruby frame of the native frame that was stepped from. To be asked until it says SO_CHAIN_DONE. The word is
 * the address of the sequence of instructions (44 bits, without the lowest three; 0: a method in C), above it the
 * instruction's number; the detail is the method entry's address, or 0, and above it 16 bits of a hash of both.
 */
SO_INLINE enum so_chain_step so_ruby_next(struct so_walk *walk, const struct so_ruby *ruby, u64 *words, u64 *word,
					  u64 *detail)
{
	u64 frame = walk->chain_frame, flags, iseq = 0, method, pc, instruction = 0, hash = 0;

	if (frame & 1) {
		/* That call has got its last one. */
		walk->chain_frame = frame - 1;
		return SO_CHAIN_DONE;
	}
	if (!frame || frame >= walk->chain_entry)
		return SO_CHAIN_DONE;
	walk->chain_frame = 0;
	if (so_read_ruby_frame(words, frame))
		return SO_CHAIN_BROKEN;
	flags = words[SO_RUBY_AT_ENV + 2];
	pc = words[0];
	walk->chain_frame = (frame + ruby->frame_bytes) | ((flags & SO_RUBY_FINISH) != 0);
	if ((flags & SO_RUBY_MAGIC) == SO_RUBY_IFUNC || (flags & SO_RUBY_MAGIC) == SO_RUBY_DUMMY)
		return SO_CHAIN_HIDDEN;
	if ((flags & SO_RUBY_MAGIC) != SO_RUBY_CFUNC) {
		u64 *body = words + SO_RUBY_AT_BODY;

		iseq = words[2];
		if (!so_is_user_address(iseq) || iseq & 7)
			return SO_CHAIN_HIDDEN;
		if (so_read_memory(words + SO_RUBY_AT_ISEQ, 3 * sizeof(u64), iseq) ||
		    !so_is_user_address(words[SO_RUBY_AT_ISEQ + 2]) ||
		    so_read_memory(body, SO_RUBY_BODY_WORDS * sizeof(u64), words[SO_RUBY_AT_ISEQ + 2]))
			return SO_CHAIN_HIDDEN;
		/* Where its instructions are; their number is in the upper half of the first word. */
		instruction = (pc - body[1]) / sizeof(u64);
		if (!pc || instruction > body[0] >> 32 || instruction > SO_RUBY_NO_INSTRUCTION)
			instruction = SO_RUBY_NO_INSTRUCTION;
		/* Path, label and first line. */
		hash = so_ruby_mix(hash, words[SO_RUBY_AT_ISEQ + 2]);
		hash = so_ruby_mix(hash, body[1]);
		hash = so_ruby_mix(hash, body[8]);
		hash = so_ruby_mix(hash, body[10]);
		hash = so_ruby_mix(hash, (u32)body[11]);
	}
	method = so_ruby_method(words);
	if (method) {
		u64 *entry = words + SO_RUBY_AT_METHOD;

		hash = so_ruby_mix(hash, entry[2]);
		hash = so_ruby_mix(hash, entry[3]);
		hash = so_ruby_mix(hash, entry[4]);
	} else if (!iseq) {
		return SO_CHAIN_HIDDEN;
	}
	*word = SO_FRAME_WORD(SO_FRAME_RUBY, iseq >> 3 | instruction << SO_RUBY_OBJECT_BITS);
	*detail = method >> 3 | hash >> 48 << SO_RUBY_OBJECT_BITS;
	return SO_CHAIN_FRAME;
}

#ifndef __TARGET_ARCH_arm64
/*
 * From a frame of code that was compiled while the program runs, and that no table describes: it has no frame pointer,
 * and pushes a few words. Its return address is the first one that leads into the interpreter.
 */
SO_INLINE enum so_step so_step_ruby_compiled(struct so_walk *walk, const struct so_ruby *ruby, u64 *words)
{
	u64 at = 0, word = 0;
	u32 i, before = 0;

	if (walk->pc - ruby->code_begin < ruby->code_bytes ||
	    so_read_user(words, SO_RUBY_FRAME_WORDS * sizeof(u64), walk->sp))
		return so_step_frame_pointer(walk, 0);
	for (i = 0; i < SO_RUBY_FRAME_WORDS; i++) {
		if (words[i] - ruby->code_begin < ruby->code_bytes) {
			word = words[i];
			at = walk->sp + i * sizeof(word);
			before = i;
			break;
		}
	}
	if (!at || so_is_behind_call(word) != SO_CALL_YES)
		return so_step_frame_pointer(walk, 0);
	/* With an option it keeps a frame pointer. */
	if (before > 0 && walk->fp == at - sizeof(word))
		walk->fp = words[(before - 1) & (SO_SCAN_WORDS - 1)];
	walk->pc = word;
	walk->sp = at + sizeof(word);
	walk->chain_compiled = 1;
	return SO_STEP_FRAME;
}
#endif

#endif
