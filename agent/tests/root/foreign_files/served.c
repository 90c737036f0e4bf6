// A program whose code, and where that is allowed arguments and environment, lie in a file that nobody serves:
// reading it never ends. It mounts a FUSE filesystem at the given place, whose server, a child, answers everything
// but reads; maps its only file as code, makes it its command line, prints a line, and computes. Usage: NAME PLACE;
// needs root.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define BYTES 65536UL
#define FILE_NODE 2

static int device;
static volatile unsigned long sink;

static void answer(unsigned long id, int error, const void *body, unsigned bytes)
{
	struct fuse_out_header header = { .len = sizeof(header) + bytes, .error = -error, .unique = id };
	struct iovec parts[] = { { &header, sizeof(header) }, { (void *)body, bytes } };

	if (writev(device, parts, bytes ? 2 : 1) < 0 && errno != ENOENT)
		exit(1);
}

static struct fuse_attr attributes(unsigned long node)
{
	struct fuse_attr attributes = { .ino = node, .nlink = 1, .size = BYTES, .blksize = 4096 };

	attributes.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0755;
	return attributes;
}

static void serve(void)
{
	static char request[1 << 17];
	const struct fuse_in_header *header = (void *)request;

	for (;;) {
		if (read(device, request, sizeof(request)) < (long)sizeof(*header)) {
			if (errno == EINTR || errno == ENOENT)
				continue;
			exit(0);
		}
		switch (header->opcode) {
		case FUSE_INIT: {
			struct fuse_init_out out = { .major = 7, .minor = 31, .max_write = 65536, .max_readahead = 65536 };

			answer(header->unique, 0, &out, sizeof(out));
			break;
		}
		case FUSE_LOOKUP: {
			struct fuse_entry_out out = { .nodeid = FILE_NODE, .attr = attributes(FILE_NODE) };

			answer(header->unique, 0, &out, sizeof(out));
			break;
		}
		case FUSE_GETATTR: {
			struct fuse_attr_out out = { .attr = attributes(header->nodeid) };

			answer(header->unique, 0, &out, sizeof(out));
			break;
		}
		case FUSE_OPEN: {
			struct fuse_open_out out = { .fh = 1 };

			answer(header->unique, 0, &out, sizeof(out));
			break;
		}
		case FUSE_READ:
		case FUSE_FORGET:
		case FUSE_BATCH_FORGET:
		case FUSE_INTERRUPT:
			break;
		default:
			answer(header->unique, ENOSYS, NULL, 0);
		}
	}
}

__attribute__((noinline)) static void compute(void)
{
	for (;;)
		sink++;
}

int main(int argc, char **argv)
{
	char options[128], path[512];
	unsigned long address;
	int file;

	device = open("/dev/fuse", O_RDWR);
	if (argc < 2 || device < 0)
		return 77;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	if (mount("none", argv[1], "fuse.unserved", 0, options))
		return 77;
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve();
	}
	close(device);
	snprintf(path, sizeof(path), "%s/file", argv[1]);
	file = open(path, O_RDONLY);
	address = (unsigned long)mmap(NULL, BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
	if (file < 0 || address == (unsigned long)MAP_FAILED)
		return 78;
	// Not everybody may, and the file alone is enough.
	if (prctl(PR_SET_MM, PR_SET_MM_ARG_START, address, 0, 0) || prctl(PR_SET_MM, PR_SET_MM_ARG_END, address + 4000, 0, 0) ||
	    prctl(PR_SET_MM, PR_SET_MM_ENV_START, address + 8192, 0, 0) || prctl(PR_SET_MM, PR_SET_MM_ENV_END, address + 12000, 0, 0))
		fprintf(stderr, "its arguments stay where they are\n");
	printf("ready\n");
	fflush(stdout);
	compute();
	return 0;
}
