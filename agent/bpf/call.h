/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Whether an address is one that a call returns to, by the bytes before it. Included by unwind.h, under the same rules.
 */
#ifndef STAKEOUT_CALL_H
#define STAKEOUT_CALL_H

enum so_call {
	SO_CALL_NO,
	SO_CALL_YES,
	/* The code cannot be read: it may be paged out, or none. */
	SO_CALL_UNREADABLE,
	/* No code can be read here. */
	SO_CALL_UNKNOWN,
};

/* Whether a call ends right before an address. */
SO_INLINE enum so_call so_is_behind_call(u64 address)
{
#ifdef __TARGET_ARCH_arm64
	(void)address;
	(void)so_read_code;
	return SO_CALL_UNKNOWN;
#else
	u64 code = 0;
	u32 b1, b2, b3, b4, b5, b6, b7;
	int failed = so_read_code(&code, sizeof(code), address - sizeof(code));

	if (failed)
		return failed == SO_NO_CODE ? SO_CALL_UNKNOWN : SO_CALL_UNREADABLE;
	/* The bytes before it, the last one first. */
	b1 = code >> 56;
	b2 = code >> 48 & 0xff;
	b3 = code >> 40 & 0xff;
	b4 = code >> 32 & 0xff;
	b5 = code >> 24 & 0xff;
	b6 = code >> 16 & 0xff;
	b7 = code >> 8 & 0xff;
	/* call rel32, or FF /2 with each form of its operand: register, memory, with index byte, with 8 and 32 bits behind. */
	if (b5 == 0xe8)
		return SO_CALL_YES;
	if (b2 == 0xff && ((b1 & 0xf8) == 0xd0 || ((b1 & 0xf8) == 0x10 && (b1 & 7) != 4 && (b1 & 7) != 5)))
		return SO_CALL_YES;
	if (b3 == 0xff && (((b2 & 0xf8) == 0x50 && b2 != 0x54) || (b2 == 0x14 && (b1 & 7) != 5)))
		return SO_CALL_YES;
	if (b4 == 0xff && b3 == 0x54)
		return SO_CALL_YES;
	if (b6 == 0xff && (b5 == 0x15 || ((b5 & 0xf8) == 0x90 && b5 != 0x94)))
		return SO_CALL_YES;
	if (b7 == 0xff && (b6 == 0x94 || (b6 == 0x14 && (b5 & 7) == 5)))
		return SO_CALL_YES;
	return SO_CALL_NO;
#endif
}

/* Code that has a table which says where its caller is: only for that it matters whether a call led away from it. */
SO_INLINE int so_has_caller(u64 rule)
{
	u32 kind = rule & 15;

	return kind != SO_CFA_UNKNOWN && kind != SO_CFA_SIGNAL && kind != SO_CFA_END && kind != SO_CFA_FP_CHAIN;
}

#endif
