/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Steps from frames of languages' runtimes: what their own structures say of code that they made. Included by unwind.h,
 * under the same rules; who includes that defines before, beside the others:
 *
 *   int so_read_memory(void *to, u32 size, u64 address)   0 where any memory of the walked program could be read
 *   const struct so_runtime *so_runtime_at(u32 number)    a runtime, or NULL
 *   so_runtime_step(walk)                                 so_runtime_step_once, perhaps as a function of its own
 *   and what cpython.h, ruby.h and v8.h name
 */
#ifndef STAKEOUT_RUNTIME_H
#define STAKEOUT_RUNTIME_H

/* What an interpreter's own chain has for a native frame of its loop. */
enum so_chain_step {
	/* A frame was given, and there may be more of the same native frame. */
	SO_CHAIN_FRAME = 0,
	/* None was given, but there may be more of the same native frame. */
	SO_CHAIN_HIDDEN = 1,
	/* The native frame has no more. */
	SO_CHAIN_DONE = 2,
	/* The chain led nowhere: there are no more in this walk. */
	SO_CHAIN_BROKEN = 3,
};

#include "jvm.h"
#include "cpython.h"
#include "ruby.h"
#include "php.h"
#include "v8.h"

/* From a frame of code that no table describes. There is room for SO_SCAN_WORDS words. */
SO_INLINE enum so_step so_runtime_step_once(struct so_walk *walk, u64 *words)
{
#ifndef __TARGET_ARCH_arm64
	const struct so_runtime *runtime = so_runtime_at(walk->runtime - 1);

	if (runtime && runtime->kinds & SO_RUNTIME_JVM)
		return so_step_jvm(walk, &runtime->jvm, words);
	if (runtime && runtime->kinds & SO_RUNTIME_RUBY)
		return so_step_ruby_compiled(walk, &runtime->ruby, words);
	if (runtime && runtime->kinds & SO_RUNTIME_PHP)
		return so_step_php(walk, &runtime->php, words);
	if (runtime && runtime->kinds & SO_RUNTIME_V8)
		return so_step_v8(walk, &runtime->v8, words);
#else
	(void)words;
	(void)so_runtime_at;
	(void)so_step_jvm;
	(void)so_step_php;
	(void)so_step_v8;
#endif
	return so_step_frame_pointer(walk, 0);
}

/*
 * Whether a runtime has made code there, though no mapping is known: it may have been writable, and not executable,
 * when mappings were read.
 */
SO_INLINE int so_runtime_has(const struct so_walk *walk, u64 pc)
{
	const struct so_runtime *runtime = so_runtime_at(walk->runtime - 1);

	if (!runtime)
		return 0;
	if (runtime->kinds & SO_RUNTIME_PHP && so_is_php_made(&runtime->php, pc))
		return 1;
	return runtime->kinds & SO_RUNTIME_V8 && so_is_v8_made(walk, &runtime->v8, pc);
}

SO_INLINE const struct so_cpython *so_cpython_of(const struct so_walk *walk)
{
	const struct so_runtime *runtime = walk->runtime ? so_runtime_at(walk->runtime - 1) : NULL;

	return runtime && runtime->kinds & SO_RUNTIME_CPYTHON ? &runtime->cpython : NULL;
}

/* Whose interpreter's loop this is code of: enum so_runtime_kind, or 0. */
SO_INLINE u32 so_loop_at(const struct so_walk *walk, const struct so_runtime *runtime, u64 pc)
{
	if (runtime->kinds & SO_RUNTIME_CPYTHON && so_is_python_loop(&runtime->cpython, pc))
		return SO_RUNTIME_CPYTHON;
	if (runtime->kinds & SO_RUNTIME_RUBY &&
	    (walk->chain_compiled || so_is_ruby_loop(&runtime->ruby, pc) || so_is_ruby_exec(&runtime->ruby, pc)))
		return SO_RUNTIME_RUBY;
	if (runtime->kinds & SO_RUNTIME_PHP && so_is_php_loop(&runtime->php, pc))
		return SO_RUNTIME_PHP;
	return 0;
}

SO_INLINE const struct so_ruby *so_ruby_of(const struct so_walk *walk)
{
	const struct so_runtime *runtime = walk->runtime ? so_runtime_at(walk->runtime - 1) : NULL;

	return runtime && runtime->kinds & SO_RUNTIME_RUBY ? &runtime->ruby : NULL;
}

SO_INLINE const struct so_v8 *so_v8_of(const struct so_walk *walk)
{
	const struct so_runtime *runtime = walk->runtime ? so_runtime_at(walk->runtime - 1) : NULL;

	return runtime && runtime->kinds & SO_RUNTIME_V8 ? &runtime->v8 : NULL;
}

/*
 * After a step from a native frame: 1 where it was an interpreter's loop, so that frames of the interpreter's own chain
 * stand in its place; 2 where they stand before it. `innermost` says that it was interrupted there. Of several
 * interpreters on one stack the first one is followed.
 */
SO_INLINE u32 so_chain_call_once(struct so_walk *walk, u64 *words, int innermost)
{
	const struct so_runtime *runtime = walk->runtime ? so_runtime_at(walk->runtime - 1) : NULL;
	u64 pc = innermost ? walk->before_pc : walk->before_pc - 1;
	u32 kind = runtime ? so_loop_at(walk, runtime, pc) : 0;
	enum so_chain_step begun = SO_CHAIN_FRAME;

	if (!kind) {
		if (!walk->chain && runtime && runtime->kinds & SO_RUNTIME_PHP && so_is_php_caller(&runtime->php, pc))
			walk->chain_called = 1;
		return 0;
	}
	if (!walk->chain) {
		walk->chain = kind;
		if (kind == SO_RUNTIME_PHP)
			begun = so_php_begin(walk, &runtime->php, words, innermost);
		else if (kind == SO_RUNTIME_RUBY)
			begun = so_ruby_begin(walk, &runtime->ruby, words, pc, innermost);
		else
			begun = so_python_begin(walk, &runtime->cpython, words, innermost);
	}
	walk->chain_compiled = 0;
	if (walk->chain != kind || begun != SO_CHAIN_FRAME)
		return 0;
	return kind == SO_RUNTIME_RUBY ? so_ruby_call(walk, &runtime->ruby, pc) : 1;
}

/* The next frame of that call, as the two words that stand for it. */
SO_INLINE enum so_chain_step so_chain_frame_once(struct so_walk *walk, u64 *words)
{
	const struct so_runtime *runtime = walk->runtime ? so_runtime_at(walk->runtime - 1) : NULL;

	if (!runtime)
		return SO_CHAIN_DONE;
	if (walk->chain == SO_RUNTIME_PHP)
		return so_php_next(walk, &runtime->php, words);
	if (walk->chain == SO_RUNTIME_RUBY)
		return so_ruby_next(walk, &runtime->ruby, words, &walk->runtime_frame, &walk->runtime_detail);
	return so_python_next(walk, &runtime->cpython, words, &walk->runtime_frame, &walk->runtime_detail);
}

#endif
