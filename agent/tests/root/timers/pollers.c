// Ten threads on one CPU that each compute for 4 ms of their CPU time once in an interval, one after the other with
// equal distances.
// Usage: NAME CPU INTERVAL_MILLISECONDS SECONDS. It prints, for each, its thread id and the CPU seconds it took.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS 10
#define SECOND 1000000000LL
#define WORK (SECOND / 250)

static long long interval, rounds, begin;
static volatile unsigned long sink;

static long long now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * SECOND + time.tv_nsec;
}

static void *poll(void *argument)
{
	long long at = begin + (long)argument * (interval / THREADS);

	for (long long round = 0; round < rounds; round++, at += interval) {
		struct timespec until = { at / SECOND, at % SECOND };
		long long end;

		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
			;
		end = now(CLOCK_THREAD_CPUTIME_ID) + WORK;
		while (now(CLOCK_THREAD_CPUTIME_ID) < end)
			for (int i = 0; i < 1000; i++)
				sink += i;
	}
	printf("%ld %.6f\n", syscall(SYS_gettid), now(CLOCK_THREAD_CPUTIME_ID) / 1e9);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	cpu_set_t set;

	if (argc < 4)
		return 2;
	CPU_ZERO(&set);
	CPU_SET(atoi(argv[1]), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return 1;
	interval = atoll(argv[2]) * (SECOND / 1000);
	rounds = atoll(argv[3]) * SECOND / interval;
	begin = now(CLOCK_MONOTONIC) + SECOND / 4;
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, poll, (void *)i))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
