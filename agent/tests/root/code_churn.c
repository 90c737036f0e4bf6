// Makes executable memory and gives it back, all the time, as a run-time compiler might. Usage: NAME CPU_MILLISECONDS
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

int main(int argc, char **argv)
{
	double end = (argc > 1 ? atof(argv[1]) : 1000) / 1000;
	unsigned long made = 0;

	while ((double)clock() / CLOCKS_PER_SEC < end) {
		void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (code == MAP_FAILED || munmap(code, 4096))
			return 1;
		made++;
	}
	fprintf(stderr, "%lu mappings\n", made);
	printf("0 0\n");
	return 0;
}
