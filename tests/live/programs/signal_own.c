/* SPDX-License-Identifier: MIT */
/* Handlers on an alternate stack that allocate, whatever they interrupt: the allocator is safe in handlers. */
#include <signal.h>
#include <sys/time.h>

#include "expect.h"
#include "own_allocator.h"

static volatile int handled, interrupted;

static void on_alarm(int number)
{
	(void)number;
	if (own_allocator_inside)
		interrupted++;
	void *first = malloc(10), *second = malloc(20000);
	EXPECT(first && second);
	free(first);
	second = realloc(second, 40000);
	free(second);
	handled++;
}

int main(void)
{
	static char alternate[65536];
	stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK};
	struct itimerval storm = {.it_interval = {0, 300}, .it_value = {0, 300}}, calm = {{0, 0}, {0, 0}};

	own_allocator_delay = 300;
	EXPECT(!sigaltstack(&stack, NULL));
	EXPECT(!sigaction(SIGALRM, &action, NULL));
	EXPECT(!setitimer(ITIMER_REAL, &storm, NULL));
	for (int i = 0; i < 5000 || handled < 300 || interrupted < 30; i++) {
		char *block = (char *)block_mark(malloc(64), 64, (unsigned char)i);
		EXPECT((unsigned char)block[0] == (unsigned char)i);
		free(block);
	}
	setitimer(ITIMER_REAL, &calm, NULL);
	puts("ok");
	return 0;
}
