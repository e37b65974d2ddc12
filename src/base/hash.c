/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <sys/random.h>

static uint64_t secret[2];

/* Choose the secret. Any value will do, so threads that come here at once need no order. */
__attribute__((constructor)) static void secret_init(void)
{
	if (getrandom(secret, sizeof(secret), GRND_NONBLOCK) != (ssize_t)sizeof(secret)) {
		secret[0] = (uint64_t)(uintptr_t)&secret;
		secret[1] = HASH_FACTOR;
	}
}

uint64_t hash_pair(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)(a ^ secret[0]) * ((b ^ secret[1]) | 1);
	uint64_t mixed = (uint64_t)product ^ (uint64_t)(product >> 64) ^ b;
	product = (unsigned __int128)mixed * 0xd6e8feb86659fd93u;
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}
