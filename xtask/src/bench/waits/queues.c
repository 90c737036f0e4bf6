// Threads that compute and sleep, three for each CPU, so that they wait for one, for a few microseconds or for some
// milliseconds. Argument: seconds. Prints its process id at once, and at its end how often they were given a CPU and
// how long they had waited for it, in nanoseconds, as the kernel accounts.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long long end_ns;
static unsigned long long runs, waited_ns;

static long long now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void add_account(void)
{
	unsigned long long ran, waited, times;
	FILE *account = fopen("/proc/thread-self/schedstat", "r");

	if (!account || fscanf(account, "%llu %llu %llu", &ran, &waited, &times) != 3)
		exit(1);
	fclose(account);
	__atomic_fetch_add(&runs, times, __ATOMIC_RELAXED);
	__atomic_fetch_add(&waited_ns, waited, __ATOMIC_RELAXED);
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
	add_account();
	return NULL;
}

int main(int argc, char **argv)
{
	const long threads = 3 * sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t others[threads];

	if (argc < 2)
		return 1;
	printf("%d\n", getpid());
	fflush(stdout);
	end_ns = now_ns(CLOCK_MONOTONIC) + (long long)(atof(argv[1]) * 1e9);
	for (long number = 1; number < threads; number++)
		if (pthread_create(&others[number], NULL, compute_and_sleep, (void *)number))
			return 1;
	compute_and_sleep(NULL);
	for (long number = 1; number < threads; number++)
		pthread_join(others[number], NULL);
	printf("%llu %llu\n", runs, waited_ns);
	return 0;
}
