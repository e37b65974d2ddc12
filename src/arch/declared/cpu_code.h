/* SPDX-License-Identifier: MIT */
/** The names that each processor's cpu_code.h has; arch/x86_64/cpu_code.h has the comments. Only arch/cpu.h includes
    this file. */
#include <stddef.h>
#include <stdint.h>

extern const long SYS_NUMBER_RT_SIGPROCMASK, SYS_NUMBER_NANOSLEEP, SYS_NUMBER_GETPID, SYS_NUMBER_GETPPID,
	SYS_NUMBER_MMAP, SYS_NUMBER_MUNMAP, SYS_NUMBER_MADVISE, SYS_NUMBER_MSYNC, SYS_NUMBER_GETTID,
	SYS_NUMBER_CLOCK_GETTIME, SYS_NUMBER_FUTEX, SYS_NUMBER_FACCESSAT, SYS_NUMBER_PRCTL;
enum { CPU_DWARF_BP, CPU_DWARF_SP, CPU_DWARF_RETURN };
enum { CPU_CONTEXT_BP, CPU_CONTEXT_SP, CPU_CONTEXT_PC };
enum { CPU_JUMP_BYTES = 5, CPU_FAR_JUMP_BYTES = 14, CPU_MOVED_BYTES_MAX = 20 };
uint64_t cpu_ticks(void);
void cpu_pause(void);
uint64_t cpu_thread_pointer(void);
long cpu_system_call(long number, long a, long b, long c, long d, long e, long f);
void cpu_copy(void *restrict to, const void *restrict from, size_t size);
void cpu_fill(void *to, int value, size_t size);
uint64_t cpu_call_shown(uint64_t frame, uint64_t function, uint64_t a, uint64_t b, uint64_t c);
