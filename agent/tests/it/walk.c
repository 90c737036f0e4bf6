// The walk of user stacks as a program on the host. In: pc, sp and fp, then pairs of address and word, all in hex.
// Out: how the walk ended, then the frames. Words that were not given cannot be read.
#include <stdio.h>

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#include "abi.h"

#define MAX_WORDS 4096
static struct {
	u64 address;
	u64 value;
} words[MAX_WORDS];
static u32 word_count;
static unsigned long reads;

static int read_word(u64 *to, u64 address)
{
	for (u32 i = 0; i < word_count; i++) {
		if (words[i].address == address) {
			*to = words[i].value;
			return 0;
		}
	}
	return 1;
}

static int so_read_user(void *to, u32 size, u64 address)
{
	u64 *into = to;

	reads++;
	for (u32 i = 0; i < size / 8; i++)
		if (read_word(&into[i], address + i * 8))
			return 1;
	return 0;
}

#include "unwind.h"

int main(void)
{
	static u64 frames[SO_MAX_USER_FRAMES];
	struct so_unwind_state state = {};
	u32 count = 0;
	enum so_walk_end end;

	if (scanf("%llx %llx %llx", &state.pc, &state.sp, &state.fp) != 3)
		return 1;
	while (word_count < MAX_WORDS && scanf("%llx %llx", &words[word_count].address, &words[word_count].value) == 2)
		word_count++;
	end = so_walk_user(&state, frames, &count);
	printf("%d %lu", end, reads);
	for (u32 i = 0; i < count; i++)
		printf(" %llx", frames[i]);
	printf("\n");
	return 0;
}
