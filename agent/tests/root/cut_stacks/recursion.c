// One function that calls itself, 400 to 5,000 deep, each time another number of times; with a third argument always
// so deep. Usage: NAME CPU_MILLISECONDS [DEPTH]
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

__attribute__((noinline)) static unsigned long burn(unsigned long seed)
{
	for (unsigned long i = 0; i < 3000000; i++)
		sink += i * seed;
	return sink;
}

__attribute__((noinline)) static unsigned long descend(unsigned long depth)
{
	return depth == 0 ? burn(3) : descend(depth - 1) + depth + sink;
}

int main(int argc, char **argv)
{
	double end = argc > 1 ? atof(argv[1]) / 1000 : 1;
	unsigned long depth = argc > 2 ? strtoul(argv[2], NULL, 10) : 400;

	while ((double)clock() / CLOCKS_PER_SEC < end) {
		sink ^= descend(depth);
		if (argc <= 2)
			depth = depth < 4900 ? depth + 97 : 400 + depth % 97;
	}
	printf("0 0\n");
	return 0;
}
