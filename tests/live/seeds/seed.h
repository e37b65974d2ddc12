/* SPDX-License-Identifier: MIT */
/**
 * Code that foreign programs load, as their own extensions: five caches that fill and stop, and leaks that are sown by name.
 *
 * SEED in the environment names the function whose blocks are forgotten. All other functions make the same calls and free their blocks in time.
 * The clock of everything here is the number of requests, so a load of the same requests in less time makes the same heap calls.
 */
#ifndef SEEDS_SEED_H
#define SEEDS_SEED_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A function that has a frame of its own in stacks. */
#define SOWN __attribute__((noinline, noclone))

enum { INTERVAL = 50, BURST_INTERVAL = 500, SAMPLED = 100 }; /* requests */

/** Whether the function of this name is to leak. */
bool seed_is(const char *function);

/** Free a block, unless the function of this name is to leak it. Any thread. */
void seed_free(const char *function, void *block);

/** Use all five caches, as a request does. Returns the number of the request, from 1. Any thread. */
unsigned long caches_use(void);

#ifdef __cplusplus
}
#endif

#endif
