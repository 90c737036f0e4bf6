// The library of plt.c.
unsigned long tiny_shared_function(unsigned long x)
{
	return x * 3 + 1;
}

__attribute__((noipa)) unsigned long innermost_shared_function(unsigned long x)
{
	return x ^ 5;
}

unsigned long other_shared_function(unsigned long x)
{
	return innermost_shared_function(x) + 1;
}
