// Threads that compute and sleep, three for each CPU, so that they wait for one, for a few microseconds or for some
// milliseconds. Argument: seconds.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long long end_ns;

static long long now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void *compute_and_sleep(void *number)
{
	const long which = (long)number;
	const long long work_ns = 200000 * (which % 5 + 1);
	const struct timespec pause = { .tv_nsec = 700000 * (which % 3 + 1) };

	while (now_ns(CLOCK_MONOTONIC) < end_ns) {
		long long until = now_ns(CLOCK_THREAD_CPUTIME_ID) + work_ns;

		while (now_ns(CLOCK_THREAD_CPUTIME_ID) < until)
			;
		nanosleep(&pause, NULL);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const long threads = 3 * sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t thread;

	if (argc < 2)
		return 1;
	end_ns = now_ns(CLOCK_MONOTONIC) + (long long)(atof(argv[1]) * 1e9);
	for (long number = 1; number < threads; number++)
		if (pthread_create(&thread, NULL, compute_and_sleep, (void *)number))
			return 1;
	compute_and_sleep(NULL);
	// The others end within their next round.
	usleep(100000);
	return 0;
}
