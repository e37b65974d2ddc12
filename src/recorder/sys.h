/* SPDX-License-Identifier: MIT */
/** Replacements for a C library: system calls, the clock, memory. */
#ifndef XHEAP_RECORDER_SYS_H
#define XHEAP_RECORDER_SYS_H

#include <stddef.h>
#include <stdint.h>

#include "arch/cpu.h"
#include "recorder/recorder.h"
#include "region/atomic.h"
#include "region/layout.h"

/** Make a system call with four arguments. Return its result, or a negative errno. */
static inline long sys_call4(long number, long a, long b, long c, long d)
{
	return cpu_system_call(number, a, b, c, d, 0, 0);
}

/* Allow the logger to trace this process. Yama allows it only to ancestors and to the process that is named here;
   without Yama this fails and does no harm. */
static inline void logger_allow(const struct recorder *recorder)
{
	enum { PR_SET_PTRACER = 0x59616d61 };
	if (!recorder->no_syscalls)
		sys_call4(SYS_NUMBER_PRCTL, PR_SET_PTRACER, recorder->session_pid, 0, 0);
}

enum { CLOCK_RAW = 4 };

typedef int vdso_clock_call(int, int64_t *);

/* Return ticks without the processor's clock. A session that uses the kernel's clock reads it, if system calls are
   allowed, by the vDSO if the process has one (which may make a system call, too). Otherwise coarse_ticks, which the
   logger keeps near the time, is raised by one. */
static inline uint64_t clock_slow(const struct recorder *recorder, uint32_t options)
{
	struct region_header *region = recorder->region;
	int64_t time[2];
	int failure = -1;
	if (recorder->limits.clock == REGION_CLOCK_MONOTONIC_RAW && !recorder->no_syscalls) {
		if (recorder->vdso_clock && !(options & OPTION_NO_CLOCK))
			failure = ((vdso_clock_call *)recorder->vdso_clock)(CLOCK_RAW, time);
		else
			failure = (int)sys_call4(SYS_NUMBER_CLOCK_GETTIME, CLOCK_RAW, (long)time, 0, 0);
	}
	if (failure)
		return __atomic_add_fetch(&region->coarse_ticks, 1, __ATOMIC_RELAXED);
	return (uint64_t)time[0] * 1000000000u + (uint64_t)time[1];
}

/** Return ticks by the clock that the options name. */
static inline uint64_t clock_of(const struct recorder *recorder, uint32_t options)
{
	return __builtin_expect(options & OPTION_COARSE_CLOCK, 0) ? clock_slow(recorder, options) : cpu_ticks();
}

/** Return ticks. */
static inline uint64_t clock_now(const struct recorder *recorder)
{
	return clock_of(recorder, LOAD(&recorder->region->options));
}

/* Return whether 8 bytes at `address` can be read. The system call reads them and then fails for its first argument;
   EFAULT means that they cannot be read. */
static inline int page_is_readable(uint64_t address)
{
	return sys_call4(SYS_NUMBER_RT_SIGPROCMASK, -1, (long)address, 0, 8) != -14;
}

/** Copy bytes; the compiler's own calls use it without a library (builtins.c). */
void *memcpy(void *restrict to, const void *restrict from, size_t size);

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#endif
