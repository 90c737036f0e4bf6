// Burns for half of its time, loads a library, burns there in short calls and ends. Usage: NAME LIBRARY
// CPU_MILLISECONDS
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sum;

__attribute__((noipa)) static void burn_before_loading(unsigned long turns)
{
	for (unsigned long i = 0; i < turns; i++)
		sum += i;
}

static double seconds(void)
{
	return (double)clock() / CLOCKS_PER_SEC;
}

int main(int argc, char **argv)
{
	double end = argc > 2 ? atof(argv[2]) / 1000 : 0;
	void (*burn)(unsigned long);
	void *library;

	while (seconds() < end / 2)
		burn_before_loading(50000);
	library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	burn = library ? (void (*)(unsigned long))dlsym(library, "burn_in_the_late_library") : NULL;
	if (!burn)
		return 1;
	while (seconds() < end)
		burn(50000);
	printf("0 0\n");
	return 0;
}
