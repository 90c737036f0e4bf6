/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Steps from frames of languages' runtimes: what their own structures say of code that they made. Included by unwind.h,
 * under the same rules; who includes that defines before, beside the others:
 *
 *   int so_read_memory(void *to, u32 size, u64 address)   0 where any memory of the walked program could be read
 *   const struct so_runtime *so_runtime_at(u32 number)    a runtime, or NULL
 *   so_runtime_step(walk)                                 so_runtime_step_once, perhaps as a function of its own
 */
#ifndef STAKEOUT_RUNTIME_H
#define STAKEOUT_RUNTIME_H

#include "jvm.h"

/* From a frame of code that no table describes. There is room for SO_SCAN_WORDS words. */
SO_INLINE enum so_step so_runtime_step_once(struct so_walk *walk, u64 *words)
{
#ifndef __TARGET_ARCH_arm64
	const struct so_runtime *runtime = so_runtime_at(walk->runtime - 1);

	if (runtime && runtime->kind == SO_RUNTIME_JVM)
		return so_step_jvm(walk, &runtime->jvm, words);
#else
	(void)words;
	(void)so_runtime_at;
	(void)so_step_jvm;
#endif
	return so_step_frame_pointer(walk, 0);
}

#endif
