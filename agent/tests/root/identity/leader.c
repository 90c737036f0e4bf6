// Its first thread ends at once; another one works in second_thread until the process is killed.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline)) void second_thread(void)
{
	for (;;)
		for (int i = 0; i < 20000; i++)
			sink += i * 31;
}

static void *begin(void *unused)
{
	alarm(120);
	second_thread();
	return unused;
}

int main(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, begin, NULL))
		return 1;
	pthread_exit(NULL);
}
