// Changes whatever is read of it from outside, as fast as it can: mappings, thread names, its perf map, the file of a
// library while its code runs, and the program itself by exec. Usage: NAME RIGHT_LIBRARY WRONG_LIBRARY
// CHANGING_LIBRARY EXECS
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 40
/*
 * A process that maps all the time is looked at once a second: these run for longer, so that each program has a
 * library that is seen, one that is left as it is and one that is written over.
 */
#define LONG_ROUND(turn) ((turn) == 16 || (turn) == 17)
#define LONG_ROUND_NS 1400000000
/* What is called after the file was written over, and before the process is looked at again. */
#define WRITTEN_OVER_NS 900000000
#define LARGEST_LIBRARY (1 << 20)

static char map_path[64];

static size_t read_file(const char *path, char *to)
{
	int file = open(path, O_RDONLY);
	ssize_t bytes = read(file, to, LARGEST_LIBRARY);

	close(file);
	if (bytes <= 0)
		exit(2);
	return (size_t)bytes;
}

static void *change_mappings(void *unused)
{
	for (;;) {
		char *at = mmap(NULL, 16 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		mprotect(at + 4096, 4096, PROT_READ | PROT_EXEC);
		mprotect(at + 3 * 4096, 8 * 4096, PROT_READ | PROT_EXEC);
		munmap(at + 4 * 4096, 4096);
		munmap(at, 16 * 4096);
		usleep(200);
	}
	return unused;
}

static void *change_names(void *unused)
{
	char name[17] = "(a) b) R 1\n2";

	for (unsigned turn = 0;; turn++) {
		name[turn % 12] = (char)(turn % 255 + 1);
		prctl(PR_SET_NAME, name);
		usleep(300);
	}
	return unused;
}

/* Code that is made at run time, and a perf map that is whole, cut, empty, nonsense, a folder, a pipe or not there. */
static void *change_the_perf_map(void *made)
{
	for (unsigned turn = 0;; turn++) {
		FILE *map;

		unlink(map_path);
		rmdir(map_path);
		switch (turn % 8) {
		case 0:
			mkdir(map_path, 0700);
			break;
		case 1:
			mkfifo(map_path, 0600);
			break;
		case 2:
			break;
		default:
			map = fopen(map_path, "w");
			if (!map)
				break;
			fprintf(map, "zz zz nonsense\n%lx\n", (unsigned long)made);
			fprintf(map, "%lx %x made_at_run_time\n", (unsigned long)made, 15);
			fflush(map);
			if (turn % 8 == 3)
				ftruncate(fileno(map), 40);
			fclose(map);
		}
		usleep(2000);
	}
	return NULL;
}

static void *run_made_code(void *made)
{
	for (;;)
		((void (*)(void))made)();
	return NULL;
}

static long long monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Runs the right library's code from a file that is the wrong one before and after. */
static void run_the_changing_library(char **arguments, unsigned turn)
{
	static char right[LARGEST_LIBRARY], wrong[LARGEST_LIBRARY];
	size_t right_bytes = read_file(arguments[1], right), wrong_bytes = read_file(arguments[2], wrong);
	const char *path = arguments[3];
	struct timespec a_tick = {0, 10000000};
	unsigned long (*run)(unsigned long), (*run_later)(unsigned long);
	long long begun_ns;
	void *library;
	int file;

	if (turn % 4 == 0)
		unlink(path);
	file = open(path, O_RDWR | O_CREAT, 0700);
	if (file < 0 || right_bytes != wrong_bytes || ftruncate(file, (off_t)right_bytes) ||
	    pwrite(file, right, right_bytes, 0) != (ssize_t)right_bytes)
		exit(3);
	/* So that whoever looks at the file's time sees another one. */
	nanosleep(&a_tick, NULL);
	library = dlopen(path, RTLD_NOW);
	if (!library)
		exit(4);
	run = (unsigned long (*)(unsigned long))dlsym(library, "run");
	run_later = (unsigned long (*)(unsigned long))dlsym(library, "run_later");
	begun_ns = monotonic_ns();
	do
		run(20000000);
	while (LONG_ROUND(turn) && monotonic_ns() - begun_ns < LONG_ROUND_NS);
	nanosleep(&a_tick, NULL);
	/* The code has the same bytes: what was mapped stays right. */
	if (turn % 2 && pwrite(file, wrong, wrong_bytes, 0) != (ssize_t)wrong_bytes)
		exit(5);
	begun_ns = monotonic_ns();
	while (turn % 2 && LONG_ROUND(turn) && monotonic_ns() - begun_ns < WRITTEN_OVER_NS)
		run_later(2000000);
	dlclose(library);
	if (turn % 4 == 2) {
		if (ftruncate(file, turn % 8 == 2 ? 1 << 30 : 100))
			exit(6);
	} else if (turn % 4 == 0) {
		unlink(path);
	}
	close(file);
}

int main(int count, char **arguments)
{
	/* push rbp; mov rbp, rsp; mov eax, 2000000; loop: dec eax; jnz loop; pop rbp; ret */
	static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xb8, 0x80, 0x84, 0x1e,
					     0x00, 0xff, 0xc8, 0x75, 0xfc, 0x5d, 0xc3};
	void *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *(*threads[])(void *) = {change_mappings, change_names, change_the_perf_map, run_made_code};
	char left[16];
	int execs;

	if (count != 5 || made == MAP_FAILED)
		return 1;
	memcpy(made, code, sizeof(code));
	snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", getpid());
	for (unsigned i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, threads[i], made);
	}
	for (unsigned turn = 0; turn < ROUNDS; turn++)
		run_the_changing_library(arguments, turn);
	execs = atoi(arguments[4]);
	if (execs > 0) {
		snprintf(left, sizeof(left), "%d", execs - 1);
		arguments[4] = left;
		execv("/proc/self/exe", arguments);
	}
	unlink(map_path);
	rmdir(map_path);
	return 0;
}
