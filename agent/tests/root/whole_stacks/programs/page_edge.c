// Burns in a function whose stack pointer is among the first bytes of a page, below which the stack was never touched.
#include "work.h"

/* Deeper than the loader and the start of any C library went. */
#define UNTOUCHED_BYTES (1 << 20)
#define PAGE_BYTES 4096

KEPT static void touch(volatile char *at)
{
	*at = 1;
}

KEPT static void at_the_edge_of_a_page(void)
{
	char *deep = __builtin_alloca(UNTOUCHED_BYTES);
	/* This function's stack pointer from here on; its callee's is 8 bytes less. */
	char *edge = __builtin_alloca((unsigned long)deep % PAGE_BYTES / 16 * 16 + PAGE_BYTES - 32);

	if ((unsigned long)edge % PAGE_BYTES < 16 || (unsigned long)edge % PAGE_BYTES > 48)
		abort();
	touch(edge);
	burn_at_the_leaf(300000);
	touch(edge);
}

int main(int count, char **arguments)
{
	(void)count;
	begin(arguments);
	while (goes_on())
		at_the_edge_of_a_page();
	return 0;
}
