/* SPDX-License-Identifier: MIT */
/* A program all of which keeps frame pointers, its allocator included. Like a profiler, it follows them to main: from
 * inside its malloc, and at any moment from a signal handler. Prints how often that failed. */
#include <signal.h>
#include <stdint.h>
#include <sys/time.h>
#include <ucontext.h>

#include "expect.h"

enum { ROOM = 1 << 20, DEPTH_MAX = 64, CALLS = 200000, FOREIGN_MAX = 1, FRAMES = 4 };

extern char __executable_start[], etext[];

struct frame {
	const struct frame *outer;
	uintptr_t pc;
};

static _Alignas(16) char room[ROOM];
static size_t used;
static const struct frame *main_frame;
static volatile long walks, lost, long_walks, samples, lost_samples;

/* The frames up to main, *foreign of them with code that is not the program's; 0: the chain does not lead there. */
static int walk(const struct frame *frame, int *foreign)
{
	for (int depth = 0; depth < DEPTH_MAX; depth++) {
		if (frame == main_frame)
			return depth + 1;
		*foreign += frame->pc - (uintptr_t)__executable_start >= (uintptr_t)(etext - __executable_start);
		if (frame->outer <= frame || frame->outer > main_frame)
			return 0;
		frame = frame->outer;
	}
	return 0;
}

static void look(const struct frame *frame)
{
	int foreign = 0, depth = walk(frame, &foreign);

	walks++;
	lost += depth == 0;
	long_walks += foreign > FOREIGN_MAX || (depth && depth - foreign != FRAMES);
}

__attribute__((noinline)) void *malloc(size_t size)
{
	look((const struct frame *)__builtin_frame_address(0));
	size = (size + 15) & -16ul;
	used = used + size > ROOM ? 0 : used;
	used += size;
	return room + used - size;
}

__attribute__((noinline)) void free(void *block)
{
	look((const struct frame *)__builtin_frame_address(0));
	(void)block;
}

/* Interrupted anywhere: in the program, or in code of ours. */
static void on_tick(int number, siginfo_t *information, void *context)
{
	const ucontext_t *interrupted = (const ucontext_t *)context;
	int foreign = 0;

	(void)number;
	(void)information;
	samples++;
	lost_samples += !walk((const struct frame *)(uintptr_t)interrupted->uc_mcontext.gregs[REG_RBP], &foreign);
}

__attribute__((noinline)) static void inner(int size)
{
	free(malloc(size));
	__asm__ volatile("");
}

__attribute__((noinline)) static void outer(int size)
{
	inner(size + 1);
	__asm__ volatile("");
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};

	main_frame = (const struct frame *)__builtin_frame_address(0);
	EXPECT(!sigaction(SIGPROF, &action, NULL) && !setitimer(ITIMER_PROF, &often, NULL));
	for (int i = 0; i < CALLS; i++)
		outer(i % 100);
	EXPECT(!setitimer(ITIMER_PROF, &never, NULL));
	dprintf(1, "walks %ld, lost %ld, with too many frames %ld; samples %s, lost %ld\n", walks, lost, long_walks,
		samples ? "some" : "none", lost_samples);
	return 0;
}
