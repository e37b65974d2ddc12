/* SPDX-License-Identifier: MIT */
#include "session/control/watch.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EVENTS_AT_ONCE = 16 };

struct watch {
	struct doorbell *doorbell;
	int epoll;
};

void doorbell_ring(struct doorbell *doorbell)
{
	__atomic_fetch_add(&doorbell->word, 1, __ATOMIC_ACQ_REL);
	syscall(SYS_futex, &doorbell->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Ring for each event, as long as the logger lives; the logger finds out what the event is about. */
static void *watch_thread(void *argument)
{
	struct watch *watch = argument;
	struct epoll_event events[EVENTS_AT_ONCE];
	while (epoll_wait(watch->epoll, events, EVENTS_AT_ONCE, -1) > 0 || errno == EINTR)
		doorbell_ring(watch->doorbell);
	free(watch);
	return NULL;
}

int watch_begin(struct doorbell *doorbell)
{
	struct watch *watch = malloc(sizeof(*watch));
	pthread_attr_t attributes;
	pthread_t thread;
	if (!watch)
		return -1;
	*watch = (struct watch){doorbell, epoll_create1(EPOLL_CLOEXEC)};
	int epoll = watch->epoll;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (epoll >= 0 && pthread_create(&thread, &attributes, watch_thread, watch) != 0) {
		close(epoll);
		epoll = -1;
	}
	if (epoll < 0)
		free(watch);
	pthread_attr_destroy(&attributes);
	return epoll;
}

void watch_add(int watch, int fd)
{
	/* Edge-triggered: nothing here reads the data, and the same news need not ring twice. */
	struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = fd};
	if (watch >= 0 && fd >= 0)
		epoll_ctl(watch, EPOLL_CTL_ADD, fd, &event);
}
