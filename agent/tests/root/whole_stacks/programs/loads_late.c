// Burns for half its time, then loads the library that its second argument names, and burns there.
#include "work.h"
#include <dlfcn.h>

KEPT static void burn_before_loading(void)
{
	while (clock() < limit / 2 * CLOCKS_PER_SEC)
		burn_at_the_leaf(50000);
}

KEPT static void burn_in_what_came_late(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	void (*enter)(unsigned long) = library ? (void (*)(unsigned long))dlsym(library, "later_level_1") : NULL;

	if (!enter)
		abort();
	while (goes_on()) {
		enter(50000);
		sink++;
	}
}

int main(int count, char **arguments)
{
	begin(arguments);
	burn_before_loading();
	burn_in_what_came_late(arguments[count - 1]);
	return 0;
}
