// A timer's signal interrupts two levels of functions and burns in its handler; with a second argument on a stack of
// its own. The signal is blocked but where the truth is known.
#include "work.h"
#include <signal.h>
#include <string.h>
#include <sys/time.h>

static sigset_t alarms;
static char other_stack[256 * 1024];

KEPT static void burn_in_the_handler(void)
{
	for (unsigned long i = 0; i < 1000000; i++)
		sink ^= i;
}

static void on_alarm_signal(int number)
{
	burn_in_the_handler();
	sink += number;
}

/*
 * Without the C library: a signal that waits is delivered in this very call, and musl describes none of its
 * functions.
 */
static inline void mask_alarms(int how)
{
#if defined(__x86_64__)
	long result;
	register long bytes __asm__("r10") = 8;

	__asm__ volatile("syscall" : "=a"(result) : "a"(14L), "D"((long)how), "S"(&alarms), "d"(0L), "r"(bytes)
			 : "rcx", "r11", "memory");
#else
	sigprocmask(how, &alarms, NULL);
#endif
}

KEPT static void interrupted_level_2(void)
{
	volatile char room[72];

	room[0] = 1;
	mask_alarms(SIG_UNBLOCK);
	burn_at_the_leaf(2000000);
	mask_alarms(SIG_BLOCK);
	sink += room[0];
}

KEPT static void interrupted_level_1(void)
{
	volatile char room[200];

	room[0] = 1;
	interrupted_level_2();
	sink += room[0];
}

int main(int count, char **arguments)
{
	struct sigaction action;
	struct itimerval every = {{0, 5000}, {0, 5000}};

	begin(arguments);
	memset(&action, 0, sizeof(action));
	action.sa_handler = on_alarm_signal;
	if (count > 2) {
		stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof(other_stack)};

		sigaltstack(&stack, NULL);
		action.sa_flags = SA_ONSTACK;
	}
	sigemptyset(&alarms);
	sigaddset(&alarms, SIGALRM);
	sigprocmask(SIG_BLOCK, &alarms, NULL);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	while (goes_on())
		interrupted_level_1();
	return 0;
}
