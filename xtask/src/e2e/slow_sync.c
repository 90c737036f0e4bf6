/* Preloaded into a server: a disk that takes a twentieth of a second for each thing that it is to have written. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

static int slowly(const char *name, int fd)
{
	const struct timespec pause = { 0, 50000000 };
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);

	nanosleep(&pause, 0);
	return real(fd);
}

int fsync(int fd) { return slowly("fsync", fd); }
int fdatasync(int fd) { return slowly("fdatasync", fd); }
