/* SPDX-License-Identifier: MIT */
/** x86-64. Only arch/cpu.h includes it. */
#include <stddef.h>
#include <stdint.h>

/** Numbers of the system calls that the recorder makes. */
enum {
	SYS_NUMBER_RT_SIGPROCMASK = 14,
	SYS_NUMBER_NANOSLEEP = 35,
	SYS_NUMBER_GETPID = 39,
	SYS_NUMBER_GETPPID = 110,
	SYS_NUMBER_MMAP = 9,
	SYS_NUMBER_MUNMAP = 11,
	SYS_NUMBER_MADVISE = 28,
	SYS_NUMBER_MSYNC = 26,
	SYS_NUMBER_GETTID = 186,
	SYS_NUMBER_CLOCK_GETTIME = 228,
	SYS_NUMBER_FUTEX = 202,
	SYS_NUMBER_FACCESSAT = 269,
	SYS_NUMBER_PRCTL = 157
};

/** DWARF's numbers of the frame pointer, the stack pointer and the return address. */
enum { CPU_DWARF_BP = 6, CPU_DWARF_SP = 7, CPU_DWARF_RETURN = 16 };

/** Bytes of a jump within 2 GiB, of one to anywhere, and of the longest form of a moved instruction. */
enum { CPU_JUMP_BYTES = 5, CPU_FAR_JUMP_BYTES = 14, CPU_MOVED_BYTES_MAX = 20 };

/** Where struct ucontext has these registers, in bytes: general ones begin at byte 40, and these are numbers 10, 15 and
    16. */
enum { CPU_CONTEXT_BP = 40 + 8 * 10, CPU_CONTEXT_SP = 40 + 8 * 15, CPU_CONTEXT_PC = 40 + 8 * 16 };

/** The time stamp counter, which never goes back. */
static inline uint64_t cpu_ticks(void)
{
	uint64_t low, high; /* the instruction clears their upper halves */
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
	return high << 32 | low;
}

/** Pause for a moment, in a loop that waits. */
static inline void cpu_pause(void)
{
	__asm__ volatile("pause");
}

/** Return the address of this thread's control block, which no other thread of the process has. */
static inline uint64_t cpu_thread_pointer(void)
{
	uint64_t value;
	__asm__("movq %%fs:0, %0" : "=r"(value));
	return value;
}

/** A system call; a negative errno is a failure. */
static inline long cpu_system_call(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;
	/* clang-format off */
	__asm__ volatile("syscall" : "=a"(result) : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	/* clang-format on */
	return result;
}

static inline void cpu_copy(void *restrict to, const void *restrict from, size_t size)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

static inline void cpu_fill(void *to, int value, size_t size)
{
	__asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(value) : "memory");
}

/**
 * Call function(a, b, c) so that debuggers find the hook's caller. frame: of the hook.
 *
 * Debuggers have no tables for a hook's frame. Of code that they know nothing of, gdb takes the word above the callee's
 * frame for the return address: it leads to the bytes of a return from a signal handler, behind which gdb expects the
 * registers of what was interrupted, at these distances. So a backtrace from inside the callee continues with the
 * hook's caller.
 */
static inline __attribute__((always_inline)) uint64_t cpu_call_shown(uint64_t frame, uint64_t function, uint64_t a,
								     uint64_t b, uint64_t c)
{
	uint64_t result = function;
	register uint64_t d __asm__("rcx") = 0;
	__asm__ volatile("sub $192, %%rsp\n\t"
			 "lea 1f(%%rip), %%r11\n\tmov %%r11, (%%rsp)\n\t"
			 "mov (%[frame]), %%r11\n\tmov %%r11, 128(%%rsp)\n\t"
			 "lea 16(%[frame]), %%r11\n\tmov %%r11, 168(%%rsp)\n\t"
			 "mov 8(%[frame]), %%r11\n\tmov %%r11, 176(%%rsp)\n\t"
			 "call *%[function]\n\tadd $192, %%rsp\n\t"
			 ".pushsection .text.marks, \"ax\"\n\tint3\n"
			 "1:\tmov $15, %%rax\n\tsyscall\n\tint3\n\t.popsection"
			 : [function] "+a"(result), "+D"(a), "+S"(b), "+d"(c), "+r"(d)
			 : [frame] "r"(frame)
			 : "r8", "r9", "r10", "r11", "memory", "cc");
	return result;
}
