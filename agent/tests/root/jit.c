// Runs code that it made itself, and says in a perf map what it is called. Usage: NAME CPU_MILLISECONDS
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	// push rbp; mov rbp, rsp; mov eax, 2000000; loop: dec eax; jnz loop; pop rbp; ret
	static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0xb8, 0x80, 0x84, 0x1e, 0x00, 0xff, 0xc8, 0x75, 0xfc, 0x5d, 0xc3 };
	double end = (argc > 1 ? atof(argv[1]) : 1000) / 1000;
	void *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];
	FILE *map;

	if (made == MAP_FAILED)
		return 1;
	memcpy(made, code, sizeof(code));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	if (!map)
		return 1;
	fprintf(map, "%lx %zx made_at_run_time\n", (unsigned long)made, sizeof(code));
	fclose(map);
	while ((double)clock() / CLOCKS_PER_SEC < end)
		((void (*)(void))made)();
	unlink(path);
	printf("0 0\n");
	return 0;
}
