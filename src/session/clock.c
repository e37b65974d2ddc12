/* SPDX-License-Identifier: MIT */
#include "session/clock.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "inject/inject.h"

enum { MEASURE_NS = 20000000, SHIFT = 32 };

static uint64_t raw_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC_RAW, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The kernel's own factors, which it puts into a perf event's mapped page (perf_event_open(2), cap_user_time). */
static bool read_kernel_rate(struct writer_clock *clock)
{
	struct perf_event_attr attributes = {.type = PERF_TYPE_SOFTWARE, .size = sizeof(attributes), .config = PERF_COUNT_SW_DUMMY,
					     .exclude_kernel = 1, .exclude_hv = 1};
	int fd = (int)syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return false;
	struct perf_event_mmap_page *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	bool has_rate = page != MAP_FAILED && page->cap_user_time && page->time_mult != 0;
	if (has_rate) {
		clock->mult = page->time_mult;
		clock->shift = page->time_shift;
	}
	if (page != MAP_FAILED)
		munmap(page, 4096);
	close(fd);
	return has_rate;
}

static void measure_rate(struct writer_clock *clock)
{
	uint64_t ns = raw_ns(), ticks = inject_ticks();
	struct timespec time = {0, MEASURE_NS};
	nanosleep(&time, NULL);
	uint64_t passed_ns = raw_ns() - ns, passed_ticks = inject_ticks() - ticks;
	clock->mult = (uint64_t)(((unsigned __int128)passed_ns << SHIFT) / (passed_ticks ? passed_ticks : 1));
	clock->shift = SHIFT;
}

void session_clock_read(struct session_clock *clock)
{
	struct timespec real;
	clock->writer.name = "tsc";
	if (!read_kernel_rate(&clock->writer))
		measure_rate(&clock->writer);
	clock_gettime(CLOCK_REALTIME, &real);
	clock->writer.start_ticks = inject_ticks();
	clock->writer.start_realtime_ns = (int64_t)real.tv_sec * 1000000000 + real.tv_nsec;
	clock->ticks_per_ms = (uint64_t)(((unsigned __int128)1000000 << clock->writer.shift) / clock->writer.mult);
}

uint64_t session_clock_ns(const struct session_clock *clock, uint64_t ticks)
{
	return (uint64_t)(((unsigned __int128)ticks * clock->writer.mult) >> clock->writer.shift);
}
