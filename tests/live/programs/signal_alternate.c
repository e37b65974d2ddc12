/* SPDX-License-Identifier: MIT */
/* As signal_own, with the libc's allocator, which a handler may only call when it did not interrupt it. */
#include <signal.h>
#include <sys/time.h>

#include "expect.h"

static volatile sig_atomic_t busy;
static volatile int handled;

static void on_alarm(int number)
{
	(void)number;
	if (busy)
		return;
	void *block = malloc(10 + (size_t)handled % 1000);
	EXPECT(block);
	free(block);
	handled++;
}

int main(void)
{
	static char alternate[65536];
	stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK};
	struct itimerval storm = {.it_interval = {0, 200}, .it_value = {0, 200}}, calm = {{0, 0}, {0, 0}};

	EXPECT(!sigaltstack(&stack, NULL));
	EXPECT(!sigaction(SIGALRM, &action, NULL));
	EXPECT(!setitimer(ITIMER_REAL, &storm, NULL));
	for (int i = 0; i < 3000 || handled < 300; i++) {
		busy = 1;
		void *block = malloc(64);
		free(block);
		busy = 0;
		for (volatile int spin = 0; spin < 2000; spin++)
			;
	}
	setitimer(ITIMER_REAL, &calm, NULL);
	puts("ok");
	return 0;
}
