/* Preloaded into a server: a clock that is AHEAD_S seconds ahead. Counters that nobody sets are left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int (*real)(clockid_t, struct timespec *);

__attribute__((constructor)) static void find(void)
{
	real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
	int result = real ? real(clock, at) : (int)syscall(SYS_clock_gettime, clock, at);

	if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		at->tv_sec += AHEAD_S;
	return result;
}

int gettimeofday(struct timeval *at, void *zone)
{
	struct timespec now;

	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &now))
		return -1;
	at->tv_sec = now.tv_sec;
	at->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *at)
{
	struct timespec now;

	if (clock_gettime(CLOCK_REALTIME, &now))
		return (time_t)-1;
	if (at)
		*at = now.tv_sec;
	return now.tv_sec;
}
