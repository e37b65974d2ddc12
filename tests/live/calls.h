/* SPDX-License-Identifier: MIT */
/**
 * A log of heap calls that owes nothing to xheap: what it is checked against.
 *
 * One file per executed image, mapped shared, so that it survives any death of the process and is inherited by
 * forked children, who write to the same file with their own pid: nothing is opened after the first call. A record
 * is reserved when a call is entered and marked when it has returned. No lock, no allocation; no system call but at
 * the first call of a process or thread.
 *
 * The file lies in the directory named by the environment variable CALL_LOG; without it nothing is logged.
 * CALL_LOG_RECORDS is the most records of one file (default 8 Mi; the file is sparse).
 */
#ifndef CALLS_H
#define CALLS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
#define CALL_FUNCTIONS(X)                                                                                      \
	X(MALLOC, "malloc")                                                                                    \
	X(CALLOC, "calloc")                                                                                    \
	X(REALLOC, "realloc")                                                                                  \
	X(REALLOCARRAY, "reallocarray")                                                                        \
	X(FREE, "free")                                                                                        \
	X(CFREE, "cfree")                                                                                      \
	X(MEMALIGN, "memalign")                                                                                \
	X(ALIGNED_ALLOC, "aligned_alloc")                                                                      \
	X(POSIX_MEMALIGN, "posix_memalign")                                                                    \
	X(VALLOC, "valloc")                                                                                    \
	X(PVALLOC, "pvalloc")                                                                                  \
	X(FREE_SIZED, "free_sized")                                                                            \
	X(FREE_ALIGNED_SIZED, "free_aligned_sized")                                                            \
	X(NEW, "operator new")                                                                                 \
	X(DELETE, "operator delete")
/* clang-format on */

#define X(id, name) CALL_##id,
enum call_function { CALL_FUNCTIONS(X) CALL_COUNT };
#undef X

enum call_state { CALL_EMPTY, CALL_ENTERED, CALL_RETURNED };

struct call_record {
	uint32_t state;
	uint16_t function;
	uint16_t error; /**< errno, or what posix_memalign returned, of a failed call */
	uint32_t pid, tid;
	uint64_t entered, returned; /**< stamps from one counter of the file: the order of points */
	uint64_t argument[3];
	uint64_t result;
};
static_assert(sizeof(struct call_record) == 64, "compare.py reads it");

enum { CALL_HEADER_BYTES = 4096, CALL_NAME_BYTES = 32, CALL_MAGIC = 0x4c4c4143 };

struct call_header {
	uint32_t magic, function_count;
	uint64_t capacity;
	uint64_t count; /**< records reserved; those beyond capacity are lost */
	uint64_t stamp;
	uint64_t start_ns;    /**< CLOCK_MONOTONIC */
	uint32_t pid, second; /**< second: another log of an image that has one (built with CALLS_SECOND) */
	char names[64][CALL_NAME_BYTES];
	char path[1024];
};
static_assert(sizeof(struct call_header) <= CALL_HEADER_BYTES, "compare.py reads it");

/** A call begins. NULL when nothing is logged. Keeps errno; callable from anywhere, signal handlers included. */
struct call_record *call_enter(enum call_function function, uintptr_t first, uintptr_t second, uintptr_t third);

/** The call ended: with its result, and error when it failed (0 otherwise). */
void call_return(struct call_record *record, uintptr_t result, int error);

#endif
