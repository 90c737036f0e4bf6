// Asks the vDSO for the time all the time.
#include "work.h"

KEPT static void ask_the_clock_often(void)
{
	struct timespec now;

	for (int i = 0; i < 10000; i++) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		sink += now.tv_nsec;
	}
}

int main(int count, char **arguments)
{
	(void)count;
	begin(arguments);
	while (goes_on())
		ask_the_clock_often();
	return 0;
}
