// Runs two libraries in turns, each loaded to where the other one lay, while it maps code all the time, so that it is
// seldom looked at. Says who is called by who calls. Usage: NAME ONE_LIBRARY OTHER_LIBRARY SECONDS
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define TURN_NS 150000000LL

typedef unsigned long run_function(unsigned long);

static long long monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void *map_code(void *unused)
{
	for (;;) {
		void *at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		munmap(at, 4096);
		usleep(1000);
	}
	return unused;
}

static __attribute__((noinline)) void call_one(run_function *run)
{
	run(200000);
	__asm__ volatile("");
}

static __attribute__((noinline)) void call_other(run_function *run)
{
	run(200000);
	__asm__ volatile("");
}

int main(int count, char **arguments)
{
	long long begun_ns = monotonic_ns();
	void *places[2] = {NULL, NULL};
	pthread_t thread;
	int same = 0;

	if (count != 4 || pthread_create(&thread, NULL, map_code, NULL))
		return 1;
	for (unsigned turn = 0; monotonic_ns() - begun_ns < atoll(arguments[3]) * 1000000000LL; turn++) {
		void *library = dlopen(arguments[1 + turn % 2], RTLD_NOW);
		long long turn_ns = monotonic_ns();
		run_function *run;

		if (!library)
			return 2;
		run = (run_function *)dlsym(library, "run");
		places[turn % 2] = (void *)run;
		same += places[0] == places[1];
		while (monotonic_ns() - turn_ns < TURN_NS)
			(turn % 2 ? call_other : call_one)(run);
		dlclose(library);
	}
	/* In the same place they must have been, or nothing was tried. */
	return same > 10 ? 0 : 3;
}
