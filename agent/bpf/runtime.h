/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Steps from frames of languages' runtimes: what their own structures say of code that they made. Included by unwind.h,
 * under the same rules; who includes that defines before, beside the others:
 *
 *   int so_read_memory(void *to, u32 size, u64 address)   0 where any memory of the walked program could be read
 *   const struct so_runtime *so_runtime_at(u32 number)    a runtime, or NULL
 *   so_runtime_step(walk)                                 so_runtime_step_once, perhaps as a function of its own
 *   and what cpython.h names
 */
#ifndef STAKEOUT_RUNTIME_H
#define STAKEOUT_RUNTIME_H

#include "jvm.h"
#include "cpython.h"

/* From a frame of code that no table describes. There is room for SO_SCAN_WORDS words. */
SO_INLINE enum so_step so_runtime_step_once(struct so_walk *walk, u64 *words)
{
#ifndef __TARGET_ARCH_arm64
	const struct so_runtime *runtime = so_runtime_at(walk->runtime - 1);

	if (runtime && runtime->kinds & SO_RUNTIME_JVM)
		return so_step_jvm(walk, &runtime->jvm, words);
#else
	(void)words;
	(void)so_runtime_at;
	(void)so_step_jvm;
#endif
	return so_step_frame_pointer(walk, 0);
}

SO_INLINE const struct so_cpython *so_cpython_of(const struct so_walk *walk)
{
	const struct so_runtime *runtime = walk->runtime ? so_runtime_at(walk->runtime - 1) : NULL;

	return runtime && runtime->kinds & SO_RUNTIME_CPYTHON ? &runtime->cpython : NULL;
}

/*
 * After a step from a native frame: 1 where it was CPython's loop, so that Python frames stand in its place.
 * `innermost` says that it was interrupted there.
 */
SO_INLINE u32 so_python_call_once(struct so_walk *walk, u64 *words, int innermost)
{
	const struct so_cpython *py = so_cpython_of(walk);
	u64 pc = innermost ? walk->before_pc : walk->before_pc - 1;

	if (!py || !so_is_python_loop(py, pc))
		return 0;
	if (walk->python_begun)
		return 1;
	walk->python_begun = 1;
	return so_python_begin(walk, py, words, innermost) == SO_PYTHON_FRAME;
}

/* The next Python frame of that call, as the two words that stand for it. */
SO_INLINE enum so_python_step so_python_frame_once(struct so_walk *walk, u64 *words)
{
	const struct so_cpython *py = so_cpython_of(walk);

	return py ? so_python_next(walk, py, words, &walk->runtime_frame, &walk->runtime_detail) : SO_PYTHON_DONE;
}

#endif
