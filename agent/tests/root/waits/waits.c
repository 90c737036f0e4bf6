// Threads that wait at known places, each for one thing. Each says at its end what the kernel accounts of it: wall
// time, time on a CPU, time runnable without one, in nanoseconds, how often it got one; the rest of the wall time
// it slept.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline))

static double seconds;
static pthread_barrier_t barrier;
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

static long long now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void account(long long *run, long long *delay, long long *runs)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%ld/schedstat", syscall(SYS_gettid));
	file = fopen(path, "r");
	if (!file || fscanf(file, "%lld %lld %lld", run, delay, runs) != 3)
		exit(2);
	fclose(file);
}

static long long until;
static int nothing;

static int goes_on(void)
{
	return now_ns() < until;
}

struct work {
	const char *name;
	void (*work)(long);
	long argument;
};

static void *thread(void *argument)
{
	struct work *work = argument;
	long long begin, end, run, delay, runs, run_now, delay_now, runs_now;

	prctl(PR_SET_NAME, work->name);
	pthread_barrier_wait(&barrier);
	begin = now_ns();
	account(&run, &delay, &runs);
	work->work(work->argument);
	account(&run_now, &delay_now, &runs_now);
	end = now_ns();
	pthread_mutex_lock(&output);
	printf("%s %lld %lld %lld %lld\n", work->name, end - begin, run_now - run, delay_now - delay, runs_now - runs);
	pthread_mutex_unlock(&output);
	return NULL;
}

static void nap(long us)
{
	struct timespec time = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&time, NULL);
}

struct lock {
	_Atomic int word;
};
static struct lock locks[3];
static const long held_us[3] = { 1000, 10000, 1000000 };

