// The first program burns for some milliseconds, then executes the second one under the same process id; that burns in
// a function whose frame is larger than what is copied of a stack, and most of it never touched.
// Usage of the first: NAME MILLISECONDS SECOND MILLISECONDS; of the second: NAME MILLISECONDS
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#ifdef TABLE
#include TABLE
#endif

static volatile unsigned long sink;

static void burn_for(double seconds)
{
	struct timespec t;
	double end = 0, now;

	do {
		for (unsigned long i = 0; i < 100000; i++)
			sink += i;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
		now = t.tv_sec + t.tv_nsec / 1e9;
		if (end == 0)
			end = now + seconds;
	} while (now < end);
}

__attribute__((noinline)) void burn_below_a_large_frame(double seconds)
{
	char large[128 * 1024];

	asm volatile("" : : "r"(large) : "memory");
	burn_for(seconds);
	asm volatile("" : : "r"(large) : "memory");
}

int main(int argc, char **argv)
{
	if (argc > 3) {
		burn_for(atof(argv[1]) / 1000);
		execl(argv[2], argv[2], argv[3], NULL);
		return 1;
	}
	burn_below_a_large_frame(atof(argv[1]) / 1000);
	return 0;
}
