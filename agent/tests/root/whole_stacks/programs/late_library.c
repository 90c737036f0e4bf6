// The library of loads_late.c.
#include "work.h"

KEPT void burn_in_the_library(unsigned long turns)
{
	for (unsigned long i = 0; i < turns; i++)
		sink ^= i;
}

KEPT void later_level_2(unsigned long turns)
{
	volatile char room[100];

	room[turns & 63] = 1;
	burn_in_the_library(turns);
	sink += room[0];
}

KEPT void later_level_1(unsigned long turns)
{
	volatile char room[40];

	room[turns & 31] = 1;
	later_level_2(turns);
	sink += room[0];
}
