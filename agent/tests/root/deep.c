// Burns CPU time at the end of a chain of calls. Usage: NAME CPU_MILLISECONDS All of it is spent in main -> level1 ->
// ... -> level10 -> burn. Every level has a frame of another size, keeps something across the call in registers that
// the callee saves, and works on the result, so that no call is a jump. At the end it prints user and system time as
// burn.c does.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* No copies under other names either. */
#define FUNCTION static __attribute__((noinline, noclone)) unsigned long

static volatile unsigned long sink;

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

FUNCTION burn(unsigned long n, unsigned long seed)
{
	for (unsigned long i = 0; i < n; i++)
		sink += i * seed;
	return sink;
}

#define LEVEL(name, callee, size)								\
	FUNCTION name(unsigned long n, unsigned long seed)						\
	{											\
		volatile unsigned char room[size];						\
		unsigned long below;								\
												\
		room[0] = (unsigned char)seed;							\
		room[(size) - 1] = (unsigned char)n;						\
		below = callee(n, seed + 1);							\
		return below * seed + n + room[0] + room[(size) - 1];				\
	}

LEVEL(level10, burn, 8)
LEVEL(level9, level10, 40)
LEVEL(level8, level9, 120)
LEVEL(level7, level8, 128)
LEVEL(level6, level7, 136)
LEVEL(level5, level6, 1000)
LEVEL(level4, level5, 2000)
LEVEL(level3, level4, 24)
LEVEL(level2, level3, 3500)
LEVEL(level1, level2, 16)

int main(int argc, char **argv)
{
	double end = argc > 1 ? atof(argv[1]) / 1000 : 1;
	unsigned long user, system;
	FILE *stat;

	while (cpu_seconds() < end)
		sink ^= level1(1000000 * (unsigned long)argc, (unsigned long)argc);
	stat = fopen("/proc/self/stat", "r");
	if (!stat || fscanf(stat, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
		return 1;
	printf("%lu %lu\n", user, system);
	return 0;
}
