// Calls tiny functions of a library (plt_library.c) through the PLT.
#include "work.h"

unsigned long tiny_shared_function(unsigned long x);
unsigned long other_shared_function(unsigned long x);

KEPT static void call_through_the_plt(void)
{
	for (unsigned long i = 0; i < 20000; i++)
		sink += tiny_shared_function(i) + other_shared_function(i);
}

int main(int count, char **arguments)
{
	(void)count;
	begin(arguments);
	while (goes_on())
		call_through_the_plt();
	return 0;
}
