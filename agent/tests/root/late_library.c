// The library of late_load.c.
volatile unsigned long sum_of_the_late_library;

__attribute__((noipa)) void burn_in_the_late_library(unsigned long turns)
{
	for (unsigned long i = 0; i < turns; i++)
		sum_of_the_late_library += i;
}
