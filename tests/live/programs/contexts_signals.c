/* SPDX-License-Identifier: MIT */
/* A signal handler works for another span, whatever it interrupts: the allocator is safe in handlers. The size of a block
   says what it is for: of a handler MARK_HANDLER, else one of the others. */
#include <signal.h>
#include <sys/time.h>

#include "contexts.h"
#include "expect.h"
#include "own_allocator.h"

enum { MARK_NONE = 10000, MARK_OWN = 20000, MARK_HANDLER = 30000 };

__attribute__((visibility("default"))) _Thread_local struct context_record *volatile otel_thread_ctx_v1;

static struct context_record own = {{1}, {2}, 1, 0, 0}, of_handler = {{3}, {4}, 1, 0, 0};
static volatile int interrupted;

static void on_alarm(int number)
{
	struct context_record *before = otel_thread_ctx_v1;
	(void)number;
	interrupted += own_allocator_inside != 0;
	otel_thread_ctx_v1 = &of_handler;
	free(malloc(MARK_HANDLER));
	otel_thread_ctx_v1 = before;
}

int main(void)
{
	struct sigaction action = {.sa_handler = on_alarm};
	struct itimerval storm = {.it_interval = {0, 300}, .it_value = {0, 300}}, calm = {{0, 0}, {0, 0}};

	own_allocator_delay = 300;
	EXPECT(!sigaction(SIGALRM, &action, NULL));
	EXPECT(!setitimer(ITIMER_REAL, &storm, NULL));
	for (int i = 0; i < 2000 || interrupted < 30; i++) {
		otel_thread_ctx_v1 = i % 8 < 4 ? &own : NULL;
		free(malloc(i % 8 < 4 ? MARK_OWN : MARK_NONE));
	}
	setitimer(ITIMER_REAL, &calm, NULL);
	puts("ok");
	return 0;
}
