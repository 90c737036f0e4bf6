// Two threads that hand a byte to each other by pipes, on one CPU: each round trip is two switches. Arguments: the CPU,
// switches a second (0: as many as there can be), seconds. Prints round trips, and the CPU time of both in nanoseconds.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int there[2], back[2];

static long long now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void *answer(void *unused)
{
	char byte;

	while (read(there[0], &byte, 1) == 1)
		if (write(back[1], &byte, 1) != 1)
			break;
	return unused;
}

int main(int argc, char **argv)
{
	const long long slice_ns = 10000000;
	long long rate, end, next, trips = 0;
	pthread_t other;
	cpu_set_t cpus;
	char byte = 1;

	if (argc < 4 || pipe(there) || pipe(back))
		return 1;
	CPU_ZERO(&cpus);
	CPU_SET(atoi(argv[1]), &cpus);
	rate = atoll(argv[2]);
	if (sched_setaffinity(0, sizeof(cpus), &cpus) || pthread_create(&other, NULL, answer, NULL))
		return 1;
	next = now_ns(CLOCK_MONOTONIC);
	end = next + (long long)(atof(argv[3]) * 1e9);
	while (next < end) {
		// A fraction of a round trip in a slice is left to chance by the clock's own: rates are multiples of 200.
		long long left = rate ? rate * slice_ns / 2000000000 : 1000;

		for (; left > 0; left--, trips++)
			if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
				return 1;
		next += slice_ns;
		if (rate) {
			struct timespec at = { .tv_sec = next / 1000000000, .tv_nsec = next % 1000000000 };

			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		} else {
			next = now_ns(CLOCK_MONOTONIC);
		}
	}
	printf("%lld %lld\n", trips, now_ns(CLOCK_PROCESS_CPUTIME_ID));
	return 0;
}
