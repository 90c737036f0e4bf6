// Code that this program makes, in memory of some kind: main -> run -> the made code. Usage: NAME KIND
// CPU_MILLISECONDS; ends with 77 where there is no such memory. When it has computed it waits for the end of its
// input.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <time.h>
#include <unistd.h>

#define BYTES (2UL << 20)
#define PIECES 5000UL

// push rbp; mov rbp, rsp; mov eax, 2000000; loop: dec eax; jnz loop; pop rbp; ret
static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0xb8, 0x80, 0x84, 0x1e, 0x00, 0xff, 0xc8, 0x75, 0xfc, 0x5d, 0xc3 };

static const int all = PROT_READ | PROT_WRITE | PROT_EXEC;
static char *writable, *runnable;
static volatile unsigned long sink;

static void views_of(int file)
{
	if (file < 0 || ftruncate(file, BYTES))
		exit(77);
	writable = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	runnable = mmap(NULL, BYTES, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
}

// As many mappings as there are pieces, each with a page between that may not be run.
static char *pieces(void)
{
	unsigned long page = sysconf(_SC_PAGESIZE);
	char *region = mmap(NULL, 2 * PIECES * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (region == MAP_FAILED)
		return region;
	for (unsigned long i = 0; i < PIECES; i++)
		if (mprotect(region + 2 * i * page, page, all))
			return MAP_FAILED;
	return region + 2 * (PIECES - 1) * page;
}

static void take_memory(const char *kind)
{
	char path[] = "/tmp/made-code-XXXXXX";

	if (!strcmp(kind, "memfd"))
		return views_of(memfd_create("made", 0));
	if (!strcmp(kind, "file")) {
		int file = mkstemp(path);

		unlink(path);
		return views_of(file);
	}
	if (!strcmp(kind, "shared") || !strcmp(kind, "dump"))
		writable = mmap(NULL, BYTES, all, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	else if (!strcmp(kind, "hugetlb"))
		writable = mmap(NULL, BYTES, all, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	else if (!strcmp(kind, "sysv")) {
		int id = shmget(IPC_PRIVATE, BYTES, 0700);

		writable = shmat(id, NULL, SHM_EXEC);
		shmctl(id, IPC_RMID, NULL);
	} else if (!strcmp(kind, "pieces"))
		writable = pieces();
	else if (!strcmp(kind, "late"))
		writable = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	runnable = writable;
}

__attribute__((noinline)) static void run(double seconds)
{
	double end = (double)clock() / CLOCKS_PER_SEC + seconds;

	while ((double)clock() / CLOCKS_PER_SEC < end)
		((void (*)(void))runnable)();
}

__attribute__((noinline)) static void work_of_a_file(double seconds)
{
	double end = (double)clock() / CLOCKS_PER_SEC + seconds;

	while ((double)clock() / CLOCKS_PER_SEC < end)
		for (int i = 0; i < 100000; i++)
			sink += i;
}

// Puts the program's own code into other memory, at the same addresses, as is done to have it on large pages.
static void remap_own_code(void)
{
	unsigned long start, end, own = (unsigned long)remap_own_code;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	void *copy;

	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &start, &end) == 2 && own >= start && own < end)
			break;
	fclose(maps);
	copy = mmap(NULL, end - start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(copy, (void *)start, end - start);
	mprotect(copy, end - start, PROT_READ | PROT_EXEC);
	if (mremap(copy, end - start, end - start, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)start) == MAP_FAILED)
		exit(77);
}

static void put(FILE *dump, unsigned long number, int bytes)
{
	fwrite(&number, bytes, 1, dump);
}

static void put_record(FILE *dump, int kind, unsigned long bytes)
{
	put(dump, kind, 4);
	put(dump, 16 + bytes, 4);
	put(dump, 0, 8);
}

// A jitdump instead of a perf map, and a page of it that can be run, by which it is found: lines 7, and from the loop
// on 9, of a file; and the code under a name.
static int write_dump(const char *path, const char *name, const char *source)
{
	unsigned long at = (unsigned long)runnable, head = 40, name_bytes = strlen(name) + 1;
	FILE *dump = fopen(path, "w+");

	if (!dump)
		return 77;
	put(dump, 0x4a695444, 4);
	put(dump, 1, 4);
	put(dump, head, 4);
	put(dump, 62, 4);
	put(dump, 0, 4);
	put(dump, getpid(), 4);
	put(dump, 1, 8);
	put(dump, 0, 8);
	put_record(dump, 2, 16 + 2 * 16 + strlen(source) + 1 + 2);
	put(dump, at, 8);
	put(dump, 2, 8);
	put(dump, at, 8);
	put(dump, 7, 4);
	put(dump, 0, 4);
	fwrite(source, strlen(source) + 1, 1, dump);
	put(dump, at + 9, 8);
	put(dump, 9, 4);
	put(dump, 0, 4);
	fwrite("\xff", 2, 1, dump);
	put_record(dump, 0, 40 + name_bytes + sizeof(code));
	put(dump, getpid(), 4);
	put(dump, getpid(), 4);
	put(dump, at, 8);
	put(dump, at, 8);
	put(dump, sizeof(code), 8);
	put(dump, 0, 8);
	fwrite(name, name_bytes, 1, dump);
	fwrite(code, sizeof(code), 1, dump);
	fflush(dump);
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) == MAP_FAILED ? 77 : 0;
}

int main(int argc, char **argv)
{
	int is_dump = argc > 1 && !strcmp(argv[1], "dump");
	double seconds = argc > 2 ? atof(argv[2]) / 1000 : 1;
	char path[64];
	FILE *map;

	if (argc > 1 && !strcmp(argv[1], "remapped")) {
		work_of_a_file(seconds / 4);
		remap_own_code();
		work_of_a_file(seconds);
		printf("0 0\n");
		return 0;
	}
	take_memory(argc > 1 ? argv[1] : "");
	if (!writable || writable == MAP_FAILED || runnable == MAP_FAILED)
		return 77;
	memcpy(writable, code, sizeof(code));
	if (!strcmp(argv[1], "late")) {
		work_of_a_file(seconds / 4);
		mprotect(writable, BYTES, PROT_READ | PROT_EXEC);
	}
	snprintf(path, sizeof(path), is_dump ? "/tmp/jit-%d.dump" : "/tmp/perf-%d.map", getpid());
	if (is_dump) {
		if (write_dump(path, "made_in_dump", "made.source"))
			return 77;
	} else {
		map = fopen(path, "w");
		if (!map)
			return 77;
		fprintf(map, "%lx %zx made_in_%s\n", (unsigned long)runnable, sizeof(code), argv[1]);
		fclose(map);
	}
	run(seconds);
	// Its map is there until somebody has read it.
	printf("done\n");
	fflush(stdout);
	getchar();
	unlink(path);
	return 0;
}
