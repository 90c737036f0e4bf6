/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The walk of a user stack. Pure C: it touches memory only through so_read_user(), which whoever includes this file
 * defines before, so the same code runs in BPF and in a test on the host.
 *
 * In: the registers at which the thread stopped in user mode. Out: addresses, leaf first (the first is where the thread
 * stopped, all others are return addresses), and how the walk ended. It never follows a chain that does not move towards
 * the stack's base, so it ends after SO_MAX_USER_FRAMES steps at the latest.
 */
#ifndef STAKEOUT_UNWIND_H
#define STAKEOUT_UNWIND_H

struct so_unwind_state {
	u64 pc;
	u64 sp;
	u64 fp;
};

/* Two words at the frame pointer, the same on x86-64 and arm64. */
struct so_frame_record {
	u64 caller_fp;
	u64 return_address;
};

#ifdef __TARGET_ARCH_arm64
/* Pointer authentication puts a signature above the 48 bits of an address. */
#define SO_STRIP_ADDRESS(address) ((address) & 0x0000ffffffffffffULL)
#else
#define SO_STRIP_ADDRESS(address) (address)
#endif

/* Below lies the page that is never mapped, above lies the kernel. */
#define SO_LOWEST_USER_ADDRESS 4096ULL
#define SO_HIGHEST_USER_ADDRESS 0x00ffffffffffffffULL

static inline __attribute__((always_inline)) int so_is_user_address(u64 address)
{
	return address >= SO_LOWEST_USER_ADDRESS && address <= SO_HIGHEST_USER_ADDRESS;
}

enum so_step {
	SO_STEP_FRAME,
	SO_STEP_ROOT,
	SO_STEP_BROKEN,
};

/* From one frame to its caller's by the chain of frame pointers. Another kind of step may replace this one, frame by frame. */
static inline __attribute__((always_inline)) enum so_step so_step_frame_pointer(struct so_unwind_state *state)
{
	struct so_frame_record record = {};

	if (state->fp & 7 || state->fp < state->sp)
		return SO_STEP_BROKEN;
	if (so_read_user(&record, sizeof(record), state->fp))
		return SO_STEP_BROKEN;
	record.return_address = SO_STRIP_ADDRESS(record.return_address);
	if (record.return_address == 0)
		return SO_STEP_ROOT;
	if (!so_is_user_address(record.return_address))
		return SO_STEP_BROKEN;
	state->sp = state->fp + sizeof(record);
	state->fp = record.caller_fp;
	state->pc = record.return_address;
	return SO_STEP_FRAME;
}

/*
 * Fills at most SO_MAX_USER_FRAMES of frames[]; *count is how many. The start files and thread starts of every C library
 * clear the frame pointer, so a zero after at least one step is the root; before the first step it only says that the
 * interrupted code keeps something else in that register.
 */
static inline __attribute__((always_inline)) enum so_walk_end so_walk_user(struct so_unwind_state *state, u64 *frames, u32 *count)
{
	u32 i;

	*count = 0;
	if (!so_is_user_address(state->pc))
		return SO_WALK_NONE;
	frames[0] = state->pc;
	*count = 1;
	for (i = 1; i < SO_MAX_USER_FRAMES; i++) {
		enum so_step step;

		if (state->fp == 0)
			return i > 1 ? SO_WALK_ROOT : SO_WALK_BROKEN;
		step = so_step_frame_pointer(state);
		if (step == SO_STEP_ROOT)
			return SO_WALK_ROOT;
		if (step == SO_STEP_BROKEN)
			return SO_WALK_BROKEN;
		frames[i] = state->pc;
		*count = i + 1;
	}
	return SO_WALK_CUT;
}

#endif
