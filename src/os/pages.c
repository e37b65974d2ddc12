/* SPDX-License-Identifier: MIT */
#include "os/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "os/proc.h"

/* Of linux/fs.h, which has them from Linux 6.7 on. */
struct scan_region {
	uint64_t start, end, categories;
};
struct scan_request {
	uint64_t size, flags, start, end, walk_end, regions, region_count, page_count;
	uint64_t inverted, all_of, any_of, returned;
};
#define PAGES_SCAN _IOWR('f', 16, struct scan_request)
enum {
	SCAN_IS_WATCHED = 1 << 0,
	SCAN_IS_WRITTEN = 1 << 1,
	SCAN_IS_PRESENT = 1 << 3,
	SCAN_IS_SWAPPED = 1 << 4,
	SCAN_IS_ZERO = 1 << 5,
	SCAN_IS_HUGE = 1 << 6
};
enum { SCAN_PROTECTS = 1 };

enum {
	REGIONS_A_CALL = 512,
	CALLS_MAX = 1 << 16,
	PAGES_A_CALL = 1024,     /* found by one call */
	ENTRIES_A_CALL = 1 << 13 /* read by one call; the kernel locks for 512 of them at a time */
};
/* Looked at by one call, found or not. */
#define BYTES_A_CALL (UINT64_C(1) << 28)
#define ENTRY_IS_PRESENT (UINT64_C(1) << 63)
#define ENTRY_IS_SWAPPED (UINT64_C(1) << 62)

int pages_open(struct pages *pages, pid_t pid)
{
	*pages = (struct pages){.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE), .calls_left = CALLS_MAX};
	pages->fd = proc_open(pid, "pagemap", O_RDONLY);
	if (pages->fd < 0)
		return -errno;
	_Static_assert(sizeof(struct scan_region) * REGIONS_A_CALL <= sizeof(uint64_t) * ENTRIES_A_CALL, "one buffer");
	pages->entries = malloc(sizeof(uint64_t) * ENTRIES_A_CALL);
	if (pages->entries)
		return 0;
	pages_close(pages);
	return -ENOMEM;
}

void pages_close(struct pages *pages)
{
	if (pages->fd >= 0)
		close(pages->fd);
	free(pages->entries);
	*pages = (struct pages){.fd = -1};
}

/* Find runs from `low` on. Return where to go on, or 0 after an error, which is in errno. */
static uint64_t runs_scan(struct pages *pages, uint64_t low, uint64_t high,
			  void (*visit)(void *cookie, const struct pages_run *run), void *cookie)
{
	const struct scan_region *regions = (const struct scan_region *)pages->entries;
	struct scan_request request = {.size = sizeof(request),
				       .start = low,
				       .end = high - low < BYTES_A_CALL ? high : low + BYTES_A_CALL,
				       .regions = (uint64_t)(uintptr_t)regions,
				       .region_count = REGIONS_A_CALL,
				       .page_count = PAGES_A_CALL,
				       .inverted = SCAN_IS_ZERO,
				       .all_of = SCAN_IS_ZERO,
				       .any_of = SCAN_IS_PRESENT | SCAN_IS_SWAPPED,
				       .returned = SCAN_IS_SWAPPED | SCAN_IS_HUGE};
	if (pages->mode == PAGES_TAKE || pages->mode == PAGES_TAKE_WRITTEN)
		request.flags = SCAN_PROTECTS;
	if (pages->mode == PAGES_TAKE_WRITTEN)
		request.all_of |= SCAN_IS_WRITTEN;
	if (pages->mode == PAGES_TELL_WRITTEN)
		request.returned |= SCAN_IS_WATCHED | SCAN_IS_WRITTEN;
	int count = ioctl(pages->fd, PAGES_SCAN, &request);
	if (count < 0)
		return 0;
	for (int i = 0; i < count; i++)
		visit(cookie, &(struct pages_run){.low = regions[i].start,
						  .high = regions[i].end,
						  .is_swapped = regions[i].categories & SCAN_IS_SWAPPED,
						  .is_huge = regions[i].categories & SCAN_IS_HUGE,
						  .is_watched = regions[i].categories & SCAN_IS_WATCHED,
						  .is_written = regions[i].categories & SCAN_IS_WRITTEN});
	if (request.walk_end <= low || request.walk_end > high)
		errno = EIO;
	return request.walk_end > low && request.walk_end <= high ? request.walk_end : 0;
}

/* The same on kernels before 6.7, which have one entry for each page. */
static uint64_t runs_read(struct pages *pages, uint64_t low, uint64_t high,
			  void (*visit)(void *cookie, const struct pages_run *run), void *cookie)
{
	uint64_t first = low / pages->page_bytes, wanted = (high - low + pages->page_bytes - 1) / pages->page_bytes;
	size_t bytes = (size_t)(wanted < ENTRIES_A_CALL ? wanted : ENTRIES_A_CALL) * sizeof(uint64_t);
	ssize_t size = pread(pages->fd, pages->entries, bytes, (off_t)(first * sizeof(uint64_t)));
	uint64_t count = size > 0 ? (uint64_t)size / sizeof(uint64_t) : 0;
	if (!count) {
		errno = size < 0 ? errno : EIO;
		return 0;
	}
	const uint64_t wanted_bits = ENTRY_IS_PRESENT | ENTRY_IS_SWAPPED;
	for (uint64_t i = 0, next; i < count; i = next) {
		uint64_t bits = pages->entries[i] & wanted_bits;
		for (next = i + 1; next < count && (pages->entries[next] & wanted_bits) == bits;)
			next++;
		if (bits)
			visit(cookie, &(struct pages_run){.low = (first + i) * pages->page_bytes,
							  .high = (first + next) * pages->page_bytes,
							  .is_swapped = !(bits & ENTRY_IS_PRESENT)});
	}
	return (first + count) * pages->page_bytes;
}

int pages_each(struct pages *pages, uint64_t low, uint64_t high,
	       void (*visit)(void *cookie, const struct pages_run *run), void *cookie)
{
	while (low < high) {
		if (pages->calls_left == 0)
			return -ETIME;
		pages->calls_left--;
		uint64_t next = pages->has_no_scan ? 0 : runs_scan(pages, low, high, visit, cookie);
		if (!next && !pages->has_no_scan && (errno == ENOTTY || errno == EINVAL))
			pages->has_no_scan = true;
		if (!next && pages->has_no_scan)
			next = runs_read(pages, low, high, visit, cookie);
		if (!next)
			return -errno;
		low = next;
	}
	return 0;
}
