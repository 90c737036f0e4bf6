// Four threads throw through four levels of functions, which have something to clean up, and catch.
#include "work.h"
#include <pthread.h>
#include <stdexcept>

struct Cleanup {
	unsigned long value;
	~Cleanup() { sink += value; }
};

extern "C" {

KEPT void throwing_level_4(unsigned long x)
{
	Cleanup cleanup = {x};
	burn_at_the_leaf(2000);
	if (cleanup.value)
		throw std::runtime_error("thrown on purpose");
}

KEPT void throwing_level_3(unsigned long x)
{
	Cleanup cleanup = {x};
	throwing_level_4(x);
	sink += cleanup.value;
}

KEPT void throwing_level_2(unsigned long x)
{
	volatile char room[300];
	Cleanup cleanup = {x};
	room[x & 7] = 1;
	throwing_level_3(x + room[0]);
	sink += cleanup.value;
}

KEPT void throwing_level_1(unsigned long x)
{
	Cleanup cleanup = {x};
	throwing_level_2(x);
	sink += cleanup.value;
}

KEPT void *thread_that_catches(void *)
{
	while (goes_on()) {
		try {
			throwing_level_1(1);
		} catch (const std::exception &error) {
			sink += error.what()[0];
		}
	}
	return nullptr;
}

}

int main(int, char **arguments)
{
	pthread_t threads[4];

	begin(arguments);
	for (auto &thread : threads)
		if (pthread_create(&thread, nullptr, thread_that_catches, nullptr))
			return 1;
	for (auto &thread : threads)
		pthread_join(thread, nullptr);
	return 0;
}
