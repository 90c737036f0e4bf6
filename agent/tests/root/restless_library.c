// A library that is written over with another one, which differs in the name of one function only.
static __attribute__((noinline)) unsigned long NAME(unsigned long turns)
{
	volatile unsigned long sum = 0;

	for (unsigned long i = 0; i < turns; i++)
		sum += i;
	return sum;
}

unsigned long run(unsigned long turns)
{
	return NAME(turns) + 1;
}

/* Called only after the file was written over: nothing of it was named before. */
unsigned long run_later(unsigned long turns)
{
	volatile unsigned long sum = 1;

	for (unsigned long i = 0; i < turns; i++)
		sum += i;
	return sum;
}
