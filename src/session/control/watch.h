/* SPDX-License-Identifier: MIT */
/**
 * Wake-ups for the logger. It sleeps on futexes, since targets can ring those.
 * A thread watches descriptors (the controllers' sockets, the ends of processes) and rings one more doorbell when one
 * of them has something new.
 */
#ifndef XHEAP_SESSION_WATCH_H
#define XHEAP_SESSION_WATCH_H

#include <stdint.h>

/** A private futex word that changes with each ring. */
struct doorbell {
	uint32_t word;
};

/** Ring: change the word and wake the logger. Any thread may call it. */
void doorbell_ring(struct doorbell *doorbell);

/** Begin to watch. Return an epoll descriptor, or -1; then the logger's regular rounds find news a little later. */
int watch_begin(struct doorbell *doorbell);

/** Ring whenever fd has something new, until fd is closed. */
void watch_add(int watch, int fd);

#endif
