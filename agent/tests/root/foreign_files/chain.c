// main -> OUTER -> INNER, where the time goes; two programs of this file have frames of different sizes. Usage: NAME
// CPU_MILLISECONDS
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef FRAME
#define FRAME 64
#endif

static volatile unsigned long sink;

__attribute__((noinline)) void INNER(unsigned long turns)
{
	for (unsigned long i = 0; i < turns; i++)
		sink += i * 31 ^ turns;
}

__attribute__((noinline)) void OUTER(unsigned long turns)
{
	volatile unsigned char frame[FRAME];

	for (unsigned i = 0; i < 8; i++) {
		frame[i * 7 % FRAME] = i;
		INNER(turns);
		sink += frame[i * 7 % FRAME];
	}
}

int main(int argc, char **argv)
{
	double end = (argc > 1 ? atof(argv[1]) : 1000) / 1000;

	while ((double)clock() / CLOCKS_PER_SEC < end)
		OUTER(100000);
	printf("0 0\n");
	return 0;
}
