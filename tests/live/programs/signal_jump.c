/* SPDX-License-Identifier: MIT */
/*
 * A storm of signals whose handler jumps out of malloc, which the allocator below survives (own_allocator.h). The jump
 * is made only while the program waits for its own call, wherever in it the signal came.
 */
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

#include "../calls.h"
#include "expect.h"
#include "own_allocator.h"

static sigjmp_buf jump;
static volatile sig_atomic_t armed;
static volatile int jumps;

static void on_alarm(int number)
{
	(void)number;
	if (armed) {
		armed = 0;
		jumps++;
		siglongjmp(jump, 1);
	}
}

__attribute__((noinline)) static void allocate(int depth)
{
	if (depth > 0) {
		allocate(depth - 1);
		__asm__ volatile("");
		return;
	}
	/* Logged here and not inside: a call that was left after it had its result, and before it returned, did not
	   return. */
	armed = 1;
	struct call_record *record = call_enter(CALL_MALLOC, 100, 0, 0);
	void *block = malloc(100);
	call_return(record, (uintptr_t)block, 0);
	armed = 0;
	record = call_enter(CALL_FREE, (uintptr_t)block, 0, 0);
	free(block);
	call_return(record, 0, 0);
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_alarm};
	struct itimerval storm = {.it_interval = {0, 200}, .it_value = {0, 200}}, calm = {{0, 0}, {0, 0}};
	static volatile int done;

	own_allocator_delay = 2000;
	EXPECT(!sigaction(SIGALRM, &action, NULL));
	EXPECT(!setitimer(ITIMER_REAL, &storm, NULL));
	for (done = 0; done < 4000 || jumps < 200;) {
		if (!sigsetjmp(jump, 1)) {
			allocate(done % 20);
			done++;
		}
	}
	armed = 0;
	setitimer(ITIMER_REAL, &calm, NULL);
	return write(1, "ok\n", 3) != 3; /* stdio would allocate, unlogged */
}
