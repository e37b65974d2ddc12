/* SPDX-License-Identifier: MIT */
/**
 * What wakes the logger. It sleeps on futexes, since that is what targets can ring; a thread turns descriptors that
 * have something to say (the controller's socket, the ends of processes) into a ring of one more.
 */
#ifndef XHEAP_SESSION_WATCH_H
#define XHEAP_SESSION_WATCH_H

#include <stdint.h>

/** A private futex word that changes with each ring. */
struct doorbell {
	uint32_t word;
};

void doorbell_ring(struct doorbell *doorbell);

/** Begin to watch; the number of an epoll descriptor, or -1: then the logger's own rounds find everything a little
    later. */
int watch_begin(struct doorbell *doorbell);

/** Ring whenever fd has something new. Ends when fd is closed. */
void watch_add(int watch, int fd);

#endif