APART void wait_for_the_lock(long which)
{
	while (goes_on()) {
		atomic_store(&locks[which].word, 1);
		syscall(SYS_futex, &locks[which].word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
	}
}

APART void hold_the_lock(long which)
{
	while (goes_on()) {
		nap(held_us[which]);
		atomic_store(&locks[which].word, 0);
		syscall(SYS_futex, &locks[which].word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	nap(50000);
	atomic_store(&locks[which].word, 0);
	syscall(SYS_futex, &locks[which].word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static int there[2], back[2];

APART void answer_by_pipe(long unused)
{
	char byte;

	(void)unused;
	while (read(there[0], &byte, 1) == 1)
		if (write(back[1], &byte, 1) != 1)
			break;
}

APART void ask_by_pipe(long us)
{
	char byte = 0;

	while (goes_on()) {
		nap(us);
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			break;
	}
	close(there[1]);
}

static int listener, port;

APART void receive_an_answer(long unused)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	char byte = 0;

	(void)unused;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
		exit(3);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	while (goes_on())
		if (send(fd, &byte, 1, 0) != 1 || recv(fd, &byte, 1, 0) != 1)
			break;
	close(fd);
}

APART void answer_late(long us)
{
	int fd = accept(listener, NULL, NULL);
	char byte;

	while (recv(fd, &byte, 1, 0) == 1) {
		nap(us);
		if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
			break;
	}
	close(fd);
}

APART void poll_for_nothing(long ms)
{
	int fd = epoll_create1(0);
	struct epoll_event event;

	while (goes_on())
		epoll_wait(fd, &event, 1, ms);
	close(fd);
}

static const char *path;

APART void read_the_disk(long unused)
{
	void *page = aligned_alloc(4096, 1 << 20);
	int fd = open(path, O_RDONLY | O_DIRECT);
	long at = 0;

	(void)unused;
	/* Not every filesystem can be read past the cache. */
	if (fd < 0 || !page)
		return;
	while (goes_on()) {
		if (pread(fd, page, 1 << 20, at) != 1 << 20)
			exit(5);
		at = (at + (1 << 20)) % (16 << 20);
	}
	close(fd);
}

APART void burn(long unused)
{
	volatile unsigned long count = 0;

	(void)unused;
	while (goes_on())
		for (int i = 0; i < 100000; i++)
			count++;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

APART void be_preempted(long unused)
{
	pin(0);
	burn(unused);
}

/* Takes the CPU half of the time. */
APART void preempt(long us)
{
	struct sched_param first = { .sched_priority = 1 };

	pin(0);
	if (sched_setscheduler(0, SCHED_FIFO, &first))
		exit(6);
	while (goes_on()) {
		long long end = now_ns() + us * 1000;

		while (now_ns() < end)
			;
		nap(us);
	}
}

/* As many switches as there may be. */
APART void answer_at_once(long unused)
{
	pin(0);
	answer_by_pipe(unused);
}

APART void ask_at_once(long unused)
{
	char byte = 0;

	(void)unused;
	pin(0);
	while (goes_on())
		for (int i = 0; i < 100; i++)
			if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
				exit(7);
	close(there[1]);
}

#define KEEP_CALLER() __asm__ volatile("" ::: "memory")

APART void sleep_there(void)
{
	usleep(2000);
	KEEP_CALLER();
}

APART void poll_there(void)
{
	epoll_wait(nothing, &(struct epoll_event){ 0 }, 1, 2);
	KEEP_CALLER();
}

APART void lock_there(void)
{
	struct timespec while_2ms = { .tv_nsec = 2000000 };
	int word = 0;

	syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &while_2ms, NULL, 0);
	KEEP_CALLER();
}

// Never twice at the same place: in user mode between, for some 100 microseconds.
APART void wait_at_each_in_turn(long unused)
{
	static void (*const places[])(void) = { sleep_there, poll_there, lock_there };

	(void)unused;
	nothing = epoll_create1(0);
	for (unsigned turn = 0; goes_on(); turn++) {
		long long begin = now_ns();

		while (now_ns() - begin < 100000)
			;
		places[turn % 3]();
	}
}

static struct work waiters[] = {
	{ "lock-1ms", wait_for_the_lock, 0 },	  { "lock-10ms", wait_for_the_lock, 1 },
	{ "lock-1s", wait_for_the_lock, 2 },	  { "timer-1ms", hold_the_lock, 0 },
	{ "timer-10ms", hold_the_lock, 1 },	  { "timer-1s", hold_the_lock, 2 },
	{ "pipe-answer", answer_by_pipe, 0 },	  { "pipe-ask", ask_by_pipe, 10000 },
	{ "network-10ms", receive_an_answer, 0 }, { "network-answer", answer_late, 10000 },
	{ "poll-10ms", poll_for_nothing, 10 },	  { "disk", read_the_disk, 0 },
};
static struct work burners[] = {
	{ "burn-1", burn, 0 }, { "burn-2", burn, 0 }, { "burn-3", burn, 0 }, { "burn-4", burn, 0 },
	{ "burn-5", burn, 0 }, { "burn-6", burn, 0 }, { "burn-7", burn, 0 }, { "burn-8", burn, 0 },
};
static struct work switching[] = {
	{ "answer", answer_at_once, 0 },
	{ "ask", ask_at_once, 0 },
};
static struct work places[] = {
	{ "places", wait_at_each_in_turn, 0 },
};
static struct work preempted[] = {
	{ "victim", be_preempted, 0 },
	{ "preferred", preempt, 10000 },
};

static void run(struct work *works, int count)
{
	pthread_t threads[16];

	pthread_barrier_init(&barrier, NULL, count);
	until = now_ns() + (long long)(seconds * 1e9);
	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, thread, &works[i]);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);

	if (argc < 4)
		return 1;
	seconds = atof(argv[2]);
	path = argv[3];
	if (!strcmp(argv[1], "burners")) {
		run(burners, 8);
	} else if (!strcmp(argv[1], "places")) {
		run(places, 1);
	} else if (!strcmp(argv[1], "preempted")) {
		run(preempted, 2);
	} else if (!strcmp(argv[1], "switching")) {
		if (pipe(there) || pipe(back))
			return 1;
		run(switching, 2);
	} else {
		listener = socket(AF_INET, SOCK_STREAM, 0);
		if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) ||
		    getsockname(listener, (struct sockaddr *)&address, &length) || pipe(there) || pipe(back))
			return 1;
		port = address.sin_port;
		run(waiters, sizeof(waiters) / sizeof(waiters[0]));
	}
	return 0;
}
