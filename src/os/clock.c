/* SPDX-License-Identifier: MIT */
#include "os/clock.h"

#include <time.h>

#include "arch/cpu.h"
#include "os/monotonic.h"

static bool is_kernel_used;

void clock_use_kernel(bool is_kernel)
{
	is_kernel_used = is_kernel;
}

uint64_t clock_ticks_of(bool is_kernel)
{
	struct timespec time;
	if (!is_kernel)
		return cpu_ticks();
	clock_gettime(CLOCK_MONOTONIC_RAW, &time);
	return (uint64_t)time.tv_sec * NS_PER_S + (uint64_t)time.tv_nsec;
}

uint64_t clock_event_ticks(void)
{
	return clock_ticks_of(is_kernel_used);
}
