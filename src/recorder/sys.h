/* SPDX-License-Identifier: MIT */
/** What the recorder has instead of a C library: raw system calls, the clock, memory. */
#ifndef XHEAP_RECORDER_SYS_H
#define XHEAP_RECORDER_SYS_H

#include <stddef.h>
#include <stdint.h>

#include "recorder/recorder.h"
#include "region/atomic.h"
#include "region/layout.h"

enum {
	SYS_NUMBER_RT_SIGPROCMASK = 14, SYS_NUMBER_NANOSLEEP = 35, SYS_NUMBER_GETPID = 39, SYS_NUMBER_MMAP = 9, SYS_NUMBER_MUNMAP = 11, SYS_NUMBER_MADVISE = 28, SYS_NUMBER_MSYNC = 26,
	SYS_NUMBER_GETTID = 186, SYS_NUMBER_CLOCK_GETTIME = 228, SYS_NUMBER_FUTEX = 202, SYS_NUMBER_FACCESSAT = 269, SYS_NUMBER_PRCTL = 157
};

static inline long sys_call6(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static inline long sys_call4(long number, long a, long b, long c, long d)
{
	return sys_call6(number, a, b, c, d, 0, 0);
}

/* The processor's time stamp counter, which never goes back. */
static inline uint64_t clock_ticks(void)
{
	uint64_t low, high; /* the instruction clears their upper halves */
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
	return high << 32 | low;
}

/* Yama lets only ancestors and whom a process names itself take hold of it. Elsewhere this fails, without harm. */
static inline void logger_allow(const struct recorder *recorder)
{
	enum { PR_SET_PTRACER = 0x59616d61 };
	if (!recorder->no_syscalls)
		sys_call4(SYS_NUMBER_PRCTL, PR_SET_PTRACER, recorder->session_pid, 0, 0);
}

enum { CLOCK_RAW = 4 };

typedef int vdso_clock_call(int, int64_t *);

/* Without the processor's clock: the kernel's, where the session goes by it and we may ask, by its code in the process if there is
 * any (it may make a system call, too); else one step of a count that the logger keeps near the time. */
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

static inline uint64_t clock_of(const struct recorder *recorder, uint32_t options)
{
	return __builtin_expect(options & OPTION_COARSE_CLOCK, 0) ? clock_slow(recorder, options) : clock_ticks();
}

static inline uint64_t clock_now(const struct recorder *recorder)
{
	return clock_of(recorder, LOAD(&recorder->region->options));
}

/* A system call that reads 8 bytes at its second argument and then fails for its first: EFAULT tells that they cannot be read. */
static inline int page_is_readable(uint64_t address)
{
	return sys_call4(SYS_NUMBER_RT_SIGPROCMASK, -1, (long)address, 0, 8) != -14;
}

static inline uint64_t thread_pointer(void)
{
	uint64_t value;
	__asm__("movq %%fs:0, %0" : "=r"(value));
	return value;
}

/** The compiler's own, without a library: see builtins.c. */
void *memcpy(void *restrict to, const void *restrict from, size_t size);

static inline void memcpy_8(void *to, const void *from)
{
	typedef uint64_t __attribute__((may_alias, aligned(1))) word;
	*(word *)to = *(const word *)from;
}

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#endif
