// Burns CPU time in a known way. Usage: NAME CPU_MILLISECONDS [CPU]
// 70 % of the time is spent in main -> hot_a -> work_a, 30 % in main -> hot_b -> work_b, in turns of 70 and 30 ms of
// the thread's own CPU time. At the end it prints user and system time as the kernel accounts it, in clock ticks.
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

__attribute__((noinline)) void work_a(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sink += i * i;
}

__attribute__((noinline)) void work_b(unsigned long n)
{
	for (unsigned long i = 0; i < n; i++)
		sink ^= i * 3;
}

__attribute__((noinline)) void hot_a(void)
{
	work_a(400000);
	sink++;
}

__attribute__((noinline)) void hot_b(void)
{
	work_b(400000);
	sink++;
}

int main(int argc, char **argv)
{
	double end = argc > 1 ? atof(argv[1]) / 1000 : 1;
	double turn = 0, now = 0;
	unsigned long user, system;
	FILE *stat;

	if (argc > 2) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(atoi(argv[2]), &set);
		sched_setaffinity(0, sizeof(set), &set);
	}
	while (now < end) {
		turn += 0.070;
		while ((now = cpu_seconds()) < turn && now < end)
			hot_a();
		turn += 0.030;
		while ((now = cpu_seconds()) < turn && now < end)
			hot_b();
	}
	stat = fopen("/proc/self/stat", "r");
	if (!stat || fscanf(stat, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
		return 1;
	printf("%lu %lu\n", user, system);
	return 0;
}
