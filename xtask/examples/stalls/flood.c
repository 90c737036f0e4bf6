// Packets on a loopback device of its own whose receiving is one CPU's work, sent by another: softirqs that never come
// to an end. Argument: the CPU that receives. It runs until its standard input ends.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define AT_ONCE 64
// Half of the time, in parts that are longer than a tick.
#define ON_MS 300
#define OFF_MS 300

static int fail(const char *what)
{
	perror(what);
	return 1;
}

// The device of a new network namespace is down, and its queue is any CPU's.
static int make_device(int cpu)
{
	struct ifreq lo = { .ifr_name = "lo" };
	int any = socket(AF_INET, SOCK_DGRAM, 0);
	FILE *cpus;

	if (unshare(CLONE_NEWNET | CLONE_NEWNS))
		return fail("unshare (this needs root)");
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("sysfs", "/sys", "sysfs", 0, NULL))
		return fail("mount");
	close(any);
	any = socket(AF_INET, SOCK_DGRAM, 0);
	if (any < 0 || ioctl(any, SIOCGIFFLAGS, &lo))
		return fail("lo");
	lo.ifr_flags |= IFF_UP;
	if (ioctl(any, SIOCSIFFLAGS, &lo))
		return fail("lo");
	close(any);
	cpus = fopen("/sys/class/net/lo/queues/rx-0/rps_cpus", "w");
	if (!cpus || fprintf(cpus, "%x", 1U << cpu % 32) < 0)
		return fail("/sys/class/net/lo/queues/rx-0/rps_cpus");
	for (; cpu >= 32; cpu -= 32)
		fputs(",00000000", cpus);
	if (fclose(cpus))
		return fail("/sys/class/net/lo/queues/rx-0/rps_cpus");
	return 0;
}

static void *end_with_input(void *unused)
{
	char byte;

	while (read(0, &byte, 1) > 0)
		;
	exit(0);
	return unused;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	static char packet[64];
	struct iovec data = { .iov_base = packet, .iov_len = sizeof(packet) };
	struct mmsghdr messages[AT_ONCE];
	int cpu = argc > 1 ? atoi(argv[1]) : 0, receiver, sender;
	socklen_t length = sizeof(address);
	pthread_t input;
	cpu_set_t others;

	prctl(PR_SET_NAME, "flood");
	if (make_device(cpu))
		return 1;
	receiver = socket(AF_INET, SOCK_DGRAM, 0);
	sender = socket(AF_INET, SOCK_DGRAM, 0);
	if (bind(receiver, (struct sockaddr *)&address, sizeof(address)) ||
	    getsockname(receiver, (struct sockaddr *)&address, &length) ||
	    connect(sender, (struct sockaddr *)&address, length))
		return fail("a socket");
	sched_getaffinity(0, sizeof(others), &others);
	CPU_CLR(cpu, &others);
	// With one CPU it sends from that.
	if (CPU_COUNT(&others) > 0)
		sched_setaffinity(0, sizeof(others), &others);
	memset(messages, 0, sizeof(messages));
	for (int i = 0; i < AT_ONCE; i++) {
		messages[i].msg_hdr.msg_iov = &data;
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	if (pthread_create(&input, NULL, end_with_input, NULL))
		return 1;
	for (;;) {
		struct timespec pause = { .tv_nsec = OFF_MS * 1000000L }, now, end;

		clock_gettime(CLOCK_MONOTONIC, &end);
		end.tv_nsec += ON_MS * 1000000L;
		end.tv_sec += end.tv_nsec / 1000000000;
		end.tv_nsec %= 1000000000;
		do {
			// What finds no room at the receiver is dropped there, behind the softirq.
			sendmmsg(sender, messages, AT_ONCE, 0);
			clock_gettime(CLOCK_MONOTONIC, &now);
		} while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
		nanosleep(&pause, NULL);
	}
}
