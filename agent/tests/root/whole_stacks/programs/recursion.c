// Two thousand calls of one function by itself.
#include "work.h"

KEPT unsigned long call_itself(unsigned long depth)
{
	volatile char room[24];

	room[depth & 15] = 1;
	if (depth == 0)
		burn_at_the_leaf(500000);
	else
		sink += call_itself(depth - 1);
	return room[0] + depth;
}

int main(int count, char **arguments)
{
	(void)count;
	begin(arguments);
	while (goes_on())
		call_itself(2000);
	return 0;
}
