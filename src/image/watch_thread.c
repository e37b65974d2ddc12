/* SPDX-License-Identifier: MIT */
#include "image/watch_thread.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* A nice value counts only within a session or a cgroup. */
void watch_priority_raise(int priority)
{
	setpriority(PRIO_PROCESS, 0, -20);
	sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &(struct sched_param){.sched_priority = priority});
}

void watch_memory_lock(void)
{
	enum { ROOM_BYTES = 64 << 20 };
	if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0)
		return;
	void *room = mmap(NULL, ROOM_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		munlockall();
	else
		munmap(room, ROOM_BYTES);
}

static bool start(void *(*run)(void *argument), void *argument, bool is_raised)
{
	enum { STACK_BYTES = 64 << 10 };
	pthread_attr_t attributes;
	pthread_t thread;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	if (is_raised) {
		pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
		pthread_attr_setschedpolicy(&attributes, SCHED_RR);
		pthread_attr_setschedparam(&attributes, &(struct sched_param){.sched_priority = WATCH_PRIORITY_READER});
	}
	bool has_started = pthread_create(&thread, &attributes, run, argument) == 0;
	pthread_attr_destroy(&attributes);
	return has_started;
}

bool watch_thread_start(void *(*run)(void *argument), void *argument)
{
	return start(run, argument, true) || start(run, argument, false);
}

static void *close_thread(void *fd)
{
	close((int)(intptr_t)fd);
	return NULL;
}

void watch_thread_close(int fd)
{
	if (!watch_thread_start(close_thread, (void *)(intptr_t)fd))
		close(fd);
}
