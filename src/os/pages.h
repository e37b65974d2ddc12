/* SPDX-License-Identifier: MIT */
/**
 * The resident pages of another process.
 *
 * The files `smaps` and `smaps_rollup` have them, too, but the kernel holds the lock of the process's mappings while it
 * looks at all pages of one mapping, or of all: the process may wait tens of milliseconds for memory (decision 38).
 * Here each call of the kernel looks at some thousand pages. Of memory that is watched the kernel also
 * knows which pages were written.
 */
#ifndef XHEAP_OS_PAGES_H
#define XHEAP_OS_PAGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** Pages in a row that are alike. */
struct pages_run {
	uint64_t low, high;
	bool is_swapped;             /**< swapped out; otherwise resident */
	bool is_huge;                /**< in huge pages; not known with has_no_scan */
	bool is_watched, is_written; /**< see PAGES_TELL_WRITTEN */
};

/** What is done with pages that are watched (inject/write_watch.h). */
enum pages_mode {
	PAGES_SEE,
	PAGES_TELL_WRITTEN, /**< tell which ones are watched, and which of them were written since they were taken */
	PAGES_TAKE,         /**< visit only watched ones, and take them */
	PAGES_TAKE_WRITTEN  /**< visit only watched ones that were written since they were taken, and take them */
};

/** An open list of pages. One thread uses it. */
struct pages {
	int fd;           /**< /proc/PID/pagemap */
	bool has_no_scan; /**< the kernel is older than 6.7, and each page is read */
	enum pages_mode mode;
	uint32_t calls_left; /**< of the kernel; so long sparse mappings cannot take all day */
	uint64_t page_bytes;
	uint64_t *entries; /**< a buffer for either way */
};

/** Begin to read. Return 0, or a negative errno: the process is gone, or may not be read. */
int pages_open(struct pages *pages, pid_t pid);

/** End. */
void pages_close(struct pages *pages);

/**
 * Call visit for each run of pages between two addresses that are resident or swapped out, in their order. Pages that
 * the process has only read and never written, and that have no memory of their own, are left out where the kernel says
 * so. Return 0, or a negative errno; -ETIME: too many calls were needed since pages_open().
 */
int pages_each(struct pages *pages, uint64_t low, uint64_t high,
	       void (*visit)(void *cookie, const struct pages_run *run), void *cookie);

#endif
