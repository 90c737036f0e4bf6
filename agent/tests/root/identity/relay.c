// One process that becomes one program after the other: works in relay_work for some milliseconds of CPU time, then
// executes the next program of its list, so many times. Usage: NAME MILLISECONDS PROGRAMS_LEFT NUMBER PROGRAM...
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

static double seconds_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

__attribute__((noinline)) void relay_work(double seconds)
{
	double end = seconds_of(CLOCK_PROCESS_CPUTIME_ID) + seconds;

	while (seconds_of(CLOCK_PROCESS_CPUTIME_ID) < end)
		for (int i = 0; i < 2000; i++)
			sink += i * 31;
}

int main(int argc, char **argv)
{
	char number[16], left[16];
	int next;

	if (argc < 5)
		return 2;
	relay_work(atof(argv[1]) / 1000);
	if (atoi(argv[2]) <= 1)
		return 0;
	snprintf(left, sizeof(left), "%d", atoi(argv[2]) - 1);
	argv[2] = left;
	next = (atoi(argv[3]) + 1) % (argc - 4);
	snprintf(number, sizeof(number), "%d", next);
	argv[3] = number;
	argv[0] = argv[4 + next];
	execv(argv[0], argv);
	return 1;
}
