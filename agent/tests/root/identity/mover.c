// Works in before_move, then moves itself, or a child that it forks, to another control group and works in after_move
// there. Usage: NAME child|itself CGROUP_PROCS_OF_THE_OTHER_GROUP SECONDS
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

__attribute__((noinline)) void before_move(double seconds)
{
	for (double end = now() + seconds; now() < end;)
		for (int i = 0; i < 20000; i++)
			sink += i * 31;
}

__attribute__((noinline)) void after_move(double seconds)
{
	for (double end = now() + seconds; now() < end;)
		for (int i = 0; i < 20000; i++)
			sink += i * 17;
}

// 0 is whoever writes it.
static int move(const char *path)
{
	FILE *file = fopen(path, "w");
	int failed = !file || fputs("0", file) < 0;

	return !file || fclose(file) || failed;
}

int main(int argc, char **argv)
{
	double seconds = argc > 3 ? atof(argv[3]) : 0;
	int status = 0;

	if (argc < 4)
		return 2;
	before_move(seconds / 2);
	if (!strcmp(argv[1], "child")) {
		pid_t child = fork();

		if (child) {
			before_move(seconds / 2);
			return child < 0 || waitpid(child, &status, 0) < 0 || status;
		}
	}
	if (move(argv[2]))
		return 1;
	after_move(seconds / 2);
	return 0;
}
