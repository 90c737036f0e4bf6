// What the programs share: work of a known name, and when it was enough. Usage: NAME CPU_SECONDS
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>
#include <time.h>

// A function of its own, with its own name and all its arguments.
#define KEPT __attribute__((noipa))

#ifdef __cplusplus
extern "C" {
#endif

static volatile unsigned long sink;
static double limit = 3;

KEPT static void burn_at_the_leaf(unsigned long turns)
{
	for (unsigned long i = 0; i < turns; i++)
		sink += i;
}

static inline void begin(char **arguments)
{
	if (arguments[1])
		limit = atof(arguments[1]);
}

// Until all threads together have had their CPU time.
static inline int goes_on(void)
{
	return clock() < limit * CLOCKS_PER_SEC;
}

#ifdef __cplusplus
}
#endif
