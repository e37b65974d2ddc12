/* SPDX-License-Identifier: MIT */
/**
 * The files in which a runtime writes what it compiles.
 *
 * They are a stranger's. A file counts if it is a regular file of the process's user, of a local file system, and was
 * written since the process began. Nothing here waits.
 */
#ifndef XHEAP_SESSION_JIT_FILES_H
#define XHEAP_SESSION_JIT_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/** The process whose code it is. */
struct jit_process {
	pid_t pid;        /**< in this process's namespace */
	pid_t inner;      /**< in its own; 0: as it is found then */
	uid_t user;       /**< its user, if that cannot be asked any more; (uid_t)-1: unknown */
	int64_t since_ns; /**< of the real-time clock: when it began to be recorded */
	bool is_ours;     /**< it is in this process's pid namespace */
};

/** Return the process as it is now. inner: 0: unknown. */
struct jit_process jit_process_of(pid_t pid, pid_t inner);

/** Update what is known of the process, if it still runs: it may have changed its user, and begun before it was
    recorded. */
void jit_process_refresh(struct jit_process *process);

/** Open its perf map, which has this name behind all links. Return a descriptor, or -1. */
int jit_map_open(const struct jit_process *process);

/** Open its jitdump. Return a descriptor, or -1. */
int jit_dump_open(const struct jit_process *process);

/** Call `take` with each file that the process has open and that has no name, as a temporary one in /tmp has none, with
    its descriptor, which is closed then unless `take` returns true, and with its status. */
void jit_nameless_open(const struct jit_process *process, bool (*take)(void *of, int fd, const struct stat *status),
		       void *of);

#endif
